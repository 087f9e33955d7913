import pytest

from graphrag_pipeline.engines.embedded.names.identifiers import find_identifiers
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
