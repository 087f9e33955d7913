"""Other spellings of one English word: British and American, singular and plural.

Those of the former are by endings and letters, not by a dictionary: "TUMOUR" is "TUMOR". The rules also change words
that have one spelling only ("SCIENCE"), so use the result only to compare.

Keep out: which titles are one entity (`indexing/graph/resolution.py`).
"""

from __future__ import annotations

from collections.abc import Container

from graphrag_pipeline.text.late_patterns import late_regex

_MIN_LETTERS = 5
_SPELLINGS = tuple(
    (late_regex(british), american)
    for british, american in (
        (r"OUR(?=$|S$|ED$|ING$|AL$|ABLE$|ITE$)", "OR"),
        (r"(?<=[B-DF-HJ-NP-TV-Z])(?:AE|OE)(?=[A-Z])|^(?:AE|OE)(?=[A-Z])", "E"),
        (r"(?<=\w[LNRTMZCG])IS(?=(?:E|ES|ED|ING|ATION|ATIONS)$)", "IZ"),
        (r"YSE(?=$|D$|S$)", "YZE"),
        (r"(?<=[TB])RE(?=$|S$)", "ER"),
        (r"LL(?=ED$|ING$|ER$)", "L"),
        (r"OGUE(?=$|S$)", "OG"),
        (r"(?<=EN)CE$", "SE"),
    )
)


def to_american(word: str) -> str:
    """Return a key that is equal for the British and the American spelling of a word in upper case."""
    if len(word) < _MIN_LETTERS:
        return word
    for british, american in _SPELLINGS:
        word = british.sub(american, word)
    return word


def singular_of(word: str, known: Container[str]) -> str | None:
    """Return the singular of a plural if it is one of the known words: "policies" -> "policy"."""
    if len(word) < 4 or not word.endswith("s") or word.endswith("ss"):
        return None
    spellings = (f"{word[:-3]}y" if word.endswith("ies") else "", word[:-2] if word.endswith("es") else "", word[:-1])
    return next((spelling for spelling in spellings if len(spelling) > 2 and spelling in known), None)
