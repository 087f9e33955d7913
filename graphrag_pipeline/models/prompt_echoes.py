"""Text of a prompt file that a reply repeats as if it were content.

A small model often copies the example of its prompt: a report titled "short and specific, with the names of the central
entities", or an example passage's entities. A parser asks `PromptEchoes` about each value and refuses those that are in
the prompt file in force, the user's or the bundled one. Values that fill placeholders (the data) are not part of it.

A value is an echo if, without citations, case, punctuation and single letters,

- it equals a value of an example (a JSON string, or a field of a record), or
- runs of at least `MIN_ECHOED` words of the file make up at least `MOST_OF_VALUE` of it, or
- it holds `MIN_COPIED` words in a row of the instructions that the data does not hold, whatever else it holds, or
- it holds a heading or a header line of the tables that prompts show as data, or
- it is like an example value of `MIN_VARIED` words or more (`LEAST_LIKENESS` of their words in order), and its other
  words are neither names nor numbers: "a paragraph that supports the claim by the data".

Instructions are all text but examples: records, and JSON strings that do not begin with a small letter. A good reply
may be worded like those. A value that the data holds too, word by word, is not an echo, except for headings. Keep out:
what a parser does with an echo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from string import ascii_letters

from graphrag_pipeline.citations import remove_written, split_written
from graphrag_pipeline.text.languages import SMALL_WORDS
from graphrag_pipeline.text.sentence_forms import find_words, fold
from graphrag_pipeline.text.sentences import split_sentences

MIN_ECHOED = 4
"""Words in a row that may be found anywhere in a prompt; a character of a script without spaces is half a word."""
MOST_OF_VALUE = 0.7
MIN_COPIED = 8
"""Words in a row of the instructions that make a copy of any value; twice as many characters without spaces."""
MIN_VARIED = 6
LEAST_LIKENESS = 0.65
"""2 x words in common, in order / words of both."""
FRAME_LIKENESS = 0.75
"""Likeness of the words besides names of two sentences of which one is the other with other names. Fewer than
`MIN_ECHOED` such words must be equal."""
LEAST_FRAME = 2
"""Words besides names of a sentence that can be found with other names."""
LEAST_COPIED_NUMBERS = 3
"""Numbers of a citation that equals one of the prompt, if it counts as copied; fewer may be equal by chance."""

_JSON_VALUE = re.compile(r'(?<=[:\[,])\s*"((?:[^"\\\n]|\\.)*)"(?!\s*:)')
_RECORD = re.compile(r'\(\s*"?(entity|relationship|claim)"?\s*<\|>(.*?)\)[ \t]*(?=\n|##|\Z)', re.IGNORECASE)
_CONTEXT = re.compile(
    r"-{5}[ \t]*(?:community|reports|entities|relationships|claims|covariates|sources)[ \t]*-{5}"
    r"|(?:-{5}|#[ \t]*)\w[\w ]{0,40}(?:-{5})?\s+id[,;|\t]\w"  # a heading of another name, then columns
    r"|(?<![^\s\"'`])(?:id|entities)([,;|\t])\w[\w ]{0,30}\1\w",  # columns alone; prose has a blank after a comma
    re.IGNORECASE,
)
"""Headings and header lines of the tables in prompts for reports and answers."""
_COLUMN_NAME = re.compile(r"[,;|\t]\w")
"""What every header line holds; prose has a blank after a comma."""
_CITED_BEFORE = re.compile(r"\A\s*(?:\[[^\[\]]{0,400}\][.,;]?\s*)+")
_SMALL_WORDS = frozenset().union(*SMALL_WORDS.values())
_PLACEHOLDER = re.compile(r"\{[A-Za-z_]\w*\}")
_SINGLE_LETTERS = frozenset(ascii_letters)
_N_NAMES = {"entity": 1, "relationship": 2, "claim": 2}

Words = tuple[str, ...]


def shows_context(text: str) -> bool:
    """Return whether a text holds a heading or a header line of the tables that prompts show as data."""
    may_show = "-----" in text or _COLUMN_NAME.search(text)  # much faster than the whole pattern
    return bool(may_show) and _CONTEXT.search(text) is not None


class PromptEchoes:
    """The words and example values of a prompt file.

    Args:
        template: text of the file, with placeholders; "" has no echo.
    """

    def __init__(self, template: str = "") -> None:
        self._template = template
        self._runs: dict[int, frozenset[Words]] = {}

    def holds(self, value: str, data: str = "") -> bool:
        """Return whether a value of a reply repeats the prompt.

        Args:
            data: what the prompt showed in the place of a placeholder; a value that it holds is not an echo.
        """
        words = _words_of(value)
        if not words or not self._template:
            return False
        if self.is_copied(value, data):
            return True
        is_echo = words in self._examples or self._is_mostly_runs(words) or self._is_varied_example(words, value)
        return is_echo and not _is_run(words, _join(_read_words(data)))

    def is_copied(self, value: str, data: str = "") -> bool:
        """Return whether a value holds a long run of the instructions that the data does not hold, or a context."""
        if shows_context(value):
            return True
        words = _words_of(value)
        if not self._may_hold_run(words):
            return False
        runs = [run for run in _long_runs(words) if run in self._instructions]
        shown = _join(_read_words(data)) if runs else ""
        return any(not _is_run(run, shown) for run in runs)

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

    def shared_with_example(self, sentence: str) -> frozenset[str]:
        """Return the words that a sentence shares with an example sentence which differs in its names; mostly none.

        Names, numbers and small words are left out. The example "Ines Calvo opened the observatory and ran it" and the
        sentence "Greta Holm opened the bridge and ran it" share "opened" and "ran".
        """
        frame = _frame_of(sentence)
        if len(frame) < MIN_ECHOED:
            near = {frame} & self._frames
        else:
            near = {other for other in self._frames if _is_like(other, frame, FRAME_LIKENESS)}
        return frozenset(word for other in near for word in other if word in frame and word not in _SMALL_WORDS)

    def has_all_words(self, text: str) -> bool:
        """Return whether all words of a text are words of the prompt, in any order: it says nothing of its own."""
        words = _words_of(text)
        return bool(words and self._template) and all(f" {word} " in self._text for word in words)

    def _may_hold_run(self, words: Words) -> bool:
        """Return False if the words hold no long run of the instructions: each run has a triple at a sixth place."""
        n = MIN_COPIED - 2
        return any(words[at : at + 3] in self._triples for at in range(n - 1, len(words) - 2, n))

    def names(self, name: str) -> bool:
        """Return whether a name is that of an entity in an example of records."""
        return _words_of(name) in self._names

    def finds_name(self, text: str, data: str) -> bool:
        """Return whether a text holds an example's name of several words that the data does not hold."""
        words = _join(_words_of(text))
        found = [name for name in self._names if len(name) > 1 and _is_run(name, words)]
        shown = _join(_read_words(data)) if found else ""  # the whole passage; split for few descriptions only
        return any(not _is_run(name, shown) for name in found)

    def is_copied_citation(self, cited: list[tuple[str, list[str]]]) -> bool:
        """Return whether a citation equals one of the prompt, of `LEAST_COPIED_NUMBERS` numbers or more."""
        return sum(len(numbers) for _, numbers in cited) >= LEAST_COPIED_NUMBERS and cited in self._citations

    def _is_mostly_runs(self, words: Words) -> bool:
        n = MIN_ECHOED * (2 if _is_unspaced(words) else 1)
        runs = self._runs_of(n)
        starts = (start for start in range(len(words) - n + 1) if words[start : start + n] in runs)
        covered = {place for start in starts for place in range(start, start + n)}
        return len(covered) >= MOST_OF_VALUE * max(len(words), n)

    def _is_varied_example(self, words: Words, value: str) -> bool:
        if len(words) < MIN_VARIED or _is_unspaced(words):
            return False
        own = {fold(word) for word in find_words(value)[1:] if not word.islower()}
        return any(
            len(example) >= MIN_VARIED and own.issubset(example) and _is_like(example, words, LEAST_LIKENESS)
            for example in self._examples
        )

    def _runs_of(self, n_words: int) -> frozenset[Words]:
        """Return every run of so many words of the template."""
        if n_words not in self._runs:
            self._runs[n_words] = frozenset(
                part[at : at + n_words] for part in self._parts for at in range(len(part) - n_words + 1)
            )
        return self._runs[n_words]

    @cached_property
    def _parts(self) -> list[Words]:
        """The words of the template between its placeholders; no run of words crosses one."""
        return [_read_words(part) for part in _PLACEHOLDER.split(self._plain)]

    @cached_property
    def _text(self) -> str:
        return "|".join(map(_join, self._parts))

    @cached_property
    def _instructions(self) -> frozenset[Words]:
        """The long runs of the template without its examples; none crosses a placeholder."""
        text = _RECORD.sub("{example}", self._plain)
        text = _JSON_VALUE.sub(lambda value: value.group(0) if value.group(1)[:1].islower() else "{example}", text)
        parts = (_read_words(part) for part in _PLACEHOLDER.split(text))
        return frozenset(run for words in parts for run in _long_runs(words))

    @cached_property
    def _triples(self) -> frozenset[Words]:
        """Three words in a row of any long run of the instructions."""
        return frozenset(run[at : at + 3] for run in self._instructions for at in range(len(run) - 2))

    @cached_property
    def _plain(self) -> str:
        """The template with its delimiters in place of their placeholders, and plain braces."""
        text = self._template.replace("{tuple_delimiter}", "<|>").replace("{record_delimiter}", "##")
        return text.replace("{{", " { ").replace("}}", " } ")

    @cached_property
    def example_values(self) -> frozenset[str]:
        """The values of its examples: JSON strings, and fields of records."""
        quoted = (match.group(1) for match in _JSON_VALUE.finditer(self._plain))
        return frozenset((*quoted, *(field for _, fields in self._records() for field in fields)))

    @cached_property
    def example_names(self) -> frozenset[str]:
        """The names of entities in its example records."""
        return frozenset(name for kind, fields in self._records() for name in fields[: _N_NAMES[kind]])

    @cached_property
    def _examples(self) -> frozenset[Words]:
        return frozenset(filter(None, map(_words_of, self.example_values)))

    @cached_property
    def _frames(self) -> frozenset[Words]:
        """The frames of the sentences in its examples."""
        frames = (_frame_of(value[start:end]) for value in self.example_values for start, end in split_sentences(value))
        return frozenset(frame for frame in frames if len(frame) >= LEAST_FRAME)

    @cached_property
    def _names(self) -> frozenset[Words]:
        return frozenset(map(_words_of, self.example_names))

    @cached_property
    def _citations(self) -> list[list[tuple[str, list[str]]]]:
        return [cited for _, _, cited in split_written(self._template) if cited is not None]

    def _records(self) -> Iterator[tuple[str, list[str]]]:
        for match in _RECORD.finditer(self._plain):
            yield match.group(1).casefold(), [field.strip(' "()') for field in match.group(2).split("<|>")]


@lru_cache(64)
def _words_of(value: str) -> Words:
    """Return the folded words of a value of a reply, of which several questions are asked in a row."""
    return _read_words(value)


def _read_words(text: str) -> Words:
    """Return the folded words of a text without its citations; single letters, such as articles, are left out."""
    words = find_words(fold(remove_written(text)))
    return tuple([word for word in words if word not in _SINGLE_LETTERS])


def _frame_of(sentence: str) -> Words:
    """Return the folded words of a sentence that begin with a small letter: all but names and numbers."""
    return tuple([fold(word) for word in find_words(remove_written(sentence)) if word[0].islower()])


def _is_like(one: Words, other: Words, least: float) -> bool:
    """Whether 2 x words in common, in order / words of both, is at least a number."""
    n_words = len(one) + len(other)
    if not n_words:
        return True
    if 2 * min(len(one), len(other)) / n_words < least:
        return False
    words = set(other)
    if 2 * sum(word in words for word in one) / n_words < least:  # no fewer than those in order, and counted sooner
        return False
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= least


def _long_runs(words: Words) -> Iterator[Words]:
    """Yield the runs of `MIN_COPIED` words, twice as long where most are characters of a script without spaces."""
    for start in range(len(words) - MIN_COPIED + 1):
        run = words[start : start + MIN_COPIED]
        if not _is_unspaced(run):
            yield run
        elif start + 2 * MIN_COPIED <= len(words):
            yield words[start : start + 2 * MIN_COPIED]


def _join(words: Words) -> str:
    return f" {' '.join(words)} "


def _is_run(words: Words, text: str) -> bool:
    return _join(words) in text


def _is_unspaced(words: Words) -> bool:
    """Whether most of the words are single characters of a script without spaces."""
    if all(map(str.isascii, words)):
        return False
    return 2 * sum(len(word) == 1 and not word.isascii() for word in words) > len(words)
