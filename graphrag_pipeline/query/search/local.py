"""Local search: the entities of a question and the records around them.

The method of GraphRAG's local search (Edge et al. 2024, arXiv 2404.16130, and microsoft/graphrag). Entities are matched
(`understanding/entity_matching.py`). The communities, relationships, claims and text units around them come from the
snapshot's adjacency arrays (row numbers; no table is scanned per query) and are ranked (`local_ranking.py`,
`selection/`). They are packed into one token budget: each part by itself as in Microsoft GraphRAG,
or with shares that pass on what they leave. "Row" means the position of a record in its contract table.

Strict packing of local contexts: the budget of each part as Microsoft GraphRAG divides and fills it.

Each part has its share of the budget and no more. It ends at the first row that does not fit, even if a later one
would. Relationships and claims come for a growing number of matched entities, as long as they fit beside the table of
entities; at the first number that does not fit, those of the number before are kept. Rows cost the tokens of their
text (`query/rendering.py`).

Keep out: writing the answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.context import PART_OVERHEAD, Part, pack_parts, row_costs
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.rendering import ContextStyle, heading_of, row_of
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.basic import select_within
from graphrag_pipeline.query.search.local_ranking import (
    RankedRelationships,
    rank_claims,
    rank_relationships,
    rank_relationships_of_prefixes,
    rank_reports,
    take_turns,
)
from graphrag_pipeline.query.selection.coverage import cost_of, pick_for_entities, unheard_entities
from graphrag_pipeline.query.selection.excerpts import ExcerptFinder
from graphrag_pipeline.query.selection.local_text_units import (
    DEPTH_FIRST,
    TextUnitPool,
    begin_basic,
    gather_text_units,
    pick_of,
    read_picks,
)
from graphrag_pipeline.query.selection.reranking import Pick, RerankAccount, rerank_picks
from graphrag_pipeline.query.understanding.conversation import read_history
from graphrag_pipeline.query.understanding.entity_matching import Match, NamedEntities, begin_matching, name_entities
from graphrag_pipeline.query.understanding.keywords import (
    Keywords,
    extract_keywords,
    find_relationships,
    find_reports,
)
from graphrag_pipeline.settings.settings import LocalSearchSettings
from graphrag_pipeline.text.tokens import count_tokens, count_tokens_each

_BLOCKS = {"reports": 2, "text_units": 4}
"""Rows of long records that are read and counted at once."""
_BLOCK = 32
"""Rows of other records that are read and counted at once."""


class _Costs:
    """Tokens of the rows of one part, read and counted when they are needed, and kept.

    Args:
        read: rows and their scores -> records, in order.
    """

    def __init__(self, part: str, style: ContextStyle, read: Callable[[np.ndarray, np.ndarray], Sequence[Any]]) -> None:
        self._part, self._style, self._read = part, style, read
        self._records: dict[int, Any] = {}
        self._tokens: dict[tuple[int, float, bool], int] = {}

    def fit(self, rows: np.ndarray, scores: np.ndarray, budget: int, has_links: bool = False) -> tuple[int, int]:
        """Return how many rows, the first in order, fit under the heading, and the tokens of both."""
        spent = count_tokens(heading_of(self._part, self._style, has_links))
        block = _BLOCKS.get(self._part, _BLOCK)
        shown = scores if has_links else np.zeros(len(rows))  # a row shows the score as its links, or not at all
        keys = [(row, score, has_links) for row, score in zip(rows.tolist(), shown.tolist(), strict=True)]
        for n, key in enumerate(keys):
            if key not in self._tokens:
                self._count([k for k in keys[n : n + block] if k not in self._tokens])
            if spent + self._tokens[key] > budget:
                return n, spent
            spent += self._tokens[key]
        return len(rows), spent

    def _count(self, keys: list[tuple[int, float, bool]]) -> None:
        new = np.array([row for row, _, _ in keys if row not in self._records], dtype=np.int64)
        self._records.update(zip(new.tolist(), self._read(new, np.zeros(len(new))), strict=True))
        texts = [row_of(self._part, self._record(row, score), self._style, has_links) for row, score, has_links in keys]
        self._tokens.update(zip(keys, count_tokens_each(texts), strict=True))

    def _record(self, row: int, score: float) -> Any:
        record = self._records[row]
        return replace(record, score=score) if score else record


def fit_reports(
    index: IndexReader, rows: np.ndarray, n_inside: np.ndarray, settings: LocalSearchSettings, limit: int
) -> np.ndarray:
    """Return the positions of the reports that fit; by rank if a model gets the rank, else in order."""
    read = records.read_summaries if settings.use_community_summary else records.read_reports
    costs = _Costs("reports", ContextStyle.of_settings(settings), lambda at, scores: read(index, at, scores))
    n, _ = costs.fit(rows, n_inside, int(limit * settings.community_share))
    if settings.include_community_rank:
        return np.argsort(-index.column("community_reports", "rank")[rows[:n]], kind="stable")
    return np.arange(n)


def fit_text_units(index: IndexReader, rows: np.ndarray, settings: LocalSearchSettings, limit: int) -> int:
    """Return how many text units, the first in order, fit."""
    style = ContextStyle.of_settings(settings)
    costs = _Costs("text_units", style, lambda at, scores: records.read_text_units(index, at, scores))
    return costs.fit(rows, np.zeros(len(rows)), int(limit * settings.text_unit_share))[0]


def fit_local(
    index: IndexReader, entity_rows: np.ndarray, settings: LocalSearchSettings, limit: int
) -> tuple[int, RankedRelationships, int]:
    """Fit entities, relationships and claims into what reports and text units leave.

    Returns:
        The number of entities, the relationships, and the number of claims (`rank_claims`), the first in order.
    """
    style = ContextStyle.of_settings(settings)
    budget = int(limit * (1 - settings.community_share - settings.text_unit_share))
    entities, relationships, claims = _costs_of_tables(index, style)
    has_claims = index.snapshot.n_rows("covariates") > 0
    claim_rows, claimants = rank_claims(index, entity_rows)
    n_entities, entity_tokens = entities.fit(entity_rows, np.zeros(len(entity_rows)), budget)
    ranked = rank_relationships_of_prefixes(
        index, entity_rows, settings.top_k_relationships, settings.relationship_ranking_attribute
    )
    kept, n_claims = RankedRelationships.none(), 0
    for n, found in enumerate(ranked, start=1):
        about = claim_rows[claimants < n]
        has_links = bool(found.n_touched[:1].any())
        fit, cost = relationships.fit(found.rows, found.n_touched, budget, has_links) if len(found.rows) else (0, 0)
        fit_about, about_cost = claims.fit(about, np.zeros(len(about)), budget) if has_claims else (0, 0)
        if entity_tokens + cost + about_cost > budget:
            break
        kept, n_claims = found.take(np.arange(fit)), fit_about
    return n_entities, kept, n_claims


def _costs_of_tables(index: IndexReader, style: ContextStyle) -> tuple[_Costs, _Costs, _Costs]:
    return (
        _Costs("entities", style, lambda rows, scores: records.read_entities(index, rows, scores, [""] * len(rows))),
        _Costs(
            "relationships",
            style,
            lambda rows, scores: records.read_relationships(index, rows, scores, np.zeros(len(rows), dtype=bool)),
        ),
        _Costs("claims", style, lambda rows, scores: records.read_claims(index, rows, scores)),
    )


N_PARTS = 5
MAX_THEME_REPORTS = 3
"""Reports nearest to high-level keywords that come before those of the matched entities."""
RELATIONSHIPS_TO_CLAIMS = 2.0
"""Tokens of relationships for each token of claims, of what entities leave of the local part."""


def select_local_context(index: IndexReader, question: str, settings: LocalSearchSettings) -> Context:
    """Return matched entities and the records around them, packed into `max_context_tokens`.

    The conversation is taken off the budget first. Of the rest `community_share` is for reports and `text_unit_share`
    for text units. The remainder is for entities first, then relationships and claims. `packing` says whether a part
    that needs less leaves tokens to the others. Text units are packed last, by `settings.strategy`
    (`selection/local_text_units.py`). If no entity matches, the context is that of basic search.
    """
    alone = settings.model_copy(update={"return_candidate_context": False})
    return select_with_candidates(index, question, alone).context


@dataclass(frozen=True)
class LocalSelection:
    """A context with an account of its selection.

    Attributes:
        candidates: with `return_candidate_context`, the other records that it was chosen from.
        unheard: titles of the matched entities that no text unit and no excerpt of the context informs.
        reranked: the account of a reranking model; None if the settings have none.
        keywords: of the question by a model; None if the settings want none.
    """

    context: Context
    candidates: Context | None = None
    unheard: tuple[str, ...] = ()
    reranked: RerankAccount | None = None
    keywords: Keywords | None = None


def select_with_candidates(index: IndexReader, question: str, settings: LocalSearchSettings) -> LocalSelection:
    """Return the context with an account of its selection."""
    talk = read_history(settings)
    limit = max(settings.max_context_tokens - talk.n_tokens, 0)
    keywords = extract_keywords(index, talk.join(question)) if settings.model_keywords else Keywords()
    text = ", ".join(keywords.low) or talk.join(question)
    named = name_entities(index, "\n".join((talk.join(question), *keywords.low)), settings)
    matching = begin_matching(index, text, settings.top_k_entities, named, settings)  # before the slower searches
    ranking = begin_basic(index, question, settings)
    matches = matching()
    if not matches:
        candidates = Context() if settings.return_candidate_context else None
        basic = select_within(index, question, limit, settings.rerank)
        found = LocalSelection(basic.context, candidates, reranked=basic.reranked)
    else:
        if settings.strategy == DEPTH_FIRST:
            matches.sort(key=lambda match: -match.score)  # as in microsoft/graphrag: a name is not before similarity
        found = _select_around(index, question, matches, named, settings, limit, ranking, keywords.high)
    return replace(found, keywords=keywords) if settings.model_keywords else found


def select_around(index: IndexReader, question: str, matches: list[Match], settings: LocalSearchSettings) -> Context:
    """Return the context around given entities, best first, after a conversation of the settings."""
    limit = max(settings.max_context_tokens - read_history(settings).n_tokens, 0)
    named = name_entities(index, question, settings)
    ranking = begin_basic(index, question, settings)
    return _select_around(index, question, matches, named, settings, limit, ranking).context


def _select_around(
    index: IndexReader,
    question: str,
    matches: list[Match],
    named: NamedEntities,
    settings: LocalSearchSettings,
    limit: int,
    ranking: Callable[[], list[tuple[str, float]]],
    themes: Sequence[str] = (),
) -> LocalSelection:
    entity_rows = np.array([match.row for match in matches])
    ranked = _add_themes(index, _rank(index, entity_rows, settings), themes, settings)
    pool = gather_text_units(index, ranking, matches, settings, named.question)
    pool, reranked = _rerank(index, question, pool, settings) if settings.rerank else (pool, None)
    if settings.is_strict:
        chosen = _pack_strict(index, entity_rows, ranked, pool, settings, limit)
    else:
        finder = ExcerptFinder(index, question, matches, pool)
        chosen = _pack_shared(index, entity_rows, ranked, pool, settings, limit, finder)
    titles = [record["title"] for record in index.snapshot.take("entities", entity_rows, ["title"])]
    unheard = tuple(titles[entity] for entity in unheard_entities(pool.candidates, chosen.picks))
    context = _read(index, matches, titles, chosen, pool, settings)
    if not settings.return_candidate_context:
        return LocalSelection(context, None, unheard, reranked)
    rest = _read(index, matches, titles, ranked.without(chosen, pool), pool, settings)
    return LocalSelection(context, rest, unheard, reranked)


def _rerank(
    index: IndexReader, question: str, pool: TextUnitPool, settings: LocalSearchSettings
) -> tuple[TextUnitPool, RerankAccount]:
    """Return the pool in the order of the reranking model; as it was if the model gave no score."""
    everything = int(pool.candidates.costs.sum())
    part = int(settings.max_context_tokens * settings.text_unit_share)
    picks, account = rerank_picks(index, question, pick_for_entities(settings, pool, everything, part=part), pool.rows)
    return (replace(pool, order=tuple(picks)) if account.n_scored else pool), account


@dataclass(frozen=True)
class _Records:
    """Records around the matched entities, each part best first.

    Attributes:
        entities: positions in the matches.
        claims: rows, and the position of the entity that each is about.
        reports: rows, and the number of matched entities inside.
    """

    entities: np.ndarray
    relationships: RankedRelationships
    claims: tuple[np.ndarray, np.ndarray]
    reports: tuple[np.ndarray, np.ndarray]
    picks: list[Pick]

    def without(self, other: _Records, pool: TextUnitPool) -> _Records:
        """Return the records that are not in another selection, with all text units of the pool."""
        taken = [pick.text_unit for pick in other.picks]
        left = np.setdiff1d(np.arange(len(pool.rows)), taken).tolist()
        return _Records(
            np.setdiff1d(self.entities, other.entities),
            self.relationships.take(~np.isin(self.relationships.rows, other.relationships.rows)),
            _take(self.claims, ~np.isin(self.claims[0], other.claims[0])),
            _take(self.reports, ~np.isin(self.reports[0], other.reports[0])),
            [pick_of(pool, unit) for unit in left],
        )


def _take(ranked: tuple[np.ndarray, np.ndarray], places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return ranked[0][places], ranked[1][places]


def _rank(index: IndexReader, entity_rows: np.ndarray, settings: LocalSearchSettings) -> _Records:
    """Return all records around the matched entities, without text units."""
    n_outside = settings.top_k_relationships * len(entity_rows)
    relationships = RankedRelationships.none()
    if not settings.is_strict or settings.return_candidate_context:  # strict packing ranks them for itself
        relationships = rank_relationships(index, entity_rows, n_outside, settings.relationship_ranking_attribute)
    claims = rank_claims(index, entity_rows)
    if not settings.is_strict:
        claims = _take(claims, take_turns(claims[1]))
    reports = rank_reports(index, entity_rows, settings)
    return _Records(np.arange(len(entity_rows)), relationships, claims, reports, [])


def _add_themes(index: IndexReader, ranked: _Records, themes: Sequence[str], settings: LocalSearchSettings) -> _Records:
    """Put the relationships and reports nearest to high-level keywords before the others."""
    if not themes:
        return ranked
    near = find_relationships(index, themes, settings.top_k_relationships)
    reports = find_reports(index, themes, MAX_THEME_REPORTS)
    counts = dict(zip(*(values.tolist() for values in ranked.reports), strict=True))
    rows = np.array([*dict.fromkeys([*reports.tolist(), *ranked.reports[0].tolist()])], dtype=np.int64)
    return replace(
        ranked,
        relationships=ranked.relationships.led_by(near),
        reports=(rows, np.array([counts.get(row, 0) for row in rows.tolist()], dtype=np.int64)),
    )


# --------------------------------------------------------------------------------------------------------------- budget


def _pack_strict(
    index: IndexReader,
    entity_rows: np.ndarray,
    ranked: _Records,
    pool: TextUnitPool,
    settings: LocalSearchSettings,
    limit: int,
) -> _Records:
    n_entities, relationships, n_claims = fit_local(index, entity_rows, settings, limit)
    share = int(limit * settings.text_unit_share)
    is_whole_order = settings.strategy == DEPTH_FIRST  # rows cost other tokens here, so more than by the stored ones
    budget = int(pool.candidates.costs.sum()) if is_whole_order else share
    picks = pick_for_entities(settings, pool, budget, part=share)
    rows = pool.rows[[pick.text_unit for pick in picks]]
    return _Records(
        ranked.entities[:n_entities],
        relationships,
        _take(ranked.claims, np.arange(n_claims)),
        _take(ranked.reports, fit_reports(index, *ranked.reports, settings, limit)),
        picks[: fit_text_units(index, rows, settings, limit)],
    )


def _pack_shared(
    index: IndexReader,
    entity_rows: np.ndarray,
    ranked: _Records,
    pool: TextUnitPool,
    settings: LocalSearchSettings,
    limit: int,
    finder: ExcerptFinder,
) -> _Records:
    """Return what fits one budget; parts that need less leave tokens to the others."""
    picks: list[Pick] = []

    def choose(budget: int) -> tuple[list[int], int]:
        picks[:] = pick_for_entities(settings, pool, budget, finder)
        return [pick.text_unit for pick in picks], cost_of(pool.candidates, picks)

    limit -= sum(count_tokens_each(ContextStyle.of_settings(settings).names))
    costs = _count_costs(index, entity_rows, ranked, settings)
    shares = _divide_shares(settings, limit, sum(costs["entities"]))
    parts = [Part(name, shares[name], costs[name]) for name in shares]
    parts.append(Part("text_units", settings.text_unit_share, pool.candidates.costs.tolist(), choose))
    packed = {name: np.array(places, dtype=np.int64) for name, places in pack_parts(parts, limit).items()}
    return _Records(
        packed["entities"],
        ranked.relationships.take(packed["relationships"]),
        _take(ranked.claims, packed["claims"]),
        _take(ranked.reports, packed["reports"]),
        picks,
    )


def _count_costs(
    index: IndexReader, entity_rows: np.ndarray, ranked: _Records, settings: LocalSearchSettings
) -> dict[str, list[int]]:
    tables = {
        "entities": ("entities", entity_rows),
        "relationships": ("relationships", ranked.relationships.rows),
        "claims": ("covariates", ranked.claims[0]),
        "reports": ("community_reports", ranked.reports[0]),
    }
    costs = {name: row_costs(index.column(table, "n_tokens")[rows]) for name, (table, rows) in tables.items()}
    if settings.use_community_summary:
        costs["reports"] = row_costs([r.n_tokens for r in records.read_summaries(index, *ranked.reports)])
    return costs


def _divide_shares(settings: LocalSearchSettings, limit: int, entity_tokens: int) -> dict[str, float]:
    """Return the shares of all parts but text units; entities get what they cost, at most the whole local part."""
    local = max(1 - settings.community_share - settings.text_unit_share, 0.0)
    budget = max(limit - PART_OVERHEAD * N_PARTS, 1)
    entities = min(local, (entity_tokens + 1) / budget)
    claims = (local - entities) / (1 + RELATIONSHIPS_TO_CLAIMS)
    return {
        "entities": entities,
        "relationships": claims * RELATIONSHIPS_TO_CLAIMS,
        "claims": claims,
        "reports": settings.community_share,
    }


# -------------------------------------------------------------------------------------------------------------- reading


def _read(
    index: IndexReader,
    matches: list[Match],
    titles: list[str],
    chosen: _Records,
    pool: TextUnitPool,
    settings: LocalSearchSettings,
) -> Context:
    kept = [matches[place] for place in chosen.entities]
    scores = np.array([match.score for match in matches])
    entity_rows = np.array([match.row for match in matches])
    relationships, (claims, claimants) = chosen.relationships, chosen.claims
    read_reports = records.read_summaries if settings.use_community_summary else records.read_reports
    return Context(
        entities=records.read_entities(
            index, entity_rows[chosen.entities], scores[chosen.entities], [_how(match) for match in kept]
        ),
        relationships=records.read_relationships(
            index, relationships.rows, relationships.n_touched, relationships.is_inside
        ),
        reports=read_reports(index, *chosen.reports),
        claims=records.read_claims(index, claims, scores[claimants]),
        text_units=read_picks(index, pool, chosen.picks, titles),
    )


def _how(match: Match) -> str:
    return "name" if match.is_named else "vector"
