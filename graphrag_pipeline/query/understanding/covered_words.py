"""Words of a question that texts do not have, nor any word of near meaning: the sign that an index has no answer.

"What is Scrooge's telephone number?" is near to many texts by its names, and none says "telephone" or anything like it.
A word is missing if no text has its stem and no word of the texts has a cosine of `NEAR` or more to it (static
vectors). Names of entities are left out: whether a text has a name says little about the rest of the question. A
question is not covered if the missing words have at least `MISSING_SHARE` of the weight of its other words; the weight
of a word is its rarity among the sentences. So one missing word of a long question does not count. Of "Whom did Bob
love, and who haunted Scrooge?" it is enough if one part is covered.

Of a question for the holder of a role ("Scrooge's dentist") only texts with the names count, since another person's
dentist answers nothing. A role with a known direction (`roles.py`) is missing unless the texts have it, the role of the
other person, or its verb: vectors put all relatives near to each other.

Chosen on the sample and on three texts written for it. `NEAR`: of the words of questions that these texts answer in
other words, "earn" has 0.68 and "employer" 0.72; of words without an answer, "telephone" has 0.57 and "computer" 0.58.
Vectors and stems are English, so a question in another language is always covered. Keep out: what an answer says
instead.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, is_english, is_function_word, stem, topic_words
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.understanding.asked_name import read_asked_name
from graphrag_pipeline.query.understanding.question_analysis import read_name_words
from graphrag_pipeline.query.understanding.roles import find_role
from graphrag_pipeline.text.extractive import words_of
from graphrag_pipeline.text.sentences import split_sentences

NEAR = 0.6
MISSING_SHARE = 0.4
_NEXT_QUESTION = re.compile(
    r"\?\s+(?=\w)|,?\s+and\s+(?=(?:who|whom|whose|what|when|where|which|why|how)\b)", re.IGNORECASE
)


@dataclass(frozen=True)
class Coverage:
    """How far texts have the words of a question.

    Attributes:
        missing: the missing words, as the question writes them in small letters, in alphabetical order.
        share: of the weight of the words besides names, 0-1.
    """

    missing: tuple[str, ...] = ()
    share: float = 0.0

    @property
    def is_covered(self) -> bool:
        return self.share < MISSING_SHARE

    def describe(self) -> str:
        """Return the missing words in quotation marks, such as `"telephone" or "number"`."""
        return " or ".join(f'"{word}"' for word in self.missing)


def texts_of(units: Sequence[TextUnitRecord]) -> list[str]:
    """Return text units under the titles of their documents, as `measure_coverage` reads them."""
    return [f"{unit.document_title}\n\n{unit.text}" for unit in units]


def measure_coverage(index: IndexReader, question: str, texts: Sequence[str]) -> Coverage:
    """Return which words of a question texts do not have; of several questions in one, of the one they cover best."""
    if not texts or not is_english(question):
        return Coverage()
    sentences_of = {text: [words_of(text[start:end]) for start, end in split_sentences(text)] for text in texts}
    parts = filter(None, _NEXT_QUESTION.split(question))
    measured = (_measure_part(index, part, texts, sentences_of) for part in parts)
    return min(measured, key=lambda coverage: coverage.share)


def _measure_part(
    index: IndexReader, question: str, texts: Sequence[str], sentences_of: Mapping[str, Sequence[frozenset[str]]]
) -> Coverage:
    """Measure one question; `sentences_of` has the words of each sentence of each text."""
    names = read_name_words(index, question)
    sought = topic_words(question) - names
    sentences = [words for text in _about(question, names, texts) for words in sentences_of[text]]
    stems = Counter(held for words in sentences for held in set(map(stem, words)))
    absent = sorted(word for word in words_of(question) if stem(word) in sought and not stems[stem(word)])
    missing = _find_missing(index, absent, frozenset().union(*sentences), frozenset(stems))
    if not missing:
        return Coverage()
    weights = {word: math.log(1 + (len(sentences) + 8) / (stems[word] + 0.5)) for word in sorted(sought)}
    lost = sum(weights[word] for word in sorted({stem(word) for word in missing}))
    return Coverage(tuple(missing), lost / sum(weights.values()))


def _about(question: str, names: frozenset[str], texts: Sequence[str]) -> Sequence[str]:
    """Return the texts that have the names of a question for the holder of a role; all, if none has them."""
    asked = read_asked_name(question, names)
    if asked is None or not asked.is_role:
        return texts
    return [text for text in texts if asked.anchors <= content_words(text)] or texts


def _find_missing(index: IndexReader, absent: Sequence[str], words: frozenset[str], stems: frozenset[str]) -> list[str]:
    """Return the absent words that no word of the texts stands for."""
    roles = {word: find_role(stem(word)) for word in absent}
    others = [word for word in absent if roles[word] is None]
    far = {word for word, role in roles.items() if role and not role.related & stems}
    vocabulary = sorted(word for word in words if not is_function_word(word))
    if others and vocabulary:
        nearness = (index.embed_passages(others) @ index.embed_passages(vocabulary).T).max(axis=1)
        others = [word for word, cosine in zip(others, nearness.tolist(), strict=True) if cosine < NEAR]
    return sorted(far.union(others))
