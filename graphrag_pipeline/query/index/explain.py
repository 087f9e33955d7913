"""The picks of every text unit selection strategy for a question, with their tokens: `query --explain`.

Each strategy selects a whole context with the function that answers a question, so the table shows what a model would
read. Keep out: how a strategy picks.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from graphrag_pipeline.query.index.graph_index import prepare_query
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.methods.state import SearchRequest
from graphrag_pipeline.query.question import read_question
from graphrag_pipeline.query.search.local import select_local_context
from graphrag_pipeline.query.selection.strategies import STRATEGIES
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.text.counted import counted

_COLUMNS = ("#", "text unit", "document", "tokens", "cumulative", "score", "informs")
MAX_SHOWN = 60
"""Characters of a cell."""


@dataclass(frozen=True)
class ExplainedPick:
    """A text unit that a strategy picks.

    Attributes:
        place: 1-based, in the order of the context.
        text_unit: its human-readable id.
        cumulative_tokens: of this one and those before it.
        score: see `results.TextUnitRecord`.
        entities: titles of the matched entities that it informs.
        is_excerpt: whether only a part of the text unit is picked.
    """

    strategy: str
    place: int
    text_unit: int
    document: str
    n_tokens: int
    cumulative_tokens: int
    score: float
    entities: tuple[str, ...]
    is_excerpt: bool = False


def explain_question(index: IndexReader, request: SearchRequest) -> list[ExplainedPick]:
    """Return the picks of every strategy for a question as a user asks it.

    Raises:
        PipelineError: an empty question, or a strategy, option or filter that does not hold.
    """
    query = prepare_query(index, request)
    return explain_strategies(index.where(query.filters), query.question, query.settings)


def explain_strategies(index: IndexReader, question: str, settings: LocalSearchSettings) -> list[ExplainedPick]:
    """Return the picks of every strategy: that of the settings first, then the others in the order of the registry."""
    text = read_question(question)
    names = [settings.strategy, *(name for name in STRATEGIES if name != settings.strategy)]
    return [pick for name in names for pick in _explain(index, text, settings, name)]


def _explain(index: IndexReader, question: str, settings: LocalSearchSettings, strategy: str) -> list[ExplainedPick]:
    context = select_local_context(index, question, settings.model_copy(update={"strategy": strategy}))
    total = 0
    picks = []
    for place, unit in enumerate(context.text_units, start=1):
        total += unit.n_tokens
        picks.append(
            ExplainedPick(
                strategy=strategy,
                place=place,
                text_unit=unit.human_readable_id,
                document=unit.document_title,
                n_tokens=unit.n_tokens,
                cumulative_tokens=total,
                score=round(unit.score, 4),
                entities=unit.entities,
                is_excerpt=unit.is_excerpt,
            )
        )
    return picks


def to_records(picks: list[ExplainedPick]) -> list[dict[str, Any]]:
    """Return plain dictionaries, for JSON."""
    return [{**asdict(pick), "entities": list(pick.entities)} for pick in picks]


def render_explanation(picks: list[ExplainedPick]) -> str:
    """Return one markdown table per strategy."""
    strategies = list(dict.fromkeys(pick.strategy for pick in picks))
    tables = [_render_table(name, [pick for pick in picks if pick.strategy == name]) for name in strategies]
    return "\n\n".join(tables) or "No strategy picks a text unit: nothing in the index matches the question."


def _render_table(strategy: str, picks: list[ExplainedPick]) -> str:
    rows = [
        (
            str(pick.place),
            f"{pick.text_unit} (excerpt)" if pick.is_excerpt else str(pick.text_unit),
            _cell(pick.document),
            str(pick.n_tokens),
            str(pick.cumulative_tokens),
            f"{pick.score:.3f}",
            _cell(", ".join(pick.entities)),
        )
        for pick in picks
    ]
    heading = f"## {strategy}: {counted(len(picks), 'text units')}, {picks[-1].cumulative_tokens:,} tokens"
    lines = [_line(_COLUMNS), _line(["---"] * len(_COLUMNS)), *map(_line, rows)]
    return "\n".join([heading, "", *lines])


def _line(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    """Return a text on one line, without a bar, cut where it is long."""
    plain = " ".join(text.replace("|", "/").split())
    return plain if len(plain) <= MAX_SHOWN else f"{plain[: MAX_SHOWN - 3]}..."
