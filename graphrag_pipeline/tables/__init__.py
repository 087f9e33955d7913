"""The data contract: columns, keys, references and owner of every table, with the text that documents them.

Two layers. *Stage tables* (`stage.py`) are written by the index stages. A stage table has no column that
a later stage computes. *Contract tables* (`contract.py`) are joined from them by `index_candidate`, in Microsoft
GraphRAG's layout (same names and columns, ours added). Searches read only contract tables.

Add a column in one of these files, with the unit in its name and a description. Keep out anything that depends on the
clock, on the order of arrival or on another run. A changed schema changes the code version of the stage that owns it.
A changed description does not.
"""

# ruff: noqa: F401
from graphrag_pipeline.tables.contract import (
    CONTRACT_FAILURES,
    CONTRACT_TABLES,
    INDEX_CANDIDATE,
    RECORD_NUMBERS,
    VECTOR_TABLES,
)
from graphrag_pipeline.tables.schema import Column, Table
from graphrag_pipeline.tables.stage import (
    CAPTION_CHUNK,
    CHUNK_KINDS,
    CHUNKS,
    CLAIM_MENTIONS,
    COMMUNITIES,
    COMMUNITY_REPORTS,
    CORPUS_MANIFEST,
    COVARIATES,
    DESCRIPTIONS,
    DOCUMENTS,
    ENTITIES,
    ENTITY_MENTIONS,
    ENTITY_MERGES,
    MODEL_STAGES,
    RELATIONSHIP_MENTIONS,
    RELATIONSHIPS,
    SENTENCE_EMBEDDINGS,
    STAGE_TABLES,
    TEXT_UNIT_EMBEDDINGS,
    TEXT_UNITS,
    TITLE_CHUNK,
    failures_table,
)
