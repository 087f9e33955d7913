"""Community reports by the embedded engine: extracted sentences with citations, without a model.

The title names the central entities. Summary and findings are sentences of the context, chosen by `text/extractive.py`
and followed by a citation with stable ids. Sentences about entities with many relationships inside the community weigh
more. A finding has up to `FINDING_SENTENCES` sentences about the same entities. If there are fewer than `MIN_FINDINGS`
groups of sentences, groups are divided. If that is not enough, sentences that do not read well alone are added, then
those of the summary. Findings about common nouns ("door") or with weak sentences are only used to reach `MIN_FINDINGS`.
Exclamations are left out if there is any other sentence.

The rank is min(10, 10 * ln(1 + n) / ln(1 + `RANK_FULL`)) for n entities, relationships and claims inside. The report on
a community with fewer than `VERBATIM_SIZE` entities copies its descriptions, sentence by sentence.

Keep out: the choice of communities that get a new report (`indexing/reports/community_reports.py`), prompts, disk.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from graphrag_pipeline.citations import render_citation, split_cited
from graphrag_pipeline.indexing.reports.community_reports import Report
from graphrag_pipeline.indexing.reports.context_text import ChildReport
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.indexing.reports.records import Record
from graphrag_pipeline.models.pool import Progress
from graphrag_pipeline.models.ports import Embedder, embed_distinct
from graphrag_pipeline.settings.settings import ReportsSettings
from graphrag_pipeline.text.extractive import (
    is_near_repeat,
    rank_sentences,
    sentences_of,
    words_of,
)
from graphrag_pipeline.text.sentence_forms import is_cry, is_sentence, leans_on_context, weigh_form

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root

RULES = 1
"""Version of the rules; raise it when a change of code changes reports."""
VERBATIM_SIZE = 3
"""Entities of a community from which on there is something to choose from."""
MAX_STATEMENTS = 120
SUMMARY_SENTENCES = 3
CENTRAL_BONUS = 0.5
COMMON_NOUN_FACTOR = 0.6
WELL_FORMED = 0.55
"""A sentence with a lower form weight (short talk, a broken quotation) is weak."""
RANK_FULL = 10_000

FINDING_SENTENCES = 3
MIN_FINDINGS = 5
MAX_FINDINGS = 8
"""Most groups of sentences that become findings; Microsoft's prompt asks for 5 to 10."""
_HEADING_JOINT = re.compile(r", | and ")


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


class EmbeddedReporter:
    """Writes reports of sentences with citations; an `indexing.ports.Reporter`."""

    failures = ()
    problems: Mapping[str, int] = MappingProxyType({})
    least_size = VERBATIM_SIZE

    def __init__(self, root: Root) -> None:
        self._settings, self._embedder = root.settings.reports, root.static_embedder

    def code(self) -> dict[str, Any]:
        """Return the version of the rules."""
        return {"rules": RULES}

    def write(self, contexts: Sequence[CommunityContext], progress: Progress | None = None) -> list[Report]:
        """Return one report per context, in order."""
        return write_reports(contexts, self._settings, self._embedder)


def write_reports(contexts: Sequence[CommunityContext], settings: ReportsSettings, embedder: Embedder) -> list[Report]:
    """Write one report per context, in order; their sentences are embedded together."""
    gathered = [[] if context.n_entities < VERBATIM_SIZE else _gather_statements(context) for context in contexts]
    texts = [statement.text for statements in gathered for statement in statements]
    vectors = embed_distinct(texts, embedder)
    reports, start = [], 0
    for context, statements in zip(contexts, gathered, strict=True):
        end = start + len(statements)
        if statements:
            reports.append(_write_extractive(context, statements, vectors[start:end]))
        else:
            reports.append(_write_verbatim(context, context.n_entities < VERBATIM_SIZE))
        start = end
    return reports


def _write_verbatim(context: CommunityContext, is_small: bool) -> Report:
    """Write a report that copies descriptions: one sentence on each entity as summary, all others as findings."""
    statements = _gather_descriptions(context)
    about_entities = {_heading(_names(record)): _cite("Entities", record) for record in context.entities}
    first: dict[str, Statement] = {}
    for statement in statements:
        if statement.citation == about_entities.get(statement.heading):
            first.setdefault(statement.heading, statement)
    summary = list(first.values())
    groups: dict[str, list[Statement]] = {}
    for statement in statements:
        if statement not in summary:
            groups.setdefault(statement.heading, []).append(statement)
    title = _title(context)
    spare = [replace(summary[0], heading=title)] if len(summary) == 1 else summary
    return Report(
        title,
        " ".join(statement.cited for statement in summary) or title,
        make_findings(spare, groups.values(), (), len(statements)),
        *_rate(context),
        is_verbatim=is_small,
    )


def _gather_descriptions(context: CommunityContext) -> list[Statement]:
    """Return the sentences of the descriptions in order, without repeats; exclamations only if there is no other."""
    gathered: list[Statement] = []
    known: list[frozenset[str]] = []
    for kind, record in _records(context):
        for text in _sentences_alone(record.description):
            words = words_of(text)
            if not is_near_repeat(words, known):
                known.append(words)
                gathered.append(Statement(len(gathered), text, _cite(kind, record), _heading(_names(record))))
    return [statement for statement in gathered if not is_cry(statement.text)] or gathered


def _sentences_alone(description: str) -> list[str]:
    """Return the sentences of a description without headings and fragments, else the description on one line."""
    sentences = sentences_of(description)
    return [text for text in sentences if is_sentence(text)] or [" ".join(sentences)] if sentences else []


def _records(context: CommunityContext) -> Iterator[tuple[str, Record]]:
    """Yield (kind of citation, record) of each record that a context shows."""
    yield from (("Entities", record) for record in context.entities)
    yield from (("Relationships", record) for record in context.relationships)
    yield from (("Claims", record) for record in context.claims)


def _write_extractive(context: CommunityContext, statements: Sequence[Statement], vectors: np.ndarray) -> Report:
    n_wanted = SUMMARY_SENTENCES + MAX_FINDINGS * FINDING_SENTENCES
    priors = np.array([statement.prior for statement in statements])
    order = rank_sentences([statement.text for statement in statements], vectors, n_wanted, prior=priors)
    ranked = [statements[i] for i in order]
    n_summary = max(1, min(SUMMARY_SENTENCES, len(ranked) // 3, len(ranked) - MIN_FINDINGS))
    summary, rest = _pick_summary(ranked, n_summary)
    return Report(
        _title(context),
        " ".join(statement.cited for statement in summary),
        make_findings(summary, group_by_heading(rest), rest),
        *_rate(context),
    )


def _pick_summary(ranked: Sequence[Statement], n: int) -> tuple[list[Statement], list[Statement]]:
    """Choose up to n of the best statements under different headings; return them and the others.

    Statements that do not read well alone are skipped; if no other remains, one of them is chosen.
    """
    headings: set[str] = set()
    chosen: list[Statement] = []
    for statement in sorted(ranked, key=lambda statement: statement.reads_badly):
        if len(chosen) < n and statement.heading not in headings and not (chosen and statement.reads_badly):
            headings.add(statement.heading)
            chosen.append(statement)
    return chosen, [statement for statement in ranked if statement not in chosen]


def _gather_statements(context: CommunityContext) -> list[Statement]:
    """Return at most `MAX_STATEMENTS` sentences of the context; exclamations only if there is no other."""
    weights = _weigh_names(context)
    gathered: list[tuple[str, str, str, float]] = []
    for kind, record in _records(context):
        names = sorted(_names(record), key=lambda name: (-weights.get(name, 0.0), name))
        prior = 1.0 + weights.get(names[0], 0.0)
        if kind == "Entities" and names[0] in context.central:
            prior += CENTRAL_BONUS
        heading, citation = _heading(names), _cite(kind, record)
        gathered += [(text, citation, heading, prior) for text in _first_sentences(record.description)]
    for report in context.reports:
        gathered += _gather_from_child(report)
    gathered = [parts for parts in gathered if not is_cry(parts[0])] or gathered
    statements = [_make_statement(i, parts, context.common_nouns) for i, parts in enumerate(gathered)]
    if len(statements) <= MAX_STATEMENTS:
        return statements
    return sorted(statements, key=lambda statement: (-statement.prior, statement.position))[:MAX_STATEMENTS]


def _make_statement(position: int, parts: tuple[str, str, str, float], common_nouns: Collection[str]) -> Statement:
    text, citation, heading, prior = parts
    has_noun = any(name.lower() in common_nouns for name in _HEADING_JOINT.split(heading))
    is_weak = has_noun or weigh_form(text) < WELL_FORMED
    return Statement(position, text, citation, heading, prior * (COMMON_NOUN_FACTOR if has_noun else 1.0), is_weak)


def _first_sentences(description: str) -> list[str]:
    """Return as many sentences as a finding has; descriptions start with their most informative sentences."""
    return sentences_of(description)[:FINDING_SENTENCES]


def _gather_from_child(report: ChildReport) -> Iterator[tuple[str, str, str, float]]:
    """Yield (text, citation, heading, prior) of the sentences of a sub-community's report.

    A sentence keeps its citation; without one it cites the report.
    """
    own = render_citation([("Reports", [report.community_id])])
    for heading, text in ((report.title, report.summary), *report.findings):
        for part, citation in split_cited(text):
            for sentence in sentences_of(part):
                yield sentence, citation or own, heading, 1.0


def _weigh_names(context: CommunityContext) -> dict[str, float]:
    """Return the number of shown relationships of each name, as a share of the largest such number."""
    counts: dict[str, int] = {}
    for record in context.relationships:
        for name in _names(record):
            counts[name] = counts.get(name, 0) + 1
    most = max(counts.values(), default=1)
    return {name: count / most for name, count in counts.items()}


def _names(record: Record) -> tuple[str, ...]:
    """Return the names in a record: an entity's title, a relationship's two ends, a claim's subject and object."""
    return record.fields[:1] if len(record.fields) == 2 else record.fields[:2]


def _heading(names: Sequence[str]) -> str:
    # A claim without an object has "NONE" in its place.
    return _start_upper(_join_names(list(dict.fromkeys(name for name in names if name and name.upper() != "NONE"))))


def _cite(kind: str, record: Record) -> str:
    return render_citation([(kind, [record.id])])


def _title(context: CommunityContext) -> str:
    return _start_upper(_join_names(context.central))


def _start_upper(text: str) -> str:
    return text if "." in text.split(" ")[0][:-1] else text[:1].upper() + text[1:]


def _join_names(names: Sequence[str]) -> str:
    """Join names as "A, B and C"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]])) if names else ""


def _rate(context: CommunityContext) -> tuple[float, str]:
    """Return the rank from 0 to 10 and its formula as text."""
    n = context.n_entities + context.n_relationships + context.n_claims
    rank = round(min(10.0, 10.0 * math.log1p(n) / math.log1p(RANK_FULL)), 1)
    counts = f"{context.n_entities} entities, {context.n_relationships} relationships and {context.n_claims} claims"
    return rank, f"By size: {counts} inside the community, 10 x ln(1 + {n}) / ln(1 + {RANK_FULL})."


# ------------------------------------------------------------------------------------------------------------- findings


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
