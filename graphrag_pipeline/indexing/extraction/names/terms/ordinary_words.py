"""Ordinary words among the terms of a text that reports what persons, bodies and places do: "team", "border".

Such texts (news, minutes, articles on persons and places) are about what has a name. A reader looks up "seagrass"
there, but not "border". In a story even fewer terms are sought: "packet boat", not "front seat".
Keep out: the choice of terms (`concepts.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set
from functools import lru_cache

from graphrag_pipeline.indexing.extraction.names.cues import HOLDINGS, KIN, words
from graphrag_pipeline.indexing.extraction.names.kind_nouns import BODY_NOUN, PERSON_NOUN, kind_of, kind_of_plural
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.terms.background import UNKNOWN_RANK, english_rank
from graphrag_pipeline.indexing.extraction.names.terms.word_forms import may_be_adjective, may_be_verb
from graphrag_pipeline.indexing.extraction.names.terms.word_uses import MIN_PRONOUN_SHARE
from graphrag_pipeline.text.late_patterns import late_re

_MIN_PROPER = 0.06  # of the words of a text are names of persons, bodies, places and events, if it is about these
_MIN_PROPER_IN_PAST = 0.035  # the same of a text that tells what happened, and is no story
_MIN_PROPER_IN_NEWS = 0.02  # the same of a text that quotes in the present, as news do: "Mr Kemp says"
_SAYS = (" says ", " says,", " say ", " spoke to reporters", " said yesterday", " said on ")
_SAID = (" said.", " said,", " said the ", " said it ", " said that ", " said in ")  # in stories, persons say these
_MIN_SAYS, _MIN_SAYS_SHARE = 2, 0.008
_MIN_PAST = 0.5  # words of the past for one of the present
_PRONOUNS = (" I ", " he ", " He ", " she ", " She ", " him ", " his ", " her ", " me ", " my ")
_PRESENT = (" is ", " are ", " can ", " may ", " must ", " should ")
_PAST = (" was ", " were ", " had ", " said ", " did ")
_MIN_RANK = 10_000  # of a word of one field in English; "border" has 1,680
_MIN_KNOWN, _MIN_RARE = 3, 1  # mentions of a word of one field that English prose knows ("rubble"), and of another one
_MIN_DEED = 5  # of one that is also a verb ("spill")
_EVERYDAY_RANK = 1_500  # of the rarest word of a phrase of everyday words: "front door"
_COMMON_RANK = 2_500  # of the rarest word of a phrase of common words: "company store", not "credit card"
_MIN_COMMON, _MIN_SURE = 3, 4  # mentions of such a phrase, and of one with a participle or a weak head
_PARTICIPLES = ("ing", "ed")
_DERIVED = late_re(r"(?:re|dis|un)?([a-z]{3,}?)(?:ments?|c(?:y|ies)|(?:at)?ions?|ings?|out|down|up|off|over)")
_QUANTITIES = words("number amount total majority minority half quarter overnight")
_QUALITIES = ("ness", "ance", "ence", "ation", "ment", "ity")
_WEAK_HEADS = words("""
fall rise drop loss increase decrease decline call offer staff member official period position figure
""")  # "hearing loss" is a term if the text is about it
_DEGREES = words("""
growing rising falling increasing double triple positive negative senior strong tight cent percent
""")
_COUNTED = late_re(
    r"(?:\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|[mb]illion|mln))\s$"
)
_HELD = late_re(rf"'s (?:{'|'.join(sorted(map(str.lower, HOLDINGS)))})$")
_WORD = late_re(r"[^\W\d_]+(?:-[^\W\d_]+)*")


@lru_cache(maxsize=4)
def tells_story(text: str) -> bool:
    """Whether a document in English has as many pronouns of persons as stories have."""
    return sum(map(text.count, _PRONOUNS)) >= max(MIN_PRONOUN_SHARE * len(text.split()), 1)


def reports(text: str, n_proper: int) -> bool:
    """Whether a text reports what has a name.

    Args:
        n_proper: occurrences of persons, organizations, places and events.
    """
    n_words = max(len(text.split()), 1)
    n_past, n_present = (sum(map(text.count, signs)) for signs in (_PAST, _PRESENT))
    is_story = tells_story(text)
    n_says = sum(map(text.count, _SAYS if is_story else (*_SAYS, *_SAID)))
    if n_says >= max(_MIN_SAYS, _MIN_SAYS_SHARE * n_words) and n_proper >= _MIN_PROPER_IN_NEWS * n_words:
        return True
    if n_proper < _MIN_PROPER_IN_PAST * n_words:
        return False
    return n_proper >= _MIN_PROPER * n_words or (n_past > _MIN_PAST * n_present and not is_story)


def drop_held_places(names: Iterable[Name]) -> list[Name]:
    """Return the names without places that are named by their owner only, as stories do: "Arafat's offices"."""
    return [name for name in names if not (name.form[-1].islower() and _HELD.search(name.form))]


def drop_ordinary_terms(concepts: Iterable[Name], text: str, title: str = "") -> list[Name]:
    """Return the terms that a reader of such a text looks up.

    A single word of every day or for persons ("skipper") goes. So does a word of one field that English prose knows
    ("rubble"), or that is made of common words ("buyout"), unless the title has it or it is mentioned three times. A
    phrase goes if it says how much or how ("growing number"), if its words are common and it is mentioned twice
    ("company store"), or if it names a kind of firm or person ("car maker"), begins with a participle ("proposed
    route") or ends with a change ("property loss") and is mentioned three times at most. What is mostly counted is a
    unit ("ounces").

    Args:
        concepts: the occurrences of the terms of one document.
        text: the document.
        title: the title of the document.
    """
    concepts = list(concepts)
    n_mentions = Counter(concept.form for concept in concepts)
    titled = {word.lower() for word in _WORD.findall(title)}
    n_counted = Counter(
        concept.form for concept in concepts if _COUNTED.search(text, max(concept.start - 12, 0), concept.start)
    )
    kept = {
        form
        for form, n in n_mentions.items()
        if not (2 * n_counted[form] > n and _may_be_unit(form))
        and (_is_sought_phrase if " " in form else _is_sought)(form, n, titled)
    }
    return [concept for concept in concepts if concept.form in kept]


def _may_be_unit(form: str) -> bool:
    """Whether a counted term is a unit or begins with the abbreviation of one: "ounces", "pct stake"."""
    first, _, noun = form.partition(" ")
    return not noun or english_rank(first) is None


def drop_story_terms(concepts: Iterable[Name], text: str, title: str = "") -> list[Name]:
    """Return the terms that a reader of a story looks up.

    Besides the terms that `drop_ordinary_terms` drops, a quality goes ("acquaintance"), a phrase that describes a
    thing ("dim bulb"), a phrase of everyday words ("front seat"), and one of common words or for a person that is not
    mentioned four times. A person without a name may be a character: "the plump sister".

    Args:
        concepts, text, title: as in `drop_ordinary_terms`.
    """
    concepts = drop_ordinary_terms(concepts, text, title)
    n_mentions = Counter(concept.form for concept in concepts)
    return [concept for concept in concepts if _is_in_plot(concept.form, n_mentions[concept.form])]


def _is_in_plot(form: str, n_mentions: int) -> bool:
    parts = form.split()
    if len(parts) == 1:
        return not form.endswith(_QUALITIES)
    ranks = [english_rank(word) or UNKNOWN_RANK for word in parts]
    if PERSON_NOUN in (kind_of(parts[-1]), kind_of_plural(parts[-1])) or parts[-1].upper() in KIN:
        return n_mentions >= _MIN_SURE
    if may_be_adjective(parts[0]) or max(ranks) < _EVERYDAY_RANK:
        return False
    return max(ranks) >= _MIN_RANK or n_mentions >= _MIN_SURE


def _is_sought(word: str, n_mentions: int, titled: Set[str]) -> bool:
    if _is_ordinary(word):
        return False
    if titled & {word, f"{word}s"}:
        return True
    is_rare = english_rank(word) is None and not _is_made_of_common_words(word)
    is_deed = not is_rare and may_be_verb(word)  # "spill", "freeze"
    return n_mentions >= (_MIN_RARE if is_rare else _MIN_DEED if is_deed else _MIN_KNOWN)


def _is_made_of_common_words(word: str) -> bool:
    """Whether English prose has the parts of a word or what it derives from: "clean-up", "buyout", "entitlements"."""
    if any(map(english_rank, word.split("-"))):
        return True
    derived = _DERIVED.fullmatch(word)
    if derived is None:
        return english_rank(f"{word}ed") is not None
    stem = derived.group(1)
    return any(map(english_rank, (stem, f"{stem}e", f"{stem}t", f"{stem}d", f"{stem}ed")))


def _is_sought_phrase(phrase: str, n_mentions: int, titled: Set[str]) -> bool:
    parts = phrase.split()
    last = parts[-1].upper()
    heads = {last, last.removesuffix("S"), last.removesuffix("ES")}
    if parts[0].upper() in _DEGREES or heads & _QUANTITIES:
        return False
    if titled >= set(parts) or n_mentions >= _MIN_SURE:
        return True
    if {kind_of(parts[-1]), kind_of_plural(parts[-1])} & {PERSON_NOUN, BODY_NOUN}:
        return False  # "gold mining company" is one that has a name
    if heads & _WEAK_HEADS or (parts[0].endswith(_PARTICIPLES) and may_be_verb(_verb_of(parts[0]))):
        return False
    return n_mentions >= _MIN_COMMON or any((english_rank(word) or UNKNOWN_RANK) >= _COMMON_RANK for word in parts)


def _verb_of(participle: str) -> str:
    """Return the verb of a participle: "decide" of "deciding", "arm" of "armed", "plan" of "planned"."""
    stem = participle.removesuffix("ing").removesuffix("ed")
    doubled = stem[:-1] if stem[-1:] == stem[-2:-1] else stem
    return next((verb for verb in (stem, f"{stem}e", doubled) if english_rank(verb)), stem)


def _is_ordinary(word: str) -> bool:
    is_person = PERSON_NOUN in (kind_of(word), kind_of_plural(word))
    return is_person or (english_rank(word) or UNKNOWN_RANK) < _MIN_RANK
