"""graphrag_pipeline: documents indexed as a knowledge graph by Dagster, and questions answered over it.

The public Python API: every name in `__all__`. Other modules are private and may change. Names are imported at first
use, so `import graphrag_pipeline` loads no other package. Add a public name here and in `_MODULES`.

The data flows one way: `settings` and `tables` (contracts), `inputs` and `indexing` (pure steps), `pipeline` and `defs`
(roots, stages, Dagster assets), `storage` and `publishing` (stage tables, snapshots), `query` (searches).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphrag_pipeline.errors import NoSnapshotError, PipelineError, SettingsError
    from graphrag_pipeline.evaluation.measurement import Evaluation, evaluate_index
    from graphrag_pipeline.pipeline.root import Root, find_root, init_root
    from graphrag_pipeline.query.batch.question_files import BatchQuestion, read_question_file
    from graphrag_pipeline.query.batch.run import BatchAccount, BatchAnswer, answer_all, answer_into_file
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.query.results import (
        Citation,
        ClaimRecord,
        Context,
        EntityRecord,
        RelationshipRecord,
        ReportRecord,
        TextUnitRecord,
    )
    from graphrag_pipeline.query.search_result import SearchResult
    from graphrag_pipeline.settings.file import load_settings
    from graphrag_pipeline.settings.settings import Settings
    from graphrag_pipeline.storage.vectors.registry import register_vector_store
    from graphrag_pipeline.storage.vectors.stores import VectorCollection, VectorRecord, VectorStore

_MODULES = {
    "errors": ("NoSnapshotError", "PipelineError", "SettingsError"),
    "evaluation.measurement": ("Evaluation", "evaluate_index"),
    "pipeline.root": ("Root", "find_root", "init_root"),
    "query.batch.question_files": ("BatchQuestion", "read_question_file"),
    "query.batch.run": ("BatchAccount", "BatchAnswer", "answer_all", "answer_into_file"),
    "query.index.graph_index": ("GraphIndex",),
    "query.results": (
        "Citation",
        "ClaimRecord",
        "Context",
        "EntityRecord",
        "RelationshipRecord",
        "ReportRecord",
        "TextUnitRecord",
    ),
    "query.search_result": ("SearchResult",),
    "settings.file": ("load_settings",),
    "settings.settings": ("Settings",),
    "storage.vectors.registry": ("register_vector_store",),
    "storage.vectors.stores": ("VectorCollection", "VectorRecord", "VectorStore"),
}
"""Module -> its public names."""

_MODULE_OF = {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}

__all__ = [
    "BatchAccount",
    "BatchAnswer",
    "BatchQuestion",
    "Citation",
    "ClaimRecord",
    "Context",
    "EntityRecord",
    "Evaluation",
    "GraphIndex",
    "NoSnapshotError",
    "PipelineError",
    "RelationshipRecord",
    "ReportRecord",
    "Root",
    "SearchResult",
    "Settings",
    "SettingsError",
    "TextUnitRecord",
    "VectorCollection",
    "VectorRecord",
    "VectorStore",
    "answer_all",
    "answer_into_file",
    "evaluate_index",
    "find_root",
    "init_root",
    "load_settings",
    "read_question_file",
    "register_vector_store",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]
