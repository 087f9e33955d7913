"""Signs of a term among the capitalized names of a document: its form, its words and the words around it.

Keep out: types (`types/`), terms in lower case (`concepts.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

import regex

from graphrag_pipeline.indexing.extraction.names.capitalization import is_proper_word, token_rank
from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES, KIN, PERSON_VERBS, STOPWORDS
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.predicates import VERBS
from graphrag_pipeline.indexing.extraction.names.terms.background import english_rank
from graphrag_pipeline.indexing.extraction.names.terms.concept_words import GENERAL
from graphrag_pipeline.indexing.extraction.names.terms.word_forms import may_be_adjective
from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.twin_patterns import TwinPattern

_CODE = late_regex(r"\d|(?<!\bMc|\bMac|\b[DL][aei])(?<=\p{Ll})\p{Lu}(?!.*\s)|\p{Lu}-\p{Lu}\b|\b\p{Lu}{3,}\p{Ll}{3,}")
_LOWER = TwinPattern(r"(?<![\p{L}'’])\p{Ll}[\p{L}\p{M}]++")
_ARTICLE = late_regex(r"(?<!\p{L})(?:the|an?|each|any|such)\s+$", regex.IGNORECASE)
_DESCRIBES = late_regex(r"[ \n]+(\p{Ll}{3,}+)\b(?![\p{L}'’])")
_DESCRIBES_MORE = late_regex(r"[ \n]+(?:\d|field\b|value\b|parameter\b)")  # "the Type 3 link", "the Data field"
_BE = late_regex(r"\b(?:is|are|be|been|being|was|were|not|more|called)\s+[\"“]?$")
_REMARK_END = late_regex(r"\)|\s+-")
_DESCRIBED = late_regex(r"(?:^|[^\p{L}])(?:the|an?|this|each|every|any|of|in|with|for|no)\s+$", regex.IGNORECASE)


def find_lower_words(text: str) -> set[str]:
    """Return the words that a text writes in lower case."""
    return set(_LOWER.findall(text))


def read_term_uses(text: str, name: Name) -> Iterator[str]:
    """Yield "describes" and "article" for uses that terms have and persons and places do not."""
    if describes_noun(text, name):
        yield "describes"
    if _ARTICLE.search(text, max(name.start - 6, 0), name.start):
        yield "article"


def is_term(form: str, n_names: int, uses: Counter[str], lower: set[str]) -> bool:
    """Whether a name without a type is a term.

    A term has only common words, ends with a common noun of the document, is
    mostly written with an article ("the Licensor"), or describes a noun ("the Gleason score").

    Args:
        n_names: occurrences of the name.
        lower: words that the document writes in lower case.
    """
    if uses["describes"] or 2 * uses["article"] > n_names:
        return True
    parts = [part for word in form.split() for part in word.split("-") if part[:1].isupper()]
    if not parts:
        return False
    is_headed = len(parts) > 1 and parts[-1].lower() in lower and is_common_noun(parts[-1])
    return is_headed or all(map(is_common_noun, parts))


def find_adjectives(names: Iterable[Name], text: str) -> set[str]:
    """Return the common words with a capital that name nothing: adjectives in the text, words of every text.

    Adjectives are "is Opaque", "Object form", "(Optional)". A word of every text is "Description", but "the Program"
    is a term that the text defines.
    """
    total: Counter[str] = Counter()
    used: Counter[str] = Counter()
    defined: Counter[str] = Counter()
    for name in names:
        if name.form.istitle() and name.form.isalpha() and _is_everyday(name.form):
            total[name.form] += 1
            used[name.form] += _is_predicate(text, name) or _precedes_noun(text, name) or _is_remark(text, name)
            is_term = _ARTICLE.search(text, max(name.start - 6, 0), name.start) and not _DESCRIBES_MORE.match(
                text, name.end
            )
            defined[name.form] += bool(is_term)
        elif name.form.upper() in GENERAL and (name.form.isupper() or name.form.istitle()):
            total[name.form] += 1
    adjectives = {form for form, n in total.items() if 2 * used[form] >= n and used[form] > 1}
    return adjectives | {form for form, n in total.items() if form.upper() in GENERAL and 4 * defined[form] < n}


def _is_remark(text: str, name: Name) -> bool:
    """Whether an adjective is alone in brackets: "SOURCE (Optional)"."""
    is_alone = text[max(name.start - 1, 0) : name.start] == "(" and _REMARK_END.match(text, name.end)
    return bool(is_alone) and may_be_adjective(name.form.lower())


@lru_cache(maxsize=1 << 14)
def _is_everyday(form: str) -> bool:
    return is_common_noun(form) or form.lower().endswith(("able", "ible"))


def _is_predicate(text: str, name: Name) -> bool:
    return _BE.search(text, max(name.start - 12, 0), name.start) is not None


def _precedes_noun(text: str, name: Name) -> bool:
    after = _DESCRIBES.match(text, name.end)
    word = after.group(1) if after else ""
    if not word or word.upper() in STOPWORDS | VERBS | PERSON_VERBS | KIN:
        return False
    return not word.endswith(("ed", "ing", "ly", "s")) and english_rank(word) is not None


def is_common_noun(word: str) -> bool:
    """Whether English has a word as a common word: "License", not "London" or "Dupont"."""
    key, small = word.upper(), word.lower()
    if key in GIVEN_NAMES or key in load_places() or is_proper_word(key):
        return False
    return english_rank(small) is not None and token_rank(small) is not None


def is_code(form: str) -> bool:
    """Whether a form has a digit or a capital inside a word: "HER2", "TypeError"."""
    return _CODE.search(form) is not None


def describes_noun(text: str, name: Name) -> bool:
    """Whether a name stands before a noun like an adjective: "the Gleason score", "of Hodgkin lymphoma"."""
    after = _DESCRIBES.match(text, name.end)
    if after is None or not _DESCRIBED.search(text, max(name.start - 8, 0), name.start):
        return False
    word = after.group(1)
    key = word.upper()
    is_small = key in STOPWORDS or key in VERBS or key in PERSON_VERBS or key in KIN
    return not is_small and not word.endswith(("ed", "ing", "ly")) and (english_rank(word) is not None or len(word) > 6)
