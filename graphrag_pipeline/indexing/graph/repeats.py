"""Mentions that overlapping text units repeat: what two text units share is read twice and counts once.

Text units overlap by whole sentences, so an extractor reads the sentences in the overlap twice. A mention repeats one
of the text unit before it if both are of the same entity, or of the same pair of entities, and

- both have offsets, and these are equal (the embedded engine), or
- they have none (a model), the overlap has evidence of each, and the rest of the later text unit
  has none, or both mentions have the same description.

So a model's mentions count as if each sentence belonged to the first text unit that has it. A doubtful mention counts
on its own. Rows of mentions are never removed: text units and descriptions of a repeat are kept, only counts and
weights leave it out.

Evidence of mentions without offsets: which part of two overlapping text units a model must have read them in.

A model names a pair of entities, but not the sentence. The evidence of the pair in a text unit is the first of these
that the text unit has, and it may have several of the kind:

1. sentences that hold both names, each whole or by half of its identifying words with capitals ("Cratchit" for "Bob
   Cratchit", but not "day" for "Seventh Day")
2. sentences that hold an identifying word of both names ("the Ghost" for "Ghost of Christmas Past")
3. the shortest runs of sentences from one name to the other, which stand for pronouns

The evidence of a single entity are the sentences of the first two kinds with its name. Common words and words of less
than three letters identify nothing, unless a name has no others.

Keep out: counting (`merge.py`), repeated claims (`merge.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

import pyarrow as pa
import regex

from graphrag_pipeline.text.languages import SMALL_WORDS, UNSPACED
from graphrag_pipeline.text.sentence_forms import fold
from graphrag_pipeline.text.sentences import split_sentences

if TYPE_CHECKING:
    import duckdb

_RUN = regex.compile(r"[\p{L}\p{M}\p{N}]+")
_UNSPACED = regex.compile(f"[{UNSPACED}]")
_MIN_WORD = 3  # letters of a word that identifies a name
_COMMON = frozenset(word for words in SMALL_WORDS.values() for word in words)
_ANY, _MOST = 1, 2
"""How much of a name a sentence holds: an identifying word, or all of them or half of them with capitals."""


def _spell(text: str) -> str:
    """Return the folded words of a text between single blanks, characters of scripts without blanks apart."""
    return _join(_split(text))


def _spell_capitals(text: str) -> str:
    """Return the words of a text that do not begin with a small letter, in the form of `_spell`."""
    return _join(word for word in _split(text) if not word[0].islower())


def _split(text: str) -> list[str]:
    return _RUN.findall(_UNSPACED.sub(r" \g<0> ", text))


def _join(words: Iterable[str]) -> str:
    return f" {fold(' '.join(words))} "


class SpelledName:
    """The written forms of one entity's name, as they are searched."""

    def __init__(self, forms: Iterable[str]) -> None:
        self._forms = sorted({tuple(_identifying_words(form)) for form in forms} - {()})
        self._words = sorted(set(itertools.chain.from_iterable(self._forms)))

    def measure_in(self, sentence: str, capitals: str) -> int:
        """Return how much of the name a sentence holds: 0, `_ANY` or `_MOST`.

        Args:
            sentence, capitals: as from `_spell` and `_spell_capitals`.
        """
        found = {word for word in self._words if word in sentence}
        if not found:
            return 0
        named = {word for word in found if word in capitals}
        is_most = any(found.issuperset(form) or 2 * len(named.intersection(form)) >= len(form) for form in self._forms)
        return _MOST if is_most else _ANY


def _identifying_words(name: str) -> list[str]:
    """Return the words that identify a name in the form of `_spell`; the whole name if it has only other words."""
    runs = dict.fromkeys(_RUN.findall(fold(name)))
    words = [run for run in runs if _UNSPACED.search(run) or (len(run) >= _MIN_WORD and run not in _COMMON)]
    return [_spell(word) for word in words] or [_spell(name)] * bool(runs)


class SpelledText:
    """The sentences of a part of a text unit, in which names are searched."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._measured: dict[SpelledName, list[int]] = {}

    @cached_property
    def _sentences(self) -> list[tuple[str, str]]:
        sentences = (self._text[start:end] for start, end in split_sentences(self._text))
        return [(_spell(sentence), _spell_capitals(sentence)) for sentence in sentences]

    def measure(self, name: SpelledName) -> list[int]:
        """Return how much of a name each sentence holds: 0, `_ANY` or `_MOST`."""
        if name not in self._measured:
            self._measured[name] = [name.measure_in(*sentence) for sentence in self._sentences]
        return self._measured[name]


def is_evidence_shared(
    before: SpelledText,
    shared: SpelledText,
    own: SpelledText,
    names: Sequence[SpelledName],
    is_same_description: bool,
) -> bool:
    """Return whether a mention in the later of two text units comes from text that the earlier one has, too.

    Args:
        before, shared, own: the text of the earlier text unit alone, of both, and of the later one alone.
        names: of the entity, or of both entities of the pair.
        is_same_description: whether both text units describe the mention in the same words.
    """
    later = _find_evidence([shared, own], 0, names)
    is_read_again = 0 in later if is_same_description else later == {0}
    return is_read_again and 1 in _find_evidence([before, shared], 1, names)


def _find_evidence(parts: Sequence[SpelledText], shared: int, names: Sequence[SpelledName]) -> set[int]:
    """Return the places of the parts that have evidence; a run of sentences from part to part is the other one's.

    Args:
        parts: two, in the order of the text.
        shared: place of the part that both text units have.
    """
    held = [[part.measure(name) for name in names] for part in parts]
    for least in (_MOST, _ANY):
        places = {
            place for place, rows in enumerate(held) if any(min(levels) >= least for levels in zip(*rows, strict=True))
        }
        if places:
            return places
    if len(names) < 2:
        return set()
    n_first = len(held[0][0])
    first, second = ([i for i, level in enumerate([*a, *b]) if level] for a, b in zip(*held, strict=True))
    runs = [(abs(i - j), min(i, j) >= n_first, max(i, j) >= n_first) for i in first for j in second]
    shortest = min((length for length, _, _ in runs), default=0)
    return {int(end) if start == end else 1 - shared for length, start, end in runs if length == shortest}


_UNITS_AT_ONCE = 256

PLACE = r"""
    position, "start" AS mention_start, "end" AS mention_end,
    CASE WHEN "start" IS NULL THEN
        hash(nullif(lower(trim(regexp_replace(description, '\s+', ' ', 'g'))), ''))
    END AS description_hash
"""
"""Columns of a table of mentions that `mark_repeats` needs, in SQL."""


def create_shared_text(connection: duckdb.DuckDBPyConnection, is_known: bool) -> None:
    """Create `text_units` (text_unit_no in the order of ids, id) and `shared_text`.

    `shared_text` has a row for each text unit that starts before the end of the one before it in its document:
    `earlier` and `later` (text unit numbers), `shared_start` and `shared_end` (offsets in the document), and `n_shared`
    (characters).

    Args:
        is_known: whether the view `stored_text_units` exists; without it nothing overlaps.
    """
    connection.execute("""
        CREATE TABLE text_units AS
        SELECT (row_number() OVER (ORDER BY id) - 1)::INTEGER AS text_unit_no, id FROM (
            SELECT text_unit_id AS id FROM entity_mentions UNION SELECT text_unit_id FROM relationship_mentions
        )""")
    connection.execute(
        "CREATE TABLE shared_text "
        "(earlier INTEGER, later INTEGER, shared_start BIGINT, shared_end BIGINT, n_shared BIGINT)"
    )
    if is_known:
        connection.execute("""
            INSERT INTO shared_text
            WITH placed AS (
                SELECT text_unit_no, document_id, position, "start", "end"
                FROM stored_text_units JOIN text_units USING (id)
            )
            SELECT a.text_unit_no, b.text_unit_no, b."start", a."end", a."end" - b."start"
            FROM placed a JOIN placed b ON a.document_id = b.document_id AND b.position = a.position + 1
            WHERE b."start" < a."end" """)


def mark_repeats(connection: duckdb.DuckDBPyConnection, rows: str, first: str, second: str) -> None:
    """Create the view `rows`: the rows of `read_<rows>` with `is_repeat`, whether one repeats the text unit before.

    Args:
        rows: `read_<rows>` has `range_no`, `text_unit_no` and the columns of `PLACE`.
        first, second: its columns with the numbers of the titles; the same column for entities.
    """
    connection.execute(f"""
        CREATE OR REPLACE TABLE met AS
        WITH later AS (
            SELECT range_no, position, later, earlier, {first} AS a, {second} AS b, mention_start, mention_end,
                description_hash
            FROM read_{rows} JOIN shared_text ON text_unit_no = later
            WHERE mention_start IS NULL OR mention_start < shared_end
        ),
        earlier AS (
            SELECT earlier, {first} AS a, {second} AS b, mention_start, mention_end, description_hash
            FROM read_{rows} JOIN shared_text ON text_unit_no = earlier
            WHERE mention_start IS NULL OR mention_end > shared_start
        )
        SELECT later.later AS text_unit_no, range_no, position, a, b,
            bool_or(later.mention_start IS NOT NULL) AS is_placed,
            bool_or(later.description_hash = earlier.description_hash) AS is_same_description
        FROM later JOIN earlier USING (earlier, a, b)
        WHERE later.mention_start IS NOT DISTINCT FROM earlier.mention_start
            AND later.mention_end IS NOT DISTINCT FROM earlier.mention_end
        GROUP BY ALL""")
    connection.register("by_evidence", _find_by_evidence(connection))
    connection.execute(f"""
        CREATE OR REPLACE TABLE repeats_of_{rows} AS
        SELECT DISTINCT range_no, text_unit_no, position, true AS is_marked
        FROM met LEFT JOIN by_evidence e USING (text_unit_no, position) WHERE is_placed OR e.is_repeat;
        CREATE OR REPLACE VIEW {rows} AS
        SELECT r.*, is_marked IS NOT NULL AS is_repeat
        FROM read_{rows} r LEFT JOIN repeats_of_{rows} USING (range_no, text_unit_no, position)""")
    connection.unregister("by_evidence")


def _find_by_evidence(connection: duckdb.DuckDBPyConnection) -> pa.Table:
    """Return text_unit_no, position and is_repeat of the rows of `met` whose evidence lies in the overlap."""
    candidates = connection.execute("""
        SELECT text_unit_no, position, a, b, coalesce(is_same_description, false) FROM met
        WHERE NOT is_placed ORDER BY text_unit_no, position""").fetchall()
    found: list[tuple[int, int]] = []
    if candidates:
        names = _read_names(connection)
        by_unit = {unit: list(rows) for unit, rows in itertools.groupby(candidates, itemgetter(0))}
        found = [
            (unit, position)
            for unit, parts in _read_parts(connection)
            for _, position, a, b, is_same_description in by_unit[unit]
            if is_evidence_shared(*parts, tuple(names[end] for end in dict.fromkeys((a, b))), is_same_description)
        ]
    units, positions = zip(*found, strict=True) if found else ((), ())
    columns = [pa.array(units, pa.int32()), pa.array(positions, pa.int32()), pa.repeat(True, len(found))]
    return pa.table(columns, names=["text_unit_no", "position", "is_repeat"])


def _read_names(connection: duckdb.DuckDBPyConnection) -> Mapping[int, SpelledName]:
    """Return title number -> its written forms."""
    rows = connection.execute("""
        SELECT title_id, list(name) FROM written_names
        WHERE title_id IN (SELECT a FROM met UNION SELECT b FROM met) GROUP BY title_id""").fetchall()
    return {title: SpelledName(names) for title, names in rows}


def _read_parts(
    connection: duckdb.DuckDBPyConnection,
) -> Iterator[tuple[int, tuple[SpelledText, SpelledText, SpelledText]]]:
    """Yield text unit numbers, each with the text that only the one before it has, the shared text, and its own."""
    found = connection.execute("""
        WITH numbered AS (SELECT text_unit_no, text FROM stored_text_units JOIN text_units USING (id))
        SELECT later, b.text, a.text, n_shared FROM shared_text
        JOIN numbered a ON a.text_unit_no = earlier JOIN numbered b ON b.text_unit_no = later
        WHERE later IN (SELECT text_unit_no FROM met WHERE NOT is_placed) ORDER BY later""")
    while rows := found.fetchmany(_UNITS_AT_ONCE):
        for unit, text, before, n_shared in rows:
            parts = before[:-n_shared], text[:n_shared], text[n_shared:]
            yield unit, (SpelledText(parts[0]), SpelledText(parts[1]), SpelledText(parts[2]))
