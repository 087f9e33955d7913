"""Persisted lookups of a snapshot: rows by id and entities by name, as sorted hashes that are mapped, not loaded.

Arrays, in the folder of the adjacency:
    `<table>_id_hashes` uint64 ascending, `<table>_id_rows` int32: rows by id, for the tables in `LOOKED_UP`;
    `name_hashes` uint64 ascending, `name_rows` int32: entity rows by the key of each of their names (`name_key`);
    `name_key_version` int32 (1,): `NAME_KEYS`, the version of `name_key`. Without it, the keys are of version 1, which
    kept traditional Chinese characters, and Chinese beside Latin letters as one word (`name_key_of_version_1`).
A hash has 64 bits: among a million ids, an unknown id matches a known one with a probability of 1 in 10^13. Keep out:
understanding a question.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.storage.arrays import ArrayFolder
from graphrag_pipeline.text.languages import CJK, simplify

LOOKED_UP = ("documents", "text_units", "entities", "relationships", "covariates", "community_reports")
_ARTICLES = frozenset(("the", "a", "an"))
NAME_KEYS = 2
"""Raise it whenever `name_key` gives another key for a name."""
_ASCII_QUOTES = re.compile("`")
_SPACED = rf"[^\W_{CJK}]"
NAME_WORD = re.compile(rf"[{CJK}]|{_SPACED}+(?:['.\-&]{_SPACED}+)*")
"""A word of a name; each Chinese or Japanese character is a word, also beside a Latin letter or a digit."""
_MAYBE_CJK = r"[\x{3005}-\x{10FFFF}]"
"""The same characters and some more, in the regular expressions of Arrow."""
_NAME_WORD_OF_VERSION_1 = re.compile(
    r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]|[^\W_]+(?:['.\-&][^\W_]+)*"
)


def build_lookups(tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    """Return all arrays by name, for contract tables in file order."""
    arrays = {}
    for name in LOOKED_UP:
        hashes, rows = sort_hashes(hash_strings(_strings(tables[name]["id"])))
        arrays[f"{name}_id_hashes"], arrays[f"{name}_id_rows"] = hashes, rows
    arrays["name_hashes"], arrays["name_rows"] = _name_arrays_of(tables["entities"])
    arrays["name_key_version"] = np.array([NAME_KEYS], dtype=np.int32)
    return arrays


def build_lookups_of_version_1(tables: Mapping[str, pa.Table]) -> dict[str, np.ndarray]:
    """Return the arrays of a release whose name keys had version 1, to repair a snapshot of it."""
    arrays = build_lookups(tables)
    del arrays["name_key_version"]
    arrays["name_hashes"], arrays["name_rows"] = _name_arrays_of(tables["entities"], name_key_of_version_1)
    return arrays


def read_name_arrays(arrays: ArrayFolder, entities: Callable[[], pa.Table]) -> tuple[np.ndarray, np.ndarray]:
    """Return `name_hashes` and `name_rows` of a snapshot in this version.

    Those of an earlier release are computed, unless all names have the same key in both versions.

    Args:
        entities: returns the table; called only for a snapshot of an earlier release.
    """
    if not arrays.has("name_key_version"):
        table = entities()
        if _has_cjk(table["title"]) or _has_cjk(pc.list_flatten(table["names"])):
            return _name_arrays_of(table)
    return arrays.array("name_hashes"), arrays.array("name_rows")


def _has_cjk(names: pa.ChunkedArray) -> bool:
    return bool(pc.any(pc.match_substring_regex(names, _MAYBE_CJK)).as_py())


def _name_arrays_of(entities: pa.Table, key_of: Callable[[str], str] | None = None) -> tuple[np.ndarray, np.ndarray]:
    return name_arrays(entities["title"].to_pylist(), entities["names"], key_of)


def name_arrays(
    titles: Sequence[str], names: Iterable, key_of: Callable[[str], str] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return `name_hashes` and `name_rows` of entities.

    Args:
        titles: one per entity.
        names: the written forms of each besides its title; lists of strings, of Python or pyarrow.
        key_of: returns the key of a name; None is `name_key`.
    """
    key_of = key_of or name_key
    keys: list[str] = []
    rows: list[int] = []
    for row, (title, forms) in enumerate(zip(titles, names, strict=True)):
        written = forms.as_py() if isinstance(forms, pa.Scalar) else forms
        folded = {name.casefold() for name in (title, *(written or ()))}
        own = sorted({key_of(name) for name in folded} - {""})
        keys += own
        rows += [row] * len(own)
    return sort_hashes(hash_strings(keys), np.array(rows, dtype=np.int32))


def name_key(name: str) -> str:
    """Return the case-folded words of a name without a leading article, in simplified Chinese characters."""
    return _join_words(_simple_words(name))


def name_key_of_version_1(name: str) -> str:
    """Return what `name_key` returned in version 1."""
    if name.isascii():
        return name_key(name)
    return _join_words(_NAME_WORD_OF_VERSION_1.findall(normalize_title(name.casefold()).casefold()))


def _join_words(words: Sequence[str]) -> str:
    return " ".join(words[1:] if len(words) > 1 and words[0] in _ARTICLES else words)


def _simple_words(name: str) -> list[str]:
    folded = name.casefold()
    words = folded.split()
    if folded.isascii():
        return words if folded.replace(" ", "").isalnum() else NAME_WORD.findall(_ASCII_QUOTES.sub("'", folded))
    return NAME_WORD.findall(simplify(normalize_title(name).casefold()))


def hash_strings(values: Iterable[str]) -> np.ndarray:
    """Return the 64-bit BLAKE2b hashes of strings, uint64 (n,)."""
    hashed = hashlib.blake2b
    digests = [hashed(value.encode("utf-8", "surrogatepass"), digest_size=8).digest() for value in values]
    return np.frombuffer(b"".join(digests), dtype="<u8")


def sort_hashes(hashes: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return hashes, ascending, and the row of each (int32); equal hashes in row order."""
    rows = np.arange(len(hashes), dtype=np.int32) if rows is None else rows
    order = np.lexsort((rows, hashes))
    return hashes[order], rows[order]


def find_rows(hashes: np.ndarray, rows: np.ndarray, values: Sequence[str]) -> np.ndarray:
    """Return the first row of each value, -1 for an unknown value: int64 (len(values),)."""
    wanted = hash_strings(values)
    if not len(hashes):
        return np.full(len(wanted), -1, dtype=np.int64)
    places = np.minimum(np.searchsorted(hashes, wanted), len(hashes) - 1)
    return np.where(hashes[places] == wanted, rows[places], -1).astype(np.int64)


def find_all_rows(hashes: np.ndarray, rows: np.ndarray, value: str) -> list[int]:
    """Return all rows of one value, ascending."""
    wanted = hash_strings([value])[0]
    first = np.searchsorted(hashes, wanted)
    return [int(row) for row in rows[first : first + np.searchsorted(hashes[first : first + 4096], wanted, "right")]]


def _strings(column: pa.ChunkedArray) -> Iterator[str]:
    for chunk in column.chunks:
        yield from chunk.to_pylist()
