"""The records that pass `input.filters`; of the others, nothing is left.

Each record is looked at alone, so that whether it passes depends on no other document. A record that cannot become a
document has a path, an id and a name in its file only. What a kept record says about its neighbours goes, too: numbers
of rows count the kept rows, and notes on a file go if some of its records do. Rows are judged before their ids are
compared (`rows.py`). Keep out: the syntax (`filters.py`).
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence

from graphrag_pipeline.filters import COLUMNS, Filter, flatten_metadata, parse_filter, passes
from graphrag_pipeline.inputs.source_records import SourceRecord, rename_row

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
    """Return the records of one file of chunks that pass."""
    kept = [record for record in records if passes_all(record, filters)]
    if len(kept) == len(records):
        return kept
    # A problem or note of one row may name another row.
    return _number_again([dataclasses.replace(record, note=None) for record in kept if not record.problem])


def is_row_number(name: str) -> bool:
    """Whether the name of a record is the number of its row, since the row has no id."""
    return _ROW_NUMBER.fullmatch(name) is not None


def row_order(name: str) -> tuple[int, str]:
    """Return a key that orders names which are numbers of rows as their file does."""
    return int(name.strip("#")), name


def _number_again(records: Sequence[SourceRecord]) -> list[SourceRecord]:
    """Number the records without an id of their own as if the file had these records only."""
    own = {record.record for record in records if not is_row_number(record.record)}
    return [
        rename_row(record, f"#{number}") if record.record and record.record not in own else record
        for number, record in enumerate(records, start=1)
    ]
