"""The text units of the present input folder, indexed or not, and what the embedded engine finds in them.

A bucket that the index holds as it is comes from the stage tables; another is read and split now. Nothing is written.
Keep out: the choice of a sample (`sampling.py`).
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import bucket_of
from graphrag_pipeline.indexing.ports import Extractor
from graphrag_pipeline.indexing.text_units import split_documents
from graphrag_pipeline.inputs.documents import build_documents
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline.ports import load_port
from graphrag_pipeline.settings.settings import Settings

_SPLIT = ("corpus_manifest", "documents", "text_units")


class Corpus:
    """Documents and text units of the present input folder.

    Raises:
        PipelineError: the root holds an imported index, or the input folder has no text.
    """

    def __init__(self, root: Root) -> None:
        if root.is_imported:
            raise PipelineError("this root holds an imported index; tune prompts in a root with its own input folder")
        self._root = root
        if not self.units.num_rows:
            raise PipelineError(f"no readable text in {root.shown_input}; put documents there, then tune")

    @cached_property
    def units(self) -> pa.Table:
        """All text units, by id."""
        return pa.concat_tables([units for _, units in self._tables.values()]).sort_by("id").combine_chunks()

    @cached_property
    def _tables(self) -> dict[str, tuple[pa.Table, pa.Table]]:
        """Bucket -> documents and text units."""
        stale = {item.partition for item in find_stale(self._root, detect_input(self._root)) if item.stage in _SPLIT}
        return {
            bucket: self._read(bucket, bucket in stale) for bucket in STAGES["text_units"].partitions(self._settings)
        }

    def _read(self, bucket: str, is_stale: bool) -> tuple[pa.Table, pa.Table]:
        if not is_stale:
            return self._root.tables.read("documents", bucket), self._root.tables.read("text_units", bucket)
        documents = build_documents(list(self._root.read_input({bucket})))
        return documents, split_documents(documents, self._settings.text_units)

    @property
    def _settings(self) -> Settings:
        return self._root.settings

    def rows_of(self, unit_ids: Collection[str]) -> pa.Table:
        """Return the rows of some text units, by id."""
        return self.units.filter(pc.is_in(self.units["id"], pa.array(sorted(unit_ids), pa.string())))

    def find_by_rule(self, unit_ids: Collection[str]) -> dict[str, list[dict]]:
        """Return the entity mentions that the embedded engine finds in some text units, by text unit id.

        Whole documents are read, because a name may be introduced in another text unit.
        """
        wanted = self.rows_of(unit_ids)
        found: dict[str, list[dict]] = {unit_id: [] for unit_id in unit_ids}
        extractor: Extractor = load_port("extractor")(self._root)
        for document_id in sorted(set(wanted["document_id"].to_pylist())):
            rows, units = self._document(document_id), _where(wanted, "document_id", document_id)
            mentions = extractor.extract(rows, units).tables["entity_mentions"]
            for row in mentions.to_pylist():
                found[row["text_unit_id"]].append(row)
        return found

    def _document(self, document_id: str) -> pa.Table:
        documents, _ = self._tables[bucket_of(document_id, self._settings.storage.n_buckets)]
        return _where(documents, "id", document_id)


def _where(rows: pa.Table, column: str, value: str) -> pa.Table:
    return rows.filter(pc.equal(rows[column], value))
