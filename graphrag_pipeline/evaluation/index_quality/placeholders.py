"""Records whose text repeats a prompt, or is an empty template such as `<title>` or `...`.

Examples are read from the prompt files in force and from the default ones (`models/prompt_echoes.py`): values of at
least two words, and names of entities. A field of a report or a description counts if it equals such a value, or if it
holds a long run of a prompt's instructions or the tables of its data. A title or a summary of a report counts if it is
empty or a template; a finding may be a heading alone. An entity named as in an example counts only if none of its text
units contains the name: the corpus may be about the same thing. Keep out: refusing such replies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import one_chunk
from graphrag_pipeline.evaluation.index_quality.figures import QualityFigure, share_of
from graphrag_pipeline.evaluation.index_quality.report_figures import iterate_rows
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import default_prompts
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.storage.snapshots import Snapshot

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
    titles = _folded(entities["title"])
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


def _folded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_trim_whitespace(pc.utf8_lower(column))


def _is_in(column: pa.ChunkedArray, values: Iterable[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array(sorted(values), pa.string()))
