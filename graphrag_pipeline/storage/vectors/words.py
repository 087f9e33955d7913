"""The words by which stores without BM25 of their own rank texts: folded, without accents, by their English stems.

Keep out: the score, which each store computes where its rows are.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from graphrag_pipeline.text.sentence_forms import find_words, fold
from graphrag_pipeline.text.stems import stem

K1, B = 1.2, 0.75
"""The usual parameters of BM25."""
_MAX_CHARACTERS = 200
"""Of a word: an index of a database limits the length of its keys."""
_ACCENT = re.compile("[\u0300-\u036f]")


def count_words(text: str) -> Counter[str]:
    """Return the words of a text with their counts; single characters in scripts without spaces."""
    folded = fold(text)
    if not folded.isascii():
        folded = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", folded)))
    return Counter(stem(word)[:_MAX_CHARACTERS] for word in find_words(folded))
