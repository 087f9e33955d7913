"""Names that only headings have, and two names that "of the" joins: neither is an entity.

A heading of common words ("License Grants", "Verbatim Copies") says what a section is about; its sentences name that
again if it matters. A line that a document repeats ("Prev UpChapter") is navigation. "Source Code Form of the Covered
Software" is two names if the document has both often and the whole seldom.

Keep out: capitals that headings explain (`finder.py`), cited headings (`cited_words.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from graphrag_pipeline.indexing.extraction.names.cues import ORGANIZATION_HEADS, STOPWORDS
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, is_also_a_word
from graphrag_pipeline.indexing.extraction.names.types.word_types import CONCEPT, UNKNOWN
from graphrag_pipeline.text.late_patterns import late_regex

MAX_HEADINGS = 0.5  # of the text of a document that has sentences
_MIN_REPEATED = 3
_MIN_JOINED = 3  # occurrences of each of two names that "of the" joins
_MIN_RATIO = 4  # times as many as of both together
_MIN_TITLED = 0.6  # of the words of a heading
_JOIN = late_regex(r"\s+of\s+the\s+")
_WORD = late_regex(r"\p{L}[\p{L}'’]*+")
_CAPITAL_AFTER = late_regex(r"[ \t]+\p{Lu}\p{Ll}")
_CAPITAL_BEFORE = late_regex(r"\p{Lu}\p{Ll}+[ \t]+$")


def drop_heading_names(
    names: Iterable[Name],
    types: Mapping[str, str],
    links: Mapping[str, str],
    text: str,
    sentences: Sequence[tuple[int, int]],
    headings: Sequence[bool],
) -> list[Name]:
    """Return the names without terms that only headings have, are of common words, cut from a longer one, or repeated.

    Args:
        types: type by canonical form; only names of type CONCEPT and UNKNOWN are dropped.
        links: canonical form of each written form.
        headings: for each sentence, whether it is a heading.
    """
    names = list(names)
    n_in_headings = sum(end - start for (start, end), is_one in zip(sentences, headings, strict=True) if is_one)
    if not 0 < n_in_headings <= MAX_HEADINGS * len(text):
        return names
    found: defaultdict[str, list[Name]] = defaultdict(list)
    for name in names:
        found[links[name.form]].append(name)
    dropped = {
        form
        for form, group in found.items()
        if types[form] in (CONCEPT, UNKNOWN)
        and all(name.sentence >= 0 and headings[name.sentence] for name in group)
        and _is_label(group, text)
        and all(_is_titled(text[slice(*sentences[name.sentence])]) for name in group)
    }
    return [name for name in names if links[name.form] not in dropped] if dropped else names


def _is_titled(heading: str) -> bool:
    """Whether most words of a heading have a capital, unlike those of a line of verse or of a list."""
    written = [word for word in _WORD.findall(heading) if word.upper() not in STOPWORDS]
    return sum(word[0].isupper() for word in written) > _MIN_TITLED * len(written)


def _is_label(group: Sequence[Name], text: str) -> bool:
    if len(group) >= _MIN_REPEATED or all(_is_cut(name, text) for name in group):
        return True
    return all(is_also_a_word(word) for word in _WORD.findall(group[0].form))


def _is_cut(name: Name, text: str) -> bool:
    """Whether another capitalized word stands beside a name: "Exim Internet" of "Exim Internet Mailer"."""
    before = _CAPITAL_BEFORE.search(text, max(name.start - 30, 0), name.start)
    return (_CAPITAL_AFTER.match(text, name.end) or before) is not None


def split_joined(names: Iterable[Name], text: str) -> list[Name]:
    """Return the names, with two names of common words that "of the" joins as two if the document mostly has each."""
    names = list(names)
    counts = Counter(name.form for name in names)
    joined = {form for form in counts if " of the " in form and _are_two(form, counts)}
    return [part for name in names for part in (_parts(name, text) if name.form in joined else (name,))]


def _are_two(form: str, counts: Counter[str]) -> bool:
    first, _, second = form.partition(" of the ")
    least = max(_MIN_JOINED, _MIN_RATIO * counts[form])
    if min(counts[first], counts[second]) < least or first.split()[-1].upper() in ORGANIZATION_HEADS:
        return False
    if " " not in first and " " not in second:  # "Ghost of the Future"
        return False
    return all(is_also_a_word(word) for word in _WORD.findall(f"{first} {second}"))


def _parts(name: Name, text: str) -> Iterator[Name]:
    match = _JOIN.search(text, name.start, name.end)
    if match is None:
        yield name
        return
    first, _, second = name.form.partition(" of the ")
    yield replace(name, form=first, end=match.start())
    yield replace(name, form=second, start=match.end())
