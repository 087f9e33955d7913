import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.indexing.extracted_graph import extract_graph
from graphrag_pipeline.indexing.graph import merge_graph
from graphrag_pipeline.settings import ExtractionSettings, GraphSettings
from graphrag_pipeline.tables import ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, normalize_title

ROOT = Path(__file__).parents[2]
REFERENCE = Path(__file__).parents[1] / "data" / "microsoft_christmas_carol" / "entities.parquet"
# Titles among our 100 most frequent that a reader of the book would not look up.
JUNK = frozenset(
    [
        "ANGELIC",
        "BALEFUL",
        "BOILED",
        "CATCH",
        "CHRISTMAS EVES",
        "COLD BOILED",
        "COLD ROAST",
        "DAY",
        "DOOM",
        "FIRST OF EXCHANGE",
        "FOUNDER",
        "FUTURE",
        "GAIN",
        "GENII",
        "GIANT",
        "GLEE",
        "GOD",
        "GROOM",
        "HE",
        "HOPE",
        "HUMBUG",
        "I",
        "IDOL",
        "MAN",
        "MASTER",
        "MERRY CHRISTMAS",
        "MISS",
        "MR",
        "OH",
        "OLD",
        "PAST",
        "PLENTY",
        "PORCH",
        "PRESENT",
        "ROAST",
        "SATURDAYS",
        "SCRO",
        "SHADOW",
        "SIR",
        "STAR",
        "STAVE",
        "THE",
        "TIME",
        "TRUTH",
        "UNSEEN EYES",
        "US",
        "WANT",
        "WARD",
        "WE",
        "YOU",
    ]
)


def make_documents(*texts: str) -> pa.Table:
    return pa.table({"id": [f"d{n}" for n in range(len(texts))], "text": pa.array(texts, pa.string())})


def make_units(*texts: str, size: int = 10_000, step: int = 10_000) -> pa.Table:
    rows = [
        (f"d{n}-{start:06d}", f"d{n}", start, min(start + size, len(text)))
        for n, text in enumerate(texts)
        for start in range(0, len(text), step)
    ]
    columns = zip(*rows, strict=True) if rows else ([], [], [], [])
    types = (pa.string(), pa.string(), pa.int64(), pa.int64())
    names = ("id", "document_id", "start", "end")
    return pa.table({k: pa.array(list(v), t) for k, v, t in zip(names, columns, types, strict=True)})


def extract(*texts: str, settings: ExtractionSettings | None = None) -> dict[str, pa.Table]:
    return extract_graph(make_documents(*texts), make_units(*texts), settings or ExtractionSettings())


def rows(table: pa.Table, *columns: str) -> list[tuple]:
    return list(zip(*(table[column].to_pylist() for column in columns), strict=True))


def test_sentence_in_which_two_meet_makes_entities_and_a_relationship() -> None:
    text = "SCROOGE'S DAY\n\nThe clerk saw Mr. Scrooge\nwith Scrooge's partner in London. Nobody spoke to Scrooge."
    graph = extract(text)
    first, last = "The clerk saw Mr. Scrooge with Scrooge's partner in London.", "Nobody spoke to Scrooge."
    assert rows(graph["entity_mentions"], "position", "name", "type", "description") == [
        (0, "Scrooge", "PERSON", ""),
        (1, "Scrooge", "PERSON", first),
        (2, "Scrooge's partner", "PERSON", first),
        (3, "London", "GEO", first),
        (4, "Scrooge", "PERSON", last),
    ]
    assert rows(graph["relationship_mentions"], "source", "target", "description", "strength") == [
        ("Scrooge", "Scrooge's partner", first, 1.0),
        ("Scrooge", "London", first, 1.0),
        ("Scrooge's partner", "London", first, 1.0),
    ]
    written = [text[start:end] for start, end in rows(graph["entity_mentions"], "start", "end")]
    assert written == ["SCROOGE", "Mr. Scrooge", "Scrooge's partner", "London", "Scrooge"]


def test_sentence_with_too_many_entities_makes_no_relationships() -> None:
    text = "They met Anna, Bertha and Clara."
    assert extract(text)["relationship_mentions"].num_rows == 3
    crowded = extract(text, settings=ExtractionSettings(max_entities_per_sentence=2))
    assert (crowded["entity_mentions"].num_rows, crowded["relationship_mentions"].num_rows) == (3, 0)


def test_overlapping_text_units_each_have_the_mention_that_lies_within() -> None:
    text = "We saw Anna and Bob."
    units = pa.table(
        {"id": ["a", "b", "c"], "document_id": ["d0"] * 3, "start": [0, 5, 9], "end": [len(text), len(text), len(text)]}
    )
    graph = extract_graph(make_documents(text), units, ExtractionSettings())
    assert rows(graph["entity_mentions"], "text_unit_id", "name") == [
        ("a", "Anna"), ("a", "Bob"), ("b", "Anna"), ("b", "Bob"), ("c", "Bob"),
    ]  # fmt: skip
    assert graph["relationship_mentions"]["text_unit_id"].to_pylist() == ["a", "b"]


def test_nothing_gives_empty_tables_with_schema() -> None:
    graph = extract()
    assert {name: table.num_rows for name, table in graph.items()} == {
        "entity_mentions": 0, "relationship_mentions": 0, "claim_mentions": 0,
    }  # fmt: skip
    assert graph["entity_mentions"].schema == ENTITY_MENTIONS.schema
    assert graph["relationship_mentions"].schema == RELATIONSHIP_MENTIONS.schema


_WORD = st.sampled_from(
    [
        "Scrooge",
        "Ebenezer",
        "Mr.",
        "Marley's",
        "London",
        "the",
        "said",
        "in",
        "of",
        "GHOST",
        "ghost",
        "Bob.",
        "Then",
        "WHO",
        "(WHO)",
        "'Oh,",
        "I",
        "\n",
        "\n\n",
        "-",
        "萧炎",
        "É",
        "3",
        "May",
        "1843",
    ]
)
_TEXT = st.one_of(st.lists(_WORD, max_size=30).map(" ".join), st.text(max_size=60))


@given(st.lists(_TEXT, min_size=1, max_size=4))
def test_a_documents_mentions_do_not_depend_on_others_or_on_order(texts: list[str]) -> None:
    documents, units = make_documents(*texts), make_units(*texts, size=40, step=30)
    together = extract_graph(documents, units, ExtractionSettings())
    backwards = extract_graph(documents[::-1], units[::-1], ExtractionSettings())
    assert backwards == together
    for number, document_id in enumerate(documents["id"].to_pylist()):
        own = units.filter(pc.equal(units["document_id"], document_id))
        alone = extract_graph(documents.slice(number, 1), own, ExtractionSettings())
        for name, table in alone.items():
            ours = pc.starts_with(together[name]["text_unit_id"], f"{document_id}-")
            assert together[name].filter(ours).combine_chunks() == table


@given(_TEXT)
def test_spans_lie_within_their_text_unit_and_names_have_titles(text: str) -> None:
    units = make_units(text, size=40, step=30)
    bounds = {unit: (start, end) for unit, start, end in rows(units, "id", "start", "end")}
    mentions = extract_graph(make_documents(text), units, ExtractionSettings())["entity_mentions"]
    for unit, name, start, end in rows(mentions, "text_unit_id", "name", "start", "end"):
        assert bounds[unit][0] <= start < end <= bounds[unit][1]
        assert normalize_title(name)


@pytest.fixture(scope="module")
def carol() -> tuple[list[str], dict[str, pa.Table]]:
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "data" / "input").glob("*.txt"))]
    assert len(texts) == 5
    units = make_units(*texts, size=4800, step=4400)
    return texts, extract_graph(make_documents(*texts), units, ExtractionSettings())


def test_carol_finds_the_most_frequent_people_and_places(carol: tuple[list[str], dict[str, pa.Table]]) -> None:
    texts, graph = carol
    found = {normalize_title(name) for name in graph["entity_mentions"]["name"].to_pylist()}
    for unit, start, end in rows(graph["entity_mentions"], "text_unit_id", "start", "end"):
        found.add(normalize_title(texts[int(unit[1])][start:end]))
    book = " ".join(" ".join(texts).split())
    reference = pq.read_table(REFERENCE).to_pylist()
    reference = [row for row in reference if row["type"] in ("PERSON", "GEO") and _is_named(row["title"], book)]
    top = [row["title"] for row in sorted(reference, key=lambda row: (-row["frequency"], row["title"]))[:40]]
    assert len(top) == 40
    missed = [title for title in top if title.removeprefix("THE ") not in found]
    assert len(missed) <= 4, missed


def _is_named(title: str, book: str) -> bool:
    """Whether the book writes a title as a name: with capitals but for small words."""
    small = {"OF", "TO", "THE"}
    words = [word.lower() if word in small and n else word.capitalize() for n, word in enumerate(title.split())]
    return re.search(rf"\b{re.escape(' '.join(words))}\b", book) is not None


def test_carol_has_little_junk_among_its_most_frequent(carol: tuple[list[str], dict[str, pa.Table]]) -> None:
    _, graph = carol
    counts = Counter(normalize_title(name) for name in graph["entity_mentions"]["name"].to_pylist())
    top = sorted(counts, key=lambda title: (-counts[title], title))[:100]
    assert top[0] == "EBENEZER SCROOGE"
    junk = [title for title in top if title in JUNK]
    assert len(junk) <= 10, junk


def test_carol_resolves_scrooge_across_staves(carol: tuple[list[str], dict[str, pa.Table]]) -> None:
    _, graph = carol
    merged = merge_graph(
        graph["entity_mentions"], graph["relationship_mentions"], graph["claim_mentions"], GraphSettings()
    )
    titles = merged["entities"]["title"].to_pylist()
    assert "EBENEZER SCROOGE" in titles and "SCROOGE" not in titles
    assert ("Scrooge", "EBENEZER SCROOGE", "alias") in rows(merged["entity_merges"], "name", "title", "rule")
    assert "MRS. CRATCHIT" in titles and "BOB CRATCHIT" in titles
