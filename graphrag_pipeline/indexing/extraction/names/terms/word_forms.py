"""Forms of English words: what their endings and their forms in the bundled vocabulary say of them.

English has about 21,000 words in the vocabulary (`background.py`). "matched" and "matching" in it show that "match" may
be a verb.

Keep out: how a document uses words (`word_uses.py`).
"""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache

from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.indexing.extraction.names.predicates import VERBS
from graphrag_pipeline.indexing.extraction.names.terms.background import UNKNOWN_RANK, load_ranks
from graphrag_pipeline.text.late_patterns import late_re

SINGULARS = frozenset(
    word.lower()
    for word in words("""
    news series species lens means goods alias canvas atlas bias always hers yours ours dues premises proceeds customs
    ashes innings
    """)
)
_ADJECTIVES = ("al", "ful", "ous", "less", "ive", "able", "ible", "ary", "ular", "most", "ic", "ant", "ent")
_NOUN_ENDINGS = ("ure", "ance", "ence", "ation", "ency")
_MAX_DERIVED = 3  # times the rank of the verb
_VERB_PREFIXES = ("re", "un", "pre", "de", "dis", "over", "out", "mis", "co", "sub", "auto", "up", "down")
_STRONG_PARTICIPLES = (
    "beaten|bitten|born|broken|chosen|done|drawn|driven|eaten|fallen|flown|forbidden|forgotten|frozen|given|gone|grown|"
    "hidden|known|lain|proven|ridden|risen|seen|shaken|shown|shrunk|spoken|stolen|sunken|sworn|taken|thrown|torn|woken|worn|"
    "woven|written"
)
_PARTICIPLE = late_re(rf".{{2,}}[^e]ed|(?:{'|'.join(_VERB_PREFIXES)})?(?:{_STRONG_PARTICIPLES})")
_MIN_TECHNICAL = 6  # letters


def singular_of(word: str, known: Container[str], least: int = 5) -> str | None:
    """Return the singular of a plural of at least `least` letters if it is one of the known words: "biopsies"."""
    if len(word) < least or not word.endswith("s") or word.endswith(("ss", "us", "is", "ics")) or word in SINGULARS:
        return None
    if word.endswith("ies") and (word[:-3] + "y") in known:
        return word[:-3] + "y"
    is_responses = word[:-1] in load_ranks()  # "response", not "respons"
    if word.endswith(("ses", "xes", "ches", "shes")) and word[:-2] in known and not is_responses:
        return word[:-2]
    return word[:-1] if word[:-1] in known else None


def singular_term(word: str, terms: Container[str]) -> str | None:
    """Return the singular of a plural among terms, where endings such as "us" and "ics" are no doubt: "menus"."""
    singular = singular_of(word, terms, least=4)
    return singular or (word[:-1] if word.endswith("s") and len(word) > 3 and word[:-1] in terms else None)


def may_be_noun(word: str) -> bool:
    """Whether the form of a word allows a noun: no participle ("started"), comparative, or verb of a list ("unset")."""
    if word.upper() in VERBS or word.removeprefix("un").upper() in VERBS or is_participle(word):
        return False
    return not is_compared(word)


def is_participle(word: str) -> bool:
    """Whether a word is a past participle by its form: "started", "overridden", "unfrozen"; not "need", "speed"."""
    return _PARTICIPLE.fullmatch(word) is not None


@lru_cache(maxsize=1 << 16)
def may_be_adjective(word: str) -> bool:
    """Whether a word is an adjective by its ending, its negation, or its adverb or noun in English: "insecure"."""
    if word.endswith("ment"):
        return False
    is_negated = len(word) > 5 and word.startswith(("in", "un")) and may_be_adjective(word[2:])
    is_quality = word.endswith(("e", "id")) and f"{word.removesuffix('e')}ity" in load_ranks()  # "obese", "valid"
    return word.endswith(_ADJECTIVES) or is_negated or is_quality or has_adverb(word)


def has_adverb(word: str) -> bool:
    """Whether English has an adverb of a word: "primarily"."""
    adverbs = (f"{word}ly", f"{word[:-1]}ily", f"{word[:-1]}y" if word.endswith("le") else "")
    return any(adverb in load_ranks() for adverb in adverbs)


@lru_cache(maxsize=1 << 16)
def may_be_verb(word: str) -> bool:
    """Whether English has a past and a gerund of a word: "matched" and "matching"."""
    ranks = load_ranks()
    stems = stems_of(word)
    return any(f"{stem}ed" in ranks for stem in stems) and any(f"{stem}ing" in ranks for stem in (*stems, word))


def stems_of(word: str) -> set[str]:
    """Return what "ed" and "ing" may follow in the forms of a verb: "cach" of "cache", "stopp" of "stop"."""
    return {word.removesuffix("e"), word + word[-1], f"{word[:-1]}i" if word.endswith("y") else word}


@lru_cache(maxsize=1 << 16)
def has_derived_noun(word: str) -> bool:
    """Whether English has a noun derived from a verb and nearly as common: "failure", "arrival", not "plantation"."""
    ranks = load_ranks()
    stem = word.removesuffix("e")
    nouns = [f"{stem}{ending}" for ending in _NOUN_ENDINGS]
    nouns += [f"{word[:-1]}ication"] if word.endswith("y") else []
    nouns += [f"{stem}al"] if stem != word else []
    return any(ranks.get(noun, UNKNOWN_RANK) < _MAX_DERIVED * ranks.get(word, 0) for noun in nouns)


@lru_cache(maxsize=1 << 16)
def is_technical(word: str) -> bool:
    """Whether English prose does not know a word, and its form is not that of a verb: "verapamil", not "preload"."""
    ranks = load_ranks()
    if word in ranks or "-" in word or len(word) < _MIN_TECHNICAL or word.endswith(("ize", "ise", "ate", "ify", "ing")):
        return False
    if word.endswith("en") and word[:-2] in ranks:  # "lengthen"
        return False
    return not any(word.startswith(prefix) and word.removeprefix(prefix) in ranks for prefix in _VERB_PREFIXES)


@lru_cache(maxsize=1 << 16)
def is_compared(word: str) -> bool:
    """Whether a word is a comparative or superlative: "older", "newest", not "border" or "forest"."""
    ranks = load_ranks()
    return (word.endswith("er") and (word[:-2] + "est") in ranks) or (
        word.endswith("est") and (word[:-3] + "er") in ranks
    )
