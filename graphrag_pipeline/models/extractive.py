"""The embedded engine's writer: it does not write, it picks the sentences that say most.

Descriptions, community reports and answers of the embedded engine are sentences of the source, chosen here. The method:

1. candidates: one per distinct wording, real sentences only (`is_sentence`) unless there is none; above
   `MAX_CANDIDATES` those nearest to the mean vector (to the question, if there is one).
2. centrality: LexRank (Erkan and Radev 2004) with cosines as weights, the stationary distribution of a walk between
   sentences that prefers similar ones, damping 0.85. With a question, likeness to it counts first and centrality
   little. A sentence that reads badly alone (`weigh_form`: "She also ...", talk, too short or long) counts less.
3. diversity: maximal marginal relevance (Carbonell and Goldstein 1998), each pick maximises score minus likeness to
   what is already picked. A near-repeat (by vector or by words) is never picked.

The result is a function of the set of sentences: candidates are put in text order first and ties go to the first text,
so the order of arrival does not matter. What a sentence's form says is remembered for the last `MAX_REMEMBERED`, since
a sentence stands in the descriptions of all whom it names and in reports on every level. Keep out: records, citations,
where sentences come from.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from graphrag_pipeline.models.ports import Embedder
from graphrag_pipeline.sentences import split_sentences

MAX_CANDIDATES = 512
DAMPING = 0.85
DIVERSITY = 0.5
QUESTION_SHARE = 0.85
LEANING = 0.7
TALK = 0.6
SHORT, MIN_WORDS = 0.7, 6
LONG, MAX_WORDS = 0.5, 40
NEAR_REPEAT_COSINE = 0.93
NEAR_REPEAT_WORDS = 0.8
MAX_REMEMBERED = 32_768
MAX_REMEMBERED_LENGTH = 1_000  # characters; longer texts are read each time, so that memory stays bounded

_N_STEPS = 30
_DECIMALS = 6
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_CJK}]|[^\W_]+(?:['\u2019][^\W_]+)*")
_CJK_CHARACTER = re.compile(rf"[{_CJK}]")
_TERMINAL = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u2019\u201d)\]\u300d\u300f*_]*$")
_OPENERS = "\"'\u2018\u201c([\u300c\u300e_*\u2014-\u00bf\u00a1 "
_SMALL_WORDS = frozenset(
    ("a", "an", "and", "as", "at", "but", "by", "de", "des", "du", "for", "from", "in", "into", "la", "le", "nor", "of",
     "on", "or", "the", "to", "van", "von", "with")
)  # fmt: skip
_TALK = re.compile(r"^[^\w]*[\"'\u2018\u201c\u00ab]|\bI\b|[!?]\W*$|\b(?i:me|my|mine|we|us|our|you|your|yours)\b")
_OPENING_QUOTE = re.compile(r"(?<![^\s(\u2014-])['\u2018](?=\w)")
_CLOSING_QUOTE = re.compile(r"(?<=[.,!?;\u2014-])['\u2019](?![\w])")
_LEANING = re.compile(
    r"""[^\w]*(?:
      he|she|it|they|him|his|her|hers|its|their|theirs|this|these|those|such|another|both|together
    | and|but|so|or|nor|yet|then|thus|also|however|therefore|moreover|furthermore|additionally|meanwhile|instead
    | nevertheless|nonetheless|hence|overall|ultimately|consequently|similarly|likewise|as\ (?:a\ result|such|well)
    | in\ (?:addition|summary|conclusion|contrast|turn|particular|this|these|that|those|doing\ so|essence|short)
    | (?:through|with|by|from|at|on|during|after|before|despite)\ (?:this|these|that|those|his|her|its|their|doing\ so)
    | for\ (?:example|instance|this|these)|on\ the\ other\ hand
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)


def sentences_of(text: str) -> list[str]:
    """The sentences of a text, in order, white space folded."""
    return list(_remember_sentences(text) if len(text) <= MAX_REMEMBERED_LENGTH else _fold_sentences(text))


def _fold_sentences(text: str) -> tuple[str, ...]:
    pieces = (" ".join(text[start:end].split()) for start, end in split_sentences(text))
    return tuple(piece for piece in pieces if piece)


_remember_sentences = lru_cache(MAX_REMEMBERED)(_fold_sentences)


def embed_distinct(texts: Sequence[str], embedder: Embedder) -> np.ndarray:
    """Vectors of texts, float32 (n texts, dimensions); a repeated text is embedded once."""
    rows: dict[str, int] = {}
    order = [rows.setdefault(text, len(rows)) for text in texts]
    if not rows:
        return np.zeros((0, embedder.dimensions), dtype=np.float32)
    vectors = embedder.embed(list(rows))
    return vectors if len(rows) == len(order) else vectors[order]


@dataclass(frozen=True, slots=True)
class _Form:
    """What the words of a sentence alone say: its wording (folded words), weight and whether it can stand alone."""

    wording: str
    weight: float
    is_sentence: bool


def _form_of(text: str) -> _Form:
    return _remember_form(text) if len(text) <= MAX_REMEMBERED_LENGTH else _read_form(text)


def _read_form(text: str) -> _Form:
    stripped = text.strip()
    words = _WORD.findall(stripped)
    return _Form(_fold(" ".join(words)), _weigh_form(text), _can_stand_alone(stripped, words))


_remember_form = lru_cache(MAX_REMEMBERED)(_read_form)


def is_sentence(text: str) -> bool:
    """Whether a text can stand alone: no heading, list item, table row, fragment or shout.

    It starts like a sentence, ends like one (a text of seven words or more may lack the full stop), has at least four
    words (six characters where words are not spaced) and is not written like a title.
    """
    return _form_of(text).is_sentence


def _can_stand_alone(text: str, words: Sequence[str]) -> bool:
    if not words or text[0] in "#|>=*+\u2022" or text[-1] in ":;,-\u2014|\u3001\uff0c\uff1a":
        return False
    is_closed = bool(_TERMINAL.search(text, max(len(text) - 8, 0)))
    if not text.isascii() and _CJK_CHARACTER.search(text):
        return is_closed and len(words) >= 6
    if len(words) < (4 if is_closed else 7) or sum(map(len, words)) < 0.5 * len(text):
        return False
    return not _starts_midway(text) and not _is_title(words)


def _starts_midway(text: str) -> bool:
    first = text.lstrip(_OPENERS)[:2]
    return not first or (first[0].islower() and not first[1:].isupper()) or not first[0].isalnum()


def _is_title(words: Sequence[str]) -> bool:
    """Every word that counts starts upper case or is a number; scripts without case have no such titles."""
    return all(word[0].isupper() or word[0].isdigit() or word in _SMALL_WORDS for word in words)


def leans_on_context(text: str) -> bool:
    """Whether a sentence opens with a pronoun or connective that points at what came before (English only)."""
    return bool(_LEANING.match(text))


def weigh_form(text: str) -> float:
    """How well a sentence reads alone, 1 = well, by its form; the words of rules that need them are English."""
    return _form_of(text).weight


def _weigh_form(text: str) -> float:
    factor = LEANING if leans_on_context(text) else 1.0
    if _TALK.search(text) or _has_open_quote(text):
        factor *= TALK
    n_words = text.count(" ") + 1
    if n_words > MAX_WORDS:
        return factor * max(LONG, MAX_WORDS / n_words)
    return factor * SHORT if n_words < MIN_WORDS else factor


def _has_open_quote(text: str) -> bool:
    """Whether a quotation is opened and not closed, or closed and not opened."""
    if text.count('"') % 2 or text.count("\u201c") != text.count("\u201d"):
        return True
    if "'" not in text and "\u2018" not in text and "\u2019" not in text:
        return False
    return len(_OPENING_QUOTE.findall(text)) != len(_CLOSING_QUOTE.findall(text))


def words_of(text: str) -> frozenset[str]:
    """The words of a text, folded; single characters where words are not spaced."""
    return frozenset(_WORD.findall(_fold(text)))


def _fold(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")


def is_near_repeat(words: frozenset[str], others: Iterable[frozenset[str]]) -> bool:
    """Whether one of `others` shares most words with `words`, or one holds the other."""
    return any(len(words & other) >= NEAR_REPEAT_WORDS * max(1, min(len(words), len(other))) for other in others)


def rank_sentences(
    sentences: Sequence[str],
    vectors: np.ndarray,
    n: int,
    query: np.ndarray | None = None,
    prior: np.ndarray | None = None,
) -> list[int]:
    """Pick the sentences that say most and repeat least.

    Args:
        sentences: (m,) in any order; repeats allowed.
        vectors: (m, d) one per sentence, rows of length 1 or zero.
        n: most sentences to pick.
        query: (d,) vector of a question; None ranks by centrality alone.
        prior: (m,) positive factors on the score, 1 = neutral, for what the caller knows about a sentence.

    Returns:
        Indices into `sentences`, best first; at most n, fewer where the rest only repeats. Headings and fragments are
        picked only if there is no sentence at all.
    """
    if n < 1:
        return []
    factors = np.array([_form_of(sentence).weight for sentence in sentences])
    if query is not None:  # what answers may well be talk: form decides less
        factors = np.sqrt(factors)
    if prior is not None:
        factors = factors * np.asarray(prior, dtype=np.float64)
    candidates = _pick_candidates(sentences, factors)
    if not candidates:
        return []
    chosen = np.array(candidates, dtype=np.int64)
    rows = np.asarray(vectors, dtype=np.float64)[chosen]
    near = _likeness(rows, rows.sum(axis=0) if query is None else np.asarray(query, dtype=np.float64))
    if len(chosen) > MAX_CANDIDATES:
        kept = np.sort(np.argsort(-np.round(near * factors[chosen], _DECIMALS), kind="stable")[:MAX_CANDIDATES])
        chosen, rows, near = chosen[kept], rows[kept], near[kept]
    similarity = np.clip(rows @ rows.T, 0.0, 1.0)
    score = _scale(_centrality(similarity))
    if query is not None:
        score = QUESTION_SHARE * _scale(near) + (1 - QUESTION_SHARE) * score
    score = _scale(score * factors[chosen])
    return [int(chosen[i]) for i in _pick_diverse([sentences[i] for i in chosen], similarity, score, n)]


def _pick_candidates(sentences: Sequence[str], factors: np.ndarray) -> list[int]:
    """One index per distinct wording, in text order; of equal wordings the one with the highest factor."""
    forms = [_form_of(sentence) for sentence in sentences]
    weights = factors.tolist()
    best: dict[str, int] = {}
    for i in sorted(range(len(sentences)), key=lambda i: (-weights[i], sentences[i], i)):
        if forms[i].wording:
            best.setdefault(forms[i].wording, i)
    distinct = sorted(best.values(), key=lambda i: sentences[i])
    return [i for i in distinct if forms[i].is_sentence] or distinct


def _likeness(rows: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Cosines of rows (m, d) to a target (d,), below zero cut off; zeros if the target is zero."""
    length = np.linalg.norm(target)
    return np.clip(rows @ (target / length), 0.0, 1.0) if length > 0 else np.zeros(len(rows))


def _scale(score: np.ndarray) -> np.ndarray:
    """To a maximum of 1, rounded so that ties are ties on any machine."""
    top = score.max(initial=0.0)
    return np.round(score / top, _DECIMALS) if top > 0 else score


def _centrality(similarity: np.ndarray) -> np.ndarray:
    """LexRank with continuous weights: (m, m) cosines in [0, 1] -> (m,) probabilities."""
    m = len(similarity)
    totals = similarity.sum(axis=1, keepdims=True)
    walk = np.where(totals > 0, similarity / np.where(totals > 0, totals, 1.0), 1.0 / m)
    rank = np.full(m, 1.0 / m)
    for _ in range(_N_STEPS):
        rank = DAMPING * (rank @ walk) + (1 - DAMPING) / m
    return rank


def _pick_diverse(sentences: Sequence[str], similarity: np.ndarray, score: np.ndarray, n: int) -> list[int]:
    """Maximal marginal relevance over candidates in text order; near-repeats are skipped."""
    words: dict[int, frozenset[str]] = {}
    is_left = np.ones(len(score), dtype=bool)
    nearest = np.zeros(len(score))
    picked: list[int] = []
    while len(picked) < n and is_left.any():
        value = np.round((1 - DIVERSITY) * score - DIVERSITY * nearest, _DECIMALS)
        best = int(np.where(is_left, value, -np.inf).argmax())
        is_left[best] = False
        own = words_of(sentences[best])
        if nearest[best] >= NEAR_REPEAT_COSINE or is_near_repeat(own, words.values()):
            continue
        picked.append(best)
        words[best] = own
        nearest = np.maximum(nearest, similarity[best])
    return picked
