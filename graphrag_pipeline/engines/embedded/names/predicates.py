"""Verb phrases between two names of a sentence: "Fezziwig employed young Scrooge" gives "employed".

Word lists and endings decide, without a parser. The text between the names must be a few words in lower case, and one
of them must look like a verb. Otherwise the relationship has no predicate.

Keep out: relationships and their descriptions (`embedded/extraction.py`).
"""

from __future__ import annotations

from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.name_words import words

MAX_GAP = 60  # characters between the names
MAX_WORDS = 8

_GAP = late_re(r"[\s,]*[^\W\d_A-Z][\w'’-]*(?:[\s,]+[^\W\d_A-Z][\w'’-]*)*[\s,]*")
_WORD = late_re(r"[\w'’-]+")
_AUXILIARIES = words("""
is are was were be been being am has have had will would can could may might must shall should did does do
""")
VERBS = _AUXILIARIES | words("""
beat beats became become becomes began begins bore bought brings brought built buys came catches caught chose come
comes cut drew drove fell felt fights follows forgave fought found founds gave gets gives goes got grew heard hears
held helps hired hit holds joins keep keeps kept killed kills knew knows leads leaves led left lent let lets lies
likes lives lost loves made makes marries meets met moves needs offers owes owned owns paid pays plays put ran read
runs said sang sat saw says seeks seem seems sees sells sent serves set shot shows sings sold sought speaks spent spoke
stands
stole stood struck sues swore takes taught tells thanks thought threw told took turns understood visits wants went
wins woke won wore works writes wrote
""")
_TRAILING = words("the a an his her their its my your our this that these those young old little poor")
_NO_VERBS = words("""
hundred indeed need red bed seed speed bleed feed instead kindred sacred naked wicked rugged learned aged beloved
""")
_NO_OBJECT = words("and or but than as while when if because although though whereas")


def find_predicate(text: str, start: int, end: int) -> str | None:
    """Return the verb phrase in text[start:end], the text between two names of one sentence, or None."""
    if not 2 < end - start <= MAX_GAP:
        return None
    gap = text[start:end]
    if not _GAP.fullmatch(gap):
        return None
    between = _WORD.findall(gap)
    first = next((n for n, word in enumerate(between) if _is_verb(word, n)), None)
    if first is None or first > 2 or len(between) - first > MAX_WORDS:
        return None
    if any(word.upper() in _NO_OBJECT for word in between):
        return None
    phrase = between[first:]
    while len(phrase) > 1 and phrase[-1].upper() in _TRAILING:
        phrase.pop()
    return (
        None
        if len(phrase) == 1 and phrase[0].upper() in _AUXILIARIES - {"IS", "WAS", "HAS", "HAD"}
        else " ".join(phrase)
    )


def _is_verb(word: str, place: int) -> bool:
    key = word.upper()
    if key in VERBS:
        return True
    if place > 1 or len(key) < 5 or key in _NO_VERBS:
        return False
    return key.endswith("ED") or (place == 0 and key.endswith("S") and not key.endswith(("SS", "'S", "’S", "US", "IS")))
