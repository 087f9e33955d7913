"""Advice on the filters of a principal: values that no document has, and how many documents pass.

It names values of documents, so it is for the operator only. Keep out: refusing filters (`views.check_filters`).
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing

import numpy as np

from graphrag_pipeline.filters import Filter, each_value, parse_filter, read_value
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.filtering.document_mask import DocumentFields, StoredField

_N_NAMED = 3


def advise(root: Root, filters: Sequence[str]) -> list[str]:
    """Return what is odd about filters in the published index of a root, one line each.

    Raises:
        PipelineError: no document has a field of the filters, or nothing is published.
    """
    with closing(root.open_snapshot()) as snapshot:
        fields = DocumentFields(snapshot.table("documents"))
        n_documents, found = snapshot.n_rows("documents"), []
        passing = np.ones(n_documents, dtype=bool)
        for condition in map(parse_filter, filters):
            mask, field = fields.mask_of(condition), fields.find(condition)
            passing &= mask & _has_value(field)
            found += [*_advise_on_values(condition, field), *_advise_on_missing(condition, field)]
    if n_documents and not passing.any():
        found.append(f"none of the {n_documents:,} documents passes {' and '.join(filters)}, so nothing can be read")
    return found


def _advise_on_values(condition: Filter, field: StoredField) -> Iterator[str]:
    if condition.operator not in ("=", "!="):
        return
    counted = Counter(field.codes.tolist())
    held = [(value, counted[code]) for code, of in enumerate(field.values) for value in each_value(of)]
    texts = Counter[str]()
    for value, count in held:
        texts[read_value(value).text] += count
    is_listed = len(condition.values) > 1
    for written in condition.values[: -1 if is_listed else None]:
        wanted = read_value(written)
        if wanted.is_text and wanted.text not in texts:
            near = difflib.get_close_matches(wanted.text, list(texts), n=_N_NAMED, cutoff=0.5)
            named = near or [text for text, _ in texts.most_common(_N_NAMED)]
            listed = ", ".join(f"{text!r} ({texts[text]:,})" for text in named)
            yield f"no document has {written!r} in {condition.field!r}; the nearest values: {listed}"


def _advise_on_missing(condition: Filter, field: StoredField) -> Iterator[str]:
    n_missing = int((~_has_value(field)).sum())
    if n_missing:
        yield f"{n_missing:,} documents have no {condition.field!r}, so they do not pass {condition.text!r}"


def _has_value(field: StoredField) -> np.ndarray:
    return np.array([bool(each_value(of)) and of != "" for of in field.values], dtype=bool)[field.codes]
