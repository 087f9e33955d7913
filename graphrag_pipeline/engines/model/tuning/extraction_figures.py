"""Figures of extraction by one set of prompts over a sample of text units. Pure: mentions in, numbers out.

    entities, relationships    distinct names, distinct pairs of a text unit
    outside_share              entity mentions of types outside the list of the set
    repeated_share             junk by repetition: records that repeat an earlier one, word for word or by name and type
    absent_share               entity records that were left out because the text unit holds their name in no form
    isolated_share             distinct names without a relationship in their text unit
    agreement                  F1 of the names and those of the embedded engine

A name agrees with another one that it holds or that holds it, at the borders of words. Key phrases of the embedded
engine may be found or not: they support a name of the model, but need not be found.

Keep out: requests (`comparison.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphrag_pipeline.engines.model.extraction.conversations import UnitMentions
from graphrag_pipeline.engines.model.extraction.kept_records import ABSENT_NAME
from graphrag_pipeline.engines.model.tuning.examples import occurs
from graphrag_pipeline.evaluation.confidence import Estimate, estimate_amount, estimate_mean
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.text.entity_types import CONCEPT

Row = Mapping[str, Any]
FIGURES = (
    "entities",
    "relationships",
    "outside_share",
    "repeated_share",
    "absent_share",
    "isolated_share",
    "agreement",
)
COUNTS = ("entities", "relationships")
_REPEATED = "repeated"


@dataclass(frozen=True)
class UnitFigures:
    """Figures of one text unit; a share is None without entities.

    Attributes:
        names: titles of the entities.
        n_records, n_repeated: records of the replies, and those that repeat one.
    """

    names: frozenset[str]
    n_records: int
    n_repeated: int
    entities: float
    relationships: float
    outside_share: float | None
    repeated_share: float | None
    absent_share: float | None
    isolated_share: float | None
    agreement: float | None


@dataclass(frozen=True)
class ExtractionFigures:
    """Figures of a sample of text units.

    Attributes:
        n_units, n_failed: text units with and without a usable reply.
        means: figure -> mean over text units with its interval.
        n_distinct: distinct names over all text units.
        types: entity type -> number of mentions, most first.
        problems: reason -> number of records that were left out or repaired.
    """

    n_units: int
    n_failed: int
    means: Mapping[str, Estimate]
    n_distinct: int
    types: Mapping[str, int]
    problems: Mapping[str, int]


def measure_unit(mentions: UnitMentions, by_rule: Sequence[Row]) -> UnitFigures:
    """Return the figures of a text unit.

    Args:
        by_rule: entity mentions of the embedded engine in it.
    """
    names = {normalize_title(row["name"]) for row in mentions.entities}
    pairs = {frozenset(normalize_title(row[end]) for end in ("source", "target")) for row in mentions.relationships}
    n_kept = len(mentions.entities) + len(mentions.relationships)
    by_name_and_type = {(normalize_title(row["name"]), row["type"]) for row in mentions.entities}
    n_again = len(mentions.entities) - len(by_name_and_type) + len(mentions.relationships) - len(pairs)
    n_records = n_kept + mentions.problems.get(_REPEATED, 0)
    n_repeated = n_again + mentions.problems.get(_REPEATED, 0)
    n_absent = mentions.problems.get(ABSENT_NAME, 0)
    return UnitFigures(
        names=frozenset(names),
        n_records=n_records,
        n_repeated=n_repeated,
        entities=len(names),
        relationships=len(pairs),
        outside_share=_share(sum(mentions.outside_types.values()), len(mentions.entities)),
        repeated_share=_share(n_repeated, n_records),
        absent_share=_share(n_absent, len(mentions.entities) + n_absent),
        isolated_share=_share(len(names - set().union(*pairs)), len(names)),
        agreement=measure_agreement(names, by_rule),
    )


def _share(n: int, total: int) -> float | None:
    return n / total if total else None


def measure_agreement(names: set[str], by_rule: Sequence[Row]) -> float | None:
    """Return the F1 of names and those of the embedded engine; None if it finds no name but key phrases."""
    all_known = {normalize_title(row["name"]) for row in by_rule}
    wanted = {normalize_title(row["name"]) for row in by_rule if row["type"] != CONCEPT}
    if not wanted:
        return None
    right = sum(any(_agree(name, known) for known in all_known) for name in names)
    found = sum(any(_agree(name, known) for name in names) for known in wanted)
    precision, recall = (right / len(names) if names else 0.0), found / len(wanted)
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _agree(name: str, other: str) -> bool:
    return occurs(name, other) or occurs(other, name)


def sum_figures(units: Sequence[UnitFigures | None], mentions: Sequence[UnitMentions | None]) -> ExtractionFigures:
    """Return the figures of a sample; None stands for a text unit without a usable reply."""
    read, results = [unit for unit in units if unit], [result for result in mentions if result]
    types = Counter(row["type"] for result in results for row in result.entities)
    problems: Counter[str] = Counter()
    for result in results:
        problems.update(result.problems)
    return ExtractionFigures(
        n_units=len(read),
        n_failed=len(units) - len(read),
        means={
            figure: (estimate_amount if figure in COUNTS else estimate_mean)(
                [value for unit in read if (value := getattr(unit, figure)) is not None]
            )
            for figure in FIGURES
        },
        n_distinct=len(frozenset().union(*(unit.names for unit in read))),
        types=dict(sorted(types.items(), key=lambda item: (-item[1], item[0]))),
        problems=dict(sorted(problems.items())),
    )
