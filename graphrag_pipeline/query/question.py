"""The words of a question: what is searched for, its content words, and whether it names anything specific.

Words are compared by a light English stem. Function words are English and Chinese, with question words of some
neighbouring languages; asking and overview words are English. Keep out: vectors, tables, and names (`names.py`).
"""

from __future__ import annotations

import functools
import re
import unicodedata

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.text.extractive import words_of
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.stems import stem
from graphrag_pipeline.text.structure import remove_invisible

MAX_QUESTION_CHARS = 8_000
_LONG_GAP = re.compile(r"([^\w]{16})[^\w]+")
"""More than 16 characters without a letter or digit: blanks, dots, combining marks. The patterns that read a question
try such a run from each of its characters on, so their time would grow with its square or worse."""
MAX_MARK_CHARS = 12
"""Letters and digits before a repeated question, as in "Question 3: Who is Tiny Tim?"."""

_MEANT = "#%&@*/"
"""Punctuation that belongs to a name, such as C#."""

_FUNCTION_TEXT = """
a about above after again against all also am an and any are aren't as at be because been before being below between
both but by can can't could couldn't did didn't do does doesn't doing don't down during each either else ever few
for from further had has have having he her here hers herself him himself his how i if in into is isn't it
its itself just like many may me might more most much must my myself no nor not now of off on once one
only or other our ours ourselves out over own please same she should since so some still such than that
the their theirs them themselves then there these they this those through to too under until up upon us very was
wasn't we were what what's when where where's which while who who's whom whose why will with without would you your
yours yourself
"""
_FUNCTION_WORDS = frozenset(_FUNCTION_TEXT.split()) | frozenset(
    "的了是谁什么在和与有吗呢吧哪里怎为何及也之他她它我你们这那个誰甚麼什與嗎裡裏為這個們"
)
_FOREIGN_TEXT = """
wer wen wem wessen wo wohin woher wann warum wieso weshalb wie welche welcher welches welchen der das ein eine einen
einem einer ist sind und qui que quoi quel quelle quels quelles où pourquoi quand combien le la les une des et quién
quien qué cuál cual cuándo cuando dónde donde cómo como cuánto el los las una chi che dove quando perché quanto quale
il lo gli della quem onde porque qual wat waar wanneer waarom welke het een
"""
_FOREIGN_WORDS = frozenset(_FOREIGN_TEXT.split())
"""Question words and articles of some neighbouring languages; they count only where a text has no other words, since a
name may look like one.
"""
_ASKING_TEXT = "explain describe list name say said tell show give get let make made mean find know think happen play"
_OVERVIEW_TEXT = """
main major key top important central overall general overview summary summarize summarise outline theme topic
subject point idea insight gist story plot book novel text document corpus collection data dataset article file
report source content material catch last latest recent recently week day month year today news update whole
everything anything something thing entire across here discuss discussed cover covered contain two three pattern
trend common broad moral lesson message character people person place event organization brief briefly
wichtige ereignisse événements acontecimientos importantes 主 要 事 件
"""
_GOING_TO = late_re(r"\b(?:is|are|was|were)?\s+going\s+to\b(?=\s+[a-z])", re.IGNORECASE)
"""A future: "Who is going to open it?" asks who will."""


def read_question(question: str) -> str:
    """Return the part of a question that is searched for: valid Unicode without NUL and outer white space.

    Of a run of more than 16 characters that are no letters or digits, the first 16 are read. Of a question over
    `MAX_QUESTION_CHARS` characters (such as a pasted page) the first and the last half of that many are read: people
    write their question before or after what they paste.

    Raises:
        PipelineError: the question is not a text, or nothing is left of it.
    """
    if not isinstance(question, str):
        raise PipelineError(f"the question is {question!r:.80}: ask something in words")
    text = cut_gaps(remove_invisible(valid_unicode(question)).replace("\0", " ").strip())
    if not text:
        raise PipelineError("the question is empty: ask something in words")
    if len(text) <= MAX_QUESTION_CHARS:
        return text
    half = MAX_QUESTION_CHARS // 2
    return f"{text[:half]}\n{text[-half:]}"


def cut_gaps(text: str) -> str:
    """Return a text with the first 16 characters of each run that has no letter or digit."""
    return _LONG_GAP.sub(r"\1", text)


def valid_unicode(text: str) -> str:
    """Return a text that can be written out: a lone surrogate, as a bad byte on the command line makes, becomes "?"."""
    return text.encode("utf-8", "replace").decode()


def content_words(text: str) -> frozenset[str]:
    """Return the stems of the words that are not function words; single characters in scripts without spaces."""
    return frozenset(map(stem, words_of(text) - _FUNCTION_WORDS))


def topic_words(question: str) -> frozenset[str]:
    """Return the content words that a question is about; its asking words ("describe", "wer") if it has no others."""
    words = words_of(_GOING_TO.sub(" will ", question)) - _FUNCTION_WORDS
    return frozenset(map(stem, words - _FOREIGN_WORDS)) - _ASKING_STEMS or frozenset(map(stem, words))


@functools.lru_cache(maxsize=65_536)
def is_searched(word: str) -> bool:
    """Return whether full text looks for a word of a question: all but function words."""
    return bool(content_words(word)) and word.casefold() not in _FOREIGN_WORDS


_ASKING_STEMS = frozenset(map(stem, _ASKING_TEXT.split()))
_FOREIGN_STEMS = frozenset(map(stem, _FOREIGN_WORDS))
_OVERVIEW_STEMS = frozenset(stem(word) for word in _OVERVIEW_TEXT.split())


_IDENTIFIER = late_re(
    r"(?<![\w.-])(?:(?=\w*[a-zA-Z])\w+(?:[-.]\w+)*[-.]\w*\d\w*|[a-zA-Z]\w*_\w+|\d+(?:\.\d+){2,})(?![\w-]|\.\w)"
)


def fold_question(question: str) -> str:
    """Return a question in the form that its spellings share: without case, punctuation and extra blanks."""
    shown = unicodedata.normalize("NFKC", question).casefold()
    kept = (" " if unicodedata.category(char)[0] == "P" and char not in _MEANT else char for char in shown)
    return " ".join("".join(kept).split())


def repeats_question(question: str, text: str) -> bool:
    """Return whether a sentence is the question itself, perhaps behind a mark such as "Q:"."""
    asked, said = _letters_of(question), "".join(filter(str.isalnum, text.casefold()))
    return bool(asked) and said.endswith(asked) and len(said) - len(asked) <= MAX_MARK_CHARS


@functools.lru_cache(maxsize=64)
def _letters_of(question: str) -> str:
    """Return the folded letters and digits of a question, which each sentence of a context is compared with."""
    return "".join(filter(str.isalnum, question.casefold()))


def is_function_word(word: str) -> bool:
    """Return whether a folded word is a function word of English or Chinese."""
    return word in _FUNCTION_WORDS


def is_asking_word(word: str) -> bool:
    """Return whether a folded word only asks, such as "describe" or "wer"."""
    return stem(word) in _ASKING_STEMS | _FOREIGN_STEMS


def is_overview_word(word: str) -> bool:
    """Return whether a folded word asks for an overview, such as "summary", or only asks."""
    return stem(word) in _OVERVIEW_STEMS or is_asking_word(word)


def is_latin(question: str) -> bool:
    """Return whether at least half of the letters are of the Latin script."""
    letters = [character for character in question if character.isalpha()]
    n_latin = sum(character < "\u0250" or "\u1e00" <= character < "\u1f00" for character in letters)
    return 2 * n_latin >= len(letters)


def find_identifiers(question: str) -> list[str]:
    """Return the names in a question that are written in one way only, such as a code, a snake_case name, a version."""
    return list(dict.fromkeys(_IDENTIFIER.findall(question)))


def is_overview(question: str) -> bool:
    """Return whether a question names nothing specific, such as "What are the main themes?"."""
    return bool(words_of(question)) and topic_words(question) <= _OVERVIEW_STEMS
