"""Sentence forms: whether a sentence is complete without its context, and how well it reads alone.

By rule, without a model. Rules with word lists are for English, some also for other languages. Forms of the last
`MAX_REMEMBERED` sentences are cached, because a sentence occurs in descriptions of all entities that it names and in
reports on every level.

Keep out: comparison of sentences.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from graphrag_pipeline.text.languages import CJK, simplify

LEANING = 0.7
TALK = 0.6
OPEN_QUOTE = 0.5
SHORT, MIN_WORDS = 0.5, 12
LONG, MAX_WORDS = 0.5, 40
MAX_TAG_WORDS = 4
"""Most words around the quotations of an exclamation: "cried the old man"."""
MAX_REMEMBERED = 262_144
MAX_REMEMBERED_LENGTH = 1_000  # characters; longer texts are not cached, so that memory stays bounded

_SPACED = rf"[^\W_{CJK}]"
_WORD = re.compile(rf"[{CJK}]|{_SPACED}+(?:['\u2019]{_SPACED}+)*")
"""A character of Chinese or Japanese, also behind a digit or a Latin letter, or a word of another script."""
_ASCII_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*", re.ASCII)
"""The same in a text of ASCII alone, which most are: it takes a third of the time."""
_CJK_CHARACTER = re.compile(f"[{CJK}]")
_TERMINAL = re.compile(r"[.!?\u2026\u3002\uff01\uff1f][\"'\u2019\u201d)\]\u300d\u300f*_]*$")
_OPENERS = "\"'\u2018\u201c([\u300c\u300e_*\u2014-\u00bf\u00a1 "
_SMALL_WORDS = frozenset(
    ("a", "an", "and", "as", "at", "but", "by", "de", "des", "du", "for", "from", "in", "into", "la", "le", "nor", "of",
     "on", "or", "the", "to", "van", "von", "with")
)  # fmt: skip
_TALK = re.compile(r"^[^\w]*[\"'\u2018\u201c\u00ab]|\bI\b|[!?][^\w!?]*+$|\b(?i:me|my|mine|we|us|our|you|your|yours)\b")
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
    )\b|[^\w]*(?:[\u4ed6\u5979\u5b83\u8fd9\u90a3\u4f46]|\u4e8e\u662f|\u53ef\u662f|\u56e0\u6b64|\u6240\u4ee5)""",
    re.IGNORECASE | re.VERBOSE,
)
_POINTS_BACK = re.compile(
    r"\b(?:the\ same\b(?!\ (?:as|time|way|day|year))|the\ (?:former|latter)|such\ a\ thing)\b", re.VERBOSE
)

_QUOTES = "\"'\u2018\u2019\u201a\u201c\u201d\u201e\u00ab\u00bb\u300c\u300d\u300e\u300f"
_SPEECH = re.compile(
    r"(?:(?<![^\s(\u2014-])['\u2018](?=\w)|[\"\u201c\u201e\u00ab\u300c\u300e])"
    r".*?(?:(?<=[.,!?;\u2026\u2014-])['\u2019](?!\w)|(?<=\W)[\"\u201d\u201c\u00bb\u300d\u300f]|$)"
)
_STARTS_AS_SPEECH = re.compile(rf"[\s\u2014-]*[{_QUOTES}]")
_ENDS_AS_CRY = re.compile(rf"[!?\uff01\uff1f][{_QUOTES}]*$")


@dataclass(frozen=True, slots=True)
class SentenceForm:
    """Folded words of a sentence, its weight (1 = reads well alone), and whether it is a complete sentence."""

    wording: str
    weight: float
    is_sentence: bool


def form_of(text: str) -> SentenceForm:
    return _remember_form(text) if len(text) <= MAX_REMEMBERED_LENGTH else _read_form(text)


def _read_form(text: str) -> SentenceForm:
    stripped = text.strip()
    words = _WORD.findall(stripped)
    return SentenceForm(fold(" ".join(words)), _weigh_form(text), _can_stand_alone(stripped, words))


_remember_form = lru_cache(MAX_REMEMBERED)(_read_form)


def is_sentence(text: str) -> bool:
    """Whether a text is a complete sentence: not a heading, list item, table row or fragment.

    A sentence starts and ends like one, has at least 4 words (6 characters in scripts without spaces), and is not
    capitalized like a title. From 7 words on, it may lack the full stop, unless its last word is one such as "of".
    """
    return form_of(text).is_sentence


def _can_stand_alone(text: str, words: Sequence[str]) -> bool:
    if not words or text[0] in "#|>=*+\u2022" or text[-1] in ":;,-\u2014|\u3001\uff0c\uff1a":
        return False
    is_closed = bool(_TERMINAL.search(text, max(len(text) - 8, 0)))
    if not text.isascii() and _CJK_CHARACTER.search(text):
        return is_closed and len(words) >= 6
    if len(words) < (4 if is_closed else 7) or sum(map(len, words)) < 0.5 * len(text):
        return False
    breaks_off = not is_closed and words[-1] in _SMALL_WORDS
    return not breaks_off and not _starts_midway(text) and not _is_title(words)


def _starts_midway(text: str) -> bool:
    first = text.lstrip(_OPENERS)[:2]
    return not first or (first[0].islower() and not first[1:].isupper()) or not first[0].isalnum()


def _is_title(words: Sequence[str]) -> bool:
    """Whether every word except small ones starts with a capital or a digit."""
    return all(word[0].isupper() or word[0].isdigit() or word in _SMALL_WORDS for word in words)


def leans_on_context(text: str) -> bool:
    """Whether a sentence refers back, by a pronoun or connective at its start, or by words such as "the same".

    For English, and pronouns in Chinese.
    """
    return bool(_LEANING.match(text)) or bool(_POINTS_BACK.search(text))


def is_cry(text: str) -> bool:
    """Whether a text is only direct speech that ends with "!" or "?": "'Why, bless my soul!' cried Fred."

    At most `MAX_TAG_WORDS` words are outside the quotations.
    """
    if not _STARTS_AS_SPEECH.match(text):
        return False
    said = _SPEECH.findall(text)
    n_around = count_words(_SPEECH.sub("", text).strip(" .,\u3002\uff0c")) if said else 0
    return bool(said) and bool(_ENDS_AS_CRY.search(said[-1])) and n_around <= MAX_TAG_WORDS


def weigh_form(text: str) -> float:
    """Return how well a sentence reads alone, by its form: 1 = well."""
    return form_of(text).weight


def _weigh_form(text: str) -> float:
    factor = LEANING if leans_on_context(text) else 1.0
    if _TALK.search(text):
        factor *= TALK
    if has_open_quote(text):
        factor *= OPEN_QUOTE
    n_words = count_words(text)
    if n_words > MAX_WORDS:
        return factor * max(LONG, MAX_WORDS / n_words)
    return factor * (SHORT + (1 - SHORT) * min(n_words / MIN_WORDS, 1.0))


def count_words(text: str) -> float:
    """Count words by spaces; two characters of a script without spaces count as one word."""
    n_spaced = text.count(" ") + 1
    return n_spaced if text.isascii() else n_spaced + len(_CJK_CHARACTER.findall(text)) / 2


def has_open_quote(text: str) -> bool:
    """Whether a quotation mark has no partner."""
    if text.count('"') % 2 or text.count("\u201c") != text.count("\u201d"):
        return True
    if "'" not in text and "\u2018" not in text and "\u2019" not in text:
        return False
    return len(_OPENING_QUOTE.findall(text)) != len(_CLOSING_QUOTE.findall(text))


def find_words(text: str) -> list[str]:
    """Return the words of a text as written; single characters in scripts without spaces."""
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def fold(text: str) -> str:
    """Return a text in the form in which texts are compared: without case, in simplified Chinese characters."""
    if text.isascii():
        return text.lower()
    folded = unicodedata.normalize("NFKC", text).casefold().replace("\u2019", "'")
    return simplify(folded.replace("i\u0307", "i").replace("\u0131", "i"))  # of Turkish: one letter for search
