import pytest

from graphrag_pipeline.engines.embedded.names.identifiers import find_identifiers
from graphrag_pipeline.text.name_words import DOUBTFUL
from graphrag_pipeline.text.structure import read_structure


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("TICKET-118 and ABC-2024-7 broke dim_customer, events.v3 and AWS_KEY_ID.",
         {"TICKET-118", "ABC-2024-7", "dim_customer", "events.v3", "AWS_KEY_ID"}),
        ("Restart `billing-api`, then run `vacuum` and `vacuum` again.", {"billing-api", "vacuum"}),
        ("TICKET-1: depends on ledger-db. A follow-up call is real-time work.", {"TICKET-1", "ledger-db"}),
        ("| TICKET-2 | billing-api |\n| x | on-call duty |", {"TICKET-2", "billing-api"}),
        ("service: eta-board; mode: in-sync; note: is a follow-up", {"eta-board"}),
        ("LanceDB and PostgreSQL store it.", {"LanceDB", "PostgreSQL"}),
        ("He bought a snuff-box, to-day and to-morrow; the snuff-box was old.", set()),
        ("See https://example.org/a_b.html, mail a_b@example.org, e.g. version 1.2.3 of f(x).", set()),
    ],
)  # fmt: skip
def test_identifiers_are_what_engineers_name_and_no_english_words(text: str, expected: set[str]) -> None:
    codes = read_structure(text).codes
    assert set(find_identifiers(codes, text)) == expected


@pytest.mark.parametrize(
    ("text", "sure", "doubtful"),
    [
        ("Restart slot-planner. Then wait for slot-planner and go home.", {"slot-planner"}, set()),
        ("Restart slot-planner. The decision-makers wait.", set(), {"slot-planner"}),
        ("It is real-time. It is self-signed. Be on-call. She did it in real-time, self-signed and on-call.", set(),
         {"real-time", "self-signed"}),
        ("At run-time. In run-time. Take time-outs. More time-outs. A follow-up, an on-call team.", set(),
         {"run-time", "time-outs"}),
    ],
)  # fmt: skip
def test_in_plain_prose_a_compound_of_nouns_that_recurs_without_article_is_an_identifier(
    text: str, sure: set[str], doubtful: set[str]
) -> None:
    found = find_identifiers([], text)
    assert {form for form, kind in found.items() if kind != DOUBTFUL} == sure
    assert {form for form, kind in found.items() if kind == DOUBTFUL} == doubtful
