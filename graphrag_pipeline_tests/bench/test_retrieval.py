"""Questions made for the bench of retrieval: the same each time, and without the names of their evidence."""

from __future__ import annotations

from graphrag_pipeline_tests.bench.retrieval import (
    read_manual,
    read_manual_questions,
    read_passages,
    read_questions,
)
from graphrag_pipeline_tests.support.corpora.retrieval_questions import (
    ask_for_documents,
    ask_for_passages,
    bare,
    write_dossiers,
)


def test_a_question_needs_so_many_documents_and_names_none() -> None:
    documents = write_dossiers(5, 2)
    asked = ask_for_documents(documents, 10, 3)
    assert asked == ask_for_documents(write_dossiers(5, 2), 10, 3)
    assert all(len(set(one.evidence)) == 3 for one in asked)
    assert not any(title in one.question for one in asked for title in one.evidence)


def test_passages_of_the_other_questions_are_left_out_and_the_second_hop_is_not_named() -> None:
    gold = {title for question in read_questions() for title in question["gold"]}
    asked = ask_for_passages(read_passages(), gold, 30)
    assert not gold & {title for one in asked for title in one.evidence}
    hops = [one for one in asked if len(one.evidence) == 2]
    assert len(hops) == 30
    assert not any(
        bare(one.evidence[1]) in one.question for one in hops if bare(one.evidence[1]) not in one.evidence[0]
    )


def test_the_manual_has_all_evidence_of_its_questions() -> None:
    pages = {page["title"] for page in read_manual()}
    asked = read_manual_questions()
    assert len(asked) == 46
    assert all(name in pages for one in asked for piece in one.evidence for name in piece.split("|"))
