"""Terms of an English document: noun phrases of two to four words that it repeats, such as "connection pool".

A candidate is a run of adjectives, participles and nouns that ends with a noun, by the tags of spaCy. Its score is the
C-value, log2(n words) * (f - mean of f over the longer candidates around it), where f counts its occurrences
(Frantzi, Ananiadou and Mima, Automatic recognition of multi-word terms, 2000), times how rare its words are in English.
A document keeps the best ones, about one for each three square roots of its number of words.

Each document is read alone, so that a new document does not change the terms of another one. Keep out: names.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from graphrag_pipeline.engines.embedded.names.folded_text import FoldedText
from graphrag_pipeline.engines.embedded.names.spacy_pipeline import tag_words
from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.name_words import singular_of
from graphrag_pipeline.text.word_ranks import UNKNOWN_RANK, load_prose_ranks

MAX_WORDS = 4
MIN_COUNT = 2
_QUOTA = 3.0
"""A document of n words keeps sqrt(n) / 3 terms, or those that score twice the least."""
_MIN_RARITY = 0.5
"""Mean of log(rank) of the words of a term against that of a word outside the vocabulary: "old man" has 0.45."""
_MIN_SCORE = 1.2

_WORD = late_regex(r"(?<![\p{L}\p{N}_@/\\.$-])\p{L}[\p{L}\p{M}]+(?:[-'’]\p{L}+)*(?![\p{L}\p{N}_@/\\=(-]|\.\w)")
_BEFORE_NOUN = frozenset({"JJ", "NN", "NNS", "NNP", "NNPS", "VBN", "VBG", "HYPH", "AFX", "FW"})
_NOUN = frozenset({"NN", "NNS"})

Phrase = tuple[str, ...]


def find_terms(folded: FoldedText, taken: Sequence[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Return (start, end, term) of each occurrence of the terms of an English document, in order, without overlap.

    Args:
        taken: (start, end, ...) of the names, in order; a term is outside of them.
    """
    runs = list(_runs(folded.text, [(start, end) for start, end, _ in taken]))
    places: defaultdict[Phrase, list[tuple[int, int]]] = defaultdict(list)
    known = {word for run in runs for _, _, word in run}
    for run in runs:
        words = [word for _, _, word in run]
        for first in range(len(run) - 1):
            for last in range(first + 1, min(first + MAX_WORDS, len(run))):
                phrase = (*words[first:last], singular_of(words[last], known) or words[last])
                places[phrase].append((run[first][0], run[last][1]))
    repeated = {
        phrase: found
        for phrase, found in places.items()
        if len(found) >= MIN_COUNT and _is_rare(phrase) and _c_value(phrase, len(found)) >= _MIN_SCORE
    }
    able = {phrase: repeated[phrase] for phrase in _keep_nouns(folded, repeated)}
    chosen = _choose(able, folded.text.count(" ") + folded.text.count("\n"))
    spans = sorted(((start, end, " ".join(phrase)) for phrase in chosen for start, end in able[phrase]), key=_longest)
    return list(_without_overlap(spans))


def _longest(span: tuple[int, int, str]) -> tuple[int, int]:
    return span[0], -span[1]


def _without_overlap(spans: Iterable[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    place = 0
    for start, end, term in spans:
        if start >= place:
            yield start, end, term
            place = end


def _runs(text: str, taken: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int, str]]]:
    """Yield runs of content words, (start, end, word in small letters), that only single blanks separate."""
    from spacy.lang.en.stop_words import STOP_WORDS

    run: list[tuple[int, int, str]] = []
    names = iter([*taken, (len(text) + 1, len(text) + 1)])
    first, last = next(names)
    for match in _WORD.finditer(text):
        start, end = match.span()
        while last <= start:
            first, last = next(names)
        word = match.group().lower()
        is_content = end <= first and word not in STOP_WORDS and len(word) > 2
        if run and not (is_content and start == run[-1][1] + 1 and text[start - 1] == " "):
            if len(run) > 1:
                yield run
            run = []
        if is_content:
            run.append((start, end, word))
    if len(run) > 1:
        yield run


def _keep_nouns(folded: FoldedText, places: dict[Phrase, list[tuple[int, int]]]) -> list[Phrase]:
    """Return the phrases that are noun phrases where they occur first."""
    numbers = {phrase: folded.sentence_of(found[0][0]) for phrase, found in places.items()}
    sentences = sorted({*numbers.values()})
    spans = [folded.spans[number] for number in sentences]
    tagged = dict(zip(sentences, tag_words([folded.text[slice(*span)] for span in spans]), strict=True))
    able = []
    for phrase, number in numbers.items():
        offset = folded.spans[number][0]
        start, end = places[phrase][0]
        tags = [tag for first, last, tag in tagged[number] if start <= first + offset and last + offset <= end]
        if tags and tags[-1] in _NOUN and all(tag in _BEFORE_NOUN for tag in tags):
            able.append(phrase)
    return able


def _choose(places: dict[Phrase, list[tuple[int, int]]], n_words: int) -> list[Phrase]:
    """Return the phrases with the best scores."""
    around: defaultdict[Phrase, list[int]] = defaultdict(list)
    for phrase, found in places.items():
        for part in _parts(phrase):
            around[part].append(len(found))
    scores = {}
    for phrase, found in places.items():
        longer = around[phrase]
        nested = sum(longer) / len(longer) if longer else 0
        score = _c_value(phrase, len(found) - nested)
        if score >= _MIN_SCORE:
            scores[phrase] = score
    quota = max(round(math.sqrt(n_words) / _QUOTA), 1)
    return sorted(scores, key=lambda phrase: (-scores[phrase], phrase))[:quota]


def _parts(phrase: Phrase) -> Iterator[Phrase]:
    """Yield the phrases of two words or more inside a longer one."""
    for size in range(2, len(phrase)):
        for first in range(len(phrase) - size + 1):
            yield phrase[first : first + size]


def _c_value(phrase: Phrase, count: float) -> float:
    return math.log2(len(phrase)) * count * _rarity(phrase)


def _is_rare(phrase: Phrase) -> bool:
    return _rarity(phrase) >= _MIN_RARITY


@lru_cache(maxsize=1 << 16)
def _rarity(phrase: Phrase) -> float:
    """Return how rare the words of a phrase are in English, 0 (the commonest) to 1 (not in the vocabulary)."""
    ranks = load_prose_ranks()
    logs = [math.log(ranks.get(word, UNKNOWN_RANK)) for word in phrase]
    return sum(logs) / len(logs) / math.log(UNKNOWN_RANK)
