from __future__ import annotations

from graphrag_pipeline.indexing.extraction.names.terms.concepts import choose_concepts
from graphrag_pipeline.indexing.extraction.names.terms.nesting import fold_forms, replace_nested
from graphrag_pipeline.indexing.extraction.names.terms.word_uses import count_uses


def test_a_word_that_always_belongs_to_a_phrase_gives_way_to_it() -> None:
    uses = count_uses("It needs creatinine clearance. The creatinine clearance fell. A dose is given.", [(0, 76)])
    own, longer = replace_nested(["clearance", "dose"], {("creatinine", "clearance"): 2.0}, uses)
    assert (own, longer) == (["dose"], [("creatinine", "clearance")])


def test_a_word_that_is_often_alone_stays() -> None:
    text = "It needs creatinine clearance. The clearance fell. The clearance rose."
    own, longer = replace_nested(["clearance"], {("creatinine", "clearance"): 2.0}, count_uses(text, [(0, len(text))]))
    assert (own, longer) == (["clearance"], [])


def test_a_gerund_is_its_noun_unless_it_has_a_plural() -> None:
    text = "The vacuum starts. A vacuum ends. Of the vacuuming we know little."
    terms = {"vacuum": ["vacuum"], "vacuuming": ["vacuuming"]}
    assert fold_forms(terms, count_uses(text, [(0, len(text))])) == {"vacuum": ["vacuum", "vacuuming"]}
    text = "The build failed. A build ended. The buildings are old, and the building is new."
    uses = count_uses(text, [(0, len(text))])
    assert fold_forms({"build": ["build"], "building": ["building", "buildings"]}, uses).keys() == {"build", "building"}


def test_an_adjective_alone_is_short_for_its_phrase() -> None:
    text = "The primary server stops. A primary server starts. The primary waits."
    terms = {"primary server": ["primary server"], "primary": ["primary"]}
    assert fold_forms(terms, count_uses(text, [(0, len(text))])) == {"primary server": ["primary", "primary server"]}


def test_rare_words_that_only_open_sentences_are_terms_and_names_are_not() -> None:
    text = "Dronedarone is given at night. Dronedarone may help. Zorbinka is here. He met Zorbinka. Zorbinka left. "
    filler = "Then a nurse will look at it, and a doctor will call us again. " * 15
    chosen = choose_concepts(text + filler, set(), [*_starts(text + filler)])
    assert "dronedarone" in chosen and "zorbinka" not in chosen


def test_a_rare_word_after_to_is_no_verb() -> None:
    text = "Do not add it to verapamil and wait. It is like verapamil. "
    filler = "Then a nurse will look at it, and a doctor will call us again. " * 15
    assert "verapamil" in choose_concepts(text + filler, set())
    assert "antiplatelet" not in choose_concepts(f"The antiplatelet drugs and antiplatelet therapy. {filler}", set())


def _starts(text: str) -> list[int]:
    return [0, *(place + 2 for place in range(len(text) - 2) if text.startswith(". ", place))]


def test_a_program_with_its_kind_is_the_program() -> None:
    terms = {"slurmd daemon": ["slurmd daemon"], "slurmd": ["slurmd"], "build": ["build"], "build tool": ["build tool"]}
    folded = fold_forms(terms, count_uses("", []))
    assert folded["slurmd"] == ["slurmd", "slurmd daemon"]
    assert folded.keys() == {"slurmd", "build", "build tool"}
