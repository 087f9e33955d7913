"""Terms of an English document, in lower case: "surgery", "lymph node", "depth first search".

A term of several words is a sequence of content words that ends with a noun. Its score is the C-value, log2(n words) *
(f - mean of f over the longer terms that contain it), where f counts its occurrences (Frantzi, Ananiadou and Mima
2000). A term of one word is scored by its keyness against English, the log-likelihood ratio G2 = 2 * (O * ln(O / E) -
(O - E)) (Dunning 1993) of its count O outside of longer terms and the count E expected from its rank in English
(`background.py`). Words that mean little in every text are listed in `concept_words.py`.

Each document is read alone, so that a new document does not change the terms of another one.

Keep out: names; how words are used (`word_uses.py`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import pairwise

from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES, KIN
from graphrag_pipeline.indexing.extraction.names.kind_nouns import PERSON_NOUN, kind_of, kind_of_plural
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.predicates import VERBS
from graphrag_pipeline.indexing.extraction.names.terms.background import UNKNOWN_RANK, english_rank, expected_count
from graphrag_pipeline.indexing.extraction.names.terms.coined_words import is_coined
from graphrag_pipeline.indexing.extraction.names.terms.concept_words import (
    EVERYDAY,
    GENERAL,
    VAGUE,
    is_general,
    is_number,
    is_vague_first,
)
from graphrag_pipeline.indexing.extraction.names.terms.nesting import complete_term, fold_forms, replace_nested
from graphrag_pipeline.indexing.extraction.names.terms.word_forms import (
    has_derived_noun,
    may_be_adjective,
    may_be_noun,
    may_be_verb,
    singular_of,
)
from graphrag_pipeline.indexing.extraction.names.terms.word_uses import MAX_PHRASE_WORDS, WordUses, count_uses
from graphrag_pipeline.text.late_patterns import late_re

_MAX_HEADINGS = 0.5  # of the text of a document that has sentences
_QUOTA, _STORY_QUOTA = 3, 11
_MIN_UNKNOWN = 4  # letters; shorter ones are arguments and endings of files: "obj", "deb"
_RARE_QUOTAS = 2  # times as many words that English prose does not know, such as "dapagliflozin"
_LONG = 2_500  # words
_MIN_C_VALUE = 2.0  # in a document of up to _LONG words, else 3
_MIN_WORD_COUNT = 4  # in a document of _SHORT to _LONG words, 3, and 2 for a rare word
_SHORT = 150
_MIN_RATIO = 8.0  # times as frequent as in English
_MIN_KEYNESS = 20.0
_MIN_STORY_KEYNESS = 45.0  # in a document that tells a story
_MIN_EVERYDAY_KEYNESS, _MIN_EVERYDAY_COUNT = 40.0, 12
_MIN_ORDINARY_COUNT = 8
_MIN_NOUN_SHARE = 0.6  # of the uses of a word that its neighbours decide
_MIN_ONLY_SO = 3  # occurrences of a phrase with one word before it
_MIN_COMPLETE_SHARE = 0.75  # of the occurrences of a phrase that the same word precedes
_MAX_HEADED_SHARE = 0.9  # of the occurrences of a common word that another word describes
_MIN_ARTICLED_VERB = 2  # uses with an article of a verb that has a noun of its own: "fail", "failure"
_MIN_HEAD_SHARE = 0.5  # of the last word of a phrase
_MIN_NOUN_USES = 0.1  # of all occurrences of a word

_SPEAKS = late_re(r"['\"\u2019\u201d]\s+(?:said|cried|replied|answered|exclaimed|whispered|muttered)\s+(?:the|an?)\s+$")
_WORD = late_re(
    r"(?<![\w/\\@$=<-])(?<![\w\])]\.)[^\W\d_]+(?:[-'’][^\W\d_]+)*(?![\w=\\-]|[\"\u201d]-|\.\w|\((?!\d|s\)))"
)  # not in code
_MIN_UNSURE_SHARE = 0.25  # noun uses of all occurrences of a word that may be an adjective or a verb
_MIN_FIRM = 3  # firm noun uses, which are enough for such a word
_EVERYDAY, _COMMON = 1_500, 5_000  # ranks of words that need more occurrences than others: "staff", "finance"
_RARE = 10_000  # rank of a word of one field: it needs fewer occurrences


def find_concepts(
    text: str,
    names: Iterable[Name],
    starts: list[int],
    headings: Sequence[bool] = (),
    terms: Set[str] = frozenset(),
) -> list[Name]:
    """Find the occurrences of the terms of a document, in reading order, outside of names.

    Args:
        names: names in the document; a term that is also a name is left out, unless the name is a term.
        starts: start offset of each sentence, in order.
        headings: for each sentence, whether it is a heading or a fragment. A term occurs in others, too, unless the
            document has few of them.
        terms: titles of the names that are terms, which the text also writes in lower case: "unmanned aircraft" beside
            "Unmanned Aircraft".

    Returns:
        One `Name` per occurrence; its form is the term in the singular, if the document contains the singular.
    """
    names = list(names)
    concepts = choose_concepts(text, {title_of(name.form) for name in names} - terms, starts, headings)
    if not concepts:
        return []
    taken = sorted((name.start, name.end) for name in names)
    begins = [start for start, _ in taken]
    found = []
    for form, start, end in _match(text, concepts):
        before = bisect_right(begins, end - 1)
        if not any(last > start for _, last in taken[max(before - 3, 0) : before]):
            found.append(Name(form, start, end, bisect_right(starts, start) - 1))
    return found


def _match(text: str, concepts: Mapping[str, list[str]]) -> list[tuple[str, int, int]]:
    """Return (form, start, end) of the longest terms in a text, in order, without overlap."""
    forms = {tuple(variant.split()): form for form, variants in concepts.items() for variant in variants}
    longest: dict[str, int] = {}
    for words in forms:
        longest[words[0]] = max(longest.get(words[0], 0), len(words))
    spans = [(match.group().lower(), match.start(), match.end()) for match in _WORD.finditer(text)]
    found, place = [], 0
    while place < len(spans):
        n_words = longest.get(spans[place][0], 0)
        if not n_words:
            place += 1
            continue
        while n_words:
            part = spans[place : place + n_words]
            form = forms.get(tuple(word for word, _, _ in part))
            if form and all(text[a[2] : b[1]].isspace() for a, b in pairwise(part)):
                found.append((form, part[0][1], part[-1][2]))
                break
            n_words -= 1
        place += max(n_words, 1)
    return found


def find_speakers(text: str, concepts: Iterable[Name]) -> set[str]:
    """Return the forms that follow a verb of speaking and are therefore persons: ", cried the phantom"."""
    return {c.form for c in concepts if _SPEAKS.search(text, max(c.start - 24, 0), c.start)}


def choose_concepts(
    text: str, taken: set[str], starts: list[int] | None = None, headings: Sequence[bool] = ()
) -> dict[str, list[str]]:
    """Choose the terms of a document with their written variants.

    At most sqrt(n words) / 3 terms of one word are chosen, as many of several, and twice as many further ones of each
    kind with words that are rare in English, and of words with endings of science (`coined_words.py`) or in a list of
    rare words, which one use shows; in a story, only sqrt(n words) / 11 terms of one word and of several.
    Phrases that a word always belongs to take its place (`nesting.py`).

    Args:
        taken: titles of the names in this document.
        starts: start offset of each sentence, in order; None for a text of one sentence.
        headings: as in `find_concepts`.
    """
    spans = list(pairwise([*(starts or [0]), len(text)]))
    n_in_headings = sum(
        end - start for (start, end), is_heading in zip(spans, headings, strict=bool(headings)) if is_heading
    )
    uses = count_uses(text, spans, headings if 0 < n_in_headings <= _MAX_HEADINGS * len(text) else ())
    quota = round(math.sqrt(uses.n_words) / (_STORY_QUOTA if uses.is_narrative else _QUOTA))
    frequencies, c_values = score_phrases(uses)
    weights = {p: _weigh(p, c) for p, c in c_values.items() if _is_in_sentence(p, uses)}
    phrases = _best(weights, quota, taken)
    if not uses.is_narrative:
        rare_phrases = {p: w for p, w in weights.items() if _is_rare_phrase(p) and p not in phrases}
        phrases += _best(rare_phrases, _RARE_QUOTAS * quota, taken)
    inside = Counter[str]()
    for phrase in phrases:
        for word in set(phrase):
            inside[word] += frequencies[phrase]
    scores = _score_words(uses, inside)
    able: dict[tuple[str, ...], float] = {(w,): s for w, s in scores.items() if _is_in_sentence((w,), uses)}
    single = _best(able, quota, taken)
    if not uses.is_narrative:
        rare = {words: score for words, score in able.items() if _is_unknown(words[0]) and words not in single}
        single += _best(rare, _RARE_QUOTAS * quota, taken)
        coined = {
            complete_term(w, uses): float(n)
            for w, n in uses.total.items()
            if (w,) not in single and w in uses.last and is_coined(w)
        }
        coined = {words: n for words, n in coined.items() if words not in phrases}
        single += _best({words: n for words, n in coined.items() if len(words) == 1}, _RARE_QUOTAS * quota, taken)
        phrases += _best({words: n for words, n in coined.items() if len(words) > 1}, _RARE_QUOTAS * quota, taken)
        listed: dict[tuple[str, ...], float] = {
            (w,): float(n)
            for w, n in uses.listed.items()
            if (w,) not in single and (w,) not in coined and _is_listed_term(w, uses)
        }
        single += _best(listed, _RARE_QUOTAS * quota, taken)
    own, longer = replace_nested([words[0] for words in single], {p: c_values[p] for p in weights}, uses)
    phrases += [phrase for phrase in longer if phrase not in phrases and " ".join(phrase).upper() not in taken]
    chosen = [*phrases, *((word,) for word in own)]
    return fold_forms({" ".join(words): sorted(_spell(words, uses)) for words in chosen}, uses)


def _is_listed_term(word: str, uses: WordUses) -> bool:
    """Whether a rare word of a list is a noun: "bupropion", not "juxtarenal" and "unquoted"."""
    if word not in uses.last or uses.verbs[word] or not may_be_noun(word) or may_be_adjective(word):
        return False
    if is_general(word):
        return False
    is_person = PERSON_NOUN in (kind_of(word), kind_of_plural(word))
    return not is_person and not word.endswith(("ory", "ation"))


def _is_in_sentence(words: tuple[str, ...], uses: WordUses) -> bool:
    if not uses.in_sentences:
        return True
    spellings = [form.split() for form in _spell(words, uses)]
    return any(
        form[0] in uses.in_sentences and all(pair in uses.in_sentences for pair in pairwise(form)) for form in spellings
    )


def _spell(words: tuple[str, ...], uses: WordUses) -> set[str]:
    return {" ".join((*words[:-1], spelling)) for spelling in (words[-1], *uses.plurals.get(words[-1], ()))}


def score_phrases(uses: WordUses) -> tuple[Counter[tuple[str, ...]], dict[tuple[str, ...], float]]:
    """Return the frequency of each candidate of several words, and the C-value of those that reach the least one."""
    frequencies: Counter[tuple[str, ...]] = Counter()
    for run, count in uses.runs.items():
        folded = (*run[:-1], singular_of(run[-1], uses.plurals) or run[-1])
        for part in _parts(folded):
            frequencies[part] += count
    least = _MIN_C_VALUE + (uses.n_words > _LONG)
    able = {part: n for part, n in frequencies.items() if n >= least and _is_term(part, uses)}
    able |= {part: n for part, n in frequencies.items() if n >= least and _completes(part, able, frequencies, uses)}
    around: Counter[tuple[str, ...]] = Counter()
    n_around: Counter[tuple[str, ...]] = Counter()
    for longer, count in able.items():
        for part in _parts(longer):
            if part != longer:
                around[part] += count
                n_around[part] += 1
    scores = {
        part: math.log2(len(part)) * (count - (around[part] / n_around[part] if n_around[part] else 0))
        for part, count in able.items()
    }
    return frequencies, {part: score for part, score in scores.items() if score >= least}


def _parts(run: tuple[str, ...]) -> Iterable[tuple[str, ...]]:
    """Return the sequences of 2 to MAX_PHRASE_WORDS words in a run."""
    n_words = len(run)
    return (run[a:b] for a in range(n_words - 1) for b in range(a + 2, min(n_words, a + MAX_PHRASE_WORDS) + 1))


def _completes(
    phrase: tuple[str, ...],
    able: Mapping[tuple[str, ...], int],
    frequencies: Mapping[tuple[str, ...], int],
    uses: WordUses,
) -> bool:
    """Whether a phrase nearly always begins with the same word, which may be a verb elsewhere: "burst buffer state"."""
    rest = phrase[1:]
    if rest not in able or phrase in able or frequencies[phrase] < _MIN_COMPLETE_SHARE * frequencies[rest]:
        return False
    return _is_term(phrase, uses, may_begin_verb=True)


def _is_term(phrase: tuple[str, ...], uses: WordUses, may_begin_verb: bool = False) -> bool:
    first, last = phrase[0], phrase[-1]
    if not may_be_noun(last) or _is_verb(last, uses) or (_is_vague(last) and last.upper() not in KIN):
        return False
    if may_be_adjective(last) and not _is_shown_noun(last, uses):  # "makes the system secure"
        return False
    is_vague = is_vague_first(first) and not _is_only_so(phrase, uses)
    if uses.noun_share(last) < _MIN_HEAD_SHARE or is_vague or uses.is_state(*phrase[:2]) or is_number(first):
        return False
    if any(word.upper() in VERBS for word in phrase):
        return False
    if any(map(is_vague_first, phrase[1:])):
        return False
    return not any(_is_plural(word, uses) for word in phrase[:-1]) and (
        may_begin_verb or may_be_adjective(first) or uses.verbs[first] <= uses.nouns[first]
    )


def _is_only_so(phrase: tuple[str, ...], uses: WordUses) -> bool:
    """Whether a document always writes a phrase of two words with the same word before: "total contact cast"."""
    rest = phrase[1:]
    is_able = len(rest) == 2 and not phrase[0].endswith("ing")
    runs = [(run, n) for run, n in uses.runs.items() if is_able and _contains(run, rest)]
    return sum(n for _, n in runs) >= _MIN_ONLY_SO and all(_contains(run, phrase) for run, _ in runs)


def _contains(run: tuple[str, ...], part: tuple[str, ...]) -> bool:
    return any(run[place : place + len(part)] == part for place in range(len(run) - len(part) + 1))


def _is_plural(word: str, uses: WordUses) -> bool:
    """Whether a word that precedes a noun is a plural or a verb: "returns" in "returns value"."""
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return False
    return any(word in plurals for plurals in uses.plurals.values()) or english_rank(word[:-1]) is not None


def _weigh(phrase: tuple[str, ...], c_value: float) -> float:
    return c_value * sum(math.log(english_rank(word) or UNKNOWN_RANK) for word in phrase)


def _score_words(uses: WordUses, inside: Mapping[str, int]) -> dict[str, float]:
    is_short = _SHORT <= uses.n_words <= _LONG and not uses.is_narrative
    least_keyness = _MIN_STORY_KEYNESS if uses.is_narrative else _MIN_KEYNESS
    scores = {}
    for word, total in uses.total.items():
        count = total - inside.get(word, 0)
        if count < _MIN_WORD_COUNT - is_short - (is_short and _is_rare(word)) or not _is_term_word(word, uses):
            continue
        expected = expected_count(word, uses.n_words)
        keyness = _keyness(count, expected) if count > _MIN_RATIO * expected else 0.0
        if _is_key(word, count, keyness, least_keyness):
            scores[word] = keyness
    return scores


def _is_key(word: str, count: int, keyness: float, least: float) -> bool:
    rank = english_rank(word) or UNKNOWN_RANK
    if rank < _COMMON and count < _MIN_WORD_COUNT:
        return False
    if rank < _EVERYDAY and (count < _MIN_ORDINARY_COUNT or keyness < _MIN_EVERYDAY_KEYNESS):
        return False
    if word.upper() in EVERYDAY:
        return count >= _MIN_EVERYDAY_COUNT and keyness >= _MIN_EVERYDAY_KEYNESS
    return keyness >= least


def _is_term_word(word: str, uses: WordUses) -> bool:
    if _is_vague(word) or is_general(word) or not may_be_noun(word) or is_number(word) or uses.is_clipped(word):
        return False
    n_nouns = uses.nouns[word]
    is_adjective = may_be_adjective(word)
    if uses.headed[word] >= _MAX_HEADED_SHARE * uses.total[word] and english_rank(word):  # "long QT syndrome"
        return False
    if _is_verb(word, uses):
        return False
    if word not in uses.last and uses.n_followers(word) > 1:  # "antiplatelet drugs", "antiplatelet therapy"
        return False
    is_verb = may_be_verb(word) or uses.is_inflected(word)
    if _is_unknown(word) and not is_adjective and not is_verb and not word.endswith(("ing", "ed", "ly")):
        return n_nouns >= uses.verbs[word]
    if (is_adjective or is_verb) and not _is_shown_noun(word, uses):
        return False
    least = 3 if is_adjective or word.endswith("ing") else 2 - _is_rare(word)
    return n_nouns >= max(least, _MIN_NOUN_USES * uses.total[word]) and uses.noun_share(word) >= _MIN_NOUN_SHARE


def _is_verb(word: str, uses: WordUses) -> bool:
    """Whether a word has another noun in English, and the text rarely shows it as one: "fail", "apply"."""
    return uses.articled[word] < _MIN_ARTICLED_VERB and may_be_verb(word) and has_derived_noun(word)


def _is_shown_noun(word: str, uses: WordUses) -> bool:
    """Whether the text shows a word to be a noun that may be an adjective or a verb, too."""
    return uses.nouns[word] >= _MIN_UNSURE_SHARE * uses.total[word] or uses.firm[word] >= _MIN_FIRM


def _is_unknown(word: str) -> bool:
    return english_rank(word) is None and "-" not in word and len(word) >= _MIN_UNKNOWN


def _is_rare(word: str) -> bool:
    return (english_rank(word) or UNKNOWN_RANK) >= _RARE


def _is_rare_phrase(phrase: tuple[str, ...]) -> bool:
    """Whether a phrase has a rare word, and ends that say something: not "standard beta-blocker", "minsane option"."""
    return any(map(_is_rare, phrase)) and not {phrase[0].upper(), phrase[-1].upper()} & GENERAL


def _keyness(count: int, expected: float) -> float:
    return 2 * (count * math.log(count / expected) - (count - expected)) if count > expected else 0.0


def _is_vague(word: str) -> bool:
    key = word.upper()
    return key in VAGUE or key in KIN or key.removesuffix("S") in VAGUE


def _best(scores: dict[tuple[str, ...], float], n: int, taken: set[str]) -> list[tuple[str, ...]]:
    kept = [words for words in scores if (form := " ".join(words).upper()) not in taken and form not in GIVEN_NAMES]
    return sorted(kept, key=lambda words: (-scores[words], words))[:n]
