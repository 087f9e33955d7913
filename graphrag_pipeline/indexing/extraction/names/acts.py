"""Acts of law by number or year: "Regulation (EU) No 1234/2013", "Public Law 104-191", "Companies Act 2006".

An act is one name with its number, which only tells it from other acts. The institution before it ("Council Directive
2006/42/EC") belongs to the written text, not to the name. An act that is cited in full may be cited by its head
afterwards: "the Directive" is the only directive of the document, "this Regulation" the act in its title.

Keep out: types (`types/`), other names (`finder.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import regex

from graphrag_pipeline.indexing.extraction.names.cues import STOPWORDS
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.text.late_patterns import late_regex

_HEAD = r"Regulation|Directive|Decision|Recommendation|Ordinance|Order|Law|Act|Resolution|Decree"
_BEFORE = r"(?:(?:Council|Commission|Delegated|Implementing|Framework)\s+)*+"
_NUMBER = (
    r"(?:\((?:EU|EC|EEC|ECSC|Euratom|CFSP)(?:,\s*Euratom)?\)\s+)?(?:[Nn]o\.?\s*)?"
    r"\d{1,4}/\d{2,5}(?:/(?:EU|EC|EEC|JHA|CFSP|Euratom))?|[Nn]o\.?\s*\d{2,6}"
)
_NUMBERED = late_regex(
    rf"(?<!\p{{L}}){_BEFORE}(?P<head>{_HEAD}|{_HEAD.upper()}|Executive\sOrder(?=\s\d)|Public\sLaw(?=\s\d)|(?:House|Senate|Assembly)\sBill(?=\s\d))\s+"
    rf"(?P<number>{_NUMBER}|(?<=Executive\sOrder\s|Public\sLaw\s|(?:House|Senate|Assembly)\sBill\s)\d+(?:[-\u2010\u2011\u2013]\d+)?+)(?![\p{{L}}\p{{Nd}}\u2010\u2011\u2013-])"
)
_CAPITAL = r"\p{Lu}[\p{L}’'-]*+"
_DATED_HEAD = r"(?:Act|Regulations|Rules|Ordinance|Order)"
_YEAR = r"\s+(?:of\s+)?(?:1[6-9]|20)\d\d(?![\p{L}\p{Nd}/-])"
_MAY_BE_DATED = late_regex(rf"\b{_DATED_HEAD}{_YEAR}")
_DATED = late_regex(
    rf"(?<![\p{{L}}\p{{Nd}}])(?P<title>{_CAPITAL}(?:,?\s+(?:{_CAPITAL}|\({_CAPITAL}(?:\s+{_CAPITAL})*+\)|"
    rf"(?:and|of(?:\sthe)?|for|to)(?=\s+{_CAPITAL}))){{0,12}}?\s+{_DATED_HEAD}){_YEAR}"
)
_WORD = late_regex(r"(\S+)\s+")
_MIN_TITLE = 12  # characters, so that more than the head is left
_ALONE = late_regex(
    r"\b(?P<article>[Tt]his|THIS|[Tt]he)\s+(?P<head>\p{Lu}\p{Ll}++|(?<=THIS\s)\p{Lu}++)"
    r"(?!\s+(?:\p{Lu}|\(|\d))(?!(?<=\b[Tt]he\s\p{L}+)\s+(?:of|on)\b)"
)


def find_acts(text: str, starts: Sequence[int]) -> list[Name]:
    """Find the acts of a document, in reading order, also where only the head of one stands.

    Args:
        starts: start offset of each sentence, in order.
    """
    acts = sorted(
        [Name(_fold(form), start, end, bisect_right(starts, start) - 1) for form, start, end in _find_full(text)],
        key=lambda name: name.start,
    )
    return sorted(acts + list(_find_heads(acts, text, starts)), key=lambda name: name.start) if acts else []


def prefer_acts(acts: Iterable[Name], names: Iterable[Name]) -> list[Name]:
    """Return the acts and the names that overlap none; a name that is an act without its year becomes the act."""
    acts = list(acts)
    if not acts:
        return list(names)
    begins = [act.start for act in acts]
    by_title = _by_title(acts)
    kept = list(acts)
    for name in names:
        before = bisect_right(begins, name.end - 1)
        if before and acts[before - 1].end > name.start:
            continue
        full = by_title.get(name.form, ())
        kept.append(Name(min(full), name.start, name.end, name.sentence) if len(full) == 1 else name)
    return sorted(kept, key=lambda name: (name.start, name.end))


def _find_full(text: str) -> Iterator[tuple[str, int, int]]:
    for match in _NUMBERED.finditer(text):
        yield f"{match['head'].title()} {match['number']}", *match.span()
    for match in _DATED.finditer(text) if _MAY_BE_DATED.search(text) else ():
        first = _WORD.match(text, match.start())
        line = match["title"].rfind("\nThe ")  # a heading before it: "18. Repeals"
        first = _WORD.match(text, match.start() + line + 1) if line >= 0 else first
        start = first.end() if first and first.group(1).upper() in STOPWORDS else match.start()  # "The Companies Act"
        if start < match.end("title") - _MIN_TITLE:
            yield text[start : match.end()], start, match.end()


def _find_heads(acts: list[Name], text: str, starts: Sequence[int]) -> Iterator[Name]:
    """Yield "this Act" for the act in the first lines, and "the Act" for the only act with this head."""
    by_head: defaultdict[str, set[str]] = defaultdict(set)
    for act in acts:
        by_head[_head_of(act.form)].add(act.form)
    own = acts[0].form if not text[: acts[0].start].strip("#*_= \n") else ""
    for match in _ALONE.finditer(text):
        head = match["head"].title()
        if match["article"].lower() == "the":
            fitting = by_head.get(head, set())
        else:
            fitting = {own} if own and head == _head_of(own) else set()
        if len(fitting) == 1:
            start, end = match.span("head")
            yield Name(min(fitting), start, end, bisect_right(starts, start) - 1)


def _head_of(form: str) -> str:
    words = regex.findall(r"\p{Lu}\p{Ll}+", form)
    return words[0] if regex.match(rf"(?:{_HEAD})\s+[\d(nN]", form) else words[-1]


def _by_title(acts: Iterable[Name]) -> dict[str, set[str]]:
    """Return title without year -> forms of the acts with it."""
    titles: defaultdict[str, set[str]] = defaultdict(set)
    for act in acts:
        match = _DATED.fullmatch(act.form)
        if match:
            titles[match["title"]].add(act.form)
    return titles


def _fold(form: str) -> str:
    return " ".join(form.replace("’", "'").split())
