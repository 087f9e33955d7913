"""Contexts that a model is shown, and the records in them that its text may cite.

A context that does not fit the window of a model is made shorter. Its parts are in rank order, so the last record of a
part matters least.

Citations in a chat model's text while it is streamed: `[Data: Sources (3)]` becomes `[1]` with its source.

A citation resolves from the record to the passage of its text units that supports the statement before it, with the
document's offsets. A number that the prompt did not show is invented: it is removed and counted. So is a bare "[3]",
which would look like a marker of ours. The word or comma that joined it to another citation is removed too. Text is
handed on as soon as no citation can begin in it. Keep out: calling the model.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from graphrag_pipeline.citations import (
    BLANKS,
    DATA_WORDS,
    NUMBERED,
    OPENERS,
    Cited,
    parse_citations,
    render_citation,
    split_written,
)
from graphrag_pipeline.query.answers.evidence import EvidenceFinder, cite
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.rendering import PLAIN, ContextStyle, render_context
from graphrag_pipeline.query.results import Citation, Context, TextUnitRecord
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.tokens import count_tokens

ROW_TOKENS = 4
"""Tokens of a row of a context besides its text."""
FILLED_SHARE = 0.9
"""Share of the room that a shorter context may fill: a model that counts more tokens keeps room for its reply."""


def shorten_context(context: Context, n_tokens: int, style: ContextStyle = PLAIN) -> Context | None:
    """Return the context without its last records, at least `n_tokens` tokens shorter; None if nothing would be left.

    The part with the most tokens loses its last record, until enough is gone. The first text unit goes last if it takes
    at most half of the room: without a passage, an answer has nothing to quote.

    Args:
        style: in which the context is shown, and counted.
    """
    most = int(FILLED_SHARE * (count_tokens(render_context(context, style)) - n_tokens))
    if most <= 0:
        return None
    is_passage_kept = any(unit.n_tokens <= most // 2 for unit in context.text_units[:1])
    order = _removal_order(context, int(is_passage_kept))
    counts = range(len(order))
    n = bisect_left(counts, -most, key=lambda n: -count_tokens(render_context(_without(context, order[:n]), style)))
    return _without(context, order[:n]) if n < len(order) else None


def _removal_order(context: Context, n_kept: int) -> list[str]:
    """Return for each record of a context the part that loses its last record then; the first text units go last."""
    sizes = {name: [record.n_tokens + ROW_TOKENS for record in records] for name, records in vars(context).items()}
    order = []
    while any(sizes.values()):
        left = [name for name in sizes if len(sizes[name]) > n_kept * (name == "text_units")] or ["text_units"]
        name = max(left, key=lambda name: (sum(sizes[name]), name))
        sizes[name].pop()
        order.append(name)
    return order


def _without(context: Context, removed: list[str]) -> Context:
    """Return a context whose parts lose their last record as often as they are named."""
    parts = {name: records[: len(records) - removed.count(name)] for name, records in vars(context).items()}
    return replace(context, **parts)


def split_context(context: Context) -> tuple[Context, ...]:
    """Return two contexts with half of the records of each part; none if the context has less than two records."""
    if count_records(context) < 2:
        return ()
    middles = {name: (len(records) + 1) // 2 for name, records in vars(context).items()}
    first = {name: records[: middles[name]] for name, records in vars(context).items()}
    second = {name: records[middles[name] :] for name, records in vars(context).items()}
    return tuple(half for half in (replace(context, **first), replace(context, **second)) if not half.is_empty)


def count_records(context: Context) -> int:
    """Return the number of records of all parts."""
    return sum(len(records) for records in vars(context).values())


# ----------------------------------------------------------------------------------------------------------- citations

MAX_CITED = 10
"""Most records of one citation that get a marker; the prompt asks for at most five of a kind."""
MAX_HELD = 1_000
"""Characters after an opening bracket that may still become a citation."""

MAX_STATEMENT = 2_000  # characters

Shown = Mapping[str, frozenset[int]]
"""Kind of citation -> human-readable ids that a prompt showed."""

_BRACKETS = re.escape(OPENERS) + r"\]\uff3d\u3011"
_UNSETTLED = rf"(?!\s*[:\uff1a]{NUMBERED}(?:[.!?]\s+|[ \t]*\n\s*)[^\s.!?{_BRACKETS}])[^{_BRACKETS}]*"
"""Text of a citation that may still be closed: no other text follows the sentence or line that it ends."""
_BEGUN_DATA = "|".join(sorted({re.escape(word[:end]) for word in DATA_WORDS for end in range(1, len(word))}))
_MAYBE = late_re(
    rf"(?<![ \t])[ \t]*+[,;]?[ \t]*+(?:[{re.escape(OPENERS)}]\s*"
    rf"(?:|{_BEGUN_DATA}|(?:{'|'.join(DATA_WORDS)})\b{_UNSETTLED}|\d[\d,; \t]{{0,30}}))?\Z",
    re.IGNORECASE,
)
_BARE = late_re(rf"{BLANKS}[{re.escape(OPENERS)}]\s*(\d{{1,3}}(?:[,;][ \t]?\d{{1,3}}){{0,5}})[ \t]?[\]\uff3d\u3011]")
"""A marker that the model wrote itself, such as "[3]"; it would look like one of ours, which is resolved."""
_JOINERS = ("and", "or", "und", "oder", "sowie", "et", "ou", "y", "e")
_JOINT = late_re(rf"[ \t]*+[,;&]?(?:[ \t]*+\b(?:{'|'.join(_JOINERS)}))?[ \t]*+", re.IGNORECASE)
"""Text between two citations of one statement."""
_BEGUN = "|".join(sorted({joiner[:end] for joiner in _JOINERS for end in range(1, len(joiner) + 1)}))
_MAYBE_JOINT = late_re(rf"[ \t]*+[,;&]?[ \t]*+(?:{_BEGUN})?[ \t]*+", re.IGNORECASE)
_COMMA = late_re(rf"{BLANKS}[,;]\Z")
_DECORATION = " \t*#>-+"


def shown_numbers(context: Context) -> Shown:
    """Return the records of a context, and those that its reports cite."""
    shown: dict[str, set[int]] = {
        "Entities": {record.human_readable_id for record in context.entities},
        "Relationships": {record.human_readable_id for record in context.relationships},
        "Claims": {record.human_readable_id for record in context.claims},
        "Reports": {record.human_readable_id for record in context.reports},
        "Sources": {record.human_readable_id for record in context.text_units},
    }
    for report in context.reports:
        _add_cited(shown, report.content)
    return {kind: frozenset(numbers) for kind, numbers in shown.items()}


def cited_numbers(text: str) -> Shown:
    """Return the records that a text of ours cites."""
    shown: dict[str, set[int]] = {}
    _add_cited(shown, text)
    return {kind: frozenset(numbers) for kind, numbers in shown.items()}


def keep_shown(cited: Cited, shown: Shown) -> tuple[list[tuple[str, int]], int]:
    """Return the records that a citation names and the prompt showed, each once, and the number of invented ones."""
    named = [(kind, number) for kind, numbers in cited for number in numbers]
    kept = [(kind, int(n)) for kind, n in named if n.isdecimal() and int(n) in shown.get(kind, ())]
    return list(dict.fromkeys(kept)), len(named) - len(kept)


def _add_cited(shown: dict[str, set[int]], text: str) -> None:
    for kind, numbers in parse_citations(text):
        shown.setdefault(kind, set()).update(int(n) for n in numbers if n.isdecimal() and len(n) < 16)


class CitedText:
    """A model's text on its way to the reader.

    Args:
        index: the index of the records.
        shown: the records that may be cited.
        kinds_of_names: other names of kinds that the prompt showed as headings -> kind; names in lower case.
        excerpts: the excerpts among the sources; a citation of such a source quotes the excerpt.

    Attributes:
        citations: in the order of their markers.
        n_invented: number of removed citations.
    """

    def __init__(
        self,
        index: IndexReader,
        shown: Shown,
        kinds_of_names: Mapping[str, str] | None = None,
        excerpts: Sequence[TextUnitRecord] = (),
    ) -> None:
        self.citations: list[Citation] = []
        self.n_invented = 0
        self._shown = shown
        self._kinds_of_names = kinds_of_names or {}
        self._finder = EvidenceFinder(index)
        self._finder_of_sources = EvidenceFinder(index, excerpts)
        self._held = ""
        self._recent = ""
        self._numbers: dict[tuple[str, str, str, str], int] = {}
        self._is_cited = False
        self._joint: str | None = None  # text since the last citation, if it may only join it to another
        self._is_marked = False  # one of the citations so joined was kept

    def add(self, piece: str) -> str:
        """Return the text that can be handed on once this piece has come."""
        self._held += piece
        maybe = _MAYBE.search(self._held)
        start = maybe.start() if maybe and len(maybe.group()) <= MAX_HELD else len(self._held)
        settled, self._held = self._held[:start], self._held[start:]
        return self._mark(settled)

    def rest(self) -> str:
        """Return the rest of the text at the end."""
        held, self._held = self._held, ""
        marked = self._mark(held)
        joint, self._joint = self._joint or "", None
        return marked + joint

    def _mark(self, text: str) -> str:
        return "".join(self._write(*part) for part in _split(text, self._kinds_of_names))

    def _write(self, written: str, blanks: str, cited: Cited | None) -> str:
        text = self._hand_on(written)
        if cited is None:
            return text
        marker = self._cite(cited)
        joint, self._joint = self._joint or "", ""
        if not _JOINT.fullmatch(joint) or (marker and self._is_marked):
            text += joint
        self._is_marked = self._is_marked or bool(marker)
        return text + blanks + marker if marker else _COMMA.sub("", text)

    def _hand_on(self, written: str) -> str:
        """Return a text, with what was held before it, unless it may join two citations."""
        text = (self._joint or "") + written
        if self._joint is not None and _MAYBE_JOINT.fullmatch(text):
            self._joint = text
            return ""
        self._joint, self._is_marked = None, False
        self._remember(text)
        return text

    def _remember(self, text: str) -> None:
        if self._is_cited and (word := re.search(r"\w", text)):
            self._recent, self._is_cited, text = "", False, text[word.start() :]
        self._recent = (self._recent + text)[-MAX_STATEMENT:]

    def add_support(self, kind: str, number: int, statement: str) -> int | None:
        """Return the marker of the passage behind a record that supports a statement; None if it has none."""
        return self._number(kind, number, statement) or None

    @property
    def _statement(self) -> str:
        """The statement of a citation that comes now: the text of its line since the last one."""
        lines = [line for line in self._recent.splitlines() if re.search(r"\w", line)]
        return lines[-1].strip(_DECORATION) if lines else ""

    def _cite(self, cited: Cited) -> str:
        self._is_cited = self._is_cited or any(kind for kind, _ in cited)
        named, n_invented = keep_shown(cited, self._shown)
        self.n_invented += n_invented
        statement = self._statement
        numbers = [self._number(kind, number, statement) for kind, number in named[:MAX_CITED]]
        return "".join(f"[{number}]" for number in dict.fromkeys(numbers) if number)

    def _number(self, kind: str, number: int, statement: str) -> int:
        """Return the marker of the passage behind a record; 0 if it has none."""
        finder = self._finder_of_sources if kind == "Sources" else self._finder
        records = finder.read_cited(render_citation([(kind, [str(number)])]))
        found = finder.find(statement, records) if records else None
        if found is None:
            return 0
        passage, record = found
        unit, start, end = passage[0].unit, passage[0].start, passage[-1].end
        citation = cite(len(self.citations) + 1, unit, start, end, record)
        known = self._numbers.setdefault((record.kind, record.id, unit.id, citation.quote), citation.number)
        if known == citation.number:
            self.citations.append(citation)
        return known


def _split(text: str, kinds_of_names: Mapping[str, str]) -> Iterator[tuple[str, str, Cited | None]]:
    """Split like `citations.split_written`, and at markers of the model's own, which cite numbers of no kind."""
    for written, blanks, cited in split_written(text, kinds_of_names):
        start = 0
        for bare in _BARE.finditer(written):
            yield written[start : bare.start()], "", [("", re.findall(r"\d+", bare.group(1)))]
            start = bare.end()
        yield written[start:], blanks, cited
