"""Questions with a verb that texts answer with the noun for the role: "Who owns the mill?", "The mill's owner, N"."""

import pytest

from graphrag_pipeline_tests.support.roots import open_built

TEXTS = {
    "quarry.txt": "Blast cracks chimneys\n\nA blast at Penhallow Quarry cracked chimneys on Tuesday. The quarry's "
    "owner, Marrack Aggregates Limited, blamed the rain. Marrack Aggregates Limited paid for new chimneys.",
    "rail.txt": "Trains are late again\n\nThe Tamar Rail Users' Group said it had lost patience. Its chairwoman, "
    "Hilary Bunt, has written to the minister. The van's owner, Ned Pike, saw the fire.",
    "blast.txt": "Blast at quarry cracks windows\n\nA blast at Stonegate Quarry cracked windows. The quarry's "
    "owner, Roskilly Stone Limited, blamed the frost. Roskilly Stone Limited paid for new windows.",
    "minutes.txt": "Minutes of the meeting of 3 May\n\nPresent: Ida Penrose (chair), Karl Malik (treasurer)\n\n"
    "1. Welcome\nThe chair spoke of Harald Peake, the founder of the co-operative, who died in March. The board stood "
    "in silence. The clock was broken by a football and mended by the caretaker, Ted Loveridge.",
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
        ("Who owns Stonegate Quarry?", "Roskilly Stone Limited"),  # the headline has the word "quarry", too
        ("Who founded the co-operative?", "Harald Peake"),
        ("Who is the chair of the board?", "Ida Penrose"),  # minutes seldom say of what
        ("Who is the chair of the museum?", ""),
        ("Who mended the clock?", "Ted Loveridge"),
    ],
)
def test_the_noun_for_who_does_something_says_its_verb(owners, question, name):
    first = owners.search(question).answer.splitlines()[0]
    assert first == f"Extractive answer (no model): {name}, by the first passage [1]." if name else "[1]" not in first
