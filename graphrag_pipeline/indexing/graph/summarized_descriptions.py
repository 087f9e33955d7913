"""Descriptions: the distinct descriptions of one entity or relationship become one.

None -> "", one -> verbatim, several -> the most telling of their sentences, at most `max_sentences`, best first, by the
method of `text/extractive.py`; a sentence that opens with the entity's name counts more, one that goes on to say what
it is or was most. Where there are no more sentences than that, all stay but the repeats.

A row depends on its key alone: the key must cover the title and the descriptions. Sentences are embedded in slices
of `SLICE_SENTENCES`, so memory does not grow with the graph. Keep out: models behind an endpoint, prompts, disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import one_chunk
from graphrag_pipeline.models.ports import Embedder, embed_distinct
from graphrag_pipeline.settings.settings import DescriptionsSettings
from graphrag_pipeline.tables import DESCRIPTIONS
from graphrag_pipeline.text.extractive import is_near_repeat, rank_sentences, sentences_of, words_of
from graphrag_pipeline.text.sentence_forms import is_sentence, weigh_form

SLICE_ROWS = 20_000
SLICE_SENTENCES = 20_000

_SUBJECT = 1.5
_DEFINITION = 2.5
_WORD = re.compile(r"[^\W_]+")
_SAYS_WHAT = re.compile(
    r"\s*(?:\([^)]*\)\s*)?(?:(?:is|was|are|were|became|remains|remained)\b|,?\s*(?:also\s)?(?:known as|called)\b"
    r"|,\s+(?:an?|the|who|whose|which)\b)",
    re.IGNORECASE,
)
_NEAR = 30  # characters within which a sentence comes to its subject
_MIN_WORD = 3  # letters of a word that a name may begin with


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
        known: rows of `tables.DESCRIPTIONS` made by the same code version; a key found there is not computed again.

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
    return DESCRIPTIONS.sort(pa.concat_tables([DESCRIPTIONS.empty(), *parts]))


def _distinct_subjects(entities: pa.Table, relationships: pa.Table) -> pa.Table:
    """One row per key: kind, title ("" for a relationship), row (of the entities, then the relationships).

    They are in the order of their first text units, since subjects that meet in one share its sentences, which are then
    read once. Descriptions stay where they are: they are most of the graph.
    """
    rows = pa.concat_tables(
        [
            _subject_rows(entities, "entity", entities["title"]),
            _subject_rows(relationships, "relationship", _repeat("", relationships.num_rows)),
        ]
    )
    rows = rows.append_column("row", pa.array(np.arange(len(rows))))
    order = pc.sort_indices(rows, [(name, "ascending") for name in ("description_key", "kind", "title")])
    keys = rows["description_key"].take(order).combine_chunks()
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
    """The first value of each list; null where there is none."""
    starts, is_empty = lists.offsets[:-1], pc.equal(pc.list_value_length(lists), 0)
    return lists.values.take(pc.if_else(pc.fill_null(is_empty, True), pa.scalar(None, pa.int32()), starts))


def _repeat(value: str, n: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, pa.string()), n)


_Texts: TypeAlias = "tuple[pa.ListArray, pa.ListArray]"
"""Descriptions of the entities, and of the relationships."""


def _read_descriptions(rows: np.ndarray, texts: _Texts) -> list[list[str]]:
    """Descriptions of rows of the entities, then the relationships."""
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
        several = (_Subject(i, titles[i], _collect_sentences(descriptions[i])) for i in _several(descriptions))
        for batch in _batch(several):
            for subject, picked in zip(batch, _pick(batch, max_sentences, embedder), strict=True):
                summaries[subject.position] = _join(picked)
        yield _description_rows(rows, summaries, [len(found) for found in descriptions])


@dataclass(frozen=True)
class _Subject:
    """An entity or relationship with several descriptions: its row in the slice, title and distinct sentences."""

    position: int
    title: str
    sentences: list[str]


def _several(descriptions: Sequence[Sequence[str]]) -> Iterator[int]:
    return (i for i, texts in enumerate(descriptions) if len(texts) > 1)


def _collect_sentences(descriptions: Sequence[str]) -> list[str]:
    """Distinct sentences in text order; fragments only where there is no sentence."""
    sentences = sorted({sentence for text in descriptions for sentence in sentences_of(text)})
    return [sentence for sentence in sentences if is_sentence(sentence)] or sentences


def _batch(subjects: Iterator[_Subject]) -> Iterator[list[_Subject]]:
    batch: list[_Subject] = []
    n_sentences = 0
    for subject in subjects:
        batch.append(subject)
        n_sentences += len(subject.sentences)
        if n_sentences >= SLICE_SENTENCES:
            yield batch
            batch, n_sentences = [], 0
    if batch:
        yield batch


def _pick(subjects: Sequence[_Subject], max_sentences: int, embedder: Embedder) -> Iterator[list[str]]:
    """The sentences of each subject's description; vectors are made once for all, where there is a choice to make."""
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


def _weigh(subject: _Subject) -> np.ndarray:
    """How much more than usual each sentence is about the subject; a relationship has no name to look for."""
    words = frozenset(_WORD.findall(subject.title.casefold()))
    return np.array([_weigh_sentence(sentence, words) for sentence in subject.sentences])


def _weigh_sentence(sentence: str, words: frozenset[str]) -> float:
    end = _find_name_end(sentence, words) if words else None
    if end is None:
        return 1.0
    return _DEFINITION if _SAYS_WHAT.match(sentence, end) else _SUBJECT


def _find_name_end(sentence: str, words: frozenset[str]) -> int | None:
    """Where the first name made of these words ends, if it begins near the start of the sentence."""
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
    """Best first, longer before shorter where they are alike; a near-repeat is dropped."""
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
