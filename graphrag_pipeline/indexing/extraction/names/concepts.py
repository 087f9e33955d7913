"""Key phrases of an English document, in lower case: "interest rates", "goose", "depth first search".

Candidates are the word sequences between function words and punctuation, as in RAKE (Rose et al. 2010), that the
document uses as noun phrases. A single word is scored by its keyness against English, the log-likelihood ratio G2 = 2 *
(O * ln(O / E) - (O - E)) (Dunning 1993) of its count O and the count E expected from its token rank. A phrase of
several words is scored by its count times the sum of the logarithms of the ranks. Words that mean little in every text
are listed below.

Keep out: names.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from graphrag_pipeline.indexing.extraction.names.capitalization import token_rank
from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES, KIN, LONERS, STOPWORDS, words
from graphrag_pipeline.indexing.extraction.names.finder import Name, title_of
from graphrag_pipeline.indexing.extraction.names.predicates import VERBS

MAX_PHRASE_WORDS = 3
_MIN_WORD_COUNT = 4
_MIN_PHRASE_COUNT = 2  # in a document of up to _LONG words, else 3
_LONG = 2_500
_MIN_KEYNESS = 45.0
_MIN_EVERYDAY_KEYNESS = 100.0
_MIN_NOUN_SHARE = 0.5  # of a word's occurrences at the end of a noun phrase
_MIN_HEAD_SHARE = 0.35
_COMMON_RANK = 3_000
_UNKNOWN_RANK = 60_000  # of a word of several tokens
_ZIPF = 12.0  # the n-th word of English is one in 12 n

_SPEAKS = re.compile(
    r"['\"\u2019\u201d]\s+(?:said|cried|replied|answered|exclaimed|whispered|muttered)\s+(?:the|an?)\s+$"
)
_TOKEN = re.compile(r"[^\W\d_]+(?:[-'’][^\W\d_]+)*|[^\w\s]|\d+")
_STOP = frozenset(word.lower() for word in STOPWORDS | LONERS)
_BEFORE_NOUNS = frozenset(
    word.lower()
    for word in words("""
    the a an his her their its my your our this that these those no some any every each another of in with for by from
    per over between into without within on at
    """)
)
_SUFFIXES = ("ly", "'t", "’t", "'s", "’s", "'ll", "’ll", "self", "selves")
_VERB_ENDINGS = ("s", "ed")
_NO_NOUNS = ("ING", "MAL", "FUL", "OUS", "LESS", "IVE", "ABLE")  # of single words
# Heads of phrases in every kind of text; they do not distinguish one text from another.
_VAGUE = words("""
hand hands head heads face faces eye eyes arm arms finger fingers foot feet leg legs knee knees hair ear ears nose mouth
lip lips voice voices breast breath skin shoulder shoulders neck back body heart hearts mind minds soul spirits tear
tears smile laugh cry look looks glance chuckle sob sigh grin frown nod whisper word words name names man men woman
women boy boys girl girls child children
baby person persons people fellow fellows gentleman gentlemen lady ladies friend friends stranger crowd folk folks
mr mrs sir dear parent parents family families father mother brother sister son daughter wife husband uncle aunt nephew
niece clerk time times day days night nights morning evening afternoon hour hours minute minutes moment moments second
seconds week weeks month months year years century decade age ages date end ends beginning start middle place places
side sides part parts piece pieces bit way ways thing things matter matters kind kinds sort sorts form forms case cases
point points number numbers amount lot lots deal rest half quarter dozen pair couple group groups member members set
line lines list order fact facts reason reasons cause effect result results doubt doubts idea ideas thought thoughts
sense feeling feelings hope fear fears wish joy pleasure delight grief pain surprise wonder life lives death world
state condition situation manner degree use effort attempt chance turn step steps sight sound sounds noise silence
light darkness shadow shadows air subject object question questions answer answers example examples term terms type
types level levels size length height width distance top bottom front edge corner inside outside position direction
work works job business affair affairs trade home house room street town city village country bed chair table
use uses role roles career film films movie song songs album book books story stories chapter page paper article
""")
# Everyday things of stories: a single word counts only with a high keyness; "trap door" counts as usual.
_EVERYDAY = words("""
door doorway doors window windows wall walls floor floors ceiling roof stair stairs staircase step hall chamber kitchen
parlour cellar fire fireplace hearth lamp candle candles light lights clock watch curtain curtains carpet blanket pillow
sheet desk drawer stool bench shelf lock key box bag basket bundle parcel bottle glass cup plate dish spoon knife fork
breakfast lunch dinner supper meal meals bread coat hat cap cloak robe gown dress shirt skirt trousers shoe shoes boot
boots glove gloves scarf pocket button ribbon clothes stick rope wheel rain snow wind fog mist sky cloud clouds
""")
_VAGUE_FIRST = words("""
other such much many more most very own whole single certain several various different similar main major minor
important possible necessary available able full empty wide high low short long hard soft easy simple clear common
general special particular real true false right wrong left same next last new old great little much ill well far near
drawn aside find locked shaking going coming looking saying seeing being having making taking getting heartily perfectly
dead alone asleep awake alive afraid sorry glad ready
""")


@dataclass
class _Counts:
    """Counts of one pass over the words of a document."""

    words: Counter[str]
    heads: Counter[str]  # at the end of a noun phrase
    phrases: Counter[tuple[str, ...]]
    n_tokens: int


def find_concepts(text: str, names: Iterable[Name], starts: list[int]) -> list[Name]:
    """Find the occurrences of the key phrases of a document, in reading order, outside of names.

    Args:
        names: names in the document; a phrase that is also a name is left out.
        starts: start offset of each sentence, in order.

    Returns:
        One `Name` per occurrence; its form is the phrase in the singular, if the document contains the singular.
    """
    names = list(names)
    concepts = choose_concepts(text, {title_of(name.form) for name in names})
    if not concepts:
        return []
    forms = {variant: form for form, variants in concepts.items() for variant in variants}
    ordered = sorted(forms, key=lambda variant: (-len(variant), variant))
    written = "|".join(r"\s+".join(re.escape(word) for word in variant.split()) for variant in ordered)
    pattern = re.compile(rf"(?<![\w-])(?:{written})(?![\w-])", re.IGNORECASE)
    taken = sorted((name.start, name.end) for name in names)
    begins = [start for start, _ in taken]
    found = []
    for match in pattern.finditer(text):
        before = bisect_right(begins, match.end() - 1)
        if any(end > match.start() for _, end in taken[max(before - 3, 0) : before]):
            continue
        form = forms[" ".join(match.group().lower().split())]
        found.append(Name(form, match.start(), match.end(), bisect_right(starts, match.start()) - 1))
    return found


def find_speakers(text: str, concepts: Iterable[Name]) -> set[str]:
    """Return the forms that follow a verb of speaking and are therefore persons: ", cried the phantom"."""
    return {c.form for c in concepts if _SPEAKS.search(text, max(c.start - 24, 0), c.start)}


def choose_concepts(text: str, taken: set[str]) -> dict[str, list[str]]:
    """Choose key phrases with their written variants: at most sqrt(n words) / 10 single words and as many phrases.

    Args:
        taken: titles of the names in this document.
    """
    counts = _count(text)
    quota = round(math.sqrt(counts.n_tokens) / 10)
    variants = _fold_plurals(counts)
    phrases = _best(_score_phrases(counts), quota, taken)
    inside = {word for phrase in phrases for word in phrase.split()}
    single = _best({w: s for w, s in _score_words(counts).items() if w not in inside}, quota, taken)
    return {form: sorted(_spell(form, variants)) for form in [*phrases, *single]}


def _count(text: str) -> _Counts:
    tokens = _TOKEN.findall(text)
    tokens.append(".")
    content = {token for token in set(tokens) if _is_content(token)}
    words: list[str] = []
    heads: list[str] = []
    phrases: list[tuple[str, ...]] = []
    n_run = 0  # words of the current candidate
    for place, token in enumerate(tokens):
        if token in content:
            words.append(token)
            n_run += 1
        elif n_run:
            if tokens[place - n_run - 1] in _BEFORE_NOUNS:
                heads.append(words[-1])
                if n_run > 1 and words[1 - n_run].endswith(_VERB_ENDINGS):  # "the turbine makes power"
                    heads.append(words[-n_run])
            if 1 < n_run <= MAX_PHRASE_WORDS:
                phrases.append(tuple(words[-n_run:]))
            n_run = 0
    return _Counts(Counter(words), Counter(heads), Counter(phrases), len(tokens))


def _is_content(token: str) -> bool:
    return token.islower() and len(token) > 2 and token not in _STOP and not token.endswith(_SUFFIXES)


def _fold_plurals(counts: _Counts) -> dict[str, set[str]]:
    """Add the counts of plurals to their singulars, also at the end of phrases; return singular -> plurals."""
    variants: defaultdict[str, set[str]] = defaultdict(set)
    for word in [w for w in counts.words if w.endswith("s") and counts.words[w[:-1]] and len(w) > 3]:
        variants[word[:-1]].add(word)
        for counter in (counts.words, counts.heads):
            counter[word[:-1]] += counter.pop(word, 0)
    for phrase in [p for p in counts.phrases if p[-1] in variants.get(p[-1][:-1], ())]:
        counts.phrases[(*phrase[:-1], phrase[-1][:-1])] += counts.phrases.pop(phrase)
    return variants


def _spell(form: str, variants: dict[str, set[str]]) -> set[str]:
    *first, last = form.split()
    return {" ".join((*first, spelling)) for spelling in (last, *variants.get(last, ()))}


def _score_words(counts: _Counts) -> dict[str, float]:
    scores = {}
    for word, count in counts.words.items():
        if count < _MIN_WORD_COUNT or counts.heads[word] < _MIN_NOUN_SHARE * count or _is_vague(word):
            continue
        if word.upper().endswith(_NO_NOUNS):
            continue
        rank = token_rank(word)
        if rank is not None and rank < _COMMON_RANK:
            continue
        keyness = _keyness(count, counts.n_tokens / (_ZIPF * (rank or _UNKNOWN_RANK)))
        if keyness >= (_MIN_EVERYDAY_KEYNESS if word.upper() in _EVERYDAY else _MIN_KEYNESS):
            scores[word] = keyness
    return scores


def _keyness(count: int, expected: float) -> float:
    return 2 * (count * math.log(count / expected) - (count - expected)) if count > expected else 0.0


def _score_phrases(counts: _Counts) -> dict[str, float]:
    least = _MIN_PHRASE_COUNT + (counts.n_tokens > _LONG)
    scores = {}
    for phrase, count in counts.phrases.items():
        if count < least or (_is_vague(phrase[-1]) and phrase[-1].upper() not in KIN):
            continue
        if phrase[0].upper() in _VAGUE_FIRST or any(word.upper() in VERBS for word in phrase):
            continue
        if counts.heads[phrase[-1]] < _MIN_HEAD_SHARE * counts.words[phrase[-1]]:
            continue
        scores[" ".join(phrase)] = count * sum(math.log(token_rank(word) or _UNKNOWN_RANK) for word in phrase)
    return scores


def _is_vague(word: str) -> bool:
    key = word.upper()
    return key in _VAGUE or key in KIN or key.removesuffix("S") in _VAGUE


def _best(scores: dict[str, float], n: int, taken: set[str]) -> list[str]:
    kept = [form for form in scores if form.upper() not in taken and form.upper() not in GIVEN_NAMES]
    return sorted(kept, key=lambda form: (-scores[form], form))[:n]
