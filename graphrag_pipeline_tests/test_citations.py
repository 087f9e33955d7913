from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphrag_pipeline.citations import (
    KINDS,
    number_citations,
    parse_citations,
    remove_written,
    render_citation,
    render_full_content,
    replace_written,
    split_cited,
    split_written,
    strip_citations,
)

A, B, C = "a" * 32, "b" * 32, "c" * 32

ids = st.text("0123456789abcdef", min_size=32, max_size=32)
records = st.lists(st.tuples(st.sampled_from(KINDS), st.lists(ids, min_size=1, max_size=4)), min_size=1, max_size=3)
prose = st.text(st.characters(exclude_characters="[]", exclude_categories=["Cs"]), max_size=40)


@settings(deadline=None)
@given(prose, records, prose)
def test_rendered_citations_are_parsed_back(before, cited, after):
    assert parse_citations(before + render_citation(cited) + after) == cited


@settings(deadline=None)
@given(prose, records)
def test_stripping_leaves_the_prose(before, cited):
    assert strip_citations(f"{before} {render_citation(cited)}") == before.strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nothing cited.", []),
        ("[Data: Entities (1, 2); Relationships (3)]", [("Entities", ["1", "2"]), ("Relationships", ["3"])]),
        ("[Data: Reports (2, 7, +more)]", [("Reports", ["2", "7"])]),
        ("[data:entities(5)] and [Data: Claims (6)]", [("Entities", ["5"]), ("Claims", ["6"])]),
        ("[Data: Entities ()]", []),
        ("[Data: Dates (5)]", [("Dates", ["5"])]),
        ("[not a citation] [Data: Entities (5", []),
    ],
)
def test_citations_are_read_as_models_write_them(text, expected):
    assert parse_citations(text) == expected


def test_ids_become_numbers_of_their_kind():
    text = f"Scrooge is a miser. [Data: Entities ({A}, {B}); Relationships ({A})] He changes."
    numbers = {"Entities": {A: 12, B: 3}, "Relationships": {A: 7}}
    assert number_citations(text, numbers) == (
        "Scrooge is a miser. [Data: Entities (3, 12); Relationships (7)] He changes."
    )


def test_an_id_without_a_number_is_left_out_with_its_empty_citation():
    text = f"One. [Data: Entities ({A}, {C})] Two. [Data: Claims ({C})] Three."
    assert number_citations(text, {"Entities": {A: 1}}) == "One. [Data: Entities (1)] Two. Three."


def test_text_is_cut_behind_each_citation():
    text = f"One. Two. [Data: Entities ({A})] Three. [Data: Claims ({B})] Rest."
    assert split_cited(text) == [
        ("One. Two.", f"[Data: Entities ({A})]"),
        ("Three.", f"[Data: Claims ({B})]"),
        ("Rest.", ""),
    ]


def test_full_content_is_laid_out_like_microsofts():
    content = render_full_content("Title", "Summary.", [{"summary": "Heading", "explanation": "Text."}])
    assert content == "# Title\n\nSummary.\n\n## Heading\n\nText."


ONE, TWO = [("Relationships", ["11"])], [("Sources", ["1"]), ("Entities", ["2"])]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A [Data: Relationships (11).", [("A", ONE), (".", None)]),
        ("A [Data: Relationships (11", [("A", ONE), ("", None)]),
        ("A [Data: Relationships (11]. B", [("A", ONE), (". B", None)]),
        ("A [Data: Relationships (11. B", [("A", ONE), (". B", None)]),
        ("A [Data: Relationships (11). B ] c", [("A", ONE), (". B ] c", None)]),
        ("A [Data: Relationships (11) and B (x).", [("A", ONE), (" and B (x).", None)]),
        ("A [Data: Relationships (11)\n- B", [("A", ONE), ("\n- B", None)]),
        ("A [Data: Relationships (11).] B", [("A", ONE), (" B", None)]),
        ("A [Data: Sources (1); Entities (2, +more). B", [("A", TWO), (". B", None)]),
        ("A [Data: Sources (1); Entities (2. B", [("A", TWO), (". B", None)]),
        ("A [Data: Relationships (11) [Data: Relationships (11)].", [("A", ONE), ("", ONE), (".", None)]),
        ("A [Data: Relationships (11, [Data: Relationships (11)].", [("A", ONE), (",", ONE), (".", None)]),
        ("A [Data: Relationships (11 and prose", [("A [Data: Relationships (11 and prose", None)]),
        ("A [Data: none is named.", [("A [Data: none is named.", None)]),
    ],
)
def test_a_models_citation_may_lack_its_closing_brackets(text, expected):
    assert [(before, cited) for before, _, cited in split_written(text)] == expected


numbered = st.lists(
    st.tuples(st.sampled_from(KINDS), st.lists(st.integers(0, 999).map(str), min_size=1, max_size=4)),
    min_size=1,
    max_size=3,
)


@settings(deadline=None)
@given(numbered, st.sampled_from(["", "]", ")]"]), prose)
def test_prose_behind_a_citation_without_brackets_stays(cited, lost, after):
    written = render_citation(cited).removesuffix(lost)
    [(before, _, found), (rest, _, _)] = split_written(f"A {written}. {after}")
    assert (before, found, rest) == ("A", cited, f". {after}")


@given(
    st.lists(st.sampled_from(["[Data: ", "[Data: Entities (1, 2)]", "\u3010", " ", "(3)]", "Reports (4)", "fog", "]."]))
)
def test_written_citations_are_removed_as_they_are_replaced_by_nothing(parts):
    text = "".join(parts)
    assert remove_written(text) == replace_written(text, lambda _: "")


@pytest.mark.parametrize(
    "text",
    [" " * 300_000 + "x", "[Data: Entities (1)" + " " * 300_000 + "x", "[Data: Entities" + " " * 300_000 + "(1)",
     "[Data: Entities (" + " " * 300_000, " " * 300_000 + "[Data: Entities (1)]"],
    ids=["blanks", "behind numbers", "before numbers", "never closed", "before a citation"],
)  # fmt: skip
def test_long_blanks_take_linear_time(text: str) -> None:
    """The square of their number would take minutes, which the time limit of a test does not allow."""
    assert "".join(before for before, _, _ in split_written(text)).strip() in ("", "x", text.strip())
    assert strip_citations(text).strip() in ("", "x", text.strip())
    assert number_citations(text, {"Entities": {"1": 7}}).strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("他是药老的弟子【数据：来源 (3)；实体 (4, 5)】。", [("Sources", ["3"]), ("Entities", ["4", "5"])]),
        ("[Daten: Quellen (3, +more)]", [("Sources", ["3"])]),
        ("[Données : entités (1) ; relations (2)]", [("Entities", ["1"]), ("Relationships", ["2"])]),
        ("[Data: 报告 (2-4)]", [("Reports", ["2", "3", "4"])]),
        ("[Data: Reports 0, 33; Entities #5, +more]", [("Reports", ["0", "33"]), ("Entities", ["5"])]),
        ("[Data: 地图 (7)]", [("地图", ["7"])]),
    ],
)
def test_citations_in_other_languages_and_without_round_brackets_are_read(text, expected):
    assert [cited for _, _, cited in split_written(text)] == [expected, None]


@pytest.mark.parametrize("text", ["见【注：来源 (3)】。", "[Siehe: Quellen (3)]", "[Datensatz: Quellen (3)]"])
def test_brackets_that_open_with_another_word_stay(text):
    assert [before for before, _, _ in split_written(text)] == [text]
