"""What came from a document: its text units, the graph records they gave, and the replies of models about them.

Stage files on disk are read whether a head names them or not: a document is to be forgotten in every version it ever
had there. Replies that left no row (a gleaning that added nothing, a summary of a part) are found by asking again as
the settings and prompts are now, with a model that only recalls. Keep out: removing anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from graphrag_pipeline.indexing.model_descriptions import iterate_subjects
from graphrag_pipeline.indexing.model_stages import extraction_works, summary_works
from graphrag_pipeline.models.stored_replies import StoredReplies
from graphrag_pipeline.plans import plan_extraction, plan_summaries
from graphrag_pipeline.root import Root
from graphrag_pipeline.stages import STAGES, asks_model
from graphrag_pipeline.storage.table_store import TableStore
from graphrag_pipeline.tables import STAGE_TABLES

_OF_UNITS = ("entity_mentions", "relationship_mentions", "claim_mentions", "covariates")
_SUBJECT = {
    "entities": ["id", "title", "descriptions", "description_key"],
    "relationships": ["id", "source", "target", "descriptions", "description_key"],
}
_EMBEDDINGS = tuple(name for name in STAGE_TABLES if name.endswith("_embeddings") and name != "sentence_embeddings")


def current_files(tables: TableStore, table: str, partitions: Iterable[str]) -> list[Path]:
    """The files that the heads of a stage table name."""
    heads = (tables.head(table, partition) for partition in partitions)
    return [path for head in heads if head for path in tables.paths(head)]


def files_on_disk(tables: TableStore, table: str) -> list[Path]:
    """Every file of a stage table, named by a head or not."""
    return sorted((tables.root / "tables" / table).glob("*/[!.]*.parquet"))


@dataclass(frozen=True)
class StageFiles:
    """Some files of every stage table: those of the heads, or all that there are."""

    paths: dict[str, list[Path]]

    @classmethod
    def of_heads(cls, root: Root) -> StageFiles:
        """What the stages have made of the input folder as it was last indexed."""
        return cls(
            {
                name: current_files(root.tables, name, STAGES[table.owner].partitions(root.settings))
                for name, table in STAGE_TABLES.items()
            }
        )

    @classmethod
    def on_disk(cls, root: Root) -> StageFiles:
        """Everything that is still there."""
        return cls({name: files_on_disk(root.tables, name) for name in STAGE_TABLES})

    def read(self, table: str, columns: Sequence[str], where: ds.Expression | None = None) -> pa.Table:
        """Distinct or repeated rows of all files; a column that an older file has not is null."""
        schema = STAGE_TABLES[table].schema
        found = ds.dataset([str(path) for path in self.paths[table]], schema=schema, format="parquet")
        return found.to_table(columns=list(columns), filter=where).combine_chunks()

    def read_where(self, table: str, columns: Sequence[str], column: str, values: Collection[str]) -> pa.Table:
        """Rows that have one of some values in a column."""
        return self.read(table, columns, ds.field(column).isin(pa.array(sorted(values), pa.string())))

    def read_touching(self, table: str, columns: Sequence[str], column: str, values: Collection[str]) -> pa.Table:
        """Rows that have one of some values in a column of lists."""
        rows = self.read(table, [*columns, *({column} - set(columns))])
        lists = rows[column].combine_chunks()
        is_hit = pc.is_in(lists.flatten(), value_set=pa.array(sorted(values), pa.string()))
        return rows.take(pc.unique(pc.list_parent_indices(lists).filter(is_hit)))


@dataclass(frozen=True)
class Traces:
    """What some files hold of documents.

    Attributes:
        units: `id` and `text` of their text units.
        entities, relationships: that those mention; needs what `iterate_subjects` needs, and `id`.
    """

    units: pa.Table
    entities: pa.Table
    relationships: pa.Table


def find_traces(files: StageFiles, document_ids: Collection[str]) -> Traces:
    """Text units, entities and relationships of documents."""
    units = files.read_where("text_units", ["id", "text"], "document_id", document_ids)
    unit_ids = set(units["id"].to_pylist())
    entities = files.read_touching("entities", _SUBJECT["entities"], "text_unit_ids", unit_ids)
    relationships = files.read_touching("relationships", _SUBJECT["relationships"], "text_unit_ids", unit_ids)
    return Traces(units, entities, relationships)


def find_request_keys(root: Root, files: StageFiles, traces: Traces) -> set[str]:
    """Keys of the replies that were made from documents, as far as these files tell."""
    unit_ids = set(traces.units["id"].to_pylist())
    described = {key for rows in (traces.entities, traces.relationships) for key in rows["description_key"].to_pylist()}
    entity_ids = set(traces.entities["id"].to_pylist())
    communities = set(files.read_touching("communities", ["id"], "entity_ids", entity_ids)["id"].to_pylist())
    found = [files.read_where(table, ["request_key"], "text_unit_id", unit_ids) for table in _OF_UNITS]
    found.append(files.read_where("extracted_graph_failures", ["request_key"], "record", unit_ids))
    found.append(files.read_where("descriptions", ["request_key"], "description_key", described))
    found.append(files.read_where("community_reports", ["request_key"], "community_id", communities))
    keys = {key for rows in found for key in rows["request_key"].to_pylist() if key}
    recalled = recall_summaries(root, traces.entities, traces.relationships)
    return keys | recall_extraction(root, traces.units) | recalled


def find_kept_keys(root: Root, current: StageFiles, traces: Traces) -> set[str]:
    """Keys of all replies that the index as it is now came from; of parts of summaries, those about `traces` alone."""
    tables = [name for name, table in STAGE_TABLES.items() if "request_key" in table.schema.names]
    keys = {key for name in tables for key in current.read(name, ["request_key"])["request_key"].to_pylist() if key}
    touched = [
        current.read_where(name, columns, "id", set(rows["id"].to_pylist()))
        for (name, columns), rows in zip(_SUBJECT.items(), (traces.entities, traces.relationships), strict=True)
    ]
    return keys | recall_summaries(root, *touched)


def find_text_hashes(files: StageFiles) -> set[str]:
    """Hashes of all texts that these files hold vectors of."""
    return {key for name in _EMBEDDINGS for key in files.read(name, ["text_hash"])["text_hash"].to_pylist()}


# ------------------------------------------------------------------------------------------- replies that left no row


def recall_extraction(root: Root, units: pa.Table) -> set[str]:
    """Keys of the stored conversations about text units; needs `id` and `text`."""
    if not asks_model(STAGES["extracted_graph"], root.settings):
        return set()
    model = StoredReplies(root.models.chat_model("extraction"))
    model.ask_all(extraction_works(units, plan_extraction(root), model))
    return model.keys


def recall_summaries(root: Root, entities: pa.Table, relationships: pa.Table) -> set[str]:
    """Keys of the stored summaries, and summaries of parts, of entities and relationships."""
    if not asks_model(STAGES["summarized_descriptions"], root.settings):
        return set()
    model = StoredReplies(root.models.chat_model("descriptions"))
    model.ask_all(summary_works(iterate_subjects(entities, relationships), plan_summaries(root), model))
    return model.keys
