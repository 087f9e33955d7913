"""British and American spellings of English words.

The rules are endings and letters, not a dictionary: "TUMOUR" is "TUMOR", "HAEMOGLOBIN" is "HEMOGLOBIN". They also
change words that have one spelling only ("SCIENCE"), so use the result only to compare.

Keep out: which titles are one entity (`resolution.py`).
"""

from __future__ import annotations

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
