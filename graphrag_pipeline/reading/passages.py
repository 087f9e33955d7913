"""Passages of documents: the sentences of text units that write a name, and the places of text units.

Keep out: which text units are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.query.index_reader import SnapshotReader
from graphrag_pipeline.query.records import read_text_units
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.reading.pages import PlacedText
from graphrag_pipeline.storage.mentions import find_names
from graphrag_pipeline.text.sentences import split_sentences

_BATCH = 50
"""Text units that are read at a time."""


@dataclass(frozen=True)
class NamedSentences:
    """Sentences that write a name.

    Attributes:
        has_more: whether there are more than were asked for.
        n_unnamed: number of text units, among those read, that write none of the names.
    """

    sentences: tuple[PlacedText, ...]
    has_more: bool
    n_unnamed: int


def find_sentences(reader: SnapshotReader, units: Sequence[int], names: Sequence[str], n_most: int) -> NamedSentences:
    """Return the first sentences that write one of some names.

    Args:
        units: rows of text units, in reading order; as many are read as give more than `n_most` sentences.
        names: written forms; if a text unit writes none of them as given, letters of any case count.

    Returns:
        Sentences in the order of `units`, each once even if two text units overlap.
    """
    found: dict[tuple[str, int | str], PlacedText] = {}
    n_unnamed = 0
    for unit in _read_units(reader, units):
        sentences = list(_name_sentences(unit, names))
        n_unnamed += not sentences
        for passage in sentences:
            found.setdefault((passage.document_id, passage.text if passage.start is None else passage.start), passage)
        if len(found) > n_most:
            break
    return NamedSentences(tuple(found.values())[:n_most], len(found) > n_most, n_unnamed)


def place_units(reader: SnapshotReader, units: Sequence[int]) -> tuple[PlacedText, ...]:
    """Return the places of text units, without their text."""
    return tuple(_passage(unit, "", unit.start, unit.end) for unit in _read_units(reader, units))


def _read_units(reader: SnapshotReader, units: Sequence[int]) -> Iterator[TextUnitRecord]:
    for first in range(0, len(units), _BATCH):
        rows = np.array(units[first : first + _BATCH], dtype=np.int64)
        yield from read_text_units(reader, rows, np.zeros(len(rows)))


def _name_sentences(unit: TextUnitRecord, names: Sequence[str]) -> Iterator[PlacedText]:
    places = find_names(unit.text, names) or _find_in_any_case(unit.text, names)
    sentences = split_sentences(unit.text) if places else []
    firsts = [start for start, _ in sentences]
    for number in dict.fromkeys(int(n) - 1 for n in np.searchsorted(firsts, [start for start, _ in places], "right")):
        start, end = sentences[number]
        text = unit.text[start:end]
        start += len(text) - len(text.lstrip())
        yield _passage(unit, text.strip(), *unit.place_of(start, start + len(text.strip())))


def _find_in_any_case(text: str, names: Sequence[str]) -> list[tuple[int, int]]:
    """Return the places of names as whole words; a space of a name is any white space of the text."""
    forms = [r"\s+".join(map(re.escape, name.split())) for name in sorted(names, key=len, reverse=True)]
    pattern = "|".join(filter(None, forms))
    return (
        [match.span() for match in re.finditer(rf"(?<!\w)(?:{pattern})(?!\w)", text, re.IGNORECASE)] if pattern else []
    )


def _passage(unit: TextUnitRecord, text: str, start: int | None, end: int | None) -> PlacedText:
    return PlacedText(
        text, unit.human_readable_id, unit.document_title, unit.document_id, unit.document_path, start, end
    )
