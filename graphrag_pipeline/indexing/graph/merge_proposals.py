"""Proposals of entity resolution: titles that may name the same entity, by one rule each.

A proposal reads titles, types and numbers of mentions only. Where a name alone is not enough evidence, the proposal
needs an entity that both meet; `resolution.py` has the relationships and decides. Add another rule here. Keep out:
rules that compare vectors (`semantic_resolution.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from itertools import combinations
from types import MappingProxyType

from graphrag_pipeline.indexing.graph.resolution import (
    RULES,
    Merge,
    TitleRecord,
    describe_fold,
    fold_title,
    numbers_of,
    types_agree,
)
from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.name_words import (
    CONCEPT,
    FEMALE_GIVEN_NAMES,
    FEMALE_HONORIFICS,
    GEO,
    GIVEN_NAMES,
    LEGAL_SUFFIXES,
    MALE_HONORIFICS,
    ORGANIZATION,
    PERSON,
    UNKNOWN,
    is_acronym_of,
    singular_of,
    split_honorifics,
    to_american,
)
from graphrag_pipeline.text.word_ranks import token_rank

MIN_FUZZY_LENGTH = 10  # characters of the whole title
MIN_FUZZY_WORD = 6  # characters of the words that differ
MAX_FUZZY_BLOCK = 500  # titles compared with each other; the start or end of a larger block is too common
_FUZZY_KEY = 5  # one typing error in ten letters does not change both the first and the last five
_DEGREES = frozenset({"DR", "DOCTOR", "PROF", "PROFESSOR"})
_MIN_SURNAME_RANK = 100_000  # of a token; a commoner surname has several people
_MAX_ACRONYM = 10  # characters
_QUALIFIED = late_regex(r"(.+) \([^()]+\)")
_ARABIC = late_regex(r"(?:AL|EL)[- ](\p{L}[\p{L}'’ʿʾ-]{3,})")
_ARABIC_VOWELS = (("AE", "AI"), ("EI", "AI"), ("OU", "U"), ("OO", "U"), ("EE", "I"))
_WITH_ACRONYMS = frozenset({ORGANIZATION, CONCEPT})
_WELL_KNOWN = {
    "UNITED STATES": ("US", "U.S.", "USA", "U.S.A.", "UNITED STATES OF AMERICA"),
    "UNITED KINGDOM": ("UK", "U.K."),
    "UNITED NATIONS": ("UN", "U.N."),
    "EUROPEAN UNION": ("EU", "E.U."),
    "UNITED ARAB EMIRATES": ("UAE", "U.A.E."),
    "ATLANTIC OCEAN": ("ATLANTIC",),
    "PACIFIC OCEAN": ("PACIFIC",),
    "MEDITERRANEAN SEA": ("MEDITERRANEAN",),
    "SOVIET UNION": ("USSR", "U.S.S.R."),
}
_SMALL_WORDS = frozenset({"OF", "THE", "AND", "FOR", "ON", "IN", "&", "DE", "DES", "DU", "LA"})


def propose_merges(
    records: Iterable[TitleRecord],
    rules: Collection[str] = RULES,
    ties: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> list[Merge]:
    """Propose merges by the rules that apply, ordered by rule and title.

    Args:
        ties: title of a written form -> titles that documents tied it to, see `explain_tie`.
    """
    by_title = {record.title: record for record in sorted(records, key=lambda record: record.title)}
    proposals: list[Merge] = []
    for rule, propose in (
        ("unicode", _propose_unicode),
        ("possessive", _propose_possessives),
        ("alias", _propose_aliases),
        ("alias", _propose_transliterated),
        ("alias", _propose_qualified),
        ("alias", _propose_persons),
        ("alias", _propose_terms),
        ("acronym", partial(_propose_defined, ties=ties)),
        ("acronym", _propose_acronyms),
        ("acronym", _propose_well_known),
        ("fuzzy", _propose_fuzzy),
    ):
        if rule in rules:
            proposals.extend(propose(by_title))
    return [p for p in proposals if types_agree(by_title[p.title].type, by_title[p.into].type)]


def _propose_unicode(records: Mapping[str, TitleRecord]) -> Iterator[Merge]:
    first: dict[str, str] = {}  # most titles are alone with their form, and need no list
    groups: dict[str, list[str]] = {}
    for title in records:
        folded = fold_title(title)
        if folded and first.setdefault(folded, title) != title:
            groups.setdefault(folded, [first[folded]]).append(title)
    for folded, titles in groups.items():
        into = min(titles, key=lambda title: (-records[title].n_mentions, title))
        for title in titles:
            if title != into:
                yield Merge(title, into, "unicode", f"both are {folded!r} {describe_fold(title)}", 0.99)


def _propose_possessives(records: Mapping[str, TitleRecord]) -> Iterator[Merge]:
    for title in records:
        owner = title.removesuffix("'S") if title.endswith("'S") else title.removesuffix("'")
        if owner != title and owner in records and records[owner].type == records[title].type:
            yield Merge(title, owner, "possessive", f"possessive of {owner}", 0.98)


def _propose_aliases(records: Mapping[str, TitleRecord]) -> Iterator[Merge]:
    """Propose "THE BEATLES" -> "BEATLES" and "APPLE INC" -> "APPLE"."""
    for title, record in records.items():
        bare = title.removeprefix("THE ")
        if bare != title and bare in records:
            yield Merge(title, bare, "alias", "the article makes no difference", 0.98)
        words = title.replace(",", "").rstrip(".").split()
        short = " ".join(words[:-1])
        if words and words[-1] in LEGAL_SUFFIXES and short in records and record.type == ORGANIZATION:
            yield Merge(title, short, "alias", f"{words[-1]} is only the legal form", 0.95)


def _propose_transliterated(records: Mapping[str, TitleRecord]) -> Iterator[Merge]:
    """Propose "AL-QAIDA" -> "AL QAEDA": Arabic names with the article, whose vowels have several Latin spellings."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for title in records:
        if match := _ARABIC.fullmatch(title):
            letters = "".join(letter for letter in match.group(1) if letter.isalpha())
            for spelling, vowel in _ARABIC_VOWELS:
                letters = letters.replace(spelling, vowel)
            groups[letters].append(title)
    for titles in groups.values():
        into = min(titles, key=lambda title: (-records[title].n_mentions, title))
        for title in titles:
            if title != into:
                yield Merge(title, into, "alias", f"other Latin spelling of {into}", 0.93)


def _propose_qualified(records: Mapping[str, TitleRecord]) -> Iterator[Merge]:
    """Propose "BENO ZAX" -> "BENO ZAX (FILM)" if this is the only document title with the name and a qualifier."""
    qualified: defaultdict[str, list[str]] = defaultdict(list)
    for title, record in records.items():
        if record.is_about and (match := _QUALIFIED.fullmatch(title)):
            qualified[match.group(1)].append(title)
    for bare, titles in qualified.items():
        if len(titles) == 1 and bare in records and not records[bare].is_about and records[bare].type != GEO:
            yield Merge(bare, titles[0], "alias", "the only document of this name", 0.85)


def _propose_persons(records: Mapping[str, TitleRecord]) -> Iterator[Merge]:
    """Propose "SCROOGE" and "MR. SCROOGE" -> "EBENEZER SCROOGE" if no other full name fits."""
    full = _full_names(records)
    for title, record in records.items():
        if record.type not in (PERSON, UNKNOWN) or "'S " in title:
            continue
        honorifics, rest = split_honorifics(title)
        bare = " ".join(rest)
        candidates = sorted(full[rest[0]] - {title}) if len(rest) == 1 else []
        if _has_female_address(honorifics):
            pass
        elif len(candidates) == 1 and not _is_address(candidates[0]):
            evidence = f"{candidates[0]} is the only full name with {rest[0]}"
            yield Merge(title, candidates[0], "alias", evidence, 0.9, needs_neighbour=True)
        elif honorifics and bare in records and records[bare].type == PERSON:
            yield Merge(
                title, bare, "alias", f"{' '.join(honorifics)} is only the form of address", 0.9, needs_neighbour=True
            )
        if _is_addressed(honorifics, bare, candidates):
            evidence = f"{candidates[0]} is the only full name with the rare surname {bare}"
            yield Merge(title, candidates[0], "alias", evidence, 0.85)


def _has_female_address(honorifics: Iterable[str]) -> bool:
    return any(word.rstrip(".") in FEMALE_HONORIFICS for word in honorifics)


def _is_address(title: str) -> bool:
    """Whether a title is a form of address with one name, such as "MRS. ZHOU", which is no full name."""
    return len(split_honorifics(title)[1]) == 1


def _is_addressed(honorifics: list[str], surname: str, names: list[str]) -> bool:
    """Whether "Ms. Zhou" is surely the one person of this surname, "Helen Zhou": a rare surname and the same sex."""
    if not honorifics or len(names) != 1:
        return False
    rank = token_rank(surname.capitalize())
    if rank is not None and rank < _MIN_SURNAME_RANK:
        return False
    words = split_honorifics(names[0])[1]
    given, last = words[0], words[-1]
    keys = {word.rstrip(".") for word in honorifics}
    is_female = given in FEMALE_GIVEN_NAMES
    if len(words) < 2 or last != surname or given not in GIVEN_NAMES or len(given) < 2:
        return False
    is_rank = not keys & (MALE_HONORIFICS | FEMALE_HONORIFICS | _DEGREES)  # a woman's namesake: "Captain Rosewarne"
    return not (is_female and is_rank) and not keys & (MALE_HONORIFICS if is_female else FEMALE_HONORIFICS)


def _full_names(records: Mapping[str, TitleRecord]) -> dict[str, set[str]]:
    """Return first or last word -> titles of persons with two or more words.

    "MRS. ZHOU" is among them, because it makes "ZHOU" ambiguous beside "HELEN ZHOU".
    """
    full: defaultdict[str, set[str]] = defaultdict(set)
    for title, record in records.items():
        words = title.split()
        if record.type != PERSON or len(words) < 2 or {"OF", "THE"} & set(words) or "'S " in title:
            continue
        honorifics, rest = split_honorifics(title)
        if len(rest) > 1 or _has_female_address(honorifics):
            full[rest[0]].add(title)
            full[rest[-1]].add(title)
    return full


def _propose_terms(records: Mapping[str, TitleRecord]) -> Iterator[Merge]:
    """Propose "CONTRIBUTIONS" -> "CONTRIBUTION", "COLOR" -> "COLOUR" and "WORKFLOW" -> "WORK FLOW" among terms."""
    groups: defaultdict[str, list[str]] = defaultdict(list)
    lower = {title.lower() for title, record in records.items() if record.type == CONCEPT}
    for title, record in records.items():
        if record.type == CONCEPT:
            singular = (singular_of(title.lower(), lower) or title).upper()
            groups[" ".join(map(to_american, singular.split())).replace(" ", "").replace("-", "")].append(title)
    for titles in groups.values():
        into = min(titles, key=lambda title: (-records[title].n_mentions, title))
        for title in titles:
            if title != into and numbers_of(title) == numbers_of(into):
                yield Merge(title, into, "alias", f"other form of the term {into}", 0.93)


def _propose_defined(records: Mapping[str, TitleRecord], ties: Mapping[str, Collection[str]]) -> Iterator[Merge]:
    """Propose "MRI" -> "MAGNETIC RESONANCE IMAGING" if documents define it so, and none in another way.

    The acronym must have the initials of the long form. Any other alias, such as an agency's acronym behind one of its
    products, holds in the document that has it and renames nothing elsewhere.
    """
    for short, longs in ties.items():
        known = sorted(long for long in longs if long in records and long != short)
        is_short = short in records and " " not in short and len(short) <= _MAX_ACRONYM
        if is_short and len(known) == 1 and records[known[0]].type in _WITH_ACRONYMS and is_acronym_of(short, known[0]):
            yield Merge(short, known[0], "acronym", f"{known[0]} by its definition in another document", 0.9)


def _propose_acronyms(records: Mapping[str, TitleRecord]) -> Iterator[Merge]:
    """Propose "WHO" -> "WORLD HEALTH ORGANIZATION" if no other title of its type has these initials.

    Only organizations and terms have acronyms here, of at least 3 letters. A term that is also a word is none ("SET").
    """
    by_initials: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for title, record in records.items():
        words = _split_term(title) if record.type == CONCEPT else title.split()
        if record.type in _WITH_ACRONYMS and len(words) >= 3:
            by_initials[record.type, "".join(word[0] for word in words)].add(title)
            by_initials[record.type, "".join(word[0] for word in words if word not in _SMALL_WORDS)].add(title)
    for title, record in records.items():
        letters = title.replace(".", "")
        candidates = sorted(by_initials.get((record.type, letters), ())) if len(letters) >= 3 else []
        is_word = record.type == CONCEPT and _is_written_small(letters)
        if len(candidates) == 1 and candidates[0] != title and not is_word:
            kind = "organisation" if record.type == ORGANIZATION else "term"
            evidence = f"initials of {candidates[0]}, no other {kind} has them"
            yield Merge(title, candidates[0], "acronym", evidence, 0.85, needs_neighbour=True)


def _propose_well_known(records: Mapping[str, TitleRecord]) -> Iterator[Merge]:
    """Propose "US" and "U.S." -> "UNITED STATES", which texts write without a definition."""
    for long, shorts in _WELL_KNOWN.items():
        for short in shorts:
            if short in records and long in records:
                yield Merge(short, long, "acronym", f"well-known short form of {long}", 0.9)


def _split_term(title: str) -> list[str]:
    return [word for word in title.replace("-", " ").split() if word[0].isalpha()]


def _is_written_small(letters: str) -> bool:
    """Whether English writes a word more often in lower case than in capitals: "SET", not "DNA"."""
    small, capitals = token_rank(letters.lower()), token_rank(letters)
    return small is not None and (capitals is None or small < capitals)


def _propose_fuzzy(records: Mapping[str, TitleRecord]) -> Iterator[Merge]:
    """Propose titles that differ by one letter in a long word that is not a given name.

    The distance is optimal string alignment: one insertion, deletion, substitution or swap of adjacent letters, as in
    "FEZZIWIGG BROTHERS" -> "FEZZIWIG BROTHERS".
    """
    from rapidfuzz.distance import OSA

    seen: set[tuple[str, str]] = set()
    for block in _fuzzy_blocks(records):
        for a, b in combinations(block, 2):
            if abs(len(a) - len(b)) > 1 or (a, b) in seen or OSA.distance(a, b, score_cutoff=1) != 1:
                continue
            seen.add((a, b))
            if _is_misspelling(a, b):
                into, title = sorted((a, b), key=lambda title: (-records[title].n_mentions, title))
                score = 1 - 1 / max(len(a), len(b))
                yield Merge(title, into, "fuzzy", "one letter apart", round(score, 4), needs_neighbour=True)


def _fuzzy_blocks(records: Mapping[str, TitleRecord]) -> Iterator[list[str]]:
    """Yield titles of one type with equal numbers, equally many words, and an equal start or end."""
    blocks: defaultdict[tuple, list[str]] = defaultdict(list)
    for title, record in records.items():
        if len(title) < MIN_FUZZY_LENGTH or record.type == UNKNOWN:
            continue
        same = (record.type, title.count(" "), *numbers_of(title))
        blocks[("first", title[:_FUZZY_KEY], *same)].append(title)
        blocks[("last", title[-_FUZZY_KEY:], *same)].append(title)
    return (titles for titles in blocks.values() if 1 < len(titles) <= MAX_FUZZY_BLOCK)


def _is_misspelling(a: str, b: str) -> bool:
    differing = [(x, y) for x, y in zip(a.split(), b.split(), strict=True) if x != y]
    if len(differing) != 1:
        return False
    x, y = differing[0]
    if min(len(x), len(y)) < MIN_FUZZY_WORD or x[0] != y[0] or {x, y} & GIVEN_NAMES:
        return False
    return x + "S" != y and y + "S" != x  # a plural: one Cratchit, two Cratchits
