from dataclasses import replace

import pytest

from graphrag_pipeline.query.rendering import ContextStyle, render_context
from graphrag_pipeline.query.results import Context, EntityRecord, RelationshipRecord, TextUnitRecord
from graphrag_pipeline.text.tokens import count_tokens

CONTEXT = Context(
    entities=(EntityRecord("e", 7, "MARLEY", "PERSON", "Dead | to\nbegin with.", 3, 0.5, "name", 8),),
    relationships=(RelationshipRecord("r", 4, "MARLEY", "SCROOGE", "Partners.", 2.0, 5, 2, True, 6),),
    text_units=(TextUnitRecord("u", 1, "d", "Stave One", "Marley was dead:\nto begin with.", 0, 31, 9, 0.5),),
)


def test_a_context_is_written_with_numbers_first_and_one_line_a_record():
    assert render_context(CONTEXT).splitlines() == [
        "# Entities",
        "id|title|type|description|number of relationships",
        "7|MARLEY|PERSON|Dead | to begin with.|3",
        "",
        "# Relationships",
        "id|source|target|description|weight",
        "4|MARLEY|SCROOGE|Partners.|2",
        "",
        "# Sources",
        "[1] Stave One",
        "Marley was dead:",
        "to begin with.",
    ]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("Dead.", "Dead."),
        ("a b\0c", "a b\0c"),
        (" a", "a"),
        ("a ", "a"),
        ("a  b", "a b"),
        ("a\n\tb", "a b"),
        ("a\u2028b\u00a0c", "a b c"),
        ("a|b", "a|b"),
        ("\0 a", "\0 a"),
        (" ", ""),
    ],
)  # fmt: skip
def test_each_cell_is_on_one_line_without_outer_space(text, cell):
    [entity] = CONTEXT.entities
    for before, after in (("PERSON", "PERSON"), (" x", "x")):  # a cell beside it that is written as it is, or is not
        shown = render_context(Context(entities=(replace(entity, type=before, description=text),)))
        assert shown.split("\n")[2:] == [f"7|MARLEY|{after}|{cell}|3"]


@pytest.mark.parametrize("delimiter", ["|", ",", ";", "/"])
@pytest.mark.parametrize("is_strict", [False, True])
def test_a_delimiter_inside_a_text_stays(delimiter, is_strict):
    """As Microsoft GraphRAG 3.3.0 joins the cells of entities, relationships, claims and text units."""
    text = "His own kind, generous, hearty nature; he said | he / she."
    entity, unit = replace(CONTEXT.entities[0], description=text), replace(CONTEXT.text_units[0], text=text)
    style = ContextStyle(column_delimiter=delimiter, is_strict=is_strict)
    shown = render_context(Context(entities=(entity,), text_units=(unit,)), style)
    assert shown.count(text) == 2 and delimiter.join((text, "3")) in shown.splitlines()[2]


def test_readers_of_an_answer_see_what_the_model_was_not_shown_and_what_it_invented(carol):
    plain = carol.search("Who is Scrooge?")
    answering = {**plain.answering, "left_out": 49, "invented_citations": 1}
    found = replace(plain, answering=answering, selection={**plain.selection, "failed_ratings": 4})
    assert plain.remarks == () and found.remarks == (
        "4 ratings of the model could not be read.",
        "49 records or points were left out, because the window of the model does not hold more.",
        "1 citation of the model named a record that it was not shown, and was removed.",
    )
    assert all(f"Note: {remark}" in found.to_markdown() for remark in found.remarks)


def test_a_written_context_stays_within_max_context_tokens(carol):
    for strategy in ("depth_first", "minimum_guarantee"):
        for budget in (500, 3000, 12000):
            result = carol.search("Who is Scrooge?", strategy=strategy, context_only=True, max_context_tokens=budget)
            assert count_tokens(render_context(result.context)) <= budget
