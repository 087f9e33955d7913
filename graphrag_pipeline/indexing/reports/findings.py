"""Findings of an extractive report: groups of sentences about the same entities, with headings.

If there are fewer than `MIN_FINDINGS` groups, groups are divided. If that is not enough, sentences that do not read
well alone are added, then those of the summary. So a community with `MIN_FINDINGS` sentences has as many findings, and
a community with any sentence has one. Keep out: choosing sentences, rank, title.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from graphrag_pipeline.text.sentence_forms import is_sentence, leans_on_context

FINDING_SENTENCES = 3
MIN_FINDINGS = 5
MAX_FINDINGS = 8
"""Most groups of sentences that become findings; Microsoft's prompt asks for 5 to 10."""


@dataclass(frozen=True)
class Statement:
    """A sentence of a context.

    Attributes:
        position: order in the context.
        citation: the records it comes from, as written in a report.
        heading: names of the entities that it is about.
        prior: weight when sentences are ranked.
        is_weak: whether the heading contains a common noun, or the form of the sentence is poor.
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
    """Add a full stop to a sentence that ends without punctuation."""
    return text + "." if text[-1:].isalnum() else text


def make_findings(
    summary: Sequence[Statement],
    groups: Iterable[Sequence[Statement]],
    rest: Iterable[Statement],
    max_findings: int = MAX_FINDINGS,
) -> tuple[tuple[str, str], ...]:
    """Return (heading, explanation) of each finding, at least `MIN_FINDINGS` if there are enough sentences.

    Args:
        summary: sentences of the summary; repeated only if there are too few others.
        groups: sentences about the same entities, best group first.
        rest: sentences of the report, in a group or not.
        max_findings: findings are not added beyond this number.
    """
    findings = [put_in_reading_order(group) for group in groups]
    used = {statement.text for finding in findings for statement in finding}
    left = sorted((s for s in rest if s.text not in used), key=lambda statement: statement.reads_badly)
    spare = [s for s in (*left, *summary) if is_sentence(s.text)]
    n_sentences = len(used) + len(spare)
    n_needed = min(MIN_FINDINGS, max_findings) if n_sentences >= MIN_FINDINGS else 1
    while len(findings) < n_needed and _divide_one(findings):
        pass
    findings += [[statement] for statement in spare[: max(n_needed - len(findings), 0)]]
    return tuple((finding[0].heading, " ".join(s.cited for s in finding)) for finding in findings)


def _divide_one(findings: list[list[Statement]]) -> bool:
    """Divide the longest divisible finding before its last sentence that reads well alone; return whether one was."""
    for i in sorted(range(len(findings)), key=lambda i: -len(findings[i])):
        cuts = [k for k in range(1, len(findings[i])) if not leans_on_context(findings[i][k].text)]
        if cuts:
            findings[i : i + 1] = [findings[i][: cuts[-1]], findings[i][cuts[-1] :]]
            return True
    return False


def group_by_heading(statements: Iterable[Statement]) -> list[list[Statement]]:
    """Group sentences by heading, best group first; those that read badly only fill up to `MIN_FINDINGS` groups."""
    groups: dict[str, list[Statement]] = {}
    for statement in sorted(filter(lambda s: is_sentence(s.text), statements), key=lambda s: s.reads_badly):
        group = groups.get(statement.heading)
        n_most = MIN_FINDINGS if statement.reads_badly else MAX_FINDINGS
        if group is None and len(groups) < n_most:
            groups[statement.heading] = [statement]
        elif group is not None and len(group) < FINDING_SENTENCES and statement.is_weak <= group[0].is_weak:
            group.append(statement)
    return list(groups.values())


def put_in_reading_order(group: Iterable[Statement]) -> list[Statement]:
    """Sort sentences by position and drop those that depend on a missing sentence, but keep at least one."""
    ordered = sorted(group, key=lambda statement: statement.position)
    kept: list[Statement] = []
    for statement in ordered:
        has_antecedent = bool(kept) and kept[-1].citation == statement.citation
        if has_antecedent or not leans_on_context(statement.text):
            kept.append(statement)
    return kept or ordered[:1]
