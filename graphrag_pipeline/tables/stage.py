"""Stage tables: what each index stage writes.

First the tables that are partitioned by bucket of documents, then those over the whole corpus, then failures, and the
tables of vectors. Keep out: a column that a later stage computes (`contract.py`).
"""

from __future__ import annotations

import pyarrow as pa

from graphrag_pipeline.tables.schema import STRINGS, Column, Table

INT8_VECTOR = pa.binary(256)
"""One int8 per dimension of the bundled static embeddings; only its direction has a meaning, not its length."""


def _embedding_table(name: str, embedded: str) -> Table:
    return Table(
        name,
        (
            Column("text_hash", pa.string(), "Hash of the embedded text."),
            Column("vector", pa.list_(pa.float32()), "Embedding of the text."),
        ),
        key=("text_hash",),
        owner=name,
        description=f"One row per distinct text embedded for {embedded}.",
    )


SENTENCE_EMBEDDINGS = Table(
    "sentence_embeddings",
    (
        Column("text_unit_id", pa.string(), "Id of the text unit that the sentence is in."),
        Column("position", pa.int32(), "Position within the text unit, from 0."),
        Column(
            "start",
            pa.int64(),
            "First character in the document's text, from 0; a repeated header counts as if it stood before the text "
            "unit's `start`.",
        ),
        Column("end", pa.int64(), "Character after the last in the document's text."),
        Column("vector", INT8_VECTOR, "Static embedding: 256 int8 values; zeros if no word of it is known."),
    ),
    key=("text_unit_id", "position"),
    owner="sentence_embeddings",
    references={"text_unit_id": ("text_units", "id")},
    description="One row per sentence of a text unit, with its static embedding.",
)
TEXT_UNIT_EMBEDDINGS = _embedding_table("text_unit_embeddings", "a text unit")
ENTITY_EMBEDDINGS = _embedding_table("entity_embeddings", "an entity: its title and description")
RELATIONSHIP_EMBEDDINGS = _embedding_table("relationship_embeddings", "a relationship: its ends and description")
REPORT_EMBEDDINGS = _embedding_table("report_embeddings", "a community report")

CHUNKS = pa.list_(
    pa.struct(
        [
            ("start", pa.int64()),  # character offsets into the document's text
            ("end", pa.int64()),
            ("type", pa.string()),  # as the input has it, in lower case
            ("page", pa.int32()),  # null if not known
            ("id", pa.string()),  # of the chunk in the input; null if it has none
        ]
    )
)
"""The chunks of a document that the input holds in typed chunks, in reading order."""
TITLE_CHUNK = "title"
CAPTION_CHUNK = "caption"
_CHUNK_NAMES = {
    TITLE_CHUNK: ("title", "heading", "section_header"),
    "paragraph": ("paragraph", "text", "narrativetext", "narrative_text"),
    "table": ("table",),
    "list": ("list", "list_item", "listitem"),
    "figure": ("figure", "image", "picture", "chart"),
    CAPTION_CHUNK: ("caption", "figure_caption", "table_caption", "figurecaption"),
    "code": ("code", "code_block", "codesnippet"),
}
CHUNK_KINDS = {name: kind for kind, names in _CHUNK_NAMES.items() for name in names}
"""Kinds of chunks, by the type that converters write, in lower case. Another type is a paragraph."""
FINDINGS = pa.list_(pa.struct([("summary", pa.string()), ("explanation", pa.string())]))

_REQUEST_KEY = Column(
    "request_key", pa.string(), "Key of the stored model reply that the row was read from; null if by rule.", True
)

# ---------------------------------------------------------------------------------------------- stage tables, by bucket

CORPUS_MANIFEST = Table(
    "corpus_manifest",
    (
        Column("document_id", pa.string(), "Id of the document: a hash of `path` and `record`."),
        Column("path", pa.string(), "Path relative to the input folder, with forward slashes."),
        Column("record", pa.string(), "Id or row number of the record inside a structured file; empty: a whole file."),
        Column("format", pa.string(), "File format: txt, md, csv, json, jsonl, parquet, pdf and others."),
        Column("n_bytes", pa.int64(), "Size of the file or record, in bytes."),
        Column("content_hash", pa.string(), "Hash of the content of the document's row; empty if it was not readable."),
        Column("problem", pa.string(), "Reason why the document was not readable; null if it was.", True),
        Column("note", pa.string(), "Oddity of the rows of a document that was read; null if there was none.", True),
    ),
    key=("document_id",),
    owner="corpus_manifest",
    description="One row per document found in the input folder, readable or not.",
)
DOCUMENTS = Table(
    "documents",
    (
        Column("id", pa.string(), "Id of the document: a hash of `path` and `record`."),
        Column("title", pa.string(), "Title: from the record or the text, else from the file name."),
        Column("text", pa.string(), "Full text."),
        Column("path", pa.string(), "Path relative to the input folder, with forward slashes."),
        Column("record", pa.string(), "Id or row number of the record inside a structured file; empty: a whole file."),
        Column("content_hash", pa.string(), "Hash of the content of this row."),
        Column("creation_date", pa.string(), "ISO 8601 date from the document's own metadata; null if none.", True),
        Column("metadata", pa.string(), "Other metadata of the document: a JSON object with sorted keys."),
        Column(
            "chunks",
            CHUNKS,
            "Typed chunks of the input (start, end, type, page, id), in reading order; offsets in characters; "
            "null if the input has none.",
            True,
        ),
    ),
    key=("id",),
    owner="documents",
    description="One row per readable document of the input folder.",
)
TEXT_UNITS = Table(
    "text_units",
    (
        Column("id", pa.string(), "Id of the text unit."),
        Column("document_id", pa.string(), "Id of the document that the text unit is part of."),
        Column("position", pa.int32(), "Position within the document, from 0."),
        Column("start", pa.int64(), "First character in the document's text, from 0."),
        Column("end", pa.int64(), "Character after the last: `text` ends with `document.text[start:end]`."),
        Column("text", pa.string(), "Text of the text unit: its repeated header, if any, and `start` to `end`."),
        Column("n_tokens", pa.int32(), "Length of `text`, in tokens."),
        Column(
            "header_start",
            pa.int64(),
            "First character of the table header that `text` repeats, in the document's text; null if it repeats none.",
            True,
        ),
        Column(
            "header_end",
            pa.int64(),
            "Character after the header: `text` begins with `document.text[header_start:header_end]`.",
            True,
        ),
        Column(
            "heading_path",
            STRINGS,
            "Headings above its first paragraph, list or table, the outermost first; null without "
            "`text_units.markdown_blocks`.",
            True,
        ),
        Column("heading_levels", pa.list_(pa.int8()), "Level of each of these headings, 1 to 6.", True),
        Column(
            "first_page",
            pa.int32(),
            "Page that it begins on, by its chunks or by the form feeds of the document; null if not known.",
            True,
        ),
        Column("last_page", pa.int32(), "Page that it ends on; null if not known.", True),
    ),
    key=("id",),
    owner="text_units",
    references={"document_id": ("documents", "id")},
    order=("document_id", "position"),
    description="One row per text unit: a passage of a document, the unit of extraction and citation.",
)
_TEXT_UNIT_ID = Column("text_unit_id", pa.string(), "Id of the text unit that the mention is in.")
_POSITION = Column("position", pa.int32(), "Position of the record among those of its kind in the text unit, from 0.")
_START = Column("start", pa.int64(), "First character in the document's text, from 0; null if not known.", True)
_END = Column("end", pa.int64(), "Character after the last in the document's text; null if not known.", True)

ENTITY_MENTIONS = Table(
    "entity_mentions",
    (
        _TEXT_UNIT_ID,
        _POSITION,
        Column("name", pa.string(), "Name as extracted, before names are merged across documents."),
        Column("type", pa.string(), "Entity type, in upper case; UNKNOWN if the extractor gives none."),
        Column("description", pa.string(), "Description of the entity in this text unit; empty if none."),
        _START,
        _END,
        _REQUEST_KEY,
        Column("written", pa.string(), "Form in the text, if it differs from `name`; else null.", True),
        Column(
            "is_about", pa.bool_(), "Whether the document's title names the entity; only in its first text unit.", True
        ),
        Column(
            "is_exact", pa.bool_(), "Whether a file's data says name and type, so that no other type replaces it.", True
        ),
    ),
    key=("text_unit_id", "position"),
    owner="extracted_graph",
    references={"text_unit_id": ("text_units", "id")},
    description="One row per mention of an entity in a text unit.",
)
RELATIONSHIP_MENTIONS = Table(
    "relationship_mentions",
    (
        _TEXT_UNIT_ID,
        _POSITION,
        Column("source", pa.string(), "Name of the first entity, as extracted."),
        Column("target", pa.string(), "Name of the second entity, as extracted."),
        Column("description", pa.string(), "Description of the relationship in this text unit; empty if none."),
        Column("strength", pa.float64(), "Strength of the relationship in this text unit; larger is stronger."),
        _START,
        _END,
        _REQUEST_KEY,
        Column("predicate", pa.string(), "Verb phrase, label or column from source to target; null if none.", True),
    ),
    key=("text_unit_id", "position"),
    owner="extracted_graph",
    references={"text_unit_id": ("text_units", "id")},
    description="One row per mention of a relationship in a text unit.",
)
_CLAIM_COLUMNS = (
    Column("start_date", pa.string(), "First day or time that the claim is about, ISO 8601; null if none.", True),
    Column("end_date", pa.string(), "Last day or time that the claim is about, ISO 8601; null if none.", True),
)
_CLAIM_TYPE = Column("type", pa.string(), "Category of the claim.")
_CLAIM_STATUS = Column("status", pa.string(), "TRUE, FALSE or SUSPECTED.")
_CLAIM_DESCRIPTION = Column("description", pa.string(), "Text of the claim.")
_CLAIM_SOURCE = Column("source_text", pa.string(), "Quotes from the text that support the claim.")

CLAIM_MENTIONS = Table(
    "claim_mentions",
    (
        _TEXT_UNIT_ID,
        _POSITION,
        Column("subject", pa.string(), "Name of the entity that the claim is about, as extracted."),
        Column("object", pa.string(), "Name of the entity that the claim reports or is affected; NONE if not known."),
        _CLAIM_TYPE,
        _CLAIM_STATUS,
        *_CLAIM_COLUMNS,
        _CLAIM_DESCRIPTION,
        _CLAIM_SOURCE,
        _REQUEST_KEY,
    ),
    key=("text_unit_id", "position"),
    owner="extracted_graph",
    references={"text_unit_id": ("text_units", "id")},
    description="One row per claim that a model extracted from a text unit.",
)

# ------------------------------------------------------------------------------------------- stage tables, whole corpus

_TEXT_UNIT_IDS = Column("text_unit_ids", STRINGS, "Ids of the text units that mention it, sorted.")
_N_MENTIONS = Column("n_mentions", pa.int64(), "Number of mentions; one in the overlap of two text units counts once.")
_DESCRIPTIONS = Column("descriptions", STRINGS, "Distinct descriptions of its mentions that are not empty, sorted.")
_DESCRIPTION_KEY = Column("description_key", pa.string(), "Key of the row of `descriptions` with their summary.")

ENTITIES = Table(
    "entities",
    (
        Column("id", pa.string(), "Id of the entity: a hash of its title."),
        Column("title", pa.string(), "Normalized name, unique: upper case, with white space and quotes folded."),
        Column("type", pa.string(), "Most frequent type of its mentions."),
        Column("types", STRINGS, "All types of its mentions, most frequent first."),
        Column("names", STRINGS, "All written forms, sorted."),
        _DESCRIPTIONS,
        _DESCRIPTION_KEY,
        _TEXT_UNIT_IDS,
        Column("frequency", pa.int64(), "Number of text units that mention it."),
        _N_MENTIONS,
        Column("degree", pa.int64(), "Number of its relationships."),
    ),
    key=("id",),
    owner="graph",
    description="One row per entity: all mentions whose names resolve to one title.",
)
RELATIONSHIPS = Table(
    "relationships",
    (
        Column("id", pa.string(), "Id of the relationship: a hash of the unordered pair of titles."),
        Column("source", pa.string(), "Title of one entity; it sorts before `target`, the pair has no direction."),
        Column("target", pa.string(), "Title of the other entity."),
        Column("source_id", pa.string(), "Id of the entity `source`."),
        Column("target_id", pa.string(), "Id of the entity `target`."),
        _DESCRIPTIONS,
        _DESCRIPTION_KEY,
        Column("weight", pa.float64(), "Sum of the mentions' strengths, or their number (`graph.weight`)."),
        _N_MENTIONS,
        Column("combined_degree", pa.int64(), "Sum of the degrees of both entities."),
        _TEXT_UNIT_IDS,
        Column("predicates", STRINGS, "Verb phrases and labels of its mentions, sorted; null if none.", True),
        Column("pmi", pa.float64(), "Pointwise mutual information of both entities over text units, in bits.", True),
    ),
    key=("id",),
    owner="graph",
    references={"source_id": ("entities", "id"), "target_id": ("entities", "id")},
    description="One row per unordered pair of related entities.",
)
COVARIATES = Table(
    "covariates",
    (
        Column("id", pa.string(), "Id of the claim."),
        Column("covariate_type", pa.string(), "Kind of covariate; always `claim`."),
        _CLAIM_TYPE,
        _CLAIM_DESCRIPTION,
        # Microsoft GraphRAG names the columns so, although they hold titles.
        Column("subject_id", pa.string(), "Title (not id) of the entity that the claim is about; may be unknown."),
        Column("object_id", pa.string(), "Title (not id) of the other entity; NONE if not known."),
        _CLAIM_STATUS,
        *_CLAIM_COLUMNS,
        _CLAIM_SOURCE,
        Column("text_unit_id", pa.string(), "Id of the first text unit that the claim is in."),
        Column("text_unit_ids", STRINGS, "Ids of all text units that the claim is in, sorted."),
        _REQUEST_KEY,
    ),
    key=("id",),
    owner="graph",
    description="One row per claim (covariate) of a document, with the titles of the resolved entities.",
)
ENTITY_MERGES = Table(
    "entity_merges",
    (
        Column("name", pa.string(), "Written form."),
        Column("title", pa.string(), "Title of the entity that the written form was merged into."),
        Column("rule", pa.string(), "Rule that merged them, such as alias, acronym, fuzzy or embedding."),
        Column("evidence", pa.string(), "Evidence for the merge, in words."),
        Column("score", pa.float64(), "Certainty of the merge, 0 to 1."),
    ),
    key=("name", "title"),
    owner="graph",
    references={"title": ("entities", "title")},
    description="One row per written form that entity resolution merged into an entity.",
)
DESCRIPTIONS = Table(
    "descriptions",
    (
        Column("description_key", pa.string(), "Key that entities and relationships refer to."),
        Column("kind", pa.string(), "entity or relationship."),
        Column("description", pa.string(), "Summary of all descriptions of its mentions; empty if they have none."),
        Column("n_descriptions", pa.int64(), "Number of distinct descriptions that it summarizes."),
        Column("is_fallback", pa.bool_(), "Whether the embedded engine wrote it because the model failed."),
        _REQUEST_KEY,
    ),
    key=("description_key",),
    owner="summarized_descriptions",
    description="One row per summarized description of an entity or a relationship.",
)
COMMUNITIES = Table(
    "communities",
    (
        Column("id", pa.string(), "Id of the community: a hash of its level and entities."),
        Column("level", pa.int64(), "Level in the hierarchy; 0 is the coarsest."),
        Column("parent_id", pa.string(), "Id of the community one level above; null at level 0.", True),
        Column("entity_ids", STRINGS, "Ids of its entities, sorted."),
        Column("size", pa.int64(), "Number of its entities."),
    ),
    key=("id",),
    owner="communities",
    references={"parent_id": ("communities", "id"), "entity_ids": ("entities", "id")},
    order=("level", "id"),
    description="One row per community of the hierarchical Leiden clustering.",
)
COMMUNITY_REPORTS = Table(
    "community_reports",
    (
        Column("community_id", pa.string(), "Id of the community."),
        COMMUNITIES.column("level"),
        Column("title", pa.string(), "Title of the report."),
        Column("summary", pa.string(), "Summary of the report."),
        Column(
            "findings",
            FINDINGS,
            "Findings (summary, explanation); the texts cite ids: [Data: Entities (id, ...); Relationships (id)].",
        ),
        Column("rank", pa.float64(), "Importance rating of the community, 0 to 10."),
        Column("rating_explanation", pa.string(), "Reason for the rating."),
        Column("is_verbatim", pa.bool_(), "Whether it repeats descriptions: the community is too small for a model."),
        Column("is_fallback", pa.bool_(), "Whether the embedded engine wrote it because the model failed."),
        Column("inputs_key", pa.string(), "Hash of everything that its context was chosen from."),
        Column("context_key", pa.string(), "Hash of the context that it was written from."),
        _REQUEST_KEY,
        Column(
            "evidence",
            pa.list_(pa.int64()),
            "Hashes of the evidence that it was written from; empty if reports are never deferred.",
        ),
        Column("new_share", pa.float64(), "Share of the community's present evidence that the report lacks, 0 to 1."),
    ),
    key=("community_id",),
    owner="community_reports",
    references={"community_id": ("communities", "id")},
    order=("level", "community_id"),
    description="One row per community report.",
)

# ------------------------------------------------------------------------------------------------------------- failures

FAILURE_COLUMNS = (
    Column("record", pa.string(), "Failed record: a text unit id, a title, a community id or the hash of a text."),
    Column("reason", pa.string(), "Reason of the failure, in words."),
    Column("reply", pa.string(), "Start of the model's reply; empty if there was no reply."),
    Column("request_key", pa.string(), "Key of the request that failed."),
)


def failures_table(stage: str) -> Table:
    """Return the table of the records for which a stage got no usable reply from its model."""
    return Table(
        f"{stage}_failures",
        FAILURE_COLUMNS,
        key=("record", "request_key"),
        owner=stage,
        description=f"One row per record for which `{stage}` got no usable reply from its model.",
    )


MODEL_STAGES = (
    "extracted_graph",
    "graph",
    "summarized_descriptions",
    "community_reports",
    "text_unit_embeddings",
    "entity_embeddings",
    "relationship_embeddings",
    "report_embeddings",
)
"""Stages that can use a model (`engine: model`); each owns a table of failures."""

STAGE_TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        CORPUS_MANIFEST, DOCUMENTS, TEXT_UNITS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, CLAIM_MENTIONS,
        ENTITIES, RELATIONSHIPS, COVARIATES, ENTITY_MERGES, DESCRIPTIONS, COMMUNITIES, COMMUNITY_REPORTS,
        SENTENCE_EMBEDDINGS, TEXT_UNIT_EMBEDDINGS, ENTITY_EMBEDDINGS, RELATIONSHIP_EMBEDDINGS, REPORT_EMBEDDINGS,
        *map(failures_table, MODEL_STAGES),
    )
}  # fmt: skip
