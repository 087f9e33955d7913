"""Entity resolution by rules across documents: titles that name the same entity.

After exact match, the rules are, most certain first: `override` (the user's decision), `unicode` (accents, punctuation,
simplified and traditional Chinese), `date` (one day in two forms), `possessive`, `alias` (articles, legal forms,
qualifiers, a person's short name, plurals and spellings of a term), `acronym` and `fuzzy` (one letter). `embedding` and
`verdict` come from `semantic_resolution.py`. The setting `resolution.rules` chooses among them. No rule merges titles
that the user keeps apart. Types must agree (UNKNOWN agrees with all) and numbers must be equal. Where a name alone is
not enough evidence, both titles must share a neighbor in the graph; titles that are merged count as one, so merges of
people who meet confirm each other (collective resolution: Bhattacharya and Getoor 2007).

A wrong merge is worse than a missed one, so an ambiguous title is not merged. `merge_proposals.py` reads titles,
`resolve_titles` their neighbors; both are pure. A merge is a row in `entity_merges` and never changes mentions.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

import regex

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.text.dates import is_date
from graphrag_pipeline.text.languages import has_han, simplify
from graphrag_pipeline.text.name_words import UNKNOWN, is_acronym_of

RULES = ("override", "unicode", "date", "possessive", "alias", "acronym", "fuzzy", "embedding", "verdict")
TIE_RULES = frozenset({"unicode", "date", "possessive", "alias", "acronym"})
"""Rules that tie two names inside one document, see `explain_tie`."""

_PUNCTUATION = regex.compile(r"[^\p{L}\p{M}\p{N}&+#']+")
_NUMBER = regex.compile(r"\d+|\b[IVXLCDM]+\b")


@dataclass(frozen=True, slots=True)
class TitleRecord:
    """A title before resolution: its most frequent type, number of mentions, and whether a document is about it."""

    title: str
    type: str
    n_mentions: int
    is_about: bool = False


@dataclass(frozen=True, slots=True)
class Merge:
    """`title` is another name of `into`.

    Attributes:
        rule: one of `RULES`.
        evidence: the reason, stored in `entity_merges`.
        score: 0 to 1, the certainty of the rule.
        needs_neighbour: whether the merge requires an entity that both have a relationship with.
    """

    title: str
    into: str
    rule: str
    evidence: str
    score: float
    needs_neighbour: bool = False


def resolve_titles(
    proposals: Iterable[Merge],
    neighbours: Mapping[str, set[str]],
    n_mentions: Mapping[str, int],
    apart: Collection[tuple[str, str]] = (),
) -> dict[str, Merge]:
    """Choose among proposals and follow chains to their end.

    Args:
        proposals: from `propose_merges`.
        neighbours: title -> titles that it has a relationship with, at least for each proposed title.
        n_mentions: title -> number of mentions, to choose the end of a cycle.
        apart: pairs of titles that must not be merged.

    Returns:
        title -> its merge; the `into` of a merge is never merged itself.
    """
    chosen: dict[str, Merge] = {}
    left = sorted(proposals, key=lambda p: (RULES.index(p.rule), -n_mentions[p.into], p.title, p.into))
    n_chosen = -1
    while len(chosen) > n_chosen:  # a merge can give two others the neighbour that both meet
        n_chosen, unconfirmed = len(chosen), []
        for proposal in left:
            confirmed = _confirm(proposal, neighbours, chosen)
            ends = {proposal.title, _end(proposal.into, chosen)}
            if confirmed is None:
                unconfirmed.append(proposal)
            elif proposal.title not in chosen and len(ends) == 2 and not _parts(ends, apart, chosen):
                chosen[proposal.title] = confirmed
        left = unconfirmed
    return {title: replace(merge, into=_end(merge.into, chosen)) for title, merge in chosen.items()}


def _end(title: str, chosen: Mapping[str, Merge]) -> str:
    while title in chosen:
        title = chosen[title].into
    return title


def _parts(ends: set[str], apart: Collection[tuple[str, str]], chosen: Mapping[str, Merge]) -> bool:
    """Whether titles merged into one end are kept apart from titles merged into the other."""
    return any({_end(a, chosen), _end(b, chosen)} == ends for a, b in apart)


def _confirm(proposal: Merge, neighbours: Mapping[str, set[str]], chosen: Mapping[str, Merge]) -> Merge | None:
    """Return a proposal with its whole evidence; None if it needs a neighbour that both titles meet and has none."""
    if not proposal.needs_neighbour:
        return proposal
    titles = (proposal.title, proposal.into)
    ours, theirs = ({_end(one, chosen) for one in neighbours.get(title, ())} for title in titles)
    if _end(proposal.into, chosen) in ours:
        return None  # titles related to each other are two entities
    shared = sorted(ours & theirs)
    if not shared:
        return None
    return replace(proposal, evidence=f"{proposal.evidence}; both meet {', '.join(shared[:3])}")


def explain_tie(form: str, name: str) -> Merge:
    """Return the merge, with rule and evidence, by which one document tied a written form to `name`."""
    title, into = normalize_title(form), normalize_title(name)
    if is_date(name):
        return Merge(title, into, "date", "the same day", 1.0)
    if title.removesuffix("'S") == into:
        return Merge(title, into, "possessive", f"possessive of {into}", 0.98)
    if fold_title(title) == fold_title(into):
        return Merge(title, into, "unicode", f"same {describe_fold(title)}", 0.99)
    if " " not in title and is_acronym_of(form, name):
        return Merge(title, into, "acronym", f"initials of {into} in one document", 0.97)
    return Merge(title, into, "alias", f"stands for {into} in one document", 0.95)


def types_agree(a: str, b: str) -> bool:
    """Whether one entity can have both types."""
    return a == b or UNKNOWN in (a, b)


def numbers_of(title: str) -> list[str]:
    """Return the Arabic and Roman numbers in a title; titles with different numbers are different entities."""
    return _NUMBER.findall(title)


def describe_fold(title: str) -> str:
    """Return what `fold_title` changes in a title, for the evidence of a merge."""
    return "in simplified characters" if has_han(title) else "without accents and punctuation"


def fold_title(title: str) -> str:
    """Return a title without accents and punctuation, in simplified Chinese characters."""
    plain = title
    if not title.isascii():  # else it has none of these, and there are millions of titles
        plain = "".join(c for c in unicodedata.normalize("NFD", simplify(title)) if not unicodedata.combining(c))
    return _PUNCTUATION.sub(" ", plain.replace(".", "")).strip()
