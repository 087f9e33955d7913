"""Findings of an embedded report: which of its sentences stand together, and under whose names.

A finding gathers sentences about the same entities. Where that makes fewer than `MIN_FINDINGS`, findings are divided,
then sentences that read badly alone are let in, at last those of the summary: a community of `MIN_FINDINGS` sentences
has as many findings, one with any sentence has one. Keep out: choosing sentences, rank, title.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphrag_pipeline.text.sentence_forms import is_sentence, leans_on_context

FINDING_SENTENCES = 3
MIN_FINDINGS = 5


@dataclass(frozen=True)
class Statement:
    """A sentence of a context, its place there, citation, the heading it belongs under and how much it weighs.

    `is_weak`: the heading holds a common noun, or the sentence reads badly alone.
    """

    position: int
    text: str
    citation: str
    heading: str
    prior: float = 1.0
    is_weak: bool = False

    @property
    def cited(self) -> str:
        return f"{close_sentence(self.text)} {self.citation}"

    @property
    def reads_badly(self) -> bool:
        return self.is_weak or leans_on_context(self.text)


def close_sentence(text: str) -> str:
    """A sentence that lost its full stop gets one."""
    return text + "." if text[-1:].isalnum() else text


def make_findings(
    summary: Sequence[Statement], groups: Iterable[Sequence[Statement]], rest: Iterable[Statement], max_findings: int
) -> tuple[tuple[str, str], ...]:
    """(heading, explanation) of each finding, as many as the sentences allow up to `MIN_FINDINGS`.

    Args:
        summary: what the summary says; repeated only where there is nothing else.
        groups: sentences that stand together, best first.
        rest: sentences of the report in none of the groups, or in one.
        max_findings: no more are filled up to.
    """
    findings = [put_in_reading_order(group) for group in groups]
    said = {statement.text for finding in findings for statement in finding}
    left = sorted((s for s in rest if s.text not in said), key=lambda statement: statement.reads_badly)
    spare = [s for s in (*left, *summary) if is_sentence(s.text)]
    n_sentences = len(said) + len(spare)
    n_needed = min(MIN_FINDINGS, max_findings) if n_sentences >= MIN_FINDINGS else 1
    while len(findings) < n_needed and _divide_one(findings):
        pass
    findings += [[statement] for statement in spare[: max(n_needed - len(findings), 0)]]
    return tuple((finding[0].heading, " ".join(s.cited for s in finding)) for finding in findings)


def _divide_one(findings: list[list[Statement]]) -> bool:
    """Divide the longest finding that can be, before its last sentence that stands alone; whether there was one."""
    for i in sorted(range(len(findings)), key=lambda i: -len(findings[i])):
        cuts = [k for k in range(1, len(findings[i])) if not leans_on_context(findings[i][k].text)]
        if cuts:
            findings[i : i + 1] = [findings[i][: cuts[-1]], findings[i][cuts[-1] :]]
            return True
    return False


def group_by_heading(statements: Iterable[Statement], max_findings: int) -> list[list[Statement]]:
    """Sentences under one heading, in the order of their best; such as read badly only where there are few."""
    groups: dict[str, list[Statement]] = {}
    for statement in sorted(filter(lambda s: is_sentence(s.text), statements), key=lambda s: s.reads_badly):
        group = groups.get(statement.heading)
        n_most = min(max_findings, MIN_FINDINGS) if statement.reads_badly else max_findings
        if group is None and len(groups) < n_most:
            groups[statement.heading] = [statement]
        elif group is not None and len(group) < FINDING_SENTENCES and statement.is_weak <= group[0].is_weak:
            group.append(statement)
    return list(groups.values())


def put_in_reading_order(group: Iterable[Statement]) -> list[Statement]:
    """As the records say it; a sentence that leans on one that is not here is dropped if another one remains."""
    ordered = sorted(group, key=lambda statement: statement.position)
    kept: list[Statement] = []
    for statement in ordered:
        has_antecedent = bool(kept) and kept[-1].citation == statement.citation
        if has_antecedent or not leans_on_context(statement.text):
            kept.append(statement)
    return kept or ordered[:1]
