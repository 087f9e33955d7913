"""Quality figures of the texts that a model may have written: citations of reports, and copied placeholders.

A finding is cited if its text cites at least one record that exists in the snapshot. Verbatim reports count too: the
rule that writes them cites. Keep out: the prompts' texts (`placeholders.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from graphrag_pipeline.citations import KIND_OF_RECORD, parse_citations
from graphrag_pipeline.evaluation.index_quality.figures import MAX_EXAMPLES, QualityFigure, share_of
from graphrag_pipeline.storage.snapshots import Snapshot

_BATCH_ROWS = 1_000
_MAX_DIGITS = 18
_TABLE_OF_RECORD = {
    "entity": "entities",
    "relationship": "relationships",
    "claim": "covariates",
    "report": "community_reports",
    "text_unit": "text_units",
}


def measure_citations(snapshot: Snapshot) -> Iterator[QualityFigure]:
    """Yield the share of cited findings, and the share of cited records that exist."""
    numbers = _existing_numbers(snapshot)
    n_findings = n_cited = n_records = n_valid = 0
    uncited: list[str] = []
    unknown: list[str] = []
    for report in iterate_rows(snapshot, "community_reports", ["title", "findings"]):
        for finding in report["findings"] or ():
            cited = _cited_records(f"{finding['summary']}\n{finding['explanation']}")
            valid = [record for record in cited if _exists(record, numbers)]
            n_findings, n_cited = n_findings + 1, n_cited + bool(valid)
            n_records, n_valid = n_records + len(cited), n_valid + len(valid)
            if not valid and len(uncited) < MAX_EXAMPLES:
                uncited.append(f"{report['title']}: {finding['summary'][:80]}")
            unknown += [f"{report['title']}: {kind} ({n})" for kind, n in cited if (kind, n) not in valid][:1]
    yield share_of("cited_findings", n_cited, n_findings, "findings", uncited)
    yield share_of("valid_citations", n_valid, n_records, "cited records", unknown)


def iterate_rows(snapshot: Snapshot, table: str, columns: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a contract table, few of them in memory at once."""
    for batch in snapshot.table(table).select(columns).to_batches(max_chunksize=_BATCH_ROWS):
        yield from batch.to_pylist()


def _existing_numbers(snapshot: Snapshot) -> dict[str, np.ndarray]:
    """Return kind in a citation -> numbers of existing records, ascending."""
    return {
        KIND_OF_RECORD[record]: np.sort(snapshot.table(table)["human_readable_id"].to_numpy())
        for record, table in _TABLE_OF_RECORD.items()
    }


def _cited_records(text: str) -> list[tuple[str, str]]:
    """Return distinct (kind, number) of a text, in reading order."""
    return list(dict.fromkeys((kind, n) for kind, listed in parse_citations(text) for n in listed))


def _exists(record: tuple[str, str], numbers: Mapping[str, np.ndarray]) -> bool:
    kind, number = record
    known = numbers.get(kind)
    if known is None or not (number.isascii() and number.isdecimal() and len(number) < _MAX_DIGITS):
        return False
    place = int(np.searchsorted(known, int(number)))
    return place < len(known) and int(known[place]) == int(number)
