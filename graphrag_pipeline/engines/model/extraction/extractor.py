"""The extractor of the model engine: all text units in one pool of conversations, failures as data.

`conversations.py` asks about one text unit. A failed text unit stays in the index without mentions; its failure is a
row in the stage's table of failures, so that a later run requests it again. Keep out: prompts and replies of one text
unit, Dagster, disk.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from graphrag_pipeline.engines.model.extraction.conversations import (
    ClaimsPlan,
    ExtractionPlan,
    UnitMentions,
    build_graph_prompt,
    extract_text_unit,
)
from graphrag_pipeline.engines.model.extraction.kept_records import ABSENT_NAME
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import bucket_keys
from graphrag_pipeline.indexing.ports import Extracted
from graphrag_pipeline.indexing.text_units import with_context
from graphrag_pipeline.models.pool import EarlyCheck, Progress, Work, run_all, split_failures
from graphrag_pipeline.models.ports import ChatModel, Failure, Message
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.storage.table_store import code_version_of
from graphrag_pipeline.tables import CLAIM_MENTIONS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root

REPLIES = 1
"""Version of what is kept of a reply; raise it when a change of code reads stored replies in another way."""
FIRST_UNITS = 8
"""Number of text units checked first. If none of them yields a record, the prompt or the model does not work."""
MIN_NAMING_CHARACTERS = 300
"""Characters (about 50 words). Fewer than `FIRST_UNITS` text units with less text than this may name nothing."""


class ModelExtractor:
    """Asks the chat model of `extraction` about each text unit; an `indexing.ports.CallingExtractor`."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def code(self) -> dict[str, Any]:
        """Return the version of reading replies."""
        return {"reading of replies": REPLIES}

    @cached_property
    def plan(self) -> ExtractionPlan:
        """Prompts and limits, read from the root."""
        settings, prompt = self._root.settings.extraction, self._root.prompt
        claims = None
        if settings.has_claims:
            claims = ClaimsPlan(prompt("extract_claims"), prompt("extract_claims_continue"), settings.claim_description)
        return ExtractionPlan(
            prompt=prompt("extract_graph"),
            continue_prompt=prompt("extract_graph_continue"),
            entity_types=settings.entity_types,
            max_gleanings=settings.max_gleanings,
            language=settings.language,
            claims=claims,
            only_names_in_text=settings.only_names_in_text,
            glossary=settings.glossary,
        )

    def frame(self) -> list[Message]:
        """Return the first request about a text unit, without its text."""
        return build_graph_prompt("", self.plan)

    def extract(
        self,
        documents: pa.Table,
        text_units: pa.Table,
        earlier: Mapping[str, pa.Table] | None = None,
        progress: Progress | None = None,
    ) -> Extracted:
        """Return the mentions of all text units; stored replies are not requested again.

        Raises:
            PipelineError: like `send`.
        """
        model = self._root.models.chat_model("extraction")
        return self.collect(self.send(self.works(with_context(text_units, documents), model), model, progress))

    def works(self, text_units: pa.Table, model: ChatModel) -> list[Work[UnitMentions]]:
        """Return one work per text unit, in order; needs `id`, `text` and `context` (`text_units.with_context`)."""
        return extraction_works(text_units, self.plan, model)

    def send(
        self, works: Sequence[Work[UnitMentions]], model: ChatModel, progress: Progress | None = None
    ) -> list[UnitMentions | Failure]:
        """Run works and return their results in order.

        Raises:
            PipelineError: see `extract_text_units`.
        """
        name = self._root.settings.chat_model_for("extraction").model
        return extract_text_units(works, self.plan, model, name, progress, self._is_proven())

    def _is_proven(self) -> bool:
        """Whether the present prompt and model have already found something in this corpus."""
        tables, n_buckets = self._root.tables, self._root.settings.storage.n_buckets
        code_version = code_version_of(self._root.code_of(STAGES["extracted_graph"]))
        heads = (tables.head("entity_mentions", bucket) for bucket in bucket_keys(n_buckets))
        return any(head and head.code_version == code_version and head.n_rows for head in heads)

    def collect(self, results: Iterable[UnitMentions | Failure]) -> Extracted:
        """Return the mentions in the results of works."""
        units: list[UnitMentions]
        units, failures = split_failures(results)
        tables = {
            "entity_mentions": ENTITY_MENTIONS.from_rows([row for unit in units for row in unit.entities]),
            "relationship_mentions": RELATIONSHIP_MENTIONS.from_rows(
                [row for unit in units for row in unit.relationships]
            ),
            "claim_mentions": CLAIM_MENTIONS.from_rows([row for unit in units for row in unit.claims]),
        }
        outside_types, problems = (unit.outside_types for unit in units), (unit.problems for unit in units)
        return Extracted(tables, failures, _sum(outside_types), _sum(problems))


def extraction_works(text_units: pa.Table, plan: ExtractionPlan, model: ChatModel) -> list[Work[UnitMentions]]:
    """Return one extraction work per text unit, in order; needs `id`, `text` and `context`."""
    rows = zip(*(text_units[name].to_pylist() for name in ("id", "text", "context")), strict=True)
    return [Work(unit, partial(extract_text_unit, unit, text, plan, model, context)) for unit, text, context in rows]


def extract_text_units(
    works: Sequence[Work[UnitMentions]],
    plan: ExtractionPlan,
    model: ChatModel,
    model_name: str,
    progress: Progress | None = None,
    is_proven: bool = False,
) -> list[UnitMentions | Failure]:
    """Run `extraction_works` and return the results in order.

    Args:
        model_name: for the error message if nothing is found.
        is_proven: whether this prompt and model found something before; then text units may yield nothing.

    Raises:
        PipelineError: the first text units all yield nothing, the endpoint answers none of them, or the model cannot
            be called.
    """
    used = f"model {model_name!r}, prompt {plan.prompt.path}"
    early_check = None if is_proven else EarlyCheck(FIRST_UNITS, partial(_refuse_nothing, used))
    return run_all(model.stage, works, model.max_concurrency, progress, early_check)


def _refuse_nothing(used: str, results: Sequence[UnitMentions | Failure]) -> None:
    unanswered = [result for result in results if isinstance(result, Failure) and result.is_unanswered]
    if len(unanswered) == len(results) > 1:
        raise PipelineError(
            f"extraction stopped: the endpoint answered none of the first {len(results)} text units "
            f"({used.split(',')[0]}; {unanswered[0].record}: {unanswered[0].reason}). If the server is slow, raise "
            "timeout_s or lower max_concurrency; replies so far are stored."
        )
    if len(unanswered) > len(results) / 2:
        return  # too few answers to judge prompt and model
    read = [result for result in results if isinstance(result, UnitMentions)]
    if any(result.entities or result.relationships for result in read):
        return
    if len(results) == 1 and not read:
        return  # a single bad reply is an ordinary failure
    is_short = len(results) < FIRST_UNITS and sum(result.n_characters for result in read) < MIN_NAMING_CHARACTERS
    if is_short and read and not any(ABSENT_NAME in result.problems for result in read):
        return  # a few short text units can name nothing
    first = results[0]
    if isinstance(first, Failure):
        is_shown = "the reply starts" in first.reason or not first.reply
        cause = f"{first.record}: {first.reason}" + ("" if is_shown else f"; the reply starts {first.reply!r}")
    else:
        counts = ", ".join(f"{n} x {reason}" for reason, n in first.problems.items())
        cause = f"{counts + '; ' if counts else ''}the reply starts {first.first_reply!r}"
    raise PipelineError(
        f"extraction stopped: {_count_units(len(results))} nothing ({used}; {cause}). Change the prompt, the model or "
        "its parameters and run again; usable replies are kept. To leave out documents that name nothing, list them "
        "in `input.exclude`."
    )


def _count_units(n: int) -> str:
    return f"the first {n} text units all yield" if n > 1 else "the only text unit yields"


def _sum(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return dict(sorted(total.items()))
