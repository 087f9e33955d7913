"""The result of a search: the answer to a question and everything needed to check it.

The JSON form (`SearchResult.to_dict`) is a contract with users: add keys, never rename one. Keep out: how the result
is found, and how its parts are written out (`rendering.py`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from graphrag_pipeline.query.rendering import (
    ContextStyle,
    citation_to_dict,
    context_to_dict,
    render_answer,
    render_context,
    render_sources,
)
from graphrag_pipeline.query.results import Citation, Context
from graphrag_pipeline.query.token_budget import QueryUsage
from graphrag_pipeline.text.counted import counted


@dataclass(frozen=True)
class SearchResult:
    """The answer to a question and everything needed to check it.

    Attributes:
        answer: markdown; "" if only the context was wanted.
        seconds: from question to answer, with the index open.
        snapshot: id of the index that answered.
        selection: how the context was chosen: the strategy, or the reports rated, kept and pruned.
        answering: the engine that wrote the answer, the number of invented citations, why a model gave no answer, and
            `left_out`, the number of records that its window did not hold, if there are any.
        options: the options of the method that answered, as they were after defaults; not in the JSON form.
        candidates: the other records that local search could have chosen, if `return_candidate_context` is set. The
            JSON form lists them behind the context and marks each record by `in_context`.
    """

    answer: str
    citations: tuple[Citation, ...]
    context: Context
    usage: QueryUsage
    seconds: float
    method: str
    question: str
    snapshot: str
    selection: dict[str, Any] = field(default_factory=dict)
    answering: dict[str, Any] = field(default_factory=dict)
    candidates: Context | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, dictionaries, strings and numbers."""
        return {
            "answer": self.answer,
            "citations": [citation_to_dict(citation) for citation in self.citations],
            "context": context_to_dict(self.context, self.candidates),
            "usage": self.usage.to_dict(),
            "seconds": self.seconds,
            "method": self.method,
            "question": self.question,
            "snapshot": self.snapshot,
            "selection": self.selection,
            "answering": self.answering,
        }

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences on parts of the search that failed or were left out, for readers of the answer."""
        reranked, keywords = self.selection.get("reranked", {}), self.selection.get("keywords", {})
        lines = list[str]()
        if failure := keywords.get("failure"):
            lines.append(f"The model gave no keywords, so the question itself was searched for: {failure.rstrip('.')}.")
        if failure := reranked.get("failure"):
            n_scored, n_sent = reranked["n_scored"], reranked["n_candidates"]
            scored = f"only {n_scored:,} of {n_sent:,} text units" if n_scored else "no text unit, so their order stays"
            lines.append(f"The reranking model {reranked['model']} scored {scored}: {failure.rstrip('.')}.")
        return (*lines, *self._remarks_on_answer())

    def _remarks_on_answer(self) -> Iterator[str]:
        if n := self.selection.get("failed_ratings"):
            yield f"{counted(n, 'ratings')} of the model could not be read."
        if n := self.answering.get("left_out"):
            records = "1 record or point was" if n == 1 else f"{n:,} records or points were"
            yield f"{records} left out, because the window of the model does not hold more."
        if n := self.answering.get("invented_citations"):
            yield f"{counted(n, 'citations')} of the model named a record that it was not shown, and was removed."

    def to_markdown(self) -> str:
        """Return the answer with its sources and remarks; if only the context was wanted, as a model reads it."""
        if self.answer:
            return "\n\n".join([render_answer(self.answer, self.citations), *self._noted()])
        filters = self.selection.get("filters", [])
        where = f" that passes {' and '.join(filters)}" if filters else ""
        shown = render_context(self.context, ContextStyle.of_selection(self.selection))
        return shown or f"The context is empty: nothing in the index{where} matches the question."

    def sources_to_markdown(self) -> str:
        """Return the source of each marker of the answer, one line each, and the remarks."""
        return "\n\n".join([*filter(None, [render_sources(self.citations)]), *self._noted()])

    def _noted(self) -> list[str]:
        return [f"Note: {remark}" for remark in self.remarks]

    def to_json(self, indent: int | None = 2) -> str:
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)
