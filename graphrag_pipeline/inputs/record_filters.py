"""The records that pass `input.filters`; of the others, nothing is left.

Each record is looked at alone, so that whether it passes depends on no other document. A record that cannot become a
document has a path, an id and a name in its file only. What a kept record says about its neighbours goes, too: numbers
of rows count the kept rows, and notes on a file go if some of its records do. Keep out: the syntax (`filters.py`).
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence

from graphrag_pipeline.filters import COLUMNS, Filter, flatten_metadata, parse_filter, passes
from graphrag_pipeline.inputs.documents import SourceRecord, rename_row

_ROW_NUMBER = re.compile(r"#\d+#*")


def parse_filters(texts: Sequence[str]) -> tuple[Filter, ...]:
    """Parse filters; their order does not matter."""
    return tuple(parse_filter(text) for text in texts)


def passes_all(record: SourceRecord, filters: Sequence[Filter]) -> bool:
    """Return whether a record passes all filters; without filters, every record does."""
    if not filters:
        return True
    columns = {name: getattr(record, name) for name in COLUMNS if name != "id"} | {"id": record.document_id}
    metadata = dict(flatten_metadata(json.loads(record.metadata)))
    return all(passes(condition, columns, metadata) for condition in filters)


def keep_passing(records: Sequence[SourceRecord], filters: Sequence[Filter]) -> list[SourceRecord]:
    """Return the records of one file that pass, and those of a file whose content is not known now."""
    kept = [record for record in records if record.is_unknown or passes_all(record, filters)]
    if len(kept) == len(records):
        return kept
    # A problem of one row may name another row, such as the first one with its id.
    alone = [dataclasses.replace(record, note=None) for record in kept if record.is_unknown or not record.problem]
    return _number_again(alone)


def _number_again(records: Sequence[SourceRecord]) -> list[SourceRecord]:
    """Number the records without an id of their own as if the file had these records only."""
    own = {record.record for record in records if not _ROW_NUMBER.fullmatch(record.record)}
    return [
        rename_row(record, f"#{number}") if record.record and record.record not in own else record
        for number, record in enumerate(records, start=1)
    ]
