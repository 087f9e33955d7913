"""Occurrences of names in a document, and what stands beside them: an article, a slash, another name of a list.

Keep out: where names are (`finder.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.indexing.extraction.names.capitalization import (
    CapitalizationEvidence,
    is_proper_word,
    token_rank,
)
from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES
from graphrag_pipeline.text.late_patterns import late_regex

_SLASHED = late_regex(r"/\p{L}[\p{L}\p{Nd}]++(?!/|\.\w)")
_MIN_SLASHED = 3
_MIN_SLASHED_SHARE = 0.8  # of the occurrences of a name
_MIN_SLASHED_PHRASE_SHARE = 0.5
_LISTED = late_regex(r",?\s+(?:and\s+|or\s+)?")
_GOVERNING = late_regex(r"(?<!\p{L})(?:of|at|in|near|on|from|with|between|around|outside|off)\s+(?:the\s+)?$")
_NUMBER = late_regex(r"(?<!\d\d\d)\d[ \u00a0]$")  # not "the 1970 TV film"
_MAX_UNIT = 4  # letters
_ARTICLE = late_regex(r"\b[Tt]he\s+$")

title_of = lru_cache(maxsize=1 << 16)(normalize_title)
"""`normalize_title` with a cache, because a document repeats its names."""


@dataclass(frozen=True, slots=True)
class Name:
    """One occurrence of a name in a document.

    Attributes:
        form: the name as written, with white space and line breaks folded and without the possessive.
        start, end: character offsets of the name in the document's text.
        sentence: number of the sentence it is in.
    """

    form: str
    start: int
    end: int
    sentence: int


def include_articles(names: Iterable[Name], text: str) -> list[Name]:
    """Extend names of one common word by their article, if the document mostly writes them after "the" ("the Ghost").

    The form remains "Ghost": the article is part of the written text, not of the key. Other words are left unchanged:
    the article of "the Dampierre family" does not belong to the name.
    """
    names = list(names)
    articles = [_find_article(name, text) for name in names]
    n_names = Counter(name.form for name in names)
    n_articles = Counter(name.form for name, start in zip(names, articles, strict=True) if start is not None)
    return [
        replace(name, start=start) if start is not None and 2 * n_articles[name.form] > n_names[name.form] else name
        for name, start in zip(names, articles, strict=True)
    ]


def _find_article(name: Name, text: str) -> int | None:
    """Return the offset of the "the" before a common word with a capital, or None."""
    if name.form.isalpha() and name.form[0].isupper() and is_also_a_word(name.form):
        match = _ARTICLE.search(text, max(name.start - 6, 0), name.start)
        return match.start() if match else None
    return None


def text_before(text: str, name: Name, n: int) -> str:
    """Return up to `n` characters before a name, of its own paragraph: a heading says nothing of the next line."""
    before = text[max(name.start - n, 0) : name.start]
    end = before.rfind("\n\n")
    return before if end < 0 else before[end + 2 :]


def is_governed(text: str, name: Name) -> bool:
    """Whether a preposition governs a name, so that a verb behind it belongs to another noun: "the mayor of X said"."""
    return _GOVERNING.search(text, max(name.start - 12, 0), name.start) is not None


def is_also_a_word(form: str) -> bool:
    """Whether English also writes the word in lower case, and not mostly with a capital."""
    return token_rank(form.lower()) is not None and not is_proper_word(form.upper())


def join_slashes(names: list[Name], text: str) -> list[Name]:
    """Join a name with what follows a slash if the text mostly writes it so: "PL/pgSQL", "Debian GNU/Linux"."""
    if "/" not in text:
        return names
    tails: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for name in names:
        match = _SLASHED.match(text, name.end)
        tails[name.form][match.group() if match else ""] += 1
    joined = {
        form: tail
        for form, found in tails.items()
        for tail, n in found.items()
        if tail and _is_joined(form, n, found.total())
    }
    ends = {
        name: name.end + len(tail)
        for name in names
        if (tail := joined.get(name.form)) and text.startswith(tail, name.end)
    }
    inside = {name.end + 1 for name in ends}
    return [
        replace(name, form=name.form + joined.get(name.form, ""), end=ends.get(name, name.end))
        for name in names
        if name.start not in inside
    ]


def _is_joined(form: str, n: int, total: int) -> bool:
    """Whether a text writes a name so often with one tail; half is enough for several words, "Debian GNU/Linux"."""
    share = _MIN_SLASHED_PHRASE_SHARE if " " in form else _MIN_SLASHED_SHARE
    return n >= _MIN_SLASHED and n >= share * total


def drop_nameless(names: list[Name], text: str, evidence: CapitalizationEvidence) -> list[Name]:
    """Drop units, and plurals that name kinds."""
    return _drop_kinds(_drop_units(names, text), text, evidence)


def _drop_units(names: list[Name], text: str) -> list[Name]:
    """Drop units, which only follow numbers, twice or before a slash: "35 IU/ml", "20 Gbps"."""
    found = Counter(name.form for name in names if 1 < len(name.form) <= _MAX_UNIT and _may_be_unit(name.form))
    counted: Counter[str] = Counter()
    per: set[str] = set()
    for name in names:
        if name.form in found and _NUMBER.search(text, max(name.start - 8, 0), name.start):
            counted[name.form] += 1
            per |= {name.form} if text.startswith("/", name.end) else set()
    units = {form for form, n in counted.items() if n == found[form] and (n > 1 or form in per)}
    return [name for name in names if name.form not in units] if units else names


def _may_be_unit(form: str) -> bool:
    """Whether a form is an acronym or has no vowel: "IU", "Gbps"."""
    return form.isalpha() and ((form.isupper() and len(form) < _MAX_UNIT) or not set(form.upper()) & set("AEIOU"))


def _drop_kinds(names: list[Name], text: str, evidence: CapitalizationEvidence) -> list[Name]:
    """Drop plurals that are listed together if one is the plural of a name: "Cains and Abels" are kinds of people."""
    kinds: set[Name] = set()
    for a, b in pairwise(names):
        is_list = _may_be_kind(a, evidence) and _may_be_kind(b, evidence) and _LISTED.fullmatch(text, a.end, b.start)
        if is_list and (a in kinds or _is_plural_of_name(a.form) or _is_plural_of_name(b.form)):
            kinds |= {a, b}
    return [name for name in names if name not in kinds] if kinds else names


def _may_be_kind(name: Name, evidence: CapitalizationEvidence) -> bool:
    key = name.form.upper()
    return key.endswith("S") and key.isalpha() and evidence.capital[key] == 1 and not is_proper_word(key)


def _is_plural_of_name(form: str) -> bool:
    singular = form.upper().removesuffix("S")
    return singular in GIVEN_NAMES or is_proper_word(singular)
