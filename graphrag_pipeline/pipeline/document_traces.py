"""Traces of documents in stage files, and the model replies that the present index came from.

Stage files on disk are read whether a head names them or not, because a document is forgotten in every version it had.
Replies that left no row (a gleaning that added nothing, a summary of a part) are found by repeating the requests under
the present settings and prompts, with a model that only returns stored replies. Keep out: removing anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.dataset as ds

from graphrag_pipeline.indexing.ports import CallingDescriber, CallingExtractor, iterate_subjects
from graphrag_pipeline.indexing.text_units import with_context
from graphrag_pipeline.models.pool import StoredReplies
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stage_code import uses_chat_model
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.storage.table_store import TableStore
from graphrag_pipeline.tables import STAGE_TABLES

_SUBJECT = {
    "entities": ["title", "descriptions", "description_key"],
    "relationships": ["source", "target", "descriptions", "description_key"],
}
_EMBEDDINGS = tuple(name for name in STAGE_TABLES if name.endswith("_embeddings") and name != "sentence_embeddings")


def current_files(tables: TableStore, table: str, partitions: Iterable[str]) -> list[Path]:
    """Return the files that the heads of a stage table name."""
    heads = (tables.head(table, partition) for partition in partitions)
    return [path for head in heads if head for path in tables.paths(head)]


def files_on_disk(tables: TableStore, table: str) -> list[Path]:
    """Return every file of a stage table, named by a head or not."""
    return sorted((tables.root / "tables" / table).glob("*/[!.]*.parquet"))


@dataclass(frozen=True)
class StageFiles:
    """Files of every stage table: those of the heads, or all on disk."""

    paths: dict[str, list[Path]]

    @classmethod
    def of_heads(cls, root: Root) -> StageFiles:
        """Return the files that the last index run made or kept."""
        return cls(
            {
                name: current_files(root.tables, name, STAGES[table.owner].partitions(root.settings))
                for name, table in STAGE_TABLES.items()
            }
        )

    @classmethod
    def on_disk(cls, root: Root) -> StageFiles:
        """Return every file on disk."""
        return cls({name: files_on_disk(root.tables, name) for name in STAGE_TABLES})

    def read(self, table: str, columns: Sequence[str], where: ds.Expression | None = None) -> pa.Table:
        """Return the rows of all files, repeated ones too; a column that an older file lacks is null."""
        schema = STAGE_TABLES[table].schema
        found = ds.dataset([str(path) for path in self.paths[table]], schema=schema, format="parquet")
        return found.to_table(columns=list(columns), filter=where).combine_chunks()

    def read_where(self, table: str, columns: Sequence[str], column: str, values: Collection[str]) -> pa.Table:
        """Return the rows that have one of some values in a column."""
        return self.read(table, columns, ds.field(column).isin(pa.array(sorted(values), pa.string())))


def find_needed_replies(root: Root, files: StageFiles) -> set[str]:
    """Return the keys of all replies that these files came from, and of those the same stages would request again."""
    tables = [name for name, table in STAGE_TABLES.items() if "request_key" in table.schema.names]
    keys = {key for name in tables for key in files.read(name, ["request_key"])["request_key"].to_pylist() if key}
    subjects = (files.read(name, columns) for name, columns in _SUBJECT.items())
    return keys | recall_extraction(root, _read_units(files)) | recall_summaries(root, *subjects)


def find_text_hashes(files: StageFiles) -> set[str]:
    """Return the hashes of all texts that these files hold vectors of."""
    return {key for name in _EMBEDDINGS for key in files.read(name, ["text_hash"])["text_hash"].to_pylist()}


# ------------------------------------------------------------------------------------------- replies that left no row


def _read_units(files: StageFiles) -> pa.Table:
    """Return the text units with their context, once for each title and date that their document has in the files."""
    units = files.read("text_units", ["id", "document_id", "text", "heading_path"])
    documents = files.read("documents", ["id", "title", "creation_date"]).to_pandas().drop_duplicates()
    versions = [of_version for _, of_version in documents.groupby(documents.groupby("id").cumcount())]
    contexts = [with_context(units, pa.Table.from_pandas(of_version)) for of_version in versions]
    return pa.concat_tables(contexts or [with_context(units, pa.Table.from_pandas(documents))])


def recall_extraction(root: Root, units: pa.Table) -> set[str]:
    """Return the keys of the stored conversations about text units; needs `id`, `text` and `context`."""
    if not uses_chat_model(STAGES["extracted_graph"], root.settings):
        return set()
    model = StoredReplies(root.models.chat_model("extraction"))
    model.run_works(cast(CallingExtractor, root.extractor()).works(units, model))
    return model.keys


def recall_summaries(root: Root, entities: pa.Table, relationships: pa.Table) -> set[str]:
    """Return the keys of the stored summaries, and summaries of parts, of entities and relationships."""
    if not uses_chat_model(STAGES["summarized_descriptions"], root.settings):
        return set()
    model = StoredReplies(root.models.chat_model("descriptions"))
    subjects = iterate_subjects(entities, relationships)
    model.run_works(cast(CallingDescriber, root.describer()).works(subjects, model))
    return model.keys
