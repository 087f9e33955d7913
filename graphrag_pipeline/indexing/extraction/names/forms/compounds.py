"""Compounds of an acronym and a noun: "ACE inhibitor", where "ACE" alone is only a part of the term.

A part whose longer form dominates is not a term of its own, as in the C-value of `terms/concepts.py`.

Keep out: terms in lower case (`terms/concepts.py`), acronyms with a long form (`acronyms.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from graphrag_pipeline.indexing.extraction.names.capitalization import token_rank
from graphrag_pipeline.indexing.extraction.names.cues import STOPWORDS, TERMS_IN_CAPITALS
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.terms.background import load_ranks
from graphrag_pipeline.indexing.extraction.names.terms.concept_words import GENERAL, VAGUE
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import describes_noun
from graphrag_pipeline.indexing.extraction.names.terms.word_forms import may_be_adjective, may_be_noun, singular_of
from graphrag_pipeline.indexing.extraction.names.types.word_types import CONCEPT, PERSON
from graphrag_pipeline.text.late_patterns import late_regex

_MIN_COMPOUNDS = 3
_MIN_RARE = 2  # compounds of a rare word that the text has nowhere else
_MAX_LETTERS = 2  # of an acronym that says nothing alone: "DC" of "the DC link"
_NO_HEADS = GENERAL | VAGUE
_MIN_SHARE = 0.75  # of the occurrences of an acronym
_HYPHENED = late_regex(r"[-\u2010]\p{Ll}{3,}+(?: \p{Ll}{4,}+)?(?![\p{L}'’-])")
_NOUN = late_regex(r"[ \n]+(\p{Ll}{3,}+)\b(?![\p{L}'’-])")


def join_compounds(
    names: Iterable[Name], types: Mapping[str, str], links: Mapping[str, str], text: str
) -> tuple[list[Name], dict[str, str]]:
    """Return the names, with acronyms extended by the noun that mostly follows them, and acronym -> its compound.

    Args:
        names: every occurrence of a name in the document.
        types: type by canonical form.
        links: canonical form of each written form.
    """
    names = list(names)
    followers: defaultdict[str, Counter[str]] = defaultdict(Counter)
    described: set[str] = set()
    of_persons = {word for form, kind in types.items() if kind == PERSON for word in form.split()}
    for name in names:
        if (
            (name.form.isupper() or (_is_rare_title(name.form) and name.form not in of_persons))
            and " " not in name.form
            and links[name.form] == name.form
            and types[name.form] == CONCEPT
        ):
            followers[name.form][_noun_after(name, text)] += 1
            if name.form not in described and describes_noun(text, name):
                described.add(name.form)
    nouns = {form: noun for form in described if (noun := _choose_noun(form, followers[form]))}
    names, hyphenated = _join_hyphens([_extend(name, nouns, text) for name in names], set(followers), text)
    return names, {form: f"{form} {noun}" for form, noun in nouns.items()} | hyphenated


def _join_hyphens(names: list[Name], acronyms: set[str], text: str) -> tuple[list[Name], dict[str, str]]:
    """Extend acronyms that the text only writes before a hyphen and one noun: "ST" of "ST-segment elevation"."""
    tails: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        if name.form in acronyms:
            match = _HYPHENED.match(text, name.end)
            tails[name.form].add(" ".join(match.group().split()) if match else "")
    joined = {
        form: form + tail
        for form, (tail, *others) in tails.items()
        if tail and not others and all(map(_is_noun, tail[1:].split()))
    }
    longer = {form: len(long) - len(form) for form, long in joined.items()}
    return [
        replace(name, form=joined[name.form], end=name.end + longer[name.form]) if name.form in joined else name
        for name in names
    ], joined


def _is_noun(word: str) -> bool:
    return may_be_noun(word) and not may_be_adjective(word) and word.upper() not in STOPWORDS


def _is_rare_title(form: str) -> bool:
    return form.istitle() and form.isalpha() and token_rank(form.lower()) is None


def _choose_noun(form: str, found: Counter[str]) -> str:
    noun, n = found.most_common(1)[0]
    if not form.isupper():  # "Maugean skate"
        return noun if n == found.total() >= _MIN_RARE else ""
    if len(form) <= _MAX_LETTERS and form.isalpha() and form not in TERMS_IN_CAPITALS:
        return noun if n == found.total() else ""
    is_term = noun.upper() not in _NO_HEADS
    return noun if noun and is_term and n >= max(_MIN_COMPOUNDS, _MIN_SHARE * found.total()) else ""


def _noun_after(name: Name, text: str) -> str:
    match = _NOUN.match(text, name.end)
    word = match.group(1) if match else ""
    if not word or not may_be_noun(word) or word.endswith(("ing", "ly")):
        return ""
    return singular_of(word, load_ranks(), least=4) or word


def _extend(name: Name, nouns: Mapping[str, str], text: str) -> Name:
    noun = nouns.get(name.form)
    match = _NOUN.match(text, name.end) if noun else None
    if match is None or _noun_after(name, text) != noun:
        return name
    return replace(name, form=f"{name.form} {noun}", end=match.end())
