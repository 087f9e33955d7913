"""Questions with a verb that texts answer with the noun for the role: "Who owns the mill?", "The mill's owner, N"."""

import pytest

from graphrag_pipeline_tests.support.roots import open_built

TEXTS = {
    "quarry.txt": "Blast cracks chimneys\n\nA blast at Penhallow Quarry cracked chimneys on Tuesday. The quarry's "
    "owner, Marrack Aggregates Limited, blamed the rain. Marrack Aggregates Limited paid for new chimneys.",
    "rail.txt": "Trains are late again\n\nThe Tamar Rail Users' Group said it had lost patience. Its chairwoman, "
    "Hilary Bunt, has written to the minister. The van's owner, Ned Pike, saw the fire.",
    "museum.txt": "A windmill is sold\n\nThe museum bought the windmill in May. Its owner, Tom Lund, had died in Bern. "
    "The inn closed in June. Its former owner, Ida Kern, and its new owner, Otto Moser, shook hands.",
}


@pytest.fixture(scope="module")
def owners(tmp_path_factory):
    return open_built(tmp_path_factory.mktemp("owners") / "root", TEXTS)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("Who owns Penhallow Quarry?", "Marrack Aggregates Limited"),
        ("Who chairs the Tamar Rail Users' Group?", "Hilary Bunt"),  # "its" is what the sentence before begins with
        ("Who owns the van?", "Ned Pike"),
        ("Who owns the Tamar Rail Users' Group?", ""),
        ("Who owns the museum?", ""),  # "its" is the windmill
        ("Who edits the van?", ""),
    ],
)
def test_the_noun_for_who_does_something_says_its_verb(owners, question, name):
    first = owners.search(question).answer.splitlines()[0]
    assert first == f"Extractive answer (no model): {name}, by the first passage [1]." if name else "[1]" not in first
