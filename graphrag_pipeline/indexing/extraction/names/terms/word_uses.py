"""Uses of the words of one document in lower case: as nouns, verbs and adjectives, and in phrases.

A word is judged by its neighbours, without a parser: "the biopsy of" is a noun, "to return the" a verb, "is possible
to" an adjective. A run is a sequence of content words between function words, punctuation, capitals and the ends of
sentences.

Keep out: forms of words (`word_forms.py`), and which words and phrases are terms (`concepts.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import islice, pairwise, takewhile

from graphrag_pipeline.indexing.extraction.names.cues import LONERS, STOPWORDS, words
from graphrag_pipeline.indexing.extraction.names.terms.background import load_ranks
from graphrag_pipeline.indexing.extraction.names.terms.coined_words import is_coined
from graphrag_pipeline.indexing.extraction.names.terms.word_forms import (
    SINGULARS,
    is_participle,
    is_technical,
    may_be_adjective,
    singular_of,
    stems_of,
)
from graphrag_pipeline.text.late_patterns import late_re

MAX_PHRASE_WORDS = 4
MIN_PRONOUN_SHARE = 0.03
"""Share of the words of a story that are pronouns of persons."""

_CODE_LINE = late_re(r"^[ \t]*(?:>>>|\.\.\.|\$|import|from \S+ import|def|class|except)[ \t][^\n]*$", re.MULTILINE)
_LINE_HYPHEN = late_re(r"(?<=[a-z])[-\u2010\u00ad]\n\s*(?=[a-z])")
_TOKEN = late_re(
    r"[\w.$@~/\\-]{0,200}[_$@~/\\=(<>*|`+][\w.$@~/\\=(<>*|`+-]*|[^\W\d_]+(?:[-\u2010'’][^\W\d_]+)*|\d+|[^\w\s]|\n\n"
)
"""Code and paths, words, numbers, signs. Code has its first sign within 200 characters, so that a line of a million
full stops takes linear time."""
_SUFFIXES = ("ly", "'t", "’t", "'s", "’s", "'ll", "’ll", "self", "selves")
_SMALL = frozenset(word.lower() for word in STOPWORDS | LONERS) | {"may"}
_BEFORE_NOUN = frozenset(
    word.lower()
    for word in words("""
    the a an his her their its my your our this that these those no some any every each another of in with for by from
    per over between into without within on at after before during against about through under both
    """)
)
_BEFORE_PLURAL = _BEFORE_NOUN - {"a", "an", "this", "that", "each", "every", "another"}
_DETERMINERS = frozenset(
    word.lower() for word in words("the a an his her their its my your our this that these those no each every any")
)
_ARTICLES = frozenset({"the", "a", "an", "its", "their", "each", "every"})
_BEFORE_VERB = frozenset(
    word.lower()
    for word in words("""
    to will would can could may might must shall should not it they we you he she i who which that cannot don't doesn't
    """)
)
_BEFORE_ADJECTIVE = frozenset(
    word.lower()
    for word in words("""
    is are was were be been being very too so more most as how less least quite rather if also often always usually
    no_longer
    """)
)
_AFTER_NOUN = frozenset(
    word.lower()
    for word in words("""
    of in with for by from on at to is are was were has have had can may might must should will would could and or that
    which who whose when where if as than after before during but do does into between over under through because while
    until since
    """)
) | frozenset(".,;:!?)]\"'’”")
_AFTER_VERB = frozenset(
    word.lower()
    for word in words("the a an his her their its my your our this these those any each every all it them him us me")
)
_LISTING = frozenset((",", "and", "or", "but", "than"))
_LISTED = frozenset((",", "and", "or"))
_DOSES = (["mg"], ["micrograms"], ["mcg"], ["g"], ["ml"], ["units"])
_GOVERNED = frozenset({"on", "to", "upon"})
_MIN_GOVERNED = 0.5  # of the occurrences of a word with and without "s"
_FINITE = frozenset(
    word.lower() for word in words("is are was were has have had may can must should will would could might does do")
)
_BEFORE_SUBJECT = frozenset({"", ".", ";", ":", ",", "if", "when", "because", "while", "unless", "until"})
_PRONOUNS = frozenset(("I", "he", "He", "she", "She", "him", "his", "His", "her", "Her", "me", "my", "My"))
_MIN_CLIPPED, _MAX_CLIPPED = 3, 6  # letters of a clipped word; the least number is also that of the letters cut off
_MAX_SAID = 6  # a participle of a term is behind a verb once in so many uses
_MIN_OPENER = 5  # letters
_AFTER_OPENER = _FINITE | {"and", "or", "of", ","}


@dataclass
class WordUses:
    """Counts of one pass over a document.

    Attributes:
        n_words: words of the document.
        n_pronouns: words such as "he" and "my", which stories have and explanations have not.
        total: occurrences of each content word, those with a capital at the start of a sentence included.
        nouns, verbs, adjectives: occurrences that the neighbours of a word show to be one.
        alone: occurrences without another content word after "the", "of" and the like, where no verb stands.
        runs: sequences of two or more content words, with their number.
        plurals: singular -> its plurals in the document.
        firm: nouns between an article or another determiner and a word other than "and" and "or", which an adjective of
            a list is not ("the social and economic change"), and plurals.
        governed: uses of a word of two or more, in front of "on" and "to": "the result depends on".
        articled: uses of a word alone behind an article or a word like it: "the failure".
        headed: uses of a word behind another word that describes it: "long QT syndrome", "SGLT2 inhibitors".
        listed: words that English prose does not know, listed with one ("varenicline or bupropion") or dosed ("80 mg").
        last: words that end a sequence of content words somewhere, where an adjective does not stand.
        in_sentences: words, and pairs of neighbours, outside of headings; empty if there are no headings.
    """

    n_words: int = 0
    n_pronouns: int = 0
    total: Counter[str] = field(default_factory=Counter)
    nouns: Counter[str] = field(default_factory=Counter)
    verbs: Counter[str] = field(default_factory=Counter)
    adjectives: Counter[str] = field(default_factory=Counter)
    alone: Counter[str] = field(default_factory=Counter)
    firm: Counter[str] = field(default_factory=Counter)
    governed: Counter[str] = field(default_factory=Counter)
    articled: Counter[str] = field(default_factory=Counter)
    headed: Counter[str] = field(default_factory=Counter)
    listed: Counter[str] = field(default_factory=Counter)
    last: set[str] = field(default_factory=set)
    runs: Counter[tuple[str, ...]] = field(default_factory=Counter)
    plurals: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    in_sentences: set[str | tuple[str, str]] = field(default_factory=set)

    @property
    def is_narrative(self) -> bool:
        return self.n_pronouns > MIN_PRONOUN_SHARE * self.n_words

    def noun_share(self, word: str) -> float:
        """Return the share of noun uses among the uses that the neighbours decide; 0 without any."""
        n_nouns = self.nouns[word]
        return n_nouns / (n_nouns + self.verbs[word] + self.adjectives[word]) if n_nouns else 0.0

    @cached_property
    def _in_order(self) -> list[str]:
        return sorted(self.total)

    def is_clipped(self, word: str) -> bool:
        """Whether a short word that English does not know is cut from a noun of the document: "config".

        The noun is used half as often at least: "diff" is a term of its own beside a "difference" or two.
        """
        if not _MIN_CLIPPED <= len(word) <= _MAX_CLIPPED or word in load_ranks():
            return False
        stem = word.removesuffix("s")
        place = bisect_right(self._in_order, stem)
        longer = takewhile(lambda other: other.startswith(stem), islice(self._in_order, place, None))
        full = [other for other in longer if len(other) >= len(stem) + _MIN_CLIPPED and other in load_ranks()]
        return any(self.nouns[other] and 2 * self.total[other] >= self.total[word] for other in full)

    def is_inflected(self, word: str) -> bool:
        """Whether the document has the past and the gerund of a word, as of a verb: "deleted", "deleting"."""
        stems = stems_of(word)
        return any(f"{stem}ed" in self.total for stem in stems) and any(
            f"{stem}ing" in self.total for stem in (*stems, word)
        )

    def is_state(self, word: str, noun: str) -> bool:
        """Whether a participle describes a state: the text also says it behind a verb ("the file is encrypted").

        A noun that it stands before in half of its uses is a term with it: "shared library".
        """
        if not is_participle(word) or _MAX_SAID * self.adjectives[word] <= self.total[word]:
            return False
        nouns = {noun, *self.plurals.get(noun, ())}
        n_pairs = sum(n for run, n in self.runs.items() if any(a == word and b in nouns for a, b in pairwise(run)))
        return 2 * n_pairs < self.total[word]

    def n_followers(self, word: str) -> int:
        """Return how many words follow a word in the runs."""
        return len({b for run in self.runs if word in run for a, b in pairwise(run) if a == word})


def count_uses(text: str, spans: Iterable[tuple[int, int]], headings: Sequence[bool] = ()) -> WordUses:
    """Count the uses of the content words of a document.

    Args:
        spans: its sentences, as offsets.
        headings: for each sentence, whether it is a heading or a fragment; () if none is.
    """
    uses = WordUses()
    sentences = [_TOKEN.findall(_LINE_HYPHEN.sub("", _CODE_LINE.sub(".", text[start:end]))) for start, end in spans]
    known = {token for tokens in sentences for token in tokens[1:] if token.islower()}
    known |= _find_openers(sentences)
    for number, tokens in enumerate(sentences):
        if headings and not headings[number]:
            small = list(map(str.lower, tokens))
            uses.in_sentences.update(small)
            uses.in_sentences.update(pairwise(small))
        uses.n_words += sum(token[0].isalpha() for token in tokens)
        uses.n_pronouns += sum(token in _PRONOUNS for token in tokens)
        if tokens and tokens[0].istitle() and _is_small(tokens[0].lower(), known):
            tokens[0] = tokens[0].lower()
        _count_sentence(tokens, uses)
    _fold_plurals(uses)
    return uses


def _find_openers(sentences: Sequence[Sequence[str]]) -> set[str]:
    """Return the words that only open sentences, two or more, and that English prose does not know: "Flecainide is".

    A name has its capital inside of sentences, too.
    """
    openers = Counter(
        tokens[0].lower()
        for tokens in sentences
        if len(tokens) > 2 and tokens[0].istitle() and len(tokens[0]) >= _MIN_OPENER and tokens[1] in _AFTER_OPENER
    )
    rare = {word for word, n in openers.items() if n > 1 and word not in load_ranks()}
    return rare - {token.lower() for tokens in sentences for token in tokens[1:] if token.istitle()} if rare else rare


def _is_small(word: str, known: Container[str]) -> bool:
    """Whether the capital of a word only opens its sentence: of one known in small letters, and a coined word."""
    return word in known or _is_adjective(word) or is_coined(word)


def _is_adjective(word: str) -> bool:
    """Whether English prose has a word as an adjective, whose capital then only opens a sentence: "Typical"."""
    return word in load_ranks() and may_be_adjective(word)


def _count_sentence(tokens: list[str], uses: WordUses) -> None:
    run: list[str] = []
    before = listed = ""
    for number, token in enumerate(tokens):
        if _is_content(token):
            run.append(token)
            continue
        if run:
            _count_run(run, before, token, uses)
            if listed and len(run) == 1 and is_technical(run[0]):
                uses.listed.update((listed, run[0]))
            listed = run[-1] if token in _LISTED and is_technical(run[-1]) else ""
            if token.isdecimal() and is_technical(run[-1]) and tokens[number + 1 : number + 2] in _DOSES:
                uses.listed[run[-1]] += 1
            run = []
        else:
            listed = ""
        before = token.lower() if token.lower() in _SMALL else token
    if run:
        _count_run(run, before, ".", uses)


@lru_cache(maxsize=1 << 16)
def _is_content(token: str) -> bool:
    return (
        token.islower()
        and len(token) > 2
        and token.replace("-", "").replace("\u2010", "").isalpha()
        and token not in _SMALL
        and not token.endswith(_SUFFIXES)
    )


def _count_run(run: list[str], before: str, after: str, uses: WordUses) -> None:
    uses.total.update(run)
    first, last = run[0], run[-1]
    uses.last.add(last)
    is_alone = len(run) == 1
    uses.headed[last] += not is_alone or (before[:1].isupper() and before.lower() not in _SMALL)
    if is_alone:
        uses.articled[last] += before in _ARTICLES
        if before in _BEFORE_PLURAL:
            uses.alone[last] += 1
    else:
        if after in _GOVERNED:
            uses.governed[last] += 1
        follows_verb = before in _BEFORE_VERB and before not in _BEFORE_NOUN and not is_technical(first)
        if follows_verb:
            uses.verbs[first] += 1
        is_gerund = first.endswith("ing") and before not in _DETERMINERS
        is_cut = follows_verb or is_gerund or before.istitle()
        is_label = after[0].isdecimal()  # "version 2"
        phrase = tuple(run[1 if is_cut else 0 : -1 if after in _AFTER_VERB or is_label else None])
        if len(phrase) > 1:
            uses.runs[phrase] += 1
    if after in _AFTER_VERB:
        uses.verbs[last] += 1
        if len(run) > 1 and before in _BEFORE_NOUN:
            uses.nouns[run[-2]] += 1
    elif after in _FINITE and before in _BEFORE_SUBJECT and not last.endswith(("ing", "ed")):
        uses.nouns[last] += 1
    elif is_alone and before in _BEFORE_VERB and before not in _BEFORE_NOUN and is_technical(first):
        uses.nouns[last] += after in _AFTER_NOUN  # "according to verapamil and"
    elif is_alone and ((before in _BEFORE_VERB and before not in _BEFORE_NOUN) or _is_finite(before, last)):
        uses.verbs[first] += 1
    elif is_alone and before in _BEFORE_ADJECTIVE:
        uses.adjectives[first] += 1
    elif after in _AFTER_NOUN and _is_noun_place(last, is_alone, before, after):
        is_listed = is_alone and after in _LISTING
        uses.nouns[last] += not (is_listed and may_be_adjective(last))
        if before in _DETERMINERS and not is_listed:
            uses.firm[last] += 1


def _is_finite(before: str, word: str) -> bool:
    """Whether a word after "this" is a verb: "this allows", never "this tables"."""
    return before == "this" and word.endswith("s") and not word.endswith(("ss", "us", "is")) and word not in SINGULARS


def _is_noun_place(word: str, is_alone: bool, before: str, after: str) -> bool:
    """Whether the word before `after` is a noun; "by upgrading", "a value depending on", "birds live on" have verbs."""
    if word.endswith("ing"):
        return before in _DETERMINERS if is_alone else not after.isalpha()
    return before in _BEFORE_NOUN or (not is_alone and not after.isalpha())


def _fold_plurals(uses: WordUses) -> None:
    """Add the counts of plurals to their singulars, which the document or English must have."""
    for word in [word for word in uses.total if word.endswith("s") and len(word) > 3]:
        singular = singular_of(word, uses.total) or singular_of(word, load_ranks())
        if singular:
            uses.plurals[singular].add(word)
            # "the test fails" and "must fail", but never "the fails"
            n_verbs, n_nouns = uses.verbs[singular], uses.nouns[singular]
            if _is_governed(singular, word, uses):
                uses.verbs[singular] += uses.nouns.pop(singular, 0) + uses.nouns.pop(word, 0)
            elif (n_verbs and not n_nouns) or (n_verbs > n_nouns and not uses.alone[word]):
                uses.verbs[word] += uses.nouns.pop(word, 0)
            uses.firm[singular] += uses.nouns[word]
            if word in uses.last:
                uses.last.add(singular)
            for counter in (uses.total, uses.nouns, uses.verbs, uses.adjectives, uses.headed, uses.articled):
                counter[singular] += counter.pop(word, 0)


def _is_governed(singular: str, plural: str, uses: WordUses) -> bool:
    """Whether a word with and without "s" is a verb with a preposition: "it depends on", never "the depends"."""
    n_words = uses.total[singular] + uses.total[plural]
    is_alone = uses.alone[singular] or uses.alone[plural]
    return not is_alone and uses.governed[singular] + uses.governed[plural] >= _MIN_GOVERNED * n_words
