from __future__ import annotations

import re

import pytest

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.terms.of_terms import join_of_terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Weapons of mass sowing. They had weapons of mass sowing.", {"weapons of mass sowing"}),
        ("Weapons of mass sowing. They feared mass sowing.", {"mass sowing"}),
        ("A lack of mass sowing, and a lack of mass sowing.", {"mass sowing"}),
        ("They had weapons of mass sowing.", {"mass sowing"}),
    ],
)
def test_a_term_has_the_noun_before_of_if_it_always_follows_it(text: str, expected: set[str]) -> None:
    concepts = [Name("mass sowing", *match.span(), 0) for match in re.finditer("mass sowing", text)]
    joined = join_of_terms(concepts, text)
    assert {name.form for name in joined} == expected
    assert {" ".join(text[name.start : name.end].lower().split()) for name in joined} == expected
