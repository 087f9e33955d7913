"""Quality figures of the texts that a model may have written: citations of reports, and copied placeholders.

A finding is cited if its text cites at least one record that exists in the snapshot. Verbatim reports count too: the
rule that writes them cites. Keep out: the prompts' texts (`placeholders.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from graphrag_pipeline.citations import KIND_OF_RECORD, parse_citations
from graphrag_pipeline.evaluation.index_quality.figures import MAX_EXAMPLES, QualityFigure, share_of
from graphrag_pipeline.storage.snapshots import Snapshot

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
    reports = snapshot.table("community_reports").select(["title", "findings"]).to_pylist()
    n_findings = n_cited = n_records = n_valid = 0
    uncited: list[str] = []
    unknown: list[str] = []
    for report in reports:
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


def _existing_numbers(snapshot: Snapshot) -> dict[str, Set[str]]:
    """Return kind in a citation -> numbers of existing records, as text."""
    return {
        KIND_OF_RECORD[record]: {str(n) for n in snapshot.table(table)["human_readable_id"].to_pylist()}
        for record, table in _TABLE_OF_RECORD.items()
    }


def _cited_records(text: str) -> list[tuple[str, str]]:
    """Return distinct (kind, number) of a text, in reading order."""
    return list(dict.fromkeys((kind, n) for kind, listed in parse_citations(text) for n in listed))


def _exists(record: tuple[str, str], numbers: Mapping[str, Set[str]]) -> bool:
    kind, number = record
    return number in numbers.get(kind, frozenset())
