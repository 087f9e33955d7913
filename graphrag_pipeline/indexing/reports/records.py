"""The graph as report contexts need it: records as rows of text with their tokens, and which community holds which.

Everything is by position: entities, relationships and claims are numbered in the order of their ids, whatever the
order of the tables' rows. Communities are read one level at a time, without a loop over relationships in Python.
Texts are rendered and counted on demand, a count once per record. Keep out: what goes into a context, how reports are
made.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.arrow_columns import one_chunk
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.text.tokens import TokenCounter

_ENTITY_COLUMNS = ["id", "title", "type", "names", "description_key"]
_RELATIONSHIP_COLUMNS = ["id", "source_id", "target_id", "description_key"]


@dataclass(frozen=True)
class Record:
    """One row of a context.

    Attributes:
        id: the stable id that a report cites.
        fields: entity: title, description; relationship: source, target, description; claim: subject, object, type,
            status, start date, end date, description. Titles are written as people write them.
    """

    id: str
    fields: tuple[str, ...]

    @property
    def description(self) -> str:
        return self.fields[-1]


@dataclass(frozen=True)
class CommunityRows:
    """Where the records of one community are in the `GraphRecords`.

    Attributes:
        id, level: of the community.
        entities: (n,) by degree inside the community, highest first, ties by title.
        relationships: (r,) both ends inside, by the sum of those degrees, ties by title.
        claims: (c,) in the order of their entities.
        children: ids of its sub-communities.
        child_of_entity, child_of_relationship, child_of_claim: position in `children` that holds the record whole, -1
            for a relationship between two of them; all -1 where there are none.
    """

    id: str
    level: int
    entities: np.ndarray
    relationships: np.ndarray
    claims: np.ndarray
    children: tuple[str, ...]
    child_of_entity: np.ndarray
    child_of_relationship: np.ndarray
    child_of_claim: np.ndarray


class RecordRows:
    """Records of one kind, rendered and counted on demand; a count is made once."""

    def __init__(self, ids: pa.Array, columns: Sequence[pa.Array], count_tokens: TokenCounter) -> None:
        self._ids = ids
        self._columns = columns
        self._count_tokens = count_tokens
        self._tokens = np.full(len(ids), -1, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._ids)

    def record(self, i: int) -> Record:
        return Record(self._ids[i].as_py(), tuple(column[i].as_py() or "" for column in self._columns))

    def iterate_values(self) -> Iterator[tuple[str, ...]]:
        """Id and fields of every record, in order."""
        columns = [self._ids, *(column.fill_null("") for column in self._columns)]
        return zip(*(column.to_pylist() for column in columns), strict=True)

    def tokens(self, rows: np.ndarray) -> np.ndarray:
        """Tokens of each row, its number left out."""
        missing = rows[self._tokens[rows] < 0]
        if len(missing):
            self._tokens[missing] = self._count_tokens([render_row(self.record(i).fields) for i in missing.tolist()])
        return self._tokens[rows]

    @cached_property
    def max_tokens(self) -> np.ndarray:
        """No row has more tokens than this: its bytes."""
        total = np.full(len(self._ids), 1, dtype=np.int64)
        for column in self._columns:
            n_bytes = pc.binary_length(column.cast(pa.binary())).fill_null(0)
            n_quotes = pc.count_substring(column, '"').fill_null(0)
            total += n_bytes.to_numpy(zero_copy_only=False) + n_quotes.to_numpy(zero_copy_only=False) + 3
        return total


class GraphRecords:
    """The graph as contexts need it: records by position, ends of relationships, claims by entity.

    Positions depend on ids alone, whatever the order of the tables' rows.
    """

    def __init__(
        self,
        entities: pa.Table,
        relationships: pa.Table,
        covariates: pa.Table,
        descriptions: pa.Table,
        count_tokens: TokenCounter,
    ) -> None:
        """Take the stage tables; `count_tokens` gives the tokens of each of a list of texts."""
        entities = entities.select(_ENTITY_COLUMNS).sort_by("id")
        relationships = relationships.select(_RELATIONSHIP_COLUMNS).sort_by("id")
        covariates = covariates.sort_by("id")
        self.count_tokens = count_tokens
        self.entity_ids = one_chunk(entities["id"])
        titles = one_chunk(entities["title"])
        self._titles = titles
        entity_texts = _look_up(entities["description_key"], descriptions)
        self.names = pa.array(_display_names(entities, entity_texts), pa.string())
        self.title_order = _ranks(titles)
        self.sources = _positions(relationships["source_id"], self.entity_ids)
        self.targets = _positions(relationships["target_id"], self.entity_ids)
        n_entities = max(len(titles), 1)
        self.relationship_order = _ranks(
            pa.array(self.title_order[self.sources] * n_entities + self.title_order[self.targets])
        )
        self.entities = RecordRows(self.entity_ids, [self.names, entity_texts], count_tokens)
        relationship_texts = _look_up(relationships["description_key"], descriptions)
        ends = [self.names.take(pa.array(end)) for end in (self.sources, self.targets)]
        self.relationships = RecordRows(one_chunk(relationships["id"]), [*ends, relationship_texts], count_tokens)
        self._add_claims(covariates)

    def _add_claims(self, covariates: pa.Table) -> None:
        """Claims belong to their subject or, where that is no entity, to their object; else to no community."""
        subjects, objects = (pc.index_in(covariates[c], value_set=self._titles) for c in ("subject_id", "object_id"))
        owners = one_chunk(pc.coalesce(subjects, objects)).fill_null(-1).to_numpy(zero_copy_only=False)
        order = np.argsort(owners, kind="stable")
        order = order[owners[order] >= 0]
        covariates, owners = covariates.take(pa.array(order)), owners[order]
        columns = [
            self._name(covariates["subject_id"]),
            self._name(covariates["object_id"]),
            *(one_chunk(covariates[c]) for c in ("type", "status", "start_date", "end_date")),
            _fold_space(one_chunk(covariates["description"])),
        ]
        self.claims = RecordRows(one_chunk(covariates["id"]), columns, self.count_tokens)
        self.claim_owners = owners.astype(np.int64)
        self._claim_starts = np.searchsorted(owners, np.arange(len(self.entity_ids) + 1))

    def _name(self, titles: pa.ChunkedArray) -> pa.Array:
        found = pc.index_in(titles, value_set=self._titles)
        return one_chunk(pc.coalesce(self.names.take(one_chunk(found)), one_chunk(titles)))

    def claims_of(self, entities: np.ndarray) -> np.ndarray:
        """Claims of entities, in the order of the entities."""
        starts, ends = self._claim_starts[entities], self._claim_starts[entities + 1]
        has_claims = ends > starts
        ranges = [np.arange(s, e) for s, e in zip(starts[has_claims], ends[has_claims], strict=True)]
        return np.concatenate(ranges) if ranges else np.zeros(0, dtype=np.int64)


def iterate_levels(communities: pa.Table, records: GraphRecords) -> Iterator[list[CommunityRows]]:
    """The communities with their records, one level at a time, deepest first."""
    levels = communities["level"].to_numpy()
    finer: _Level | None = None
    for level in sorted(set(levels.tolist()), reverse=True):
        rows = communities.filter(pa.array(levels == level)).sort_by("id")
        current = _read_level(rows, len(records.entity_ids), records)
        yield [_collect_rows(position, level, current, finer, records) for position in range(rows.num_rows)]
        finer = current


@dataclass(frozen=True)
class _Level:
    """One level as arrays: community of each entity (-1: its branch ended above), its records grouped by community."""

    ids: list[str]
    parent_ids: list[str | None]
    community_of: np.ndarray
    entities: np.ndarray
    entity_starts: np.ndarray
    relationships: np.ndarray
    relationship_starts: np.ndarray

    @cached_property
    def children_of(self) -> dict[str, list[int]]:
        """Parent id -> positions of its children."""
        children: dict[str, list[int]] = {}
        for position, parent in enumerate(self.parent_ids):
            if parent is not None:
                children.setdefault(parent, []).append(position)
        return children

    @cached_property
    def child_number(self) -> np.ndarray:
        """Position of each community among the children of its parent."""
        numbers = np.zeros(len(self.ids), dtype=np.int64)
        for children in self.children_of.values():
            numbers[children] = np.arange(len(children))
        return numbers


def _read_level(rows: pa.Table, n_entities: int, records: GraphRecords) -> _Level:
    members = _positions(pc.list_flatten(rows["entity_ids"]), records.entity_ids)
    owners = one_chunk(pc.list_parent_indices(rows["entity_ids"].combine_chunks())).to_numpy(zero_copy_only=False)
    community_of = np.full(n_entities, -1, dtype=np.int64)
    community_of[members] = owners
    community = community_of[records.sources]
    inside = np.flatnonzero((community >= 0) & (community == community_of[records.targets]))
    ends = records.sources[inside], records.targets[inside]
    degree = np.bincount(np.concatenate(ends), minlength=n_entities)
    by_degree = np.lexsort((records.title_order[members], -degree[members], owners))
    importance = degree[ends[0]] + degree[ends[1]]
    by_importance = np.lexsort((records.relationship_order[inside], -importance, community[inside]))
    positions = np.arange(rows.num_rows + 1)
    return _Level(
        ids=rows["id"].to_pylist(),
        parent_ids=rows["parent_id"].to_pylist(),
        community_of=community_of,
        entities=members[by_degree],
        entity_starts=np.searchsorted(owners[by_degree], positions),
        relationships=inside[by_importance],
        relationship_starts=np.searchsorted(community[inside][by_importance], positions),
    )


def _collect_rows(
    position: int, level: int, current: _Level, finer: _Level | None, records: GraphRecords
) -> CommunityRows:
    entities = current.entities[current.entity_starts[position] : current.entity_starts[position + 1]]
    start, end = current.relationship_starts[position : position + 2]
    relationships = current.relationships[start:end]
    claims = records.claims_of(entities)
    children = finer.children_of.get(current.ids[position], []) if finer else []
    child_of_entity = np.full(len(entities), -1)
    child_of_relationship = np.full(len(relationships), -1)
    child_of_claim = np.full(len(claims), -1)
    if finer and children:
        child_of_entity = finer.child_number[finer.community_of[entities]]
        ends = (finer.community_of[end[relationships]] for end in (records.sources, records.targets))
        sources, targets = (finer.child_number[end] for end in ends)
        child_of_relationship = np.where(sources == targets, sources, -1)
        child_of_claim = finer.child_number[finer.community_of[records.claim_owners[claims]]]
    return CommunityRows(
        id=current.ids[position],
        level=level,
        entities=entities,
        relationships=relationships,
        claims=claims,
        children=tuple(finer.ids[child] for child in children) if finer else (),
        child_of_entity=child_of_entity,
        child_of_relationship=child_of_relationship,
        child_of_claim=child_of_claim,
    )


def is_common_noun(name: str) -> bool:
    """Whether a title as people write it is one word in small letters ("door"): a key word of a text, no name."""
    return name.islower() and " " not in name


def render_row(fields: Sequence[str]) -> str:
    """A CSV row without its number; it starts with a comma and ends its line, so that the tokens of rows add up."""
    return "".join(f",{_quote(field)}" for field in fields) + "\n"


def _quote(field: str) -> str:
    return '"' + field.replace('"', '""') + '"' if re.search(r'[",\r\n]', field) else field


# ------------------------------------------------------------------------------------------------- columns as arrays


def _positions(ids: pa.ChunkedArray | pa.Array, value_set: pa.Array) -> np.ndarray:
    return one_chunk(pc.index_in(ids, value_set=value_set)).to_numpy(zero_copy_only=False).astype(np.int64)


def _look_up(keys: pa.ChunkedArray, descriptions: pa.Table) -> pa.Array:
    """The description of each key, white space folded; "" where there is none."""
    found = one_chunk(pc.index_in(keys, value_set=one_chunk(descriptions["description_key"])))
    return _fold_space(one_chunk(descriptions["description"]).take(found).fill_null(""))


def _fold_space(texts: pa.Array) -> pa.Array:
    return pc.utf8_trim_whitespace(pc.replace_substring_regex(texts, r"\s+", " "))


def _ranks(values: pa.Array) -> np.ndarray:
    """Position of each value in sorted order."""
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[pc.sort_indices(values).to_numpy()] = np.arange(len(values))
    return ranks


def _display_names(entities: pa.Table, descriptions: pa.Array) -> list[str]:
    columns = (entities[c].to_pylist() for c in ("title", "type", "names"))
    return [
        _display_name(title, kind, names or [], text)
        for title, kind, names, text in zip(*columns, descriptions.to_pylist(), strict=True)
    ]


def _display_name(title: str, kind: str, names: Sequence[str], description: str) -> str:
    """A title as people write it: a written form of it, else as its description writes it, else capitalised."""
    written = [name for name in names if name != name.upper() and normalize_title(name) == title]
    if written:
        return " ".join(min(written, key=lambda name: (name[0].islower(), name)).split())
    found = re.search(rf"(?<!\w){re.escape(title)}(?!\w)", description, re.IGNORECASE)
    if found and found.group(0) != title:
        return found.group(0)
    is_acronym = " " not in title and kind != "PERSON" and len(title) <= (3 if kind == "GEO" else 5)
    return title if is_acronym else _capitalize(title)


def _capitalize(title: str) -> str:
    small = {"of", "the", "and", "in", "on", "at", "to", "for", "de", "van", "von", "la"}
    words = [word.lower() if word.lower() in small else _capitalize_word(word) for word in title.split(" ")]
    return " ".join([words[0] if "." in words[0] else words[0][:1].upper() + words[0][1:], *words[1:]])


def _capitalize_word(word: str) -> str:
    """SCROOGE -> Scrooge, WWW.EXAMPLE.ORG -> www.example.org; BBC, NF-KB, R2 and C++ stay."""
    if re.fullmatch(r"(?:\w+[.])+\w{2,}", word):
        return word.lower()
    is_word = re.fullmatch(r"[^\W\d_]+(?:['-][^\W\d_]+)*[.]?", word)
    has_vowel = re.search(r"[AEIOUY\u00c0-\u017f]", word)
    return word.capitalize() if is_word and has_vowel and word.isupper() else word
