"""The text units of the present input folder, indexed or not, and the choice of some of them for tuning.

A bucket that the index holds as it is comes from the stage tables; another is read and split now. Nothing is written.

Choice of text units: random, by bucket, nearest to the mean vector, or nearest to the means of clusters.

Each choice depends on the seed and the texts only. A text unit has a place in an order drawn from the seed and its id,
so a new document changes few places.

Passages for examples: in each text unit of the sample, the run of whole sentences that names most.

Languages take turns, so that a corpus in several languages gets examples in each.

The text of a sample in a prompt: numbered passages, each cut at a sentence end, in as many tokens as there is room.

Keep out: what is done with the sample.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import bucket_of, stable_hash
from graphrag_pipeline.indexing.ports import Extractor
from graphrag_pipeline.indexing.text_units import split_documents, with_context
from graphrag_pipeline.inputs.documents import build_documents
from graphrag_pipeline.models.endpoints.windows import count_prompt
from graphrag_pipeline.models.ports import ChatRequest, Embedder
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.pipeline.staleness import find_stale
from graphrag_pipeline.ports import load_port
from graphrag_pipeline.settings.search_names import SampleMethod
from graphrag_pipeline.text.languages import detect_language
from graphrag_pipeline.text.name_words import CONCEPT
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each, token_boundaries

LEAST_SAMPLE = 80
"""Tokens of a sample below which nothing can be said of a corpus."""
LEAST_PASSAGE = 40
"""Tokens of a passage; rather than shorter passages, fewer are shown."""

T = TypeVar("T")

_SPLIT = ("corpus_manifest", "documents", "text_units")


class Corpus:
    """Documents and text units of the present input folder.

    Raises:
        PipelineError: the root holds an imported index, or the input folder has no text.
    """

    def __init__(self, root: Root) -> None:
        if root.is_imported:
            raise PipelineError("this root holds an imported index; tune prompts in a root with its own input folder")
        self._root = root
        self._settings = root.settings
        if not self.units.num_rows:
            raise PipelineError(f"no readable text in {root.shown_input}; put documents there, then tune")

    @cached_property
    def units(self) -> pa.Table:
        """All text units with their context, by id."""
        units = pa.concat_tables([with_context(units, documents) for documents, units in self._tables.values()])
        return units.sort_by("id").combine_chunks()

    @cached_property
    def _tables(self) -> dict[str, tuple[pa.Table, pa.Table]]:
        """Bucket -> documents and text units."""
        stale = {item.partition for item in find_stale(self._root, detect_input(self._root)) if item.stage in _SPLIT}
        return {
            bucket: self._read(bucket, bucket in stale) for bucket in STAGES["text_units"].partitions(self._settings)
        }

    def _read(self, bucket: str, is_stale: bool) -> tuple[pa.Table, pa.Table]:
        if not is_stale:
            return self._root.tables.read("documents", bucket), self._root.tables.read("text_units", bucket)
        documents = build_documents(list(self._root.read_input({bucket})))
        return documents, split_documents(documents, self._settings.text_units)

    def rows_of(self, unit_ids: Collection[str]) -> pa.Table:
        """Return the rows of some text units, by id."""
        return self.units.filter(pc.is_in(self.units["id"], pa.array(sorted(unit_ids), pa.string())))

    def find_by_rule(self, unit_ids: Collection[str]) -> dict[str, list[dict]]:
        """Return the entity mentions that the embedded engine finds in some text units, by text unit id.

        Whole documents are read, because a name may be introduced in another text unit.
        """
        wanted = self.rows_of(unit_ids)
        found: dict[str, list[dict]] = {unit_id: [] for unit_id in unit_ids}
        extractor: Extractor = load_port("extractor")(self._root)
        for document_id in sorted(set(wanted["document_id"].to_pylist())):
            documents, _ = self._tables[bucket_of(document_id, self._settings.storage.n_buckets)]
            rows = documents.filter(pc.equal(documents["id"], document_id))
            units = wanted.filter(pc.equal(wanted["document_id"], document_id))
            mentions = extractor.extract(rows, units).tables["entity_mentions"]
            for row in mentions.to_pylist():
                found[row["text_unit_id"]].append(row)
        return found


@dataclass(frozen=True)
class SampleRequest(Generic[T]):
    """A request about a sample, which can be made with less of it.

    Attributes:
        ask: text of the sample -> request.
        max_tokens: of the sample.
    """

    ask: Callable[[str], ChatRequest[T]]
    units: Sequence[SampledUnit]
    max_tokens: int
    encoding: str

    @property
    def request(self) -> ChatRequest[T]:
        """The request with the whole sample."""
        return self.ask(show_sample(self.units, self.max_tokens, self.encoding))

    def shorten(self, n_tokens: int) -> ChatRequest[T] | None:
        """Return the request with at least so many tokens less; None if too little of the sample would be left."""
        return self._within(count_prompt(self.request.messages) - n_tokens)

    def _within(self, n_prompt: int) -> ChatRequest[T] | None:
        """Return the request with a prompt of at most so many tokens; None if too little of the sample is left."""
        left = min(self.max_tokens, n_prompt - count_prompt(self.ask("").messages))
        while left >= LEAST_SAMPLE:
            request = self.ask(show_sample(self.units, left, self.encoding))
            excess = count_prompt(request.messages) - n_prompt
            if excess <= 0:
                return request
            left -= excess
        return None

    def fit(self, room: int | None) -> ChatRequest[T]:
        """Return the request with as much of the sample as the room for a prompt allows.

        Args:
            room: most tokens of a prompt; None if it is not known.

        Raises:
            PipelineError: there is no room for a sample.
        """
        if room is None or count_prompt(self.request.messages) <= room:
            return self.request
        request = self._within(room)
        if request is None:
            frame = count_prompt(self.ask("").messages)
            raise PipelineError(
                f"the window of the model of `tune` has room for a prompt of {room:,} tokens: {frame:,} for the "
                f"instructions leave less than {LEAST_SAMPLE} for the sample of the corpus. Set another model in "
                "`tuning.model`, with its context_window"
            )
        return request


def show_sample(units: Sequence[SampledUnit], max_tokens: int, encoding: str) -> str:
    """Return the text units as numbered passages, each cut at a sentence end to an equal share of the tokens.

    If the shares would be smaller than `LEAST_PASSAGE`, the first text units are shown only.
    """
    shown = units[: max(1, max_tokens // LEAST_PASSAGE)]
    share = max(1, max_tokens // max(1, len(shown)))
    cut = [_cut(" ".join(unit.text.split()), share, encoding) for unit in shown]
    return "\n\n".join(f"Passage {number}: {text}" for number, text in enumerate(cut, 1))


def _cut(text: str, max_tokens: int, encoding: str) -> str:
    """Return the first whole sentences of a text, or the start of a first sentence that is too long."""
    if count_tokens(text, encoding) <= max_tokens:
        return text
    kept, n_tokens = 0, 0
    for start, end in split_sentences(text):
        n_tokens += count_tokens(text[start:end], encoding)
        if n_tokens > max_tokens:
            break
        kept = end
    if not kept:
        n_before, offsets = token_boundaries(text, encoding)
        kept = offsets[bisect_right(n_before, max_tokens) - 1]
    return text[:kept].strip()


MARKS = re.compile(r"<\||\|>|##|</?\s*(?:text|data|passage|input_text|document)\b", re.IGNORECASE)
"""Text that a prompt or a reply of extraction could take for its own marks."""


@dataclass(frozen=True)
class Passage:
    """A passage of a text unit.

    Attributes:
        text: on one line.
        names: names in it that the embedded engine finds, without key phrases.
        language: as rules detect it; "" if they cannot.
    """

    text_unit_id: str
    document_id: str
    text: str
    names: frozenset[str]
    language: str


def choose_passages(
    units: Sequence[SampledUnit], mentions: Mapping[str, Sequence[Mapping]], max_tokens: int, encoding: str, n: int
) -> list[Passage]:
    """Return at most `n` passages, one per text unit, those with most names first, languages in turn.

    Args:
        mentions: text unit id -> rows with `name`, `type` and `written` of the embedded engine.
    """
    found = (_choose_passage(unit, mentions.get(unit.id, ()), max_tokens, encoding) for unit in units)
    ranked = sorted((p for p in found if p), key=lambda p: (-len(p.names), p.text_unit_id))
    turn: Counter[str] = Counter()
    turns = []
    for passage in ranked:
        turns.append(turn[passage.language])
        turn[passage.language] += 1
    return [ranked[place] for place in sorted(range(len(ranked)), key=lambda place: turns[place])[:n]]


def _choose_passage(unit: SampledUnit, mentions: Sequence[Mapping], max_tokens: int, encoding: str) -> Passage | None:
    """Return the window of sentences with most names; of equal ones the first; None if none can be used."""
    spans = split_sentences(unit.text)
    sentences = [unit.text[start:end] for start, end in spans]
    tokens = count_tokens_each(sentences, encoding)
    forms = {row["written"] or row["name"]: row["name"] for row in mentions if row["type"] != CONCEPT}
    best: tuple[int, str, frozenset[str]] | None = None
    for first in range(len(sentences)):
        last, n_tokens = first, 0
        while last < len(sentences) and n_tokens + tokens[last] <= max_tokens:
            n_tokens += tokens[last]
            last += 1
        text = " ".join(unit.text[spans[first][0] : spans[last - 1][1]].split()) if last > first else ""
        if not text or MARKS.search(text):
            continue
        names = frozenset(name for form, name in forms.items() if form in text)
        if best is None or len(names) > best[0]:
            best = (len(names), text, names)
    return Passage(unit.id, unit.document_id, best[1], best[2], detect_language(unit.text)) if best else None


MAX_EMBEDDED = 2_000
"""Most text units whose vectors are compared; the first ones in the drawn order."""
_MAX_ROUNDS = 50


@dataclass(frozen=True)
class SampledUnit:
    """A text unit of the sample."""

    id: str
    document_id: str
    text: str
    n_tokens: int


def choose_units(
    units: pa.Table,
    method: SampleMethod,
    size: int,
    seed: int,
    n_buckets: int,
    embedder: Callable[[], Embedder],
    excluded: Collection[str] = (),
) -> list[SampledUnit]:
    """Return at most `size` text units with different texts, by id.

    Args:
        units: needs `id`, `document_id`, `text` and `n_tokens`.
        n_buckets: of the root, for `bucket`.
        embedder: gives the embedder for `centroid` and `clusters`.
        excluded: ids that are not chosen.
    """
    drawn = _draw(units, seed, excluded)
    if method == "random" or size >= len(drawn):
        chosen = drawn[:size]
    elif method == "bucket":
        chosen = _take_turns(drawn, [bucket_of(unit.document_id, n_buckets) for unit in drawn], size)
    else:
        drawn = drawn[:MAX_EMBEDDED]
        vectors = embedder().embed([unit.text for unit in drawn])
        rows = nearest_to_mean(vectors, size) if method == "centroid" else nearest_to_clusters(vectors, size)
        chosen = [drawn[row] for row in rows]
    return sorted(chosen, key=lambda unit: unit.id)


def _draw(units: pa.Table, seed: int, excluded: Collection[str]) -> list[SampledUnit]:
    """Return all text units with a letter and a new text, in the drawn order."""
    rows = units.select(["id", "document_id", "text", "n_tokens"]).to_pylist()
    rows = [row for row in rows if row["id"] not in excluded and any(map(str.isalpha, row["text"]))]
    rows.sort(key=lambda row: stable_hash("tuning", str(seed), row["id"]))
    distinct = {row["text"]: row for row in reversed(rows)}
    return [SampledUnit(**row) for row in rows if distinct[row["text"]] is row]


def _take_turns(units: Sequence[SampledUnit], groups: Sequence[str], size: int) -> list[SampledUnit]:
    """Return units of the groups in turn; a group without further units is passed over."""
    turn: dict[str, int] = {}
    turns = []
    for group in groups:
        turns.append((turn.setdefault(group, 0), group))
        turn[group] += 1
    order = sorted(range(len(units)), key=turns.__getitem__)
    return [units[place] for place in order[:size]]


def nearest_to_mean(vectors: np.ndarray, size: int) -> list[int]:
    """Return the rows nearest to the mean of all vectors, nearest first."""
    distances = np.linalg.norm(vectors - vectors.mean(axis=0), axis=1)
    return np.argsort(distances, kind="stable")[:size].tolist()


def nearest_to_clusters(vectors: np.ndarray, size: int) -> list[int]:
    """Return the row nearest to each mean of `size` clusters (k-means, Lloyd 1982), without repeats.

    The first mean is the first row; each further one is the row that is farthest from the means so far.
    """
    means = vectors[_spread_rows(vectors, size)]
    for _ in range(_MAX_ROUNDS):
        labels = _squared_distances(vectors, means).argmin(axis=1)
        moved = np.stack([vectors[labels == k].mean(axis=0) if (labels == k).any() else means[k] for k in range(size)])
        if np.array_equal(moved, means):
            break
        means = moved
    distances = _squared_distances(vectors, means)
    chosen: dict[int, None] = {}
    for k in range(size):
        chosen[next(row for row in np.argsort(distances[:, k], kind="stable").tolist() if row not in chosen)] = None
    return list(chosen)


def _spread_rows(vectors: np.ndarray, size: int) -> list[int]:
    rows = [0]
    nearest = _squared_distances(vectors, vectors[:1])[:, 0]
    while len(rows) < size:
        nearest[rows] = -1
        rows.append(int(nearest.argmax()))
        nearest = np.minimum(nearest, _squared_distances(vectors, vectors[rows[-1:]])[:, 0])
    return rows


def _squared_distances(vectors: np.ndarray, means: np.ndarray) -> np.ndarray:
    squares = (vectors**2).sum(axis=1)[:, None] - 2 * vectors @ means.T + (means**2).sum(axis=1)[None, :]
    return np.maximum(squares, 0.0)
