"""Claims that overlapping text units or gleanings repeat: one row, with all its text units.

Two claims of one document are the same if subject, object, type, status and dates are equal, and the descriptions too,
without regard to white space and case. A claim that another text unit describes in other words is the same if both
quote the same source text and each text unit has only one description for it. Claims of two documents stay two: each
document is a source. Keep out: the choice of titles (`titles.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.tables import COVARIATES

_Row = dict[str, Any]
_SAME = ("document_id", "subject_id", "object_id", "type", "status", "start_date", "end_date")
_HASHED = ("subject_id", "object_id", "type", "status", "start_date", "end_date", "description", "source_text")


def fold_claims(claims: Iterable[_Row]) -> list[_Row]:
    """Return rows of `covariates`, one per claim, sorted by id.

    Args:
        claims: rows of `claim_mentions` with `subject_id`, `object_id`, `document_id` and `unit_position`.

    Returns:
        The first mention of each claim in reading order, with `text_unit_ids`, the sorted ids of all its text units.
    """
    ordered = sorted(claims, key=lambda row: (row["unit_position"] or 0, row["text_unit_id"], row["position"]))
    alike: defaultdict[tuple[str, ...], list[_Row]] = defaultdict(list)
    for row in ordered:
        alike[tuple(_fold(row[column]) for column in _SAME)].append(row)
    folded = [_join(group) for rows in alike.values() for group in _group(rows)]
    return sorted(folded, key=lambda row: row["id"])


def _group(rows: Sequence[_Row]) -> list[list[_Row]]:
    """Group rows of one subject, object, type, status and dates by what they state."""
    descriptions = [_fold(row["description"]) for row in rows]
    label = {text: text for text in descriptions}  # description -> description of the first claim of the group
    for texts in _by_quote(rows, descriptions):
        first, *others = dict.fromkeys(label[text] for text in texts)
        label = {text: first if known in others else known for text, known in label.items()}
    groups: defaultdict[str, list[_Row]] = defaultdict(list)
    for row, text in zip(rows, descriptions, strict=True):
        groups[label[text]].append(row)
    return list(groups.values())


def _by_quote(rows: Sequence[_Row], descriptions: Sequence[str]) -> list[list[str]]:
    """Return the descriptions of each source text that no text unit describes in two ways."""
    quoted: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for row, text in zip(rows, descriptions, strict=True):
        if quote := _fold(row["source_text"]):
            quoted[quote][row["text_unit_id"]].append(text)
    return [
        [text for texts in by_unit.values() for text in texts]
        for by_unit in quoted.values()
        if all(len(set(texts)) == 1 for texts in by_unit.values())
    ]


def _join(rows: Sequence[_Row]) -> _Row:
    first = rows[0]
    texts = [first["text_unit_id"], str(first["position"]), *(first[column] or "" for column in _HASHED)]
    joined = first | {
        "id": stable_hash("claim", *texts),
        "covariate_type": "claim",
        "text_unit_ids": sorted({row["text_unit_id"] for row in rows}),
    }
    return {column: joined[column] for column in COVARIATES.schema.names}


def _fold(text: str | None) -> str:
    return " ".join((text or "").split()).casefold()
