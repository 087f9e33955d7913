"""Support of a statement by a text, judged by words.

A statement is supported by `WINDOW` neighbouring sentences if they have at least `LEAST_SHARE` of its content words,
all its numbers, and all its names. The rule is about words, not about meaning: it can support a false sentence made of
true words, and miss a paraphrase.

Keep out: which statements need support (`uncited.py`), and where it is looked for (`evidence.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from graphrag_pipeline.query.question import content_words, stem
from graphrag_pipeline.text.languages import detect_language
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentence_forms import find_words, fold
from graphrag_pipeline.text.sentences import split_sentences

LEAST_SHARE = 0.65
WINDOW = 2
"""Neighbouring sentences that support one together."""
MIN_WORDS = 2
"""Content words of a statement below which words show nothing."""
SOURCES = r"(?:data|sources?|passages?|reports?|records?|documents?|texts?|contexts?|index|information|points?)"
"""Words for what was read."""
_LEAD_IN = late_re(rf"(?:according to|based on|from|in)\s(?:[a-z]+\s){{0,3}}{SOURCES}\b[^,]{{0,40}},\s*", re.IGNORECASE)


@dataclass(frozen=True)
class StatedWords:
    """The words of a statement.

    Attributes:
        words: stems of its content words.
        musts: those of its names (words with a capital, but for the first) and numbers, which support must have.
    """

    words: frozenset[str]
    musts: frozenset[str]

    @classmethod
    def read(cls, statement: str, has_names: bool) -> StatedWords:
        """Return the words of a statement.

        Args:
            has_names: whether capitals mark names in its language (`writes_names_with_capitals`).
        """
        bare = _LEAD_IN.sub("", statement, count=1)
        written = find_words(bare)
        words = content_words(bare)
        named = (word for word in written[1:] if has_names and word[0].isupper() and word != "I")
        numbers = (word for word in written if any(map(str.isdigit, word)))
        return cls(words, frozenset(stem(fold(word)) for word in (*named, *numbers)) & words)

    def about(self, subject: str) -> StatedWords:
        """Return the words of a statement of which support must have those of its subject, too."""
        return StatedWords(self.words, self.musts | (content_words(subject) & self.words))

    def is_supported_by(self, windows: Iterable[frozenset[str]]) -> bool:
        """Return whether one of the runs of sentences of a text (`read_windows`) supports the statement."""
        if len(self.words) < MIN_WORDS:
            return False
        least = LEAST_SHARE * len(self.words)
        return any(self.musts <= window and len(self.words & window) >= least for window in windows)


def writes_names_with_capitals(text: str) -> bool:
    """Return whether capitals mark names in the language of a text; in German every noun has one."""
    return detect_language(text) != "de"


def read_windows(text: str, title: str = "") -> list[frozenset[str]]:
    """Return the stems of the content words of each run of `WINDOW` sentences, and of the title."""
    sentences = [content_words(text[start:end]) for start, end in split_sentences(text)] if text else []
    of_title = content_words(title)
    return [frozenset().union(of_title, *sentences[i : i + WINDOW]) for i in range(max(len(sentences), 1))]
