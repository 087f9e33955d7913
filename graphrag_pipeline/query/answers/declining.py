"""Extractive answers that say that the index has no answer, or none that is clear, with the nearest passages.

Keep out: the decision what a text covers (`understanding/covered_words.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.query.answers.layout import compose
from graphrag_pipeline.query.answers.quoting import IS_NEAREST, Floor, Quote, quote_passages
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import is_english, is_latin, stem
from graphrag_pipeline.query.records import read_text_units
from graphrag_pipeline.query.results import Answer, TextUnitRecord
from graphrag_pipeline.query.search.basic import read_within
from graphrag_pipeline.query.selection.hybrid_ranking import rank_text_units
from graphrag_pipeline.query.understanding.covered_words import Coverage, measure_coverage, texts_of
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis, analyze_question
from graphrag_pipeline.query.word_families import families_in, family_of, is_adverb, says_little
from graphrag_pipeline.text.counted import counted
from graphrag_pipeline.text.extractive import words_of

if TYPE_CHECKING:
    from graphrag_pipeline.query.search.community_selection import Selection

MAX_NEAREST = 3
SAYS_SOME = Floor(0.1, 0.3)
"""The floor of a passage that is quoted where none answers, though the texts have the words of the question."""
SAYS_ONE = Floor(0.0, 0.2)
"""The same where no passage has more than one of a few words of the question, and others have the other words."""
N_COMPARED = 30
"""Text units of basic search in which words of the question are looked for, besides those that are read."""


def read_coverage(
    index: IndexReader, question: str, units: Sequence[TextUnitRecord], texts: Sequence[str] = ()
) -> Coverage:
    """Return which words of a question neither text units, further texts, nor the nearest of basic search have.

    Args:
        units: a context may show excerpts of them; all of their text counts.
    """
    ranked = rank_text_units(index, question, N_COMPARED)
    ids = dict.fromkeys([*(unit_id for unit_id, _ in ranked), *(unit.id for unit in units)])
    rows = index.snapshot.rows_of("text_units", list(ids))
    whole = read_text_units(index, rows, np.zeros(len(rows)))
    return measure_coverage(index, question, [*texts_of(whole), *texts])


def absent_words(
    analysis: QuestionAnalysis, units: Sequence[TextUnitRecord], quotes: Sequence[Quote] = ()
) -> list[str]:
    """Return the words of the question's topic that no text contains, quoted, in alphabetical order."""
    texts = [*(unit.text for unit in units), *(text for text, _ in quotes)]
    missing = analysis.words.difference(*(analysis.words_in(text) for text in texts))
    families = families_in(texts) if missing else set()
    absent = (word for word in sorted(words_of(analysis.question)) if stem(word) in missing)
    return [
        f'"{word}"'
        for word in absent
        if not (says_little(stem(word)) or is_adverb(word)) and family_of(word) not in families
    ]


def name_absent_words(analysis: QuestionAnalysis, units: Sequence[TextUnitRecord], quotes: Sequence[Quote]) -> str:
    """Return the clause that names the words that no text contains; empty if there are none."""
    absent = absent_words(analysis, units, quotes)
    return f"; none of them says {' or '.join(absent)}" if absent and is_latin(analysis.question) else ""


def answer_with_nearest(
    index: IndexReader, analysis: QuestionAnalysis, units: Sequence[TextUnitRecord], looked: str, coverage: Coverage
) -> Answer:
    """Return the nearest passages if any are near, else that nothing was found, with what was looked at.

    If the texts have all words of the question but its verb, the nearest passages are near enough.
    """
    if not analysis.words & frozenset().union(*(analysis.words_in(unit.text) for unit in units)):
        return Answer(f"Not in the index: {looked}; no word of the question is there.")
    nearest = partial(quote_passages, index, analysis, units, MAX_NEAREST)
    floors = [IS_NEAREST]
    if is_english(analysis.question):
        floors += [SAYS_SOME, SAYS_ONE] if coverage.is_of_verb else [SAYS_SOME]
    quotes = next(filter(None, (nearest(floor=floor) for floor in floors)), [])
    if not quotes:
        return Answer(f"Nothing in the index is near enough to this question; {looked}.")
    without = name_absent_words(analysis, units, quotes)
    return compose(f"Extractive answer (no model): no passage answers clearly{without}. The nearest:", quotes)


def decline(
    index: IndexReader, analysis: QuestionAnalysis, units: Sequence[TextUnitRecord], looked: str, coverage: Coverage
) -> Answer:
    """Return that the index does not have what is asked for, with the nearest passages if any are near."""
    said = families_in(unit.text for unit in units)
    of_whom = " of what the question names" if any(family_of(word) in said for word in coverage.missing) else ""
    introduction = f"Not in the index: {looked}; no text says {coverage.describe()}{of_whom}, or anything near."
    quotes = quote_passages(index, analysis, units, MAX_NEAREST, floor=IS_NEAREST)
    return compose(f"{introduction} The nearest (extractive, no model):", quotes) if quotes else Answer(introduction)


def decline_by_reports(
    index: IndexReader, question: str, selection: Selection, max_context_tokens: int
) -> Answer | None:
    """Return an answer that declines if neither the kept reports nor the text units of basic search have what is asked
    for, else None.
    """
    if selection.is_overview:
        return None
    units = read_within(index, question, max_context_tokens).text_units
    rows = np.array([report.row for report in selection.kept], dtype=np.int64)
    reports = index.snapshot.take("community_reports", rows, ["full_content"])
    texts = [strip_citations(report["full_content"]) for report in reports]
    coverage = read_coverage(index, question, units, texts)
    if coverage.is_covered:
        return None
    looked = f"{describe_reports(selection)}, then {counted(len(units), 'text units')}"
    declined = decline(index, analyze_question(index, question, units), units, looked, coverage)
    return replace(declined, text_units=units)


def describe_reports(selection: Selection) -> str:
    return f"{counted(len(selection.rated), 'community reports')} looked at, {len(selection.kept)} of them read"
