"""Text of a prompt file that a reply repeats as if it were content.

A small model often copies its prompt: a report titled "short and specific, with the names of the central entities", or
the entities of an example. A parser asks `PromptEchoes` about each value and refuses those that repeat the prompt file
in force, the user's or the bundled one. Values that fill placeholders (the data) are not part of the file.

The method is that of text reuse by word n-grams (Broder 1997): the words of a value that are in runs of `RUN` words of
the file. A value is an echo if those are `MOST_OF_VALUE` of its words or `MIN_COPIED` words in a row, or if it equals a
value of an example. Runs that the data holds, too, do not count. Names that only the value has do not count as words: a
copy often changes the names of an example and nothing else. A text that shows the tables of the data is an echo, too.
Keep out: what a parser does with an echo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from rapidfuzz.distance.Indel import normalized_similarity

from graphrag_pipeline.citations import remove_written
from graphrag_pipeline.text.sentence_forms import find_words, fold
from graphrag_pipeline.text.sentences import split_sentences

RUN = 4
"""Words in a row that chance seldom repeats; a character of a script without spaces is half a word."""
MOST_OF_VALUE = 0.7
MIN_COPIED = 8
"""Words in a row of the file that make an echo of any value, however much else it says."""
LEAST_LIKENESS, LEAST_LIKE = 0.65, 6
"""2 x words in common, in order / words of a value and of a JSON example that has at least so many."""

_JSON_VALUE = re.compile(r'(?<=[:\[,])\s*"((?:[^"\\\n]|\\.)*)"(?!\s*:)')
_RECORD = re.compile(r'\(\s*"?(entity|relationship|claim)"?\s*<\|>(.*?)\)[ \t]*(?=\n|##|\Z)', re.IGNORECASE)
_N_NAMES = {"entity": 1, "relationship": 2, "claim": 2}
_TABLE = re.compile(
    r"(?:-{5}|#)[ \t]*\w[\w ]{0,40}(?:-{5})?\s+id[,;|\t]\w|(?<![^\s\"'`])(?:id|entities)([,;|\t])\w[\w ]{0,30}\1\w"
    r"|-{5}[ \t]*(?:community|reports|entities|relationships|claims|covariates|sources)[ \t]*-{5}",
    re.IGNORECASE,
)
"""A heading of a table of records, or the names of its columns; prose has a blank behind a comma."""
_COLUMN_NAME = re.compile(r"[,;|\t]\w")
_CITED_BEFORE = re.compile(r"\A\s*(?:\[[^\[\]]{0,400}\][.,;]?\s*)+")
_PLACEHOLDER = re.compile(r"\{[A-Za-z_]\w*\}")

Words = tuple[str, ...]


def shows_context(text: str) -> bool:
    """Return whether a text holds a heading or a header line of the tables that prompts show as data."""
    may_show = "-----" in text or _COLUMN_NAME.search(text)  # much faster than the whole pattern
    return bool(may_show) and _TABLE.search(text) is not None


class PromptEchoes:
    """The words and example values of a prompt file.

    Args:
        template: text of the file, with placeholders; "" has no echo.
    """

    def __init__(self, template: str = "") -> None:
        text = template.replace("{tuple_delimiter}", "<|>").replace("{record_delimiter}", "##")
        self._text = text.replace("{{", " { ").replace("}}", " } ")

    def holds(self, value: str, data: str = "") -> bool:
        """Return whether a value of a reply repeats the prompt.

        Args:
            data: what the prompt showed in the place of a placeholder; a value that it holds is not an echo.
        """
        words = self._words(value)
        if self._is_example(words) and words not in _runs(self._words(data), len(words)):
            return True
        copied = self._copied(words, data)
        is_most = len(copied) >= MOST_OF_VALUE * max(len(words), RUN)
        return is_most or _has_stretch(copied, words) or shows_context(value)

    def is_copied(self, value: str, data: str = "") -> bool:
        """Return whether a value holds a long run of the prompt that the data does not hold, or shows its tables."""
        words = self._words(value)
        return _has_stretch(self._copied(words, data), words) or shows_context(value)

    def _is_example(self, words: Words) -> bool:
        is_long = len(words) >= LEAST_LIKE
        likeness = (normalized_similarity(words, phrase) for phrase in self._phrases if is_long)
        return words in self._examples or any(share >= LEAST_LIKENESS for share in likeness)

    def _copied(self, words: Words, data: str) -> set[int]:
        """Return the places of words that are in runs of the prompt which the data does not hold."""
        size = RUN * (2 if _is_unspaced(words) else 1)
        known = self._runs_by_size[size]
        starts = [start for start, run in enumerate(_runs(words, size)) if run in known]
        shown = frozenset(_runs(self._words(data), size)) if starts else frozenset()
        return {start + n for start in starts if words[start : start + size] not in shown for n in range(size)}

    def _words(self, value: str) -> Words:
        """Return the folded words of a text that may be compared: all but names that the prompt does not have."""
        return tuple(fold(word) for word in _read_words(value) if word.islower() or fold(word) in self._vocabulary)

    def keep_own(self, text: str, data: str = "") -> str:
        """Return a text without the sentences that repeat the prompt, each with the citations behind it."""
        kept: list[str] = []
        is_last_own = True
        for start, end in split_sentences(text):
            sentence = text[start:end]
            if not is_last_own:
                sentence = _CITED_BEFORE.sub("", sentence)
            if find_words(remove_written(sentence)):
                is_last_own = not self.holds(sentence, data)
            if is_last_own:
                kept.append(sentence)
        return text if "".join(kept) == text else "".join(kept).strip()

    def has_own_word(self, text: str, data: str) -> bool:
        """Return whether a text has a word of the data that the prompt does not have."""
        own = set(_fold_words(text)) - self._vocabulary
        return bool(own) and not own.isdisjoint(_fold_words(data))

    @cached_property
    def example_values(self) -> frozenset[str]:
        """The values of its examples: JSON strings, and fields of records."""
        return frozenset((*self._quoted, *(field for _, fields in self._records() for field in fields)))

    @property
    def _quoted(self) -> list[str]:
        return [match.group(1) for match in _JSON_VALUE.finditer(self._text)]

    @cached_property
    def example_names(self) -> frozenset[str]:
        """The names of entities in its example records."""
        return frozenset(name for kind, fields in self._records() for name in fields[: _N_NAMES[kind]])

    def _records(self) -> Iterator[tuple[str, list[str]]]:
        for match in _RECORD.finditer(self._text):
            yield match.group(1).casefold(), [field.strip(' "()') for field in match.group(2).split("<|>")]

    @cached_property
    def _examples(self) -> frozenset[Words]:
        return frozenset(filter(None, map(_fold_words, self.example_values)))

    @cached_property
    def _phrases(self) -> list[Words]:
        return [words for words in map(_fold_words, self._quoted) if len(words) >= LEAST_LIKE]

    @cached_property
    def _parts(self) -> list[Words]:
        """The folded words of the file between its placeholders; no run of words crosses one."""
        return [_fold_words(part) for part in _PLACEHOLDER.split(self._text)]

    @cached_property
    def _vocabulary(self) -> frozenset[str]:
        return frozenset().union(*self._parts)

    @cached_property
    def _runs_by_size(self) -> dict[int, frozenset[Words]]:
        return {size: frozenset(run for part in self._parts for run in _runs(part, size)) for size in (RUN, 2 * RUN)}


def _read_words(text: str) -> list[str]:
    """Return the words of a text without its citations; single letters, such as articles, are left out."""
    return [word for word in find_words(remove_written(text)) if len(word) > 1 or not word.isascii()]


def _fold_words(text: str) -> Words:
    return tuple(map(fold, _read_words(text)))


def _runs(words: Sequence[str], size: int) -> Iterator[Words]:
    """Yield the words of each run of so many words, in order."""
    return (tuple(words[start : start + size]) for start in range(len(words) - size + 1))


def _has_stretch(places: set[int], words: Words) -> bool:
    """Whether some places are those of `MIN_COPIED` words in a row."""
    least = MIN_COPIED * (2 if _is_unspaced(words) else 1)
    return any(all(start + n in places for n in range(least)) for start in places)


def _is_unspaced(words: Words) -> bool:
    """Whether most of the words are single characters of a script without spaces."""
    if all(map(str.isascii, words)):
        return False
    return 2 * sum(len(word) == 1 and not word.isascii() for word in words) > len(words)
