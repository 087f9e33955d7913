"""Terms inside longer terms, and forms that name the same thing as another term of the document.

A word that nearly always belongs to a longer term is not a term of its own: "mellitus" of "diabetes mellitus". It gives
way to the longest-lived phrase with it, whatever the number of phrases. A gerund is another form of its noun
("vacuuming", "vacuum"), and so is a program with its kind ("slurmd daemon", "slurmd"). An adjective alone is short for
the phrase that it mostly begins ("the primary" for "primary server").

Keep out: scores of terms (`concepts.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from graphrag_pipeline.indexing.extraction.names.terms.background import UNKNOWN_RANK, english_rank
from graphrag_pipeline.indexing.extraction.names.terms.concept_words import GENERAL, VAGUE_FIRST
from graphrag_pipeline.indexing.extraction.names.terms.word_forms import (
    has_adverb,
    may_be_adjective,
    may_be_verb,
    singular_of,
)
from graphrag_pipeline.indexing.extraction.names.terms.word_uses import MAX_PHRASE_WORDS, WordUses

_MIN_NESTED_SHARE = 0.75  # of the occurrences of a word
_MIN_ELLIPSIS_SHARE = 0.5  # of the phrases that an adjective begins
_ROUTES = frozenset({"oral", "intravenous", "topical", "intramuscular", "subcutaneous", "systemic", "daily"})
_KINDS = frozenset({"command", "daemon", "program", "utility", "tool", "function", "process", "package"})

Phrase = tuple[str, ...]


def replace_nested(
    words: Iterable[str], c_values: Mapping[Phrase, float], uses: WordUses
) -> tuple[list[str], list[Phrase]]:
    """Return the words that are terms of their own, and the phrases that the others belong to.

    Args:
        words: candidates of one word, best first.
        c_values: phrase -> C-value, of all phrases that reach the least one.
    """
    around: defaultdict[str, list[Phrase]] = defaultdict(list)
    for phrase in c_values:
        for word in set(phrase):
            around[word].append(phrase)
    nested = _count_nested(c_values, uses)
    kept: list[str] = []
    phrases: dict[Phrase, None] = {}
    for word in words:
        if nested[word] >= _MIN_NESTED_SHARE * uses.total[word] and around[word]:
            phrases[min(around[word], key=lambda phrase: (-c_values[phrase], phrase))] = None
        else:
            kept.append(word)
    return kept, list(phrases)


def _count_nested(c_values: Mapping[Phrase, float], uses: WordUses) -> Counter[str]:
    """Return how often each word is in a phrase of the document."""
    pairs = {pair for phrase in c_values for pair in pairwise(phrase)}
    nested: Counter[str] = Counter()
    for run, n in uses.runs.items():
        folded = (*run[:-1], singular_of(run[-1], uses.plurals) or run[-1])
        found = {word for pair in pairwise(folded) if pair in pairs for word in pair}
        nested.update(dict.fromkeys(found, n))
    return nested


def complete_term(word: str, uses: WordUses) -> tuple[str, ...]:
    """Return a word with the words that the document always writes before it: "focal cortical dysplasia"."""
    words: tuple[str, ...] = (word,)
    while len(words) < MAX_PHRASE_WORDS and (before := _word_before(words, uses)):
        words = (before, *words)
    return words


def _word_before(words: tuple[str, ...], uses: WordUses) -> str:
    """Return the only word before others, if it describes them: an adjective, or a noun that is no verb; else ""."""
    runs = [(run, n, place) for run, n in uses.runs.items() if (place := _place_of(words, run)) >= 0]
    before = {run[place - 1] if place else "" for run, _, place in runs}
    first = min(before) if len(before) == 1 else ""
    n_runs = sum(n for _, n, _ in runs)
    if not first or first in _ROUTES or first.upper() in VAGUE_FIRST | GENERAL or n_runs != uses.total[words[-1]]:
        return ""
    is_noun = english_rank(first) is not None and not (may_be_verb(first) or first.endswith(("s", "ing", "ed")))
    is_noun = is_noun or first.endswith("us")  # "corpus callosotomy"
    return first if is_noun or may_be_adjective(first) else ""


def _place_of(words: tuple[str, ...], run: tuple[str, ...]) -> int:
    """Return where words begin in a run; -1 if they are not in it."""
    if words[0] not in run:
        return -1
    return next((n for n in range(len(run)) if run[n : n + len(words)] == words), -1)


def fold_forms(terms: Mapping[str, Sequence[str]], uses: WordUses) -> dict[str, list[str]]:
    """Return the terms with their written variants, with gerunds and adjectives among the variants of other terms.

    Args:
        terms: term -> its written variants, in order.
    """
    folded = {term: list(variants) for term, variants in terms.items()}
    for term in terms:
        other = (
            _noun_of_gerund(term, terms, uses) or _phrase_of_adjective(term, terms, uses) or _name_of_kind(term, terms)
        )
        if other:
            folded[other] = sorted({*folded[other], *folded.pop(term)})
    return folded


def _name_of_kind(term: str, terms: Mapping[str, Sequence[str]]) -> str | None:
    """Return the name of a program that a term gives with its kind: "slurmd" of "slurmd daemon"."""
    name, _, kind = term.partition(" ")
    return name if kind in _KINDS and name in terms and english_rank(name) is None else None


def _noun_of_gerund(term: str, terms: Mapping[str, Sequence[str]], uses: WordUses) -> str | None:
    """Return the term that a commoner word than its gerund is; one with a plural ("buildings") is a thing itself."""
    stem = term.removesuffix("ing")
    if stem == term or term in uses.plurals:
        return None
    rank = english_rank(term) or UNKNOWN_RANK
    bases = (stem, f"{stem}e", stem[:-1] if stem[-2:-1] == stem[-1:] else stem)
    known = (base for base in bases if base in terms and uses.total[base] > uses.total[term])
    return next((base for base in known if (english_rank(base) or UNKNOWN_RANK) < rank), None)


def _phrase_of_adjective(term: str, terms: Mapping[str, Sequence[str]], uses: WordUses) -> str | None:
    """Return the phrase of two words that an adjective mostly begins, if it is a term."""
    if " " in term or not has_adverb(term):
        return None
    begun: Counter[str] = Counter()
    for run, n in uses.runs.items():
        for first, second in pairwise(run):
            if first == term:
                begun[singular_of(second, uses.plurals) or second] += n
    noun, n = begun.most_common(1)[0] if begun else ("", 0)
    phrase = f"{term} {noun}"
    return phrase if phrase in terms and n >= _MIN_ELLIPSIS_SHARE * begun.total() else None
