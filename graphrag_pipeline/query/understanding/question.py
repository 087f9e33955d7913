"""Reading a question without a model: what is searched for, its content words, and the entity names it says.

Static vectors blur single names, so a name that the question says in full counts before any vector (`NameIndex`), in
any script. Words are compared by a light English stem. Function words are English and Chinese, with question words
of some neighbours; asking and overview words are English. Keep out: vectors, tables.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.storage.lookups import NAME_WORD, find_all_rows, find_rows, name_arrays
from graphrag_pipeline.text.extractive import words_of

MAX_QUESTION_CHARS = 8_000
MAX_NAME_WORDS = 8

_SPACE = re.compile(r"\s+")
_APOSTROPHES = str.maketrans(dict.fromkeys("\u2018\u2019\u201b\u02bc`\u00b4", "'"))
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
    "的了是谁什么在和与有吗呢吧哪里怎为何及也之他她它我你们这那个"
)
_FOREIGN_TEXT = """
wer wen wem wessen wo wohin woher wann warum wieso weshalb wie welche welcher welches welchen der das ein eine einen
einem einer ist sind und qui que quoi quel quelle quels quelles où pourquoi quand combien le la les une des et quién
quien qué cuál cual cuándo cuando dónde donde cómo como cuánto el los las una chi che dove quando perché quanto quale
il lo gli della quem onde porque qual wat waar wanneer waarom welke het een
"""
_FOREIGN_WORDS = frozenset(_FOREIGN_TEXT.split())
"""Question words and articles of some neighbours; a name may look like one, so they count where nothing else does."""
_ASKING_TEXT = "explain describe list name say said tell show give get let make made mean find know think happen play"
_OVERVIEW_TEXT = """
main major key top important central overall general overview summary summarize summarise outline theme topic
subject point idea insight gist story plot book novel text document corpus collection data dataset article file
report source content material catch last latest recent recently week day month year today news update whole
everything anything something thing entire across here discuss discussed cover covered contain two three pattern
trend common broad moral lesson message character people person place event organization brief briefly
wichtige ereignisse événements acontecimientos importantes 主 要 事 件
"""


def read_question(question: str) -> str:
    """What of a question is searched for: valid Unicode without NUL and outer white space, its two ends if it is long.

    Of a question over `MAX_QUESTION_CHARS` characters (a pasted page, say) the first and the last half of that many are
    read: people ask before or after what they paste.

    Raises:
        PipelineError: it is no text, or nothing is left.
    """
    if not isinstance(question, str):
        raise PipelineError(f"the question is {question!r:.80}: ask something in words")
    text = valid_unicode(question).replace("\0", " ").strip()
    if not text:
        raise PipelineError("the question is empty: ask something in words")
    if len(text) <= MAX_QUESTION_CHARS:
        return text
    half = MAX_QUESTION_CHARS // 2
    return f"{text[:half]}\n{text[-half:]}"


def valid_unicode(text: str) -> str:
    """A text that can be written out: a lone surrogate, as a bad byte on the command line makes, becomes "?"."""
    return text.encode("utf-8", "replace").decode()


def content_words(text: str) -> frozenset[str]:
    """Stems of the words that are not function words; single characters where words are not spaced."""
    return frozenset(stem(word) for word in words_of(text) if word not in _FUNCTION_WORDS)


def asked_words(question: str) -> frozenset[str]:
    """The content words that say what a question is about; words that ask ("describe", "wer") if none is left."""
    words = content_words(question)
    return words - _ASKING_STEMS or words


@functools.lru_cache(maxsize=65_536)
def is_searched(word: str) -> bool:
    """Whether full text looks for a word of a question: all but function words."""
    return bool(content_words(word)) and word.casefold() not in _FOREIGN_WORDS


def stem(word: str) -> str:
    """A folded word without possessive, plural and common verb endings; at least three letters stay."""
    word = word.removesuffix("'s").removesuffix("'")
    for ending, replacement in (("ies", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + replacement
            break
    return word.removesuffix("e") if len(word) > 3 and word[-2] != word[-3] else word  # belle is no bell


_ASKING_STEMS = frozenset(stem(word) for word in _ASKING_TEXT.split()) | {stem(word) for word in _FOREIGN_WORDS}
_OVERVIEW_STEMS = frozenset(stem(word) for word in _OVERVIEW_TEXT.split())


def is_overview(question: str) -> bool:
    """Whether a question names nothing that could tell one report from another, such as "What are the main themes?"."""
    return bool(words_of(question)) and asked_words(question) <= _OVERVIEW_STEMS


@dataclass(frozen=True)
class NamedSpan:
    """Words of a question that are the name of an entity.

    Attributes:
        start, end: of the words, end exclusive.
        rows: of the entities that bear the name.
        is_capital: one of the words starts with a capital, a digit or a letter of a script without capitals.
    """

    start: int
    end: int
    rows: tuple[int, ...]
    is_capital: bool


@dataclass(frozen=True)
class NamedQuestion:
    """A question taken apart: whom it names, and what it asks about them.

    Attributes:
        names: rows of the entities that bear each name, in reading order.
        words: what else it says, folded, in order: no name and no function word.
    """

    names: tuple[tuple[int, ...], ...]
    words: tuple[str, ...]


class NameIndex:
    """Rows of entities by name.

    Args:
        titles: one per entity.
        names: the written forms of each entity, besides its title.
    """

    def __init__(self, titles: Sequence[str], names: Iterable[Sequence[str]]) -> None:
        self._hashes, self._rows = name_arrays(titles, names)
        self._spans_of = functools.lru_cache(maxsize=64)(self._read)  # the steps of a search ask for the same one

    @classmethod
    def stored(cls, hashes: np.ndarray, rows: np.ndarray) -> NameIndex:
        """The index of a snapshot, from its arrays (see `storage.lookups`)."""
        index = cls([], [])
        index._hashes, index._rows = hashes, rows
        return index

    def find(self, question: str) -> list[int]:
        """Rows of the entities whose name the question says in full, longest name first, then in reading order.

        A name inside a longer one that is found (CHRISTMAS in GHOST OF CHRISTMAS PAST) does not count, and neither does
        one made of stop words. A leading article and a possessive make no difference.
        """
        return list(dict.fromkeys(row for span in self._spans_of(question)[1] for row in span.rows))

    def take_apart(self, question: str) -> NamedQuestion:
        """Whom a question names, and what else it says.

        Where it writes a name with a capital, a word in small letters is none: "the director of film Blood Street" asks
        for a director, it does not name the concept DIRECTOR. Names do not overlap.
        """
        words, found = self._spans_of(question)
        is_covered = [False] * len(words)
        spans = []
        has_capital = any(span.is_capital for span in found)
        for span in found:
            if span.is_capital == has_capital and not any(is_covered[span.start : span.end]):
                is_covered[span.start : span.end] = [True] * (span.end - span.start)
                spans.append(span)
        rest = [word.casefold() for word, covered in zip(words, is_covered, strict=True) if not covered]
        return NamedQuestion(
            names=tuple(span.rows for span in sorted(spans, key=lambda span: span.start)),
            words=tuple(word for word in rest if word not in _FUNCTION_WORDS),
        )

    def _read(self, question: str) -> tuple[list[str], list[NamedSpan]]:
        words = _read_words(question)
        return words, self.find_spans(words)

    def find_spans(self, written: Sequence[str]) -> list[NamedSpan]:
        """Names among the words of a question, as it writes them: longest first, then in reading order."""
        words = [normalize_title(word).casefold() for word in written]
        spans = [
            (start, start + length)
            for length in range(min(MAX_NAME_WORDS, len(words)), 0, -1)
            for start in range(len(words) - length + 1)
            if not all(map(_is_no_name, words[start : start + length]))
        ]
        known = self._look_up([words[start:end] for start, end in spans])
        is_covered = [False] * len(words)
        found = []
        for (start, end), rows in zip(spans, known, strict=True):
            if rows and not all(is_covered[start:end]):
                is_capital = any(not word[0].islower() for word in written[start:end])
                found.append(NamedSpan(start, end, rows, is_capital))
                is_covered[start:end] = [True] * (end - start)
        return found

    def _look_up(self, names: Sequence[list[str]]) -> list[tuple[int, ...]]:
        """Rows of the entities that bear each name, else of those that bear it without its possessive."""
        bare = [[*name[:-1], name[-1].removesuffix("'s").removesuffix("'")] for name in names]
        keys = [" ".join(name) for name in (*names, *bare)]
        is_known = find_rows(self._hashes, self._rows, keys) >= 0
        written, plain = np.split(is_known, 2)
        return [
            tuple(find_all_rows(self._hashes, self._rows, keys[i if written[i] else i + len(names)]))
            if written[i] or plain[i]
            else ()
            for i in range(len(names))
        ]


def _is_no_name(word: str) -> bool:
    return word in _FUNCTION_WORDS or stem(word) in _ASKING_STEMS


def _read_words(question: str) -> list[str]:
    """Words as they are written, with quotes and compatibility characters folded as in names."""
    folded = unicodedata.normalize("NFKC", question).translate(_APOSTROPHES)
    return NAME_WORD.findall(_SPACE.sub(" ", folded))
