"""Citations inside generated text: `[Data: Entities (id, id); Relationships (id)]`.

Reports and answers cite records this way, as Microsoft GraphRAG does. Stored text cites stable ids; a prompt cites
numbers that are local to it; a published report cites human-readable numbers. Indexing and query both use this module.

Citations that the pipeline wrote are parsed strictly. Citations that a model wrote (`split_written`, `replace_written`)
may have full-width brackets, ranges, singular or translated kinds, and lack closing brackets: numbers then end a
citation, and the text behind them stays. Keep out: records.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

KINDS = ("Entities", "Relationships", "Claims", "Reports", "Sources")

DATA_WORDS = tuple("data daten données datos dati dados данные 数据 數據 资料 資料 データ".split())  # noqa: SIM905
"""How models that answer in German, French, Spanish, Italian, Portuguese, Russian, Chinese or Japanese write "Data"."""

KIND_OF_RECORD = dict(zip(("entity", "relationship", "claim", "report", "text_unit"), KINDS, strict=True))
"""Kind of record -> kind in a citation."""

BLANKS = r"(?:(?<![ \t])[ \t]++)?+"
"""All blanks before a citation; a search that began inside of them would take the square of their number."""
_CITATION = re.compile(r"\[\s*Data\s*:\s*([^\[\]]*)\]", re.IGNORECASE)
_PART = re.compile(r"(?<!\w)(\w++)\s*+\(([^()]*+)\)")
_KIND_OF = {kind.lower(): kind for kind in KINDS}
_MORE = "+more"

OPENERS, _CLOSERS = "[\uff3b\u3010", "]\uff3d\u3011"
"""Brackets that a model may open a citation with."""
_ANY = re.escape(OPENERS + _CLOSERS)
_LETTER = r"[^\W\d_]"
_NAME = rf"{_LETTER}(?:{_LETTER}| ){{0,30}}"
_OPEN_PART = rf"\s*+{_NAME}[(\uff08](?:[\d+#\u2013-]|more|[,;\uff0c\u3001 \t]++(?=[\d+#\u2013m)\uff09-]))++"
"""A kind with numbers; what separates them is left out at its end, where it may join the citation to another one."""
_PART_END, _BETWEEN = r"[)\uff09]", r"(?:\s*+[,;\uff0c\uff1b])?"
NUMBERED = rf"{_OPEN_PART}{_PART_END}(?:{_BETWEEN}{_OPEN_PART}{_PART_END})*+"
"""Kinds with numbers, as inside a citation: the text of one without its closing bracket."""
_END = (
    rf"(?=[ \t]*+(?:[,; \t]*+\Z|\n|[.!?](?:\s|\Z)|[\u3002\uff01\uff1f]|[,;]*+\s*+[{re.escape(OPENERS)}]))"
    rf"(?![\s.!?]*+[{re.escape(_CLOSERS)}])"
)
_WRITTEN_TEXT = (
    rf"({BLANKS})[{re.escape(OPENERS)}]\s*+(?:{'|'.join(DATA_WORDS)})\s*+[:\uff1a]"
    rf"(?:((?:{NUMBERED}(?:{_BETWEEN}{_OPEN_PART})?+|{_OPEN_PART})){_END}"  # not closed, before an end
    rf"|([^{_ANY}]*)[{re.escape(_CLOSERS)}]"
    rf"|({NUMBERED}))"  # not closed, before other text
)
_WRITTEN = re.compile(_WRITTEN_TEXT, re.IGNORECASE)
_PART_TEXT = rf"(?<!{_LETTER})({_NAME})[(\uff08]([^()\uff08\uff09]*)(?:[)\uff09]|\Z)"
_PLAIN_PART = re.compile(rf"(?<!{_LETTER})({_NAME})[:#]?[ \t]*(\d(?:[\d, \t#+\u2013-]|more)*)")
"""A kind with numbers and no round brackets: "Reports 0, 33"."""
_ITEM = re.compile(r"(\d{1,9})(?:\s*[-\u2013]\s*(\d{1,9}))?")
_LONGEST_RANGE = 50
_WRITTEN_KINDS = {
    word: kind
    for kind, words in {
        "Entities": "entity entities entitäten entités entidades entità сущности 实体 實體 エンティティ",
        "Relationships": """relationship relationships relations beziehungen relaciones relações relazioni отношения
            связи 关系 關係 関係""",
        "Claims": """claim claims covariates behauptungen affirmations afirmaciones afirmações affermazioni утверждения
            声明 聲明 主张 主張""",
        "Reports": """report reports berichte rapports informes relatórios rapporti отчеты отчёты 报告 報告 報告書
            レポート""",
        "Sources": "source sources quellen fuentes fontes fonti источники 来源 來源 出处 出處 出典 ソース",
    }.items()
    for word in words.split()
}
"""A kind as models write it, in the languages of `DATA_WORDS`, too."""


def render_citation(records: Iterable[tuple[str, Iterable[str]]]) -> str:
    """Write one citation from (kind, ids) pairs; "" if there is no id."""
    parts = [f"{kind} ({', '.join(ids)})" for kind, ids in ((kind, list(ids)) for kind, ids in records) if ids]
    return f"[Data: {'; '.join(parts)}]" if parts else ""


def parse_citations(text: str) -> list[tuple[str, list[str]]]:
    """Parse the citations of a text.

    Returns:
        (kind, ids) in reading order, one per bracketed group and kind. A known kind is spelled as in `KINDS`,
        "+more" is not an id, and a group without an id is left out.
    """
    return [part for match in _CITATION.finditer(text) for part in _parse_parts(match.group(1))]


def strip_citations(text: str) -> str:
    """Return `text` without its citations and the blanks before them."""
    return _replace_citations(text, lambda body: "").strip()


def number_citations(text: str, numbers: Mapping[str, Mapping[str, int]]) -> str:
    """Replace the ids in citations by numbers.

    Args:
        text: cites ids.
        numbers: kind -> id -> number.

    Returns:
        `text` with numbers ascending within a kind. An id without a number is left out, and so is a citation without
        any number.
    """

    def number(body: str) -> str:
        parts = []
        for kind, ids in _parse_parts(body):
            known = numbers.get(kind, {})
            parts.append((kind, [str(n) for n in sorted({known[record] for record in ids if record in known})]))
        return render_citation(parts)

    return _replace_citations(text, number)


def _replace_citations(text: str, replace: Callable[[str], str]) -> str:
    """Replace each citation by what `replace` makes of its body; the blanks before an empty replacement are removed.

    A pattern that begins with blanks would be tried at each blank of the text, which takes ten times as long.
    """
    pieces: list[str] = []
    start = 0
    for match in _CITATION.finditer(text):
        replacement, before = replace(match.group(1)), text[start : match.start()]
        pieces += (before, replacement) if replacement else (before.rstrip(" \t"),)
        start = match.end()
    return "".join([*pieces, text[start:]]) if pieces else text


def render_full_content(title: str, summary: str, findings: Sequence[Mapping[str, str]]) -> str:
    """Render a report as markdown in Microsoft GraphRAG's layout; a finding has a `summary` and an `explanation`."""
    sections = [f"## {finding['summary']}\n\n{finding['explanation']}" for finding in findings]
    return "\n\n".join([f"# {title}", summary, *sections])


def split_cited(text: str) -> list[tuple[str, str]]:
    """Split a text after each citation into (text without the citation, citation or "")."""
    pieces, start = [], 0
    for match in _CITATION.finditer(text):
        pieces.append((text[start : match.start()].strip(), match.group(0)))
        start = match.end()
    pieces.append((text[start:].strip(), ""))
    return [(statement, citation) for statement, citation in pieces if re.search(r"\w", statement)]


Cited = list[tuple[str, list[str]]]
"""(kind, numbers) as a model cites them: an unknown kind as spelled, numbers without leading zeros, and other text in
the place of a number."""


def split_written(
    text: str, kinds_of_names: Mapping[str, str] = MappingProxyType({})
) -> Iterator[tuple[str, str, Cited | None]]:
    """Split a model's text at its citations: (text before, blanks, cited records), with None after the last one.

    Args:
        kinds_of_names: further names of kinds, in lower case -> kind; they go before the usual ones.
    """
    start = 0
    written, part = _compile_written(tuple(sorted(kinds_of_names, key=len, reverse=True)))
    for match in written.finditer(text) if _has_opener(text) else ():
        body = match.group(2) or match.group(3) or match.group(4) or ""
        parts = part.findall(body) or _PLAIN_PART.findall(body)
        cited = [(_kind_of_written(name.strip(), kinds_of_names), [*_read_items(items)]) for name, items in parts]
        yield text[start : match.start()], match.group(1), cited
        start = match.end()
    yield text[start:], "", None


@functools.lru_cache(64)
def _compile_written(names: tuple[str, ...]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return the patterns of a citation and of its parts, with further names of kinds, the longest first."""
    any_name = rf"(?:{'|'.join([rf'{re.escape(name)}[ ]*' for name in names] + [_NAME])})"
    written, part = (pattern.replace(_NAME, any_name) for pattern in (_WRITTEN_TEXT, _PART_TEXT))
    return re.compile(written, re.IGNORECASE), re.compile(part, re.IGNORECASE)


def _kind_of_written(name: str, kinds_of_names: Mapping[str, str]) -> str:
    folded = name.casefold()
    for known in sorted(kinds_of_names, key=len, reverse=True):
        if folded == known or folded.endswith(f" {known}"):
            return kinds_of_names[known]
    return _WRITTEN_KINDS.get(folded.split()[-1], name)


def _has_opener(text: str) -> bool:
    """Whether a text may hold a citation; much faster than the pattern."""
    return any(opener in text for opener in OPENERS)


def remove_written(text: str) -> str:
    """Return a text without the citations that a model wrote and the blanks before them."""
    return _WRITTEN.sub("", text) if _has_opener(text) else text


def replace_written(text: str, replace: Callable[[Cited], str]) -> str:
    """Replace each citation that a model wrote; the blanks before an empty replacement are removed."""
    pieces = []
    for before, blanks, cited in split_written(text):
        replacement = replace(cited) if cited is not None else ""
        pieces.append(before + blanks + replacement if replacement else before)
    return "".join(pieces)


def _read_items(listed: str) -> Iterator[str]:
    """ "1, 2, 5-7, +more" -> 1 2 5 6 7, without leading zeros."""
    for item in re.split(r"[,;\uff0c\u3001]", listed):
        match = _ITEM.fullmatch(item.strip().lstrip("#"))
        if match:
            first, last = int(match.group(1)), int(match.group(2) or match.group(1))
            yield from (str(n) for n in range(first, min(last, first + _LONGEST_RANGE) + 1))
        elif item.strip() and "more" not in item:
            yield item.strip()


def _parse_parts(body: str) -> list[tuple[str, list[str]]]:
    parts = []
    for name, listed in _PART.findall(body):
        ids = [record for record in (item.strip() for item in listed.split(",")) if record and record != _MORE]
        if ids:
            parts.append((_KIND_OF.get(name.lower(), name), ids))
    return parts
