"""Descriptions by the embedded engine: one description from the distinct ones of an entity or relationship.

Without descriptions the result is "", a single one is copied. Of several, the best sentences are chosen, at most
`max_sentences`, best first, with `text/extractive.py`. A sentence that starts with the entity's name weighs more, and
one that continues with a definition ("Scrooge was ...") weighs most. If there are at most `max_sentences` sentences,
only near-repeats are dropped.

A row depends only on its key, which covers the title and the descriptions. Sentences are embedded in slices of
`SLICE_SENTENCES`, so memory does not grow with the graph. Keep out: models behind an endpoint, prompts, disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import one_chunk
from graphrag_pipeline.indexing.ports import Described
from graphrag_pipeline.models.pool import Progress
from graphrag_pipeline.models.ports import Embedder, embed_distinct
from graphrag_pipeline.settings.settings import DescriptionsSettings
from graphrag_pipeline.tables import DESCRIPTIONS
from graphrag_pipeline.text.extractive import is_near_repeat, rank_sentences, sentences_of, words_of
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentence_forms import is_sentence, weigh_form

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root

RULES = 1
"""Version of the rules; raise it when a change of code changes descriptions."""
SLICE_ROWS = 20_000
SLICE_SENTENCES = 20_000

_SUBJECT = 1.5
_DEFINITION = 2.5
_WORD = late_re(r"[^\W_]+")
_SAYS_WHAT = late_re(
    r"\s*(?:\([^)]*\)\s*)?(?:(?:is|was|are|were|became|remains|remained)\b|,?\s*(?:also\s)?(?:known as|called)\b"
    r"|,\s+(?:an?|the|who|whose|which)\b)",
    re.IGNORECASE,
)
_NEAR = 30  # characters; the name must start within this distance from the start of the sentence
_MIN_WORD = 3  # letters of the first word of a name


class EmbeddedDescriber:
    """Describes by the best sentences, verbatim; an `indexing.ports.Describer`."""

    def __init__(self, root: Root) -> None:
        self._settings, self._embedder = root.settings.descriptions, root.static_embedder

    def code(self) -> dict[str, Any]:
        """Return the version of the rules."""
        return {"rules": RULES}

    def describe(
        self,
        entities: pa.Table,
        relationships: pa.Table,
        known: pa.Table | None = None,
        progress: Progress | None = None,
    ) -> Described:
        """Return one description for each entity and relationship; see `summarize_descriptions`."""
        return Described(summarize_descriptions(entities, relationships, self._settings, self._embedder, known))


def summarize_descriptions(
    entities: pa.Table,
    relationships: pa.Table,
    settings: DescriptionsSettings,
    embedder: Embedder,
    known: pa.Table | None = None,
) -> pa.Table:
    """Give every entity and relationship one description.

    Args:
        entities: needs `title`, `descriptions`, `description_key` and `text_unit_ids`.
        relationships: needs `descriptions`, `description_key` and `text_unit_ids`.
        known: rows of `tables.DESCRIPTIONS` of the same code version; their keys are not computed again.

    Returns:
        `tables.DESCRIPTIONS`: one row per distinct key.
    """
    subjects = _distinct_subjects(entities, relationships)
    parts = []
    if known is not None and known.num_rows:
        parts.append(known.filter(pc.is_in(known["description_key"], value_set=subjects["description_key"])))
        is_known = pc.is_in(subjects["description_key"], value_set=known["description_key"])
        subjects = subjects.filter(pc.invert(is_known))
    texts = one_chunk(entities["descriptions"]), one_chunk(relationships["descriptions"])
    parts += _summarize(subjects, texts, settings.max_sentences, embedder)
    return DESCRIPTIONS.sort(*parts)


def _distinct_subjects(entities: pa.Table, relationships: pa.Table) -> pa.Table:
    """Return one row per key: kind, title ("" for a relationship), row (of the entities, then the relationships).

    Rows are in the order of their first text units. Subjects of one text unit share sentences, which are then embedded
    once. Descriptions are not copied, since they are most of the graph.
    """
    rows = pa.concat_tables(
        [
            _subject_rows(entities, "entity", entities["title"]),
            _subject_rows(relationships, "relationship", _repeat("", relationships.num_rows)),
        ],
        promote_options="permissive",  # one of them may have wide types
    )
    rows = rows.append_column("row", pa.array(np.arange(len(rows))))
    order = pc.sort_indices(rows, [(name, "ascending") for name in ("description_key", "kind", "title")])
    keys = one_chunk(rows["description_key"].take(order))
    if len(keys) < 2:
        return rows
    is_first = np.concatenate(([True], pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)))
    rows = rows.take(order.filter(pa.array(is_first)))
    return rows.take(pc.sort_indices(rows["first_text_unit"])).drop_columns("first_text_unit")


def _subject_rows(rows: pa.Table, kind: str, titles: pa.ChunkedArray | pa.Array) -> pa.Table:
    columns = {
        "description_key": rows["description_key"],
        "kind": _repeat(kind, rows.num_rows),
        "title": titles,
        "first_text_unit": _first_values(one_chunk(rows["text_unit_ids"])),
    }
    return pa.table(columns)


def _first_values(lists: pa.ListArray) -> pa.Array:
    """Return the first value of each list; null for an empty list."""
    starts, is_empty = lists.offsets[:-1], pc.equal(pc.list_value_length(lists), 0)
    return lists.values.take(pc.if_else(pc.fill_null(is_empty, True), pa.scalar(None, pa.int32()), starts))


def _repeat(value: str, n: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), n)


_Texts: TypeAlias = "tuple[pa.ListArray, pa.ListArray]"
"""Descriptions of the entities, and of the relationships."""


def _read_descriptions(rows: np.ndarray, texts: _Texts) -> list[list[str]]:
    """Return the descriptions of rows, numbered over the entities and then the relationships."""
    of_entities, of_relationships = texts
    is_entity = rows < len(of_entities)
    parts = of_entities.take(rows[is_entity]), of_relationships.take(rows[~is_entity] - len(of_entities))
    place = np.empty(len(rows), dtype=np.int64)
    place[np.r_[np.flatnonzero(is_entity), np.flatnonzero(~is_entity)]] = np.arange(len(rows))
    return [found or [] for found in pa.concat_arrays(parts).take(place).to_pylist()]


def _summarize(subjects: pa.Table, texts: _Texts, max_sentences: int, embedder: Embedder) -> Iterator[pa.Table]:
    for start in range(0, subjects.num_rows, SLICE_ROWS):
        rows = subjects.slice(start, SLICE_ROWS)
        descriptions = _read_descriptions(rows["row"].to_numpy(), texts)
        summaries = [found[0] if len(found) == 1 else "" for found in descriptions]
        titles = rows["title"].to_pylist()
        several = (_DescribedRow(i, titles[i], _collect_sentences(descriptions[i])) for i in _several(descriptions))
        for batch in _batch(several):
            for subject, picked in zip(batch, _pick(batch, max_sentences, embedder), strict=True):
                summaries[subject.position] = _join(picked)
        yield _description_rows(rows, summaries, [len(found) for found in descriptions])


@dataclass(frozen=True)
class _DescribedRow:
    """An entity or relationship with several descriptions: its row in the slice, title and distinct sentences."""

    position: int
    title: str
    sentences: list[str]


def _several(descriptions: Sequence[Sequence[str]]) -> Iterator[int]:
    return (i for i, texts in enumerate(descriptions) if len(texts) > 1)


def _collect_sentences(descriptions: Sequence[str]) -> list[str]:
    """Return the distinct sentences, sorted; fragments only if there is no sentence."""
    sentences = sorted({sentence for text in descriptions for sentence in sentences_of(text)})
    return [sentence for sentence in sentences if is_sentence(sentence)] or sentences


def _batch(subjects: Iterator[_DescribedRow]) -> Iterator[list[_DescribedRow]]:
    batch: list[_DescribedRow] = []
    n_sentences = 0
    for subject in subjects:
        batch.append(subject)
        n_sentences += len(subject.sentences)
        if n_sentences >= SLICE_SENTENCES:
            yield batch
            batch, n_sentences = [], 0
    if batch:
        yield batch


def _pick(subjects: Sequence[_DescribedRow], max_sentences: int, embedder: Embedder) -> Iterator[list[str]]:
    """Yield the chosen sentences of each subject; only subjects with too many sentences need vectors."""
    has_choice = [len(subject.sentences) > max_sentences for subject in subjects]
    texts = [s for subject, choice in zip(subjects, has_choice, strict=True) if choice for s in subject.sentences]
    vectors = embed_distinct(texts, embedder)
    start = 0
    for subject, choice in zip(subjects, has_choice, strict=True):
        priors = _weigh(subject)
        if choice:
            end = start + len(subject.sentences)
            order = rank_sentences(subject.sentences, vectors[start:end], max_sentences, prior=priors)
            start = end
        else:
            order = _drop_repeats(subject.sentences, priors)
        yield [subject.sentences[i] for i in order]


def _weigh(subject: _DescribedRow) -> np.ndarray:
    """Return the weight of each sentence; 1 for all sentences of a relationship, which has no name."""
    words = frozenset(_WORD.findall(subject.title.casefold()))
    return np.array([_weigh_sentence(sentence, words) for sentence in subject.sentences])


def _weigh_sentence(sentence: str, words: frozenset[str]) -> float:
    end = _find_name_end(sentence, words) if words else None
    if end is None:
        return 1.0
    return _DEFINITION if _SAYS_WHAT.match(sentence, end) else _SUBJECT


def _find_name_end(sentence: str, words: frozenset[str]) -> int | None:
    """Return the end of the first name made of these words if it starts near the start of the sentence, else None."""
    end: int | None = None
    for match in _WORD.finditer(sentence):
        word = match.group().casefold()
        if end is None:
            if match.start() >= _NEAR:
                return None
            if word in words and len(word) >= _MIN_WORD:
                end = match.end()
        elif word in words and not sentence[end : match.start()].strip(" .'\u2019-"):
            end = match.end()
        else:
            return end
    return end


def _drop_repeats(sentences: Sequence[str], priors: np.ndarray) -> list[int]:
    """Return positions of sentences, best first, longer ones first on ties, without near-repeats."""
    kept: list[int] = []
    words = [words_of(sentence) for sentence in sentences]
    weights = [prior * weigh_form(sentence) for prior, sentence in zip(priors.tolist(), sentences, strict=True)]
    for i in sorted(range(len(sentences)), key=lambda i: (-weights[i], -len(sentences[i]), sentences[i])):
        if not is_near_repeat(words[i], (words[k] for k in kept)):
            kept.append(i)
    return kept


def _join(sentences: Sequence[str]) -> str:
    if len(sentences) > 1:
        sentences = [sentence if not sentence[-1].isalnum() else sentence + "." for sentence in sentences]
    return " ".join(sentences)


def _description_rows(rows: pa.Table, summaries: list[str], counts: list[int]) -> pa.Table:
    n = rows.num_rows
    return pa.table(
        {
            "description_key": rows["description_key"],
            "kind": rows["kind"],
            "description": pa.array(summaries, pa.string()),
            "n_descriptions": pa.array(counts, pa.int64()),
            "is_fallback": pa.repeat(pa.scalar(False), n),
            "request_key": pa.nulls(n, pa.string()),
        },
        schema=DESCRIPTIONS.schema,
    )
