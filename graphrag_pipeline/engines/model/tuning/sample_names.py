"""Names and words of the sample: a weak model gives them back as entity types.

Names are those that the embedded engine finds.

Words that name no kind of thing: function words, adjectives, verbs. A weak model gives them back as entity types.

Evidence comes from the texts: how they use a word behind an article or a possessive. "the harbour was" uses it as a
noun, "a little boy" as an adjective. A word without enough uses is judged by lists and by its ending alone. Types are
English, so only English texts are counted.

Keep out: the request for entity types (`requests.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.text.entity_types import CONCEPT, PERSON
from graphrag_pipeline.text.languages import SMALL_WORDS, detect_language
from graphrag_pipeline.text.name_words import (
    EVENT_TAILS,
    ORGANIZATION_HEADS,
    ORGANIZATION_TAILS,
    PLACE_HEADS,
    PLACE_TAILS,
    words,
)
from graphrag_pipeline.text.sentence_forms import find_words

MIN_USES = 3
"""Uses behind an article from which on they decide."""
MIN_NOUN_SHARE = 0.35
MANY_USES = 15
"""Uses from which on a word that never ends a phrase behind an article or a preposition is no noun."""

_TOKEN = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?|[^\w\s]")
_DETERMINERS = words("the a an his her their my our your its this that these those every each some any no another")
_PREPOSITIONS = words("of in at on by with from for into about without between among")
FUNCTION_WORDS = words("""
a an the this that these those i me my mine myself we us our ours you your yours he him his she her hers it its they
them their theirs who whom whose which what where when why how there here then than thus so such as at by for from in
into of off on onto out over to under up upon with within without about above across after again against ago all almost
alone along already also although always among amongst and another any anybody anyone anything anyway anywhere are
around away back be became because become been before behind being below beneath beside besides between beyond both but
can cannot could despite did do does done down during each either else enough even ever every everybody everyone
everything everywhere except few finally firstly for formerly further furthermore had has have hence therein thereto
thereof hereunder hereto hereof herein hereby however if indeed instead is just lastly let like likely many maybe
meanwhile merely might more moreover most mostly much must namely near nearly neither never nevertheless no nobody none
nonetheless nor not nothing notwithstanding etc now nowhere often once one only or other others otherwise ought own per
perhaps please possibly probably quite rather really said same secondly see seldom several shall should similarly since
some somebody somehow someone something sometimes somewhere soon still surely thank thanks therefore thereafter thereby
though through throughout till together too toward towards truly twice unless until unlike usually various very via was
well were whatever whenever whereat whereupon whereof wherein wherever whether while whilst will would yes yet yesterday
today tomorrow tonight tis twas twill ah aha alas amen aye bah begone bye eh gee goodbye ha halloa hallo hello hey hi
hilli hm hmm ho
hollo humbug hurrah hurray hush lo nay o o'clock oh ok okay ooh ouch pooh ugh wow ma'am
http https www
""")
_ADVERB_ENDINGS = ("LY", "ING", "ED")
_ADJECTIVE_ENDINGS = ("FUL", "OUS", "LESS")
_DESCRIBING = words("""
new old young great poor big small large early late recent former little long last first second third next dear good bad
happy merry quick sorry high low hard easy strong weak dark bright cold hot warm dry wet deep wide short full empty rich
important different similar special common certain possible available real true false whole main major minor central
national international local public private political social economic military legal final free clear white black red
blue green brown gray grey known made come gone taken given seen found
""")
_BEFORE_PREDICATES = words("""
is are was were be been being am had has have he she it they we i you who very so too as more most how quite rather
""")
_VERB_ENDINGS = ("ED", "ING", "S")
_PLURALS = (("IES", "Y"), ("ES", ""), ("S", ""))


@dataclass(frozen=True)
class TypeWords:
    """Uses of the words of English texts, in upper case; only words in lower case are counted.

    Attributes:
        nouns, modifiers: behind an article or a possessive: before the end of a phrase, and before another word.
        objects: between a preposition and the end of a phrase ("at school,").
        predicates: behind a subject, a form of "be" or "have", or "very": as a verb or an adjective.
        all_uses: all of them.
        foreign: function words of the other languages of the texts.
    """

    nouns: Counter[str] = field(default_factory=Counter)
    modifiers: Counter[str] = field(default_factory=Counter)
    objects: Counter[str] = field(default_factory=Counter)
    predicates: Counter[str] = field(default_factory=Counter)
    all_uses: Counter[str] = field(default_factory=Counter)
    foreign: frozenset[str] = frozenset()

    def name_no_kind(self, entity_type: str, kinds: Collection[str] = ()) -> bool:
        """Return whether an entity type is a function word, an adjective or a verb by its last word.

        Args:
            kinds: words that do name kinds, in upper case.
        """
        head = entity_type.split()[-1]
        if head in kinds:
            return False
        if head in FUNCTION_WORDS or head in _DESCRIBING or head in self.foreign:
            return True
        counts = (self.nouns, self.modifiers, self.objects, self.all_uses)
        n_nouns, n_modifiers, n_objects, n_all = (sum(count[form] for form in _forms_of(head)) for count in counts)
        if self.predicates[head] >= max(MIN_USES, n_nouns + n_objects + 1):
            return True
        if n_nouns + n_modifiers >= MIN_USES:
            return n_nouns < MIN_NOUN_SHARE * (n_nouns + n_modifiers)
        if n_nouns + n_objects:
            return False
        is_used_otherwise = n_all >= MANY_USES or (n_all >= MIN_USES and head.endswith(_ADVERB_ENDINGS))
        return is_used_otherwise or head.endswith(_ADJECTIVE_ENDINGS)


def count_uses(texts: Iterable[str]) -> TypeWords:
    """Count how texts use their words."""
    uses, foreign = TypeWords(), set[str]()
    for text in texts:
        language = detect_language(text)
        if language in ("en", ""):
            _count(_TOKEN.findall(text), uses)
        else:
            foreign.update(word.upper() for word in SMALL_WORDS.get(language, ()))
    return replace(uses, foreign=frozenset(foreign))


def _count(tokens: list[str], uses: TypeWords) -> None:
    for before, word, behind in zip(["", *tokens], tokens, [*tokens[1:], "."], strict=False):
        if not word.islower():
            continue
        key, next_key, before_key = word.upper(), behind.upper(), before.upper()
        uses.all_uses[key] += 1
        ends = not behind[0].isalpha() or next_key in FUNCTION_WORDS
        if before_key in _DETERMINERS and behind != ",":  # "a cold, dark night", "the ship, a brig"
            if ends:
                uses.nouns[key] += 1
            elif not next_key.endswith(_VERB_ENDINGS):
                uses.modifiers[key] += 1
        elif before_key in _BEFORE_PREDICATES:
            uses.predicates[key] += 1
        elif before_key in _PREPOSITIONS and ends:
            uses.objects[key] += 1


def _forms_of(word: str) -> set[str]:
    """Return a noun in the singular and the plural."""
    plural = (
        word[:-1] + "IES" if word.endswith("Y") else word + ("ES" if word.endswith(("S", "X", "CH", "SH")) else "S")
    )
    singular = next((word.removesuffix(end) + stem for end, stem in _PLURALS if word.endswith(end)), word)
    return {word, plural, singular}


_WORD = re.compile(r"[^\W\d_]+")
_INSIDE = re.compile(r"(?<=[a-z\u00df-\u00ff,;] )[A-Z\u00c0-\u00de][^\W\d_]+")
"""A word with a capital that does not begin a sentence."""
_KINDS = frozenset(
    word.upper() for word in (*ORGANIZATION_TAILS, *ORGANIZATION_HEADS, *PLACE_TAILS, *PLACE_HEADS, *EVENT_TAILS)
) | {"PERSON", "ORGANIZATION", "GEO", "EVENT", "LOCATION", "PLACE", "CONCEPT", "DATE", "WORK", "PRODUCT", "PEOPLE"}
"""Words for kinds of entities, also where the texts have them in names only."""


@dataclass(frozen=True)
class SampleNames:
    """Names in the sample.

    Attributes:
        names: titles of names, without key phrases.
        name_words: words of persons' names, and words that the texts write inside sentences with a capital only; in
            upper case. German texts, which write every noun so, do not count for the latter.
        common_words: words that the texts write in lower case, in upper case here: "museum" is not only a name.
        kinds: common words that end names of other things than persons: "Kestrel Museum" is a museum.
        uses: of the words of the texts.
    """

    names: frozenset[str] = frozenset()
    name_words: frozenset[str] = frozenset()
    common_words: frozenset[str] = frozenset()
    kinds: frozenset[str] = _KINDS
    uses: TypeWords = field(default_factory=TypeWords)

    def refuse(self, entity_type: str) -> str | None:
        """Return why an entity type names no kind of entity; None if it may."""
        if self.hold(entity_type):
            return "type that is a name in the texts"
        return "type that names no kind of thing" if self.uses.name_no_kind(entity_type, self.kinds) else None

    def hold(self, entity_type: str) -> bool:
        """Return whether an entity type is a name of the sample, or has a word that is only a name there."""
        words = find_words(normalize_title(entity_type))
        own = [word for word in words if word not in self.common_words and word not in _KINDS]
        return bool(own) and (normalize_title(entity_type) in self.names or not self.name_words.isdisjoint(own))


def read_names(texts: Iterable[str], mentions: Mapping[str, Sequence[Mapping[str, Any]]]) -> SampleNames:
    """Return the names of a sample.

    Args:
        mentions: text unit id -> rows with `name` and `type` of the embedded engine.
    """
    given = list(texts)
    rows = [row for listed in mentions.values() for row in listed if row["type"] != CONCEPT]
    persons = (normalize_title(row["name"]) for row in rows if row["type"] == PERSON)
    written = {word for text in given for word in _WORD.findall(text)}
    others = (find_words(normalize_title(row["name"])) for row in rows if row["type"] != PERSON)
    inside = {word.upper() for text in given if detect_language(text) != "de" for word in _INSIDE.findall(text)}
    common = frozenset(word.upper() for word in written if word == word.lower() != word.upper())
    return SampleNames(
        frozenset(normalize_title(row["name"]) for row in rows),
        frozenset(word for title in persons for word in find_words(title)) | inside,
        common,
        _KINDS | {words[-1] for words in others if len(words) > 1 and words[-1] in common},
        count_uses(given),
    )
