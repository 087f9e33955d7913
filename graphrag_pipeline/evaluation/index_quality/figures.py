"""Figures of an index's quality that need no questions: its graph, reports, placeholders and duplicates."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import one_chunk
from graphrag_pipeline.citations import KIND_OF_RECORD, parse_citations
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import default_prompts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.settings.section import THRESHOLDS, QualitySettings
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.text.counted import counted, spread_rows

MAX_EXAMPLES = 5


@dataclass(frozen=True)
class FigureKind:
    """The declaration of a figure.

    Attributes:
        name: name in tables, JSON and checks; that of its threshold without `min_` or `max_`.
        meaning: a noun phrase.
        advice: what to do if the figure is beyond its threshold.
        listed: what the examples of the figure are; "" if it has none.
    """

    name: str
    meaning: str
    advice: str
    listed: str = ""

    @property
    def option(self) -> str:
        """The name of the threshold in `quality.thresholds`."""
        return next(o for o in (f"min_{self.name}", f"max_{self.name}") if o in THRESHOLDS)

    @property
    def is_minimum(self) -> bool:
        """Whether values below the threshold warn."""
        return self.option.startswith("min_")


@dataclass(frozen=True)
class QualityFigure:
    """A measured figure.

    Attributes:
        value: the figure; None if it was not measured.
        n: number of records that it is about.
        counted: what these records are, such as `text units`.
        note: in words, what the value says, or the reason if it is None.
        examples: records that lower the figure, at most `MAX_EXAMPLES`.
    """

    name: str
    value: float | None
    n: int
    counted: str
    note: str = ""
    examples: tuple[str, ...] = ()

    @property
    def kind(self) -> FigureKind:
        return FIGURES[self.name]

    def is_low(self, settings: QualitySettings) -> bool:
        """Whether the value is beyond its threshold; False without a value or a threshold."""
        threshold = settings.threshold(self.kind.option)
        if self.value is None or threshold is None:
            return False
        return self.value < threshold if self.kind.is_minimum else self.value > threshold

    def render_threshold(self, settings: QualitySettings) -> str:
        """Return the threshold in words; "" if none is set."""
        threshold = settings.threshold(self.kind.option)
        return "" if threshold is None else f"{'at least' if self.kind.is_minimum else 'at most'} {threshold:g}"


def share_of(name: str, n_found: int, n: int, counted: str, examples: Sequence[str] = ()) -> QualityFigure:
    """Return a share as a figure; without a value if there is no record."""
    value = n_found / n if n else None
    note = f"{n_found:,} of {n:,} {counted}" if n else f"the index has no {counted}"
    return QualityFigure(name, value, n, counted, note, tuple(examples[:MAX_EXAMPLES]))


def not_measured(name: str, reason: str) -> QualityFigure:
    """Return a figure without a value."""
    return QualityFigure(name, None, 0, "", reason)


FIGURES: dict[str, FigureKind] = {
    kind.name: kind
    for kind in (
        FigureKind(
            "text_unit_coverage",
            "share of text units that yield an entity",
            "Look at the text units without entities and at `graphrag-pipeline status`, which lists failed records. "
            "Try another prompt or model with `graphrag-pipeline try extraction`.",
            "text units without an entity",
        ),
        FigureKind(
            "undescribed_entities",
            "share of entities without a description",
            "Local search matches entities by descriptions. A model that leaves them out may need the default prompt, "
            "a larger `parameters.max_tokens`, or another model.",
            "entities without a description",
        ),
        FigureKind(
            "singletons",
            "share of entities without a relationship",
            "A graph search cannot leave these entities. Raise `extraction.max_gleanings`, or tune "
            "`prompts/extract_graph.txt` so that relationships are extracted, too.",
            "entities without a relationship",
        ),
        FigureKind(
            "type_entropy",
            "Shannon entropy of the entity types, in bits",
            "Almost all entities have one type. Name the types of your corpus in `extraction.entity_types`.",
        ),
        FigureKind(
            "largest_component",
            "share of entities in the largest connected component",
            "The graph falls into pieces that no search crosses. Check singletons first, then whether names of one "
            "thing are merged (`graphrag-pipeline merges`).",
        ),
        FigureKind(
            "claims_per_text_unit",
            "claims a text unit",
            "Describe the claims that your corpus makes in `extraction.claim_description`, or switch claims off.",
        ),
        FigureKind(
            "duplicates_by_name",
            "share of entities whose name differs from another one only in spelling, articles or word order",
            "Merge them in `entity_overrides.csv`, set `resolution.rules` to true, or set `resolution.min_similarity`.",
            "names that may be one",
        ),
        FigureKind(
            "duplicates_by_vector",
            "share of compared entities with another entity of their type at almost the same vector",
            "Look at the pairs. If they are one thing, merge them in `entity_overrides.csv` or set "
            "`resolution.min_similarity`.",
            "pairs that may be one, with their cosine",
        ),
        FigureKind(
            "cited_findings",
            "share of findings of community reports with a citation of an existing record",
            "Statements without a citation cannot be traced. Use the default `prompts/community_report.txt`, another "
            "model for `reports`, or `reports.engine: embedded`, which quotes and cites.",
            "findings without a valid citation",
        ),
        FigureKind(
            "valid_citations",
            "share of records cited by community reports that exist",
            "The model invents record numbers. Use another model for `reports`, or `reports.engine: embedded`.",
            "citations of records that do not exist",
        ),
        FigureKind(
            "placeholders",
            "share of records whose text repeats an example of a prompt or is an empty template",
            "The model copies the prompt. Use a larger model for this stage, or `engine: embedded`.",
            "records with a copied or an empty text",
        ),
        FigureKind(
            "engine_ratio",
            "entities a text unit by the model, divided by those of the embedded engine",
            "The model misses entities. Raise `extraction.max_gleanings`, use a larger model or smaller text units "
            "(`text_units.size`), or set `extraction.engine: embedded`.",
            "found by the embedded engine only, most frequent first",
        ),
        FigureKind(
            "engine_overlap",
            "share of the model's entities that the embedded engine finds in the same text units",
            "The model names other things than the text does. Read some of them with `graphrag-pipeline try "
            "extraction`. Topics are no error: the embedded engine finds names and key phrases only.",
            "found by the model only, most frequent first",
        ),
        FigureKind(
            "averaged_cosine",
            "mean cosine of an averaged vector to the vector of the whole text, over texts cut on purpose",
            "Text units exceed `embedding_model.batch_max_tokens`, and the mean of their parts' vectors differs from "
            "their own. Lower `text_units.size` or `text_units.aggregation_target`, or use a model with a longer "
            "window.",
        ),
    )
}
"""Every figure, in the order in which they are measured."""


def measure_graph(snapshot: Snapshot, has_claims: bool) -> Iterator[QualityFigure]:
    """Yield the figures of the graph."""
    entities, text_units = snapshot.table("entities"), snapshot.table("text_units")
    yield _measure_coverage(text_units)
    is_blank = pc.equal(pc.utf8_trim_whitespace(entities["description"]), "")
    yield _share_of_entities("undescribed_entities", entities, is_blank)
    yield _share_of_entities("singletons", entities, pc.equal(entities["degree"], 0))
    yield _measure_types(entities)
    yield _measure_component(snapshot)
    yield _measure_claims(snapshot.n_rows("covariates"), text_units.num_rows, has_claims)


def _measure_coverage(text_units: pa.Table) -> QualityFigure:
    is_covered = pc.greater(pc.list_value_length(text_units["entity_ids"]), 0)
    bare = text_units["text"].filter(pc.invert(is_covered)).slice(0, MAX_EXAMPLES).to_pylist()
    shown = [" ".join(text[:200].split())[:80] for text in bare]
    return share_of("text_unit_coverage", pc.sum(is_covered).as_py() or 0, text_units.num_rows, "text units", shown)


def _share_of_entities(name: str, entities: pa.Table, is_found: pa.ChunkedArray) -> QualityFigure:
    examples = entities["title"].filter(is_found).slice(0, MAX_EXAMPLES).to_pylist()
    return share_of(name, pc.sum(is_found).as_py() or 0, entities.num_rows, "entities", examples)


def _measure_types(entities: pa.Table) -> QualityFigure:
    """Return H = -sum(p log2 p) over the shares p of the entity types."""
    if not entities.num_rows:
        return not_measured("type_entropy", "the index has no entities")
    counts = (
        entities.group_by("type")
        .aggregate([([], "count_all")])
        .sort_by([("count_all", "descending"), ("type", "ascending")])
    )
    shares = counts["count_all"].to_numpy() / entities.num_rows
    bits = max(0.0, -float((shares * np.log2(shares)).sum()))
    first = [f"{name} {share:.0%}" for name, share in zip(counts["type"].to_pylist()[:3], shares[:3], strict=False)]
    note = f"{counts.num_rows:,} types; {', '.join(first)}"
    return QualityFigure("type_entropy", bits, entities.num_rows, "entities", note)


def _measure_component(snapshot: Snapshot) -> QualityFigure:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = snapshot.n_rows("entities")
    ends = [np.asarray(snapshot.adjacency.array(f"relationship_{end}")) for end in ("source", "target")]
    edges = coo_array((np.ones(len(ends[0]), dtype=np.int8), (ends[0], ends[1])), shape=(n, n))
    n_components, labels = connected_components(edges, directed=False) if n else (0, np.zeros(0, dtype=np.int32))
    largest = int(np.bincount(labels).max()) if n else 0
    figure = share_of("largest_component", largest, n, "entities")
    return replace(figure, note=f"{figure.note}; components: {n_components:,}")


def _measure_claims(n_claims: int, n_text_units: int, has_claims: bool) -> QualityFigure:
    if not n_claims and not has_claims:
        return not_measured("claims_per_text_unit", "claims are not extracted (`extraction.has_claims`)")
    value = n_claims / n_text_units if n_text_units else None
    note = f"{n_claims:,} claims in {counted(n_text_units, 'text units')}"
    return QualityFigure("claims_per_text_unit", value, n_text_units, "text units", note)


_BATCH_ROWS = 1_000
_MAX_DIGITS = 18
_TABLE_OF_RECORD = {
    "entity": "entities",
    "relationship": "relationships",
    "claim": "covariates",
    "report": "community_reports",
    "text_unit": "text_units",
}


def measure_citations(snapshot: Snapshot) -> Iterator[QualityFigure]:
    """Yield the share of cited findings, and the share of cited records that exist."""
    # Kind in a citation -> numbers of existing records, ascending.
    numbers = {
        KIND_OF_RECORD[record]: np.sort(snapshot.table(table)["human_readable_id"].to_numpy())
        for record, table in _TABLE_OF_RECORD.items()
    }
    n_findings = n_cited = n_records = n_valid = 0
    uncited: list[str] = []
    unknown: list[str] = []
    for report in iterate_rows(snapshot, "community_reports", ["title", "findings"]):
        for finding in report["findings"] or ():
            cited = _cited_records(f"{finding['summary']}\n{finding['explanation']}")
            valid = [record for record in cited if _exists(record, numbers)]
            n_findings, n_cited = n_findings + 1, n_cited + bool(valid)
            n_records, n_valid = n_records + len(cited), n_valid + len(valid)
            if not valid and len(uncited) < MAX_EXAMPLES:
                uncited.append(f"{report['title']}: {finding['summary'][:80]}")
            unknown += [f"{report['title']}: {kind} ({n})" for kind, n in cited if (kind, n) not in valid][:1]
    yield share_of("cited_findings", n_cited, n_findings, "findings", uncited)
    yield share_of("valid_citations", n_valid, n_records, "cited records", unknown)


def iterate_rows(snapshot: Snapshot, table: str, columns: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a contract table, few of them in memory at once."""
    for batch in snapshot.table(table).select(columns).to_batches(max_chunksize=_BATCH_ROWS):
        yield from batch.to_pylist()


def _cited_records(text: str) -> list[tuple[str, str]]:
    """Return distinct (kind, number) of a text, in reading order."""
    return list(dict.fromkeys((kind, n) for kind, listed in parse_citations(text) for n in listed))


def _exists(record: tuple[str, str], numbers: Mapping[str, np.ndarray]) -> bool:
    kind, number = record
    known = numbers.get(kind)
    if known is None or not (number.isascii() and number.isdecimal() and len(number) < _MAX_DIGITS):
        return False
    place = int(np.searchsorted(known, int(number)))
    return place < len(known) and int(known[place]) == int(number)


INDEX_PROMPTS = (
    "extract_graph",
    "extract_graph_continue",
    "extract_claims",
    "extract_claims_continue",
    "summarize_descriptions",
    "community_report",
)
"""Prompts whose replies become records of the index."""

_TEMPLATE = re.compile(r"[\W_]*|<[^<>]{1,60}>|\[[^\[\]]{1,60}\]|\{[^{}]{1,60}\}")
_TEMPLATE_WORDS = frozenset(
    ("n/a", "null", "none", "string", "text", "title", "report title", "community report", "summary", "description",
     "executive summary", "name", "entity", "entity name", "entity_name", "entity_description", "source", "target",
     "source_entity", "target_entity", "explanation", "finding", "your title here", "lorem ipsum", "todo", "tbd")
)  # fmt: skip


def measure_placeholders(root: Root, snapshot: Snapshot, clean: Snapshot | None = None) -> QualityFigure:
    """Return the share of entities, relationships and reports with a copied or an empty text.

    Args:
        clean: a snapshot in which no record was found with the same prompts; texts that it holds are not read again.
    """
    defaults = default_prompts()
    prompts = [root.prompt(name).text for name in INDEX_PROMPTS] + [defaults[f"{n}.txt"] for n in INDEX_PROMPTS]
    copies = _Copies.of_prompts(dict.fromkeys(prompts))
    found = [
        *_find_entities(snapshot, copies, clean),
        *_find_relationships(snapshot, copies, clean),
        *_find_reports(snapshot, copies, clean),
    ]
    n = sum(snapshot.n_rows(name) for name in ("entities", "relationships", "community_reports"))
    return share_of("placeholders", len(found), n, "entities, relationships and reports", found)


@dataclass(frozen=True)
class _Copies:
    """What is copied from prompts: folded values and names of their examples, and their instructions."""

    values: Set[str]
    names: Set[str]
    instructions: PromptEchoes

    @classmethod
    def of_prompts(cls, prompts: Iterable[str]) -> _Copies:
        echoes = PromptEchoes("\n{next_prompt}\n".join(prompts))
        values = frozenset(value for value in map(_fold, echoes.example_values) if " " in value)
        return cls(values, frozenset(map(_fold, echoes.example_names)), echoes)

    def hold(self, text: str) -> bool:
        return _fold(text) in self.values or self.instructions.is_copied(text)

    def hold_each(self, texts: pa.ChunkedArray, clean: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return whether each text is copied; those among `clean` are not."""
        distinct = pc.unique(texts)  # one sentence often describes several relationships
        unread = distinct.filter(pc.invert(pc.is_in(distinct, value_set=one_chunk(clean)))).to_pylist()
        return _is_in(texts, [text for text in unread if text and self.hold(text)])


def _column(snapshot: Snapshot | None, table: str, column: str) -> pa.ChunkedArray:
    """Return a column of strings of a contract table; no row without a snapshot."""
    return snapshot.table(table)[column] if snapshot else pa.chunked_array([], pa.string())


def _find_entities(snapshot: Snapshot, copies: _Copies, clean: Snapshot | None) -> Iterator[str]:
    entities = snapshot.table("entities")
    titles = pc.utf8_trim_whitespace(pc.utf8_lower(entities["title"]))
    is_copied = copies.hold_each(entities["description"], _column(clean, "entities", "description"))
    is_suspect = pc.or_(is_copied, _is_in(titles, copies.names | _TEMPLATE_WORDS))
    for row in entities.filter(is_suspect).select(["title", "description", "text_unit_ids"]).to_pylist():
        if copies.hold(row["description"] or "") or not _is_named(snapshot, row["title"], row["text_unit_ids"]):
            yield f"entity {row['title']}"


def _is_named(snapshot: Snapshot, title: str, text_unit_ids: list[str]) -> bool:
    """Whether a text unit of an entity contains its title, in any case."""
    rows = snapshot.rows_of("text_units", text_unit_ids)
    texts = snapshot.take("text_units", rows[rows >= 0], ["text"])
    return any(title.casefold() in _fold(row["text"]) for row in texts)


def _find_relationships(snapshot: Snapshot, copies: _Copies, clean: Snapshot | None) -> Iterator[str]:
    rows = snapshot.table("relationships")
    is_copied = copies.hold_each(rows["description"], _column(clean, "relationships", "description"))
    for row in rows.filter(is_copied).select(["source", "target"]).to_pylist():
        yield f"relationship {row['source']} - {row['target']}"


def _find_reports(snapshot: Snapshot, copies: _Copies, clean: Snapshot | None) -> Iterator[str]:
    known = frozenset(_iterate_report_texts(clean)) if clean else frozenset()
    for title, summary, *found in _iterate_report_texts(snapshot):
        if (title, summary, *found) in known:
            continue
        heads = (title, summary)
        has_copy = any(copies.hold(text) or _TEMPLATE.fullmatch(_fold(text)) for text in (*heads, *filter(None, found)))
        if has_copy or not _TEMPLATE_WORDS.isdisjoint(map(_fold, heads)):
            yield f"report {title}"


def _iterate_report_texts(snapshot: Snapshot) -> Iterator[tuple[str, ...]]:
    """Yield the title, the summary and the texts of the findings of each report."""
    for row in iterate_rows(snapshot, "community_reports", ["title", "summary", "findings"]):
        yield row["title"], row["summary"], *(text for finding in row["findings"] or () for text in finding.values())


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


def _is_in(column: pa.ChunkedArray, values: Iterable[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array(sorted(values), pa.string()))


N_COMPARED = 500
"""Entities, evenly spread, whose nearest entities by vector are looked up; the share is known within 2 %."""
DUPLICATE_SIMILARITY = 0.95
"""Minimum cosine at which two entities of one type count as duplicates by vector."""
_VECTORS = "default-entity-description"
_N_NEIGHBOURS = 8
_BLOCK_ROWS = 20_000  # entities whose vectors are held in memory at once: 20 MB with 256 dimensions
_COLUMNS = ["title", "type", "description"]
_WORD = re.compile(r"[^\W_]+")
_POSSESSIVE = re.compile(r"['\u2019]s\b")
_ARTICLES = frozenset(("the", "a", "an"))


def find_duplicates_by_name(titles: list[str]) -> list[list[str]]:
    """Return groups of at least two titles that differ only in spelling, each sorted, in the order of the first."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for title in titles:
        # The joined words of a title, and the sorted ones.
        folded = title.casefold()
        if not folded.isascii():
            folded = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
        words = _WORD.findall(_POSSESSIVE.sub("", folded))
        words = words[1:] if len(words) > 1 and words[0] in _ARTICLES else words
        for key in {"".join(words), " ".join(sorted(words))} - {""}:
            groups[key].append(title)
    distinct = {tuple(sorted(set(group))) for group in groups.values()}
    return [list(group) for group in sorted(distinct) if len(group) > 1]


def measure_duplicates(snapshot: Snapshot) -> Iterator[QualityFigure]:
    """Yield the shares of duplicates by name and by vector.

    Raises:
        PipelineError: the vector store cannot be read.
    """
    groups = find_duplicates_by_name(snapshot.table("entities")["title"].to_pylist())
    shown = [" = ".join(group[:3]) for group in groups]
    n_found = len({title for group in groups for title in group})
    yield share_of("duplicates_by_name", n_found, snapshot.n_rows("entities"), "entities", shown)
    yield _measure_by_vector(snapshot)


def _measure_by_vector(snapshot: Snapshot) -> QualityFigure:
    entities = snapshot.table("entities")
    rows = spread_rows(entities.num_rows, N_COMPARED)
    if not rows:
        return not_measured("duplicates_by_vector", "the index has no entities")
    collection, ids = snapshot.vectors(_VECTORS), entities["id"].to_pylist()
    sample = _unit_vectors(collection.vectors([ids[row] for row in rows]))
    near: dict[int, list[tuple[float, int]]] = {row: [] for row in rows}
    for start in range(0, len(ids), _BLOCK_ROWS):
        cosines = sample @ _unit_vectors(collection.vectors(ids[start : start + _BLOCK_ROWS])).T
        for place, other in np.argwhere(cosines >= DUPLICATE_SIMILARITY).tolist():
            near[rows[place]].append((-float(cosines[place, other]), start + other))
    found = [pair for row in rows if (pair := _name_pair(snapshot, row, near[row]))]
    return share_of("duplicates_by_vector", len(found), len(rows), "compared entities", found)


def _unit_vectors(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _name_pair(snapshot: Snapshot, row: int, near: list[tuple[float, int]]) -> str:
    """Return "TITLE = OTHER (cosine)" for the nearest duplicate of an entity; "" without one."""
    nearest = [(cosine, other) for cosine, other in sorted(near) if other != row][:_N_NEIGHBOURS]
    entity, *others = snapshot.take("entities", [row, *(other for _, other in nearest)], _COLUMNS)
    for other, (cosine, _) in zip(others, nearest, strict=True):
        if other["type"] == entity["type"] and other["description"] != entity["description"]:
            return f"{entity['title']} = {other['title']} ({-cosine:.3f})"
    return ""
