"""Words that name no kind of thing: function words, adjectives, verbs. A weak model gives them back as entity types.

Evidence comes from the texts: how they use a word behind an article or a possessive. "the harbour was" uses it as a
noun, "a little boy" as an adjective. A word without enough uses is judged by lists and by its ending alone. Types are
English, so only English texts are counted. Keep out: names (`sample_names.py`).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from graphrag_pipeline.text.languages import SMALL_WORDS, detect_language
from graphrag_pipeline.text.name_words import words

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
