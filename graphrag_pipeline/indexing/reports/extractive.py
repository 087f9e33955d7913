"""Community reports by the embedded engine: extracted sentences with citations, without a model.

The title names the central entities. Summary and findings are sentences of the context, chosen by `text/extractive.py`
and followed by a citation with stable ids. Sentences about entities with many relationships inside the community weigh
more. A finding has up to `FINDING_SENTENCES` sentences about the same entities (`findings.py`). Findings about common
nouns ("door") or with weak sentences are only used to reach `MIN_FINDINGS`. Exclamations are left out if there is any
other sentence.

The rank is min(10, 10 * ln(1 + n) / ln(1 + `RANK_FULL`)) for n entities, relationships and claims inside. The report on
a community with fewer than `VERBATIM_SIZE` entities copies its descriptions, sentence by sentence.

Keep out: the choice of communities that get a new report (`community_reports.py`), prompts, disk.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from graphrag_pipeline.citations import render_citation, split_cited
from graphrag_pipeline.indexing.reports.community_reports import Report
from graphrag_pipeline.indexing.reports.context_text import ChildReport
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.indexing.reports.findings import (
    FINDING_SENTENCES,
    MAX_FINDINGS,
    MIN_FINDINGS,
    Statement,
    group_by_heading,
    make_findings,
)
from graphrag_pipeline.indexing.reports.records import Record
from graphrag_pipeline.models.ports import Embedder, embed_distinct
from graphrag_pipeline.settings.settings import ReportsSettings
from graphrag_pipeline.text.extractive import (
    is_near_repeat,
    rank_sentences,
    sentences_of,
    words_of,
)
from graphrag_pipeline.text.sentence_forms import is_cry, is_sentence, weigh_form

VERBATIM_SIZE = 3
"""Entities of a community from which on there is something to choose from."""
MAX_STATEMENTS = 120
SUMMARY_SENTENCES = 3
CENTRAL_BONUS = 0.5
COMMON_NOUN_FACTOR = 0.6
WELL_FORMED = 0.55
"""A sentence with a lower form weight (short talk, a broken quotation) is weak."""
RANK_FULL = 10_000

_HEADING_JOINT = re.compile(r", | and ")


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
