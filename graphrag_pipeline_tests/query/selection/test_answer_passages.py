"""Passages: how text units are cut into windows, what a reader sees of them, and which of them answer a question."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.answer_passages import MAX_WORDS, AnswerPassage, cut_passages, score_words
from graphrag_pipeline_tests.support.citation_checks import check_citations
from graphrag_pipeline_tests.support.roots import open_built

RUNBOOK = """# Billing

## Rollback

The service [billing-api](https://wiki/billing) is **stateless**. Roll it back with `deploy undo`:

- stop the queue
- run `deploy undo billing-api`

| step | owner |
|------|-------|
| stop | Ana   |
| undo | Bo    |

Alerts
======

Call the on-call engineer.

```bash
# not a heading
deploy undo billing-api
```
"""


def unit(text: str) -> TextUnitRecord:
    return TextUnitRecord("u", 0, "d", "runbook", text, 100, 100 + len(text), 9, 0.5)


def test_a_passage_has_the_headings_above_it_and_no_marks() -> None:
    passages = list(cut_passages(unit(RUNBOOK)))
    prose, table, alerts = passages
    assert prose.title == "runbook > Billing > Rollback"
    assert prose.text == (
        "The service billing-api is stateless. Roll it back with deploy undo: - stop the queue "
        "- run deploy undo billing-api"
    )
    assert RUNBOOK[prose.start : prose.end].startswith("The service [billing-api](https://wiki/billing)")
    assert (table.title, table.text) == (prose.title, "step: stop; owner: Ana. step: undo; owner: Bo.")
    assert (alerts.title, alerts.text) == (
        "runbook > Alerts",
        "Call the on-call engineer. # not a heading deploy undo billing-api",
    )


def test_a_long_sentence_is_cut_and_a_short_section_is_whole() -> None:
    [long] = cut_passages(unit("word " * 400))
    assert len(long.text.split()) == MAX_WORDS
    assert [passage.text for passage in cut_passages(unit("# A\n\nOne.\n\n# B\n\nTwo."))] == ["One.", "Two."]
    assert list(cut_passages(unit("# A heading alone\n\n---\n"))) == []


lines = st.sampled_from(
    ["# One", "## Two", "A sentence of a few words.", "- an item", "| a | b |", "|---|---|", "| 1 | 2 |", "", "```",
     "===", "萧炎是谁。", "!!!", "> quoted", "***bold** and `code`"]
)  # fmt: skip


@given(st.lists(lines, max_size=30).map("\n".join))
def test_passages_are_spans_of_their_text_in_reading_order(text: str) -> None:
    passages = list(cut_passages(unit(text)))
    assert all(0 <= one.start < one.end <= len(text) and text[one.start : one.end].strip() for one in passages)
    starts = [one.start for one in passages]
    assert starts == sorted(set(starts))


def test_a_rare_word_weighs_more_than_a_frequent_one_and_a_long_window_less() -> None:
    frequencies = np.array([[1.0, 1.0 / 1.4, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
    gains, held = score_words(frequencies)
    scores = gains.sum(axis=0)
    assert scores[2] > scores[0] > scores[1] > scores[3] == 0
    assert held[1, 2] > held[0, 2] > 0 == held[1, 0]


@pytest.mark.parametrize(
    ("question", "title", "said"),
    [
        ("Who is the owner of the step undo?", "Billing > Rollback", "**step**: **undo**; **owner**: Bo"),
        ("How do I roll back billing-api?", "Billing > Rollback", "**Roll** it **back**"),
        ("Whom do I call about alerts?", "Billing > Alerts", "**Call** the **on-call** engineer."),
    ],
)
def test_the_section_that_answers_is_shown_with_its_title_and_the_words_of_the_question(
    tmp_path: Path, question: str, title: str, said: str
) -> None:
    with open_built(
        tmp_path, {"runbook.md": RUNBOOK, "other.md": "# Menu\n\nSoup is served at noon. Ana cooks."}
    ) as index:
        result = index.search(question)
        check_citations(index, result)
    assert f"**{title}**" in result.answer and said in result.answer


def test_passages_about_a_known_identifier_are_no_refusal(tmp_path: Path) -> None:
    texts = {"model.md": "# Models\n\nstg_orders holds one row a day.", "menu.md": "# Menu\n\nSoup is served at noon."}
    with open_built(tmp_path, texts) as index:
        known = index.search("Which dashboard suffers terribly whenever stg_orders misbehaves?").answer
        unknown = index.search("Which dashboard suffers terribly whenever stg_refunds misbehaves?").answer
    assert known.startswith("Extractive answer") and "**stg_orders** holds one row a day." in known
    assert unknown.startswith("Not in the index: ") and '"stg_refunds"' in unknown.splitlines()[0]


def test_steps_rows_and_code_are_shown_on_lines_of_their_own(tmp_path: Path) -> None:
    runbook = """---
owner: Ana Sand
service: billing-api
---
# Rollback of billing-api

Before a rollback of billing-api:

1. Stop the `queue`.
2. Run the command:

```sql
SELECT *
  FROM rollback;
```

* Tell Ana.
* Go home.
"""
    with open_built(tmp_path, {"runbook.md": runbook, "menu.md": "# Menu\n\nSoup is served at noon."}) as index:
        result = index.search("What is the rollback of billing-api?")
        check_citations(index, result)
    steps = (
        "- Before a **rollback** of **billing-api**:\n\n1. Stop the queue.\n2. Run the command:\n\n"
        "```\nSELECT *\n  FROM rollback;\n```\n\n- Tell Ana.\n- Go home. ["
    )
    assert steps in result.answer
    assert "- owner: Ana Sand; service: **billing-api** [" in result.answer


def test_any_form_of_a_name_says_the_whole_name(tmp_path: Path) -> None:
    texts = {
        "a.txt": "The Service Level Objective (SLO) of billing is 99.9 percent. The SLO is reviewed by Ana.",
        "b.txt": "The objective of the meeting was a new level of service for guests. The level of the lake fell.",
    }
    with open_built(tmp_path, texts) as index:
        first = index.search("Who reviews the service level objective?").citations[0]
    assert "reviewed by Ana" in first.quote


def test_a_title_repeats_no_heading() -> None:
    same = TextUnitRecord("u", 0, "d", "Billing", "text", 0, 4, 1, 0.0)
    assert AnswerPassage(same, 0, 4, "text", ("Billing", "Rollback")).title == "Billing > Rollback"
