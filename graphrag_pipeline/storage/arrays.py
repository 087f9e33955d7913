"""Immutable folders of memory-mapped arrays in a snapshot: adjacency, mentions, and the sentences of the text units.

Each array is a `.npy` file. The folder is named after its content, so that snapshots share it. The arrays are defined
where they are built (`publishing/arrays.py`, `indexing/sentence_embeddings.py`). Keep out: searching.
"""

from __future__ import annotations

import functools
import itertools
import os
import shutil
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa

from graphrag_pipeline.arrow_columns import compress, list_pairs, positions
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.listed_folders import (
    find_changed_files,
    hash_file,
    read_file_list,
    write_file_list,
)
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.text.languages import joins

_MAX_SPARSITY = 64
"""Rows of a table for each row of a group, up to which marking them in an array is faster than sorting them."""
_MAX_READ_SHARE = 4
"""Sentences for each one that is read, up to which their vectors come from the map."""


def write_arrays(parent: Path, arrays: Mapping[str, np.ndarray]) -> str:
    """Save arrays by name and return the name of their folder in `parent`; a damaged folder of that name is replaced.

    Raises:
        PipelineError: the disk is full or the folder cannot be written.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        working = Path(tempfile.mkdtemp(prefix=files.TEMPORARY_PREFIX, dir=parent))
        try:
            hashes = {}
            for name in sorted(arrays):
                path = working / f"{name}.npy"
                np.save(path, arrays[name], allow_pickle=False)
                hashes[name] = hash_file(path)
            content = _name_of(hashes)
            if find_changed_arrays(parent / content):
                write_file_list(working)
                working.chmod(0o755)
                shutil.rmtree(parent / content, ignore_errors=True)
                os.replace(working, parent / content)
        finally:
            shutil.rmtree(working, ignore_errors=True)
    except OSError as error:
        raise files.write_error(parent, error) from error
    return content


def _name_of(hashes: Mapping[str, str]) -> str:
    """Return the name of a folder of arrays with these hashes."""
    return files.content_hash("".join(f"{name}:{hashes[name]};" for name in sorted(hashes)).encode())


def find_changed_arrays(folder: Path, is_fresh: bool = False) -> list[Path]:
    """Return the files of a folder that are missing, or whose content is not the one that its name promises."""
    if changed := find_changed_files(folder, is_fresh):
        return changed
    hashes = {Path(name).stem: file.sha256 for name, file in read_file_list(folder).items()}
    return [] if _name_of(hashes) == folder.name else [folder]


class ArrayFolder:
    """A folder of arrays, each mapped at first use.

    Args:
        folder: a folder that `write_arrays` made.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._arrays: dict[str, np.ndarray] = {}

    def array(self, name: str) -> np.ndarray:
        """Return one array.

        Raises:
            NoSnapshotError: its file is missing or damaged.
        """
        if name not in self._arrays:
            path = self._folder / f"{name}.npy"
            try:
                mapped = np.load(path, mmap_mode="r", allow_pickle=False)
                self._arrays[name] = mapped.view(np.ndarray)  # a plain array is indexed faster than a `memmap`
            except ValueError:  # its text advises to load objects that the file may hold
                raise files.read_error(path, ValueError("it is no array")) from None
            except (OSError, EOFError) as error:
                raise files.read_error(path, error) from None
        return self._arrays[name]

    def close(self) -> None:
        """Unmap the arrays once no caller has one; a later use maps them again."""
        self._arrays.clear()


class Adjacency(ArrayFolder):
    """Memory-mapped adjacency of a snapshot, in row numbers of the contract tables.

    Each `<a>_<b>s` relation (listed in `publishing/arrays.py`) is a pair of arrays in compressed sparse row form:
    `indptr` int64 (n_a + 1) and `indices` int32; the rows of b that belong to row i of a are
    `indices[indptr[i]:indptr[i + 1]]`, ascending. `entity_text_units` is in the order of the entity's
    own list.
    """

    def of(self, relation: str, row: int) -> np.ndarray:
        """Return the rows related to one row, such as `of("entity_relationships", 3)`: int32, ordered as stored."""
        indptr = self.array(f"{relation}_indptr")
        return self.array(f"{relation}_indices")[indptr[row] : indptr[row + 1]]

    def of_all(self, relation: str, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows related to several rows as (position in `rows`, related row) pairs, sorted in that order."""
        positions, places = expand_rows(self.array(f"{relation}_indptr"), rows)
        return positions, self.array(f"{relation}_indices").take(places)

    def counts(self, relation: str) -> np.ndarray:
        """Return the number of related rows of each row, int64."""
        return np.diff(self.array(f"{relation}_indptr"))


class Sentences(ArrayFolder):
    """Memory-mapped sentences of a snapshot's text units, in text unit row order, then in reading order.

    The sentences of text unit row i are rows `indptr[i]:indptr[i + 1]` of every other array.
    """

    @property
    def indptr(self) -> np.ndarray:
        """int64 (n text units + 1)."""
        return self.array("text_unit_sentences_indptr")

    @property
    def starts(self) -> np.ndarray:
        """int32, character offset inside the text unit's text."""
        return self.array("sentence_starts")

    @property
    def ends(self) -> np.ndarray:
        """int32, character offset inside the text unit's text."""
        return self.array("sentence_ends")

    @property
    def vectors(self) -> np.ndarray:
        """int8 (n sentences, dimensions): the direction of a sentence's vector; zeros if it has no known word."""
        return self.array("sentence_vectors")

    def read_vectors(self, rows: np.ndarray) -> np.ndarray:
        """Return the vectors of some sentences, int8 (len(rows), dimensions), read from the file run by run.

        These vectors are the largest array. A mapped row would load the 64 kB around it into memory, so that a server
        would soon hold all of them. If the rows are a large part, they are read from the map.

        Args:
            rows: in few ascending runs, such as the sentences of some text units.

        Raises:
            NoSnapshotError: the file is missing or damaged.
        """
        if not len(rows) or len(rows) * _MAX_READ_SHARE > len(self.vectors):
            return self.vectors[rows]
        found = np.empty((len(rows), self.vectors.shape[1]), dtype=np.int8)
        size, starts = found.shape[1], np.flatnonzero(np.diff(rows, prepend=-2) != 1)
        buffer, ends = found.data.cast("B"), [*starts[1:].tolist(), len(rows)]
        file, before = self._vector_file
        number, read, wholes = file.fileno(), os.preadv, (before + size * rows[starts]).tolist()
        for start, end, place in zip((size * starts).tolist(), [size * end for end in ends], wholes, strict=True):
            if read(number, [buffer[start:end]], place) < end - start:
                raise files.read_error(Path(file.name), EOFError("it ends too early"))
        return found

    def close(self) -> None:
        """Also close the file of the vectors."""
        super().close()
        if opened := self.__dict__.pop("_vector_file", None):
            opened[0].close()

    @functools.cached_property
    def _vector_file(self) -> tuple[BinaryIO, int]:
        """The file of the vectors, and the bytes before the first one."""
        path = self._folder / "sentence_vectors.npy"
        try:
            return path.open("rb", buffering=0), np.load(path, mmap_mode="r", allow_pickle=False).offset
        except (OSError, ValueError) as error:
            raise files.read_error(path, error) from None

    @property
    def scales(self) -> np.ndarray:
        """float32: `vectors * scales` has the length of the sentence in characters (0 for a zero vector)."""
        return self.array("sentence_scales")

    @property
    def window_scales(self) -> np.ndarray:
        """float32: 1 / length of (scaled vector + that of the next sentence of the text unit); 0 without a next one."""
        return self.array("window_scales")


def expand_rows(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (position in `rows`, place in the values) of each value of some compressed sparse rows, both int64."""
    starts = indptr.take(rows)  # `take` reads many rows in half the time of an index array
    lengths = indptr.take(np.asarray(rows) + 1) - starts
    positions = np.repeat(np.arange(len(rows)), lengths)
    # Value i of the result is at place i + (start of its row - number of values before the row).
    offsets = starts - (np.cumsum(lengths) - lengths)
    return positions, np.arange(len(positions)) + np.repeat(offsets, lengths)


def group_rows(rows: np.ndarray, n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct row numbers, ascending, and the position of each of `rows` among them, int64.

    Args:
        rows: int (n,), from 0 to n_rows - 1.
    """
    if n_rows > _MAX_SPARSITY * len(rows):
        order = np.argsort(rows, kind="stable")  # fast for rows in a few ascending runs, unlike `np.unique`
        ordered = rows[order].astype(np.int64)
        is_first = _firsts(ordered)
        positions = np.empty(len(rows), dtype=np.int64)
        positions[order] = np.cumsum(is_first) - 1
        return ordered[is_first], positions
    is_in = np.zeros(n_rows, dtype=bool)
    is_in[rows] = True
    found = np.flatnonzero(is_in)
    position_of = np.empty(n_rows, dtype=np.int64)
    position_of[found] = np.arange(len(found))
    return found, position_of[rows]


def distinct(values: np.ndarray) -> np.ndarray:
    """Return the distinct integers of a few ascending runs, ascending, such as the rows related to several rows.

    A stable sort merges the runs: 0.05 ms for 50,000 rows of a hub entity, where a sort that ignores runs takes 1 ms.
    """
    ordered = np.sort(values, kind="stable")
    return ordered[_firsts(ordered)]


def nth_largest(values: np.ndarray, n: int) -> int:
    """Return the n-th largest of some integers, 1 <= n <= len(values).

    The n-th largest of a sample is a lower bound, so of very many values only those that reach it are compared.
    """
    step = len(values) // (4 * n)
    if step > 1:
        values = values[values >= nth_largest(values[::step], n)]
    return int(np.partition(values, len(values) - n)[len(values) - n])


def _firsts(ordered: np.ndarray) -> np.ndarray:
    """Return which values of an ordered array differ from the one before, bool."""
    is_first = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return is_first


MAX_BYTES = 64_000_000
"""Memory for the means of a snapshot: 62,500 text units at 256 dimensions."""


class SentenceMeans:
    """The mean vector of each text unit's sentences, weighted by their lengths in characters.

    A text unit has one place, which it may share with others if not all fit; the last one read is kept there. Safe to
    use from several threads.

    Args:
        max_bytes: of the vectors that are kept; at least one is.
    """

    def __init__(self, sentences: Sentences, max_bytes: int = MAX_BYTES) -> None:
        self._sentences = sentences
        dimensions = sentences.vectors.shape[1]
        n_places = max(min(len(sentences.indptr) - 1, max_bytes // (4 * dimensions)), 1)
        self._rows = np.full(n_places, -1, dtype=np.int64)
        self._vectors = np.empty((n_places, dimensions), dtype=np.float32)  # memory is taken where rows are written
        self._lock = threading.Lock()

    def read(self, rows: np.ndarray) -> np.ndarray:
        """Return the means of some text units.

        Args:
            rows: row numbers of text units, int (n,).

        Returns:
            Unit vectors, float32 (n, dimensions); zeros for a text unit without known words.
        """
        places = rows % len(self._rows)
        with self._lock:
            is_known = self._rows[places] == rows
            found = self._vectors.take(places, axis=0)
        missing = np.flatnonzero(~is_known)
        if len(missing):
            found[missing] = compute_means(self._sentences, rows[missing])
            self._keep(rows[missing], found[missing])
        return found

    def _keep(self, rows: np.ndarray, vectors: np.ndarray) -> None:
        places, first = np.unique(rows % len(self._rows), return_index=True)
        with self._lock:
            self._rows[places] = rows[first]
            self._vectors[places] = vectors[first]


def compute_means(sentences: Sentences, rows: np.ndarray) -> np.ndarray:
    """Return the means of some text units, as `SentenceMeans.read` does."""
    sums = np.zeros((len(rows), sentences.vectors.shape[1]), dtype=np.float32)
    positions, places = expand_rows(sentences.indptr, rows)
    scales, vectors = sentences.scales[places], sentences.read_vectors(places).astype(np.float32)
    bounds = np.searchsorted(positions, np.arange(len(rows) + 1)).tolist()
    # A product per text unit is faster than one `reduceat` over all.
    for place, (start, end) in enumerate(itertools.pairwise(bounds)):
        np.dot(scales[start:end], vectors[start:end], out=sums[place])
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means: np.ndarray = sums / np.where(lengths > 0, lengths, 1)
    return means


_BATCH = 4_096
"""Number of text units that are searched for names at a time."""


def build_mentions(tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    """Return the arrays of the mention graph, for contract tables in file order.

    A *mention edge* is one (text unit, entity) pair, in text unit row order, then by entity.
        `text_unit_mentions_indptr` int64 (n text units + 1): text unit i has the edges indptr[i] to indptr[i + 1];
        `mention_entities`, `mention_text_units` int32: the two ends of each edge;
        `mention_is_about` bool: the title of the text unit's document names the entity;
        `entity_mentions_*`, `entity_about_*`: the edges of each entity, all and those with `mention_is_about`;
        `mention_places_indptr` int64 (n edges + 1), `mention_starts`, `mention_ends` int32: character offsets of the
        entity's names in the text unit's text; empty if the text has none of the names.
    """
    entities, text_units = tables["entities"], tables["text_units"]
    n_entities, n_units = len(entities), len(text_units)
    entity_rows, unit_rows = list_pairs(entities["text_unit_ids"], text_units["id"])
    documents = tables["documents"]
    titles = pa.array([normalize_title(title) for title in documents["title"].to_pylist()], pa.string())
    of_document = positions(titles, tables["entities"]["title"])
    document = positions(tables["text_units"]["document_id"], documents["id"])
    topics = np.where(document >= 0, np.r_[of_document, -1][document], -1)
    about = np.flatnonzero(topics >= 0)
    indptr, ends = compress(np.r_[unit_rows, about], np.r_[entity_rows, topics[about]], n_units)
    units = np.repeat(np.arange(n_units, dtype=np.int32), np.diff(indptr))
    is_about = topics[units] == ends
    entity_indptr, entity_edges = compress(ends, np.arange(len(ends)), n_entities)
    about_indptr, about_edges = compress(ends[is_about], np.flatnonzero(is_about), n_entities)
    return {
        "text_unit_mentions_indptr": indptr,
        "mention_entities": ends,
        "mention_text_units": units,
        "mention_is_about": is_about,
        "entity_mentions_indptr": entity_indptr,
        "entity_mentions_indices": entity_edges,
        "entity_about_indptr": about_indptr,
        "entity_about_indices": about_edges,
        **_find_places(text_units, indptr, ends, entities["names"]),
    }


def _find_places(
    text_units: pa.Table, indptr: np.ndarray, ends: np.ndarray, names: pa.ChunkedArray
) -> dict[str, np.ndarray]:
    forms = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    counts = np.zeros(len(ends), dtype=np.int64)
    starts: list[np.ndarray] = []
    stops: list[np.ndarray] = []
    first = 0
    for batch in text_units.select(["text"]).to_batches(max_chunksize=_BATCH):  # a batch in memory at a time
        bounds = indptr[first : first + len(batch) + 1]
        written = forms.take(pa.array(ends[bounds[0] : bounds[-1]])).to_pylist()
        edges = range(bounds[0], bounds[-1])
        owners = np.repeat(np.arange(len(batch)), np.diff(bounds)).tolist()
        texts = batch["text"].to_pylist()
        found = [find_names(texts[owner], own or ()) for owner, own in zip(owners, written, strict=True)]
        counts[edges.start : edges.stop] = [len(places) for places in found]
        pairs = np.array([place for places in found for place in places], dtype=np.int32).reshape(-1, 2)
        starts.append(pairs[:, 0])
        stops.append(pairs[:, 1])
        first += len(batch)
    return {
        "mention_places_indptr": np.r_[0, np.cumsum(counts)],
        "mention_starts": np.concatenate(starts) if starts else np.zeros(0, dtype=np.int32),
        "mention_ends": np.concatenate(stops) if stops else np.zeros(0, dtype=np.int32),
    }


def find_names(text: str, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return (start, end) of every place where a text has one of the names as whole words; longest names win."""
    longest: dict[int, int] = {}
    for name in names:
        start = text.find(name) if name else -1
        while start >= 0:
            end = start + len(name)
            before, after = text[start - 1 : start], text[end : end + 1]
            if not (joins(before, name[0]) or joins(name[-1], after)) and end > longest.get(start, 0):
                longest[start] = end
            start = text.find(name, end)
    return sorted(longest.items())


class Mentions:
    """The mention graph of a snapshot, memory-mapped.

    Args:
        arrays: the folder that holds them.
    """

    def __init__(self, arrays: ArrayFolder) -> None:
        self.unit_indptr = arrays.array("text_unit_mentions_indptr")
        self.entity_indptr = arrays.array("entity_mentions_indptr")
        self.entity_edges = arrays.array("entity_mentions_indices")
        self.about_indptr = arrays.array("entity_about_indptr")
        self.about_edges = arrays.array("entity_about_indices")
        self.entities = arrays.array("mention_entities")
        self.text_units = arrays.array("mention_text_units")
        self.is_about = arrays.array("mention_is_about")
        self.places_indptr = arrays.array("mention_places_indptr")
        self.starts = arrays.array("mention_starts")
        self.ends = arrays.array("mention_ends")
