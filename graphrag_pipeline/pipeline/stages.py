"""The stage graph: what each stage reads, what it owns, and what its result depends on besides its inputs.

One `Stage` per asset, in an order in which they can run. Add a stage here and its body in `defs/assets/`. Raise
`algorithm` whenever a stage's code changes its result. Keep out: Dagster, disk, the computation itself.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphrag_pipeline.identity import WHOLE, bucket_keys
from graphrag_pipeline.settings.settings import OVERRIDES_FILE, Settings
from graphrag_pipeline.tables import INDEX_CANDIDATE, STAGE_TABLES


@dataclass(frozen=True)
class Stage:
    """One step of the index.

    Attributes:
        name: of the asset.
        group: of the asset, in the UI; one of `GROUPS`.
        description: of the asset, in the UI.
        reads: stage tables it reads; a partitioned stage reads the same partition of partitioned tables.
        tables: stage tables it owns.
        uses: settings that change its result, "section" or "section.key".
        files: files of the root that the user edits and the stage reads; each may be missing.
        packages: optional packages that change its result if installed, by distribution name.
        algorithm: version of its code.
        engine: section of the settings whose `engine` makes the result.
        prompts: prompts that are sent to its model.
        is_partitioned: one partition per bucket, else one for the whole corpus.
        embeds: whether its result depends on the embedding model.
        embeds_statically: whether its result depends on the bundled static embeddings.
    """

    name: str
    group: str
    description: str
    reads: tuple[str, ...]
    tables: tuple[str, ...]
    uses: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    engine: str = ""
    prompts: tuple[str, ...] = ()
    algorithm: int = 1
    is_partitioned: bool = False
    embeds: bool = False
    embeds_statically: bool = False

    @property
    def model_section(self) -> str:
        """The section of the settings whose model the stage calls if it calls one; see `Settings.model_for`."""
        return self.engine or "embeddings"

    def partitions(self, settings: Settings) -> list[str]:
        return bucket_keys(settings.storage.n_buckets) if self.is_partitioned else [WHOLE]


GROUPS = ("documents", "graph", "embeddings", "publish")
"""Groups of all assets, as the UI draws them from left to right."""

_GRAPH_TABLES = ("entities", "relationships", "covariates")

STAGES: dict[str, Stage] = {
    stage.name: stage
    for stage in (
        Stage(
            "corpus_manifest",
            "documents",
            "Ids, paths, content hashes and problems of the documents in the input folder.",
            reads=(),
            tables=("corpus_manifest",),
            uses=("input", "storage.n_buckets"),
            algorithm=6,
            is_partitioned=True,
        ),
        Stage(
            "documents",
            "documents",
            "The text and metadata of every readable document.",
            reads=("corpus_manifest",),
            tables=("documents",),
            uses=("input",),
            algorithm=4,
            is_partitioned=True,
        ),
        Stage(
            "text_units",
            "documents",
            "Documents split at content-defined sentence ends; imported chunks are combined.",
            reads=("documents",),
            tables=("text_units",),
            uses=("text_units",),
            algorithm=10,
            is_partitioned=True,
        ),
        Stage(
            "extracted_graph",
            "graph",
            "Mentions of entities, relationships and claims as found in each text unit.",
            reads=("documents", "text_units"),
            tables=("entity_mentions", "relationship_mentions", "claim_mentions", "extracted_graph_failures"),
            uses=("extraction", "input.tables"),
            engine="extraction",
            prompts=("extract_graph", "extract_graph_continue", "extract_claims", "extract_claims_continue"),
            packages=("jieba",),
            algorithm=7,
            is_partitioned=True,
        ),
        Stage(
            "graph",
            "graph",
            "Mentions merged and resolved into entities, relationships and claims.",
            reads=("text_units", "entity_mentions", "relationship_mentions", "claim_mentions"),
            tables=(*_GRAPH_TABLES, "entity_merges", "graph_failures"),
            uses=("graph.weight", "resolution"),
            engine="resolution",
            prompts=("resolve_entities",),
            files=(OVERRIDES_FILE,),
            algorithm=15,
        ),
        Stage(
            "summarized_descriptions",
            "graph",
            "One description per entity and relationship.",
            reads=("entities", "relationships"),
            tables=("descriptions", "summarized_descriptions_failures"),
            uses=("descriptions", "text_units.encoding"),
            engine="descriptions",
            prompts=("summarize_descriptions",),
            algorithm=3,
            embeds_statically=True,
        ),
        Stage(
            "communities",
            "graph",
            "Hierarchical Leiden communities of the graph.",
            reads=("entities", "relationships"),
            tables=("communities",),
            uses=("communities",),
            algorithm=2,
        ),
        Stage(
            "community_reports",
            "graph",
            "A report on every community, deepest level first.",
            reads=("communities", *_GRAPH_TABLES, "descriptions"),
            tables=("community_reports", "community_reports_failures"),
            uses=("reports", "text_units.encoding"),
            algorithm=4,
            engine="reports",
            prompts=("community_report",),
            embeds_statically=True,
        ),
        Stage(
            "sentence_embeddings",
            "embeddings",
            "Static vectors of the sentences of text units; search scores windows of them.",
            reads=("text_units",),
            tables=("sentence_embeddings",),
            algorithm=2,
            is_partitioned=True,
            embeds_statically=True,
        ),
        Stage(
            "text_unit_embeddings",
            "embeddings",
            "Vectors of text units.",
            reads=("text_units",),
            tables=("text_unit_embeddings", "text_unit_embeddings_failures"),
            uses=("embeddings",),
            is_partitioned=True,
            embeds=True,
        ),
        Stage(
            "entity_embeddings",
            "embeddings",
            "Vectors of the titles and descriptions of entities.",
            reads=("entities", "descriptions"),
            tables=("entity_embeddings", "entity_embeddings_failures"),
            uses=("embeddings.engine",),
            embeds=True,
        ),
        Stage(
            "relationship_embeddings",
            "embeddings",
            "Vectors of the descriptions of relationships.",
            reads=("relationships", "descriptions"),
            tables=("relationship_embeddings", "relationship_embeddings_failures"),
            uses=("embeddings.engine",),
            embeds=True,
        ),
        Stage(
            "report_embeddings",
            "embeddings",
            "Vectors of community reports.",
            reads=("community_reports",),
            tables=("report_embeddings", "report_embeddings_failures"),
            uses=("embeddings.engine",),
            embeds=True,
        ),
    )
}
"""Stages that own stage tables, in an order in which they can run."""
INPUT_STAGES = ("corpus_manifest", "documents")
"""Stages that read the input folder."""

CANDIDATE = Stage(
    INDEX_CANDIDATE,
    "publish",
    "The frozen candidate: contract tables, vectors and adjacency. All blocking checks are on it.",
    reads=tuple(STAGE_TABLES),
    tables=(),
    uses=("storage.n_buckets", "text_units.encoding", "vector_store"),
    embeds=True,
    embeds_statically=True,
    algorithm=3,
)
SNAPSHOT = Stage(
    "index_snapshot",
    "publish",
    "The published snapshot that queries read. It changes only when the candidate's checks pass.",
    reads=(),
    tables=(),
)
ALL_STAGES: dict[str, Stage] = {**STAGES, CANDIDATE.name: CANDIDATE, SNAPSHOT.name: SNAPSHOT}


def owner_of(table: str) -> Stage:
    """Return the stage that writes a stage table."""
    return STAGES[STAGE_TABLES[table].owner]


def upstream_of(stage: Stage) -> list[Stage]:
    """Return the stages whose tables a stage reads, in running order."""
    if stage is SNAPSHOT:
        return [CANDIDATE]
    owners = {owner_of(table).name for table in stage.reads}
    return [other for name, other in STAGES.items() if name in owners]


def drawn_upstream_of(stage: Stage) -> list[Stage]:
    """Return the stages whose edges to a stage Dagster draws: the candidate reads all tables, and is after the last."""
    if stage is not CANDIDATE:
        return upstream_of(stage)
    read = {other.name for reader in STAGES.values() for other in upstream_of(reader)}
    return [other for other in upstream_of(stage) if other.name not in read]


def all_upstream_of(stage: Stage) -> list[Stage]:
    """Return all stages that a stage depends on, directly or through others, in running order."""
    found = {stage.name}
    for other in reversed(ALL_STAGES.values()):
        if other.name in found:
            found |= {above.name for above in upstream_of(other)}
    return [other for name, other in ALL_STAGES.items() if name in found - {stage.name}]


def input_partitions(stage: Stage, partition: str, settings: Settings) -> list[tuple[str, str]]:
    """Return (table, partition) of everything that one partition of a stage reads."""
    pairs = []
    for table in stage.reads:
        owner = owner_of(table)
        same = stage.is_partitioned and owner.is_partitioned
        pairs += [(table, key) for key in ([partition] if same else owner.partitions(settings))]
    return pairs
