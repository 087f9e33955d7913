"""The name or number that a question asks for, from the sentences of text units, with the sentence that supports it.

Candidates are the names of a fitting kind, or the numbers, in sentences that have the question's other words, or that
are next to such a sentence. A candidate scores in each sentence

    share of the question's words x nearness of what the question starts from x nearness of the words x form

The form counts double for an apposition ("his clerk, Bob Cratchit"), "by" after the verb ("directed by ...") and a verb
behind the name. The scores of one candidate are added, each further one with half the weight. The best candidate is
named only if its score is `LEAST_SCORE` or more and `CLEAR` times that of the second.

Of a question for a role ("Scrooge's clerk"), sentences that state it come first (`stated_roles.py`). If they disagree,
nothing is named. Without them, only sentences count that say whose role it is. If no name belongs to the verb of "Who
owns O?", sentences count that state the role ("O's owner"). Of a question for a place, sentences
that state it come first (`stated_places.py`). Of a question with a verb ("Who designed ...?", "Where was ... found?"),
only names count that are its subject or object, or belong to it (`understanding/verb_statements.py`). A sentence
must have what the question names, and not only its verb (`asked_things.py`). "Who is NAME?"
asks for no name, but for the sentence that says who it is (`who_is.py`), and "What does CT stand for?" for a long form
(`long_forms.py`). What the question starts from is never a
candidate. Keep out: the layout of answers.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from graphrag_pipeline.query import records
from graphrag_pipeline.query.answers.naming.asked_things import N_BEFORE, AskedThings
from graphrag_pipeline.query.answers.naming.candidate_names import WAGE, CandidateNames, Mention
from graphrag_pipeline.query.answers.naming.long_forms import find_long_form
from graphrag_pipeline.query.answers.naming.stated_places import find_stated_place
from graphrag_pipeline.query.answers.naming.stated_roles import find_stated_role
from graphrag_pipeline.query.answers.naming.who_is import find_definition
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, irregular_forms, repeats_question, stem
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.search.basic import read_within
from graphrag_pipeline.query.selection.passages import Sentence, sentences_of
from graphrag_pipeline.query.understanding.asked_name import AskedName, first_clause, read_asked_name
from graphrag_pipeline.query.understanding.asked_role import read_role_of_verb
from graphrag_pipeline.query.understanding.chinese_definitions import asks_in_chinese
from graphrag_pipeline.query.understanding.definitions import read_meant, read_short_form, read_what_is, read_who_is
from graphrag_pipeline.query.understanding.place_statements import LIGHT
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis, analyze_question
from graphrag_pipeline.query.understanding.verb_statements import (
    belongs_to,
    find_verbs,
    is_patient,
    is_subject,
)
from graphrag_pipeline.query.word_families import means_same
from graphrag_pipeline.text.late_patterns import late_re

LEAST_SHARE = 0.6
"""Least share of the question's words, weighed by rarity, in a sentence and its neighbours."""
NEIGHBOUR = 0.5
"""Weight of a word in the neighbouring sentence."""
LEAST_SCORE = 0.45
CLEAR = 1.3
MAX_UNITS, MAX_UNITS_SEARCHED = 20, 200
HALF_DISTANCE = 8
"""Words between a name and a word of the question at which the nearness is 1/2."""

_WORD = late_re(r"\w+(?:[-'\u2019]\w+)*")
_ROLE_BEFORE = late_re(
    r"[^\w()]{0,3}(?:(?:was|is|named|called|old|little|young|poor|dear|the)\W+){0,2}\Z", re.IGNORECASE
)
_ROLE_BEHIND = late_re(
    r",?\s*(?:(?:who\s+)?(?:was|is|were|are)\s+)?(?:(?:his|her|their|my|your|its|the|a|an|old|young|\w+['\u2019]s?)\s+)"
    r"{0,3}\Z",
    re.IGNORECASE,
)
_BY = late_re(r"\s*(?:and\s+\w+\s+|\w+\s+)?(?:by|to|in|at|on|of)\s+(?:the\s+)?\Z", re.IGNORECASE)
_SUBJECT = late_re(r"\s+(?:(?:who|had|has|have)\s+)?\Z")
_PAYING = frozenset(map(stem, "pay earn make get receive".split()))  # noqa: SIM905
"""Verbs that a sum of money for a time says without them: "my clerk, with fifteen shillings a week"."""
_POSSESSIVE = late_re(r"['\u2019]s?\b|['\u2019](?=\s)")


@dataclass(frozen=True)
class NamedAnswer:
    """The name that answers a question, and the neighbouring sentences that support it.

    The name is empty if the question has the name, and the sentences say who it is.
    """

    name: str
    sentences: tuple[Sentence, ...]


@dataclass(frozen=True)
class _Place:
    """A sentence of a text unit, with its neighbours, and the stems of its content words.

    `words_before` has those of at most `N_BEFORE` sentences before it, in reading order.
    """

    sentence: Sentence
    words: frozenset[str]
    around: frozenset[str]
    unit_words: frozenset[str]
    words_before: tuple[frozenset[str], ...]
    before: Sentence | None
    behind: Sentence | None

    @property
    def is_cut(self) -> bool:
        """Whether the text unit begins inside the sentence."""
        return self.sentence.start == 0 and self.sentence.text[:1].islower()


def read_named_units(index: IndexReader, question: str, *, has_context: bool) -> tuple[TextUnitRecord, ...]:
    """Return the text units to look for a name in besides a context: those of the named entities.

    Without a context, also those of basic search.
    Of an entity's text units, at most `MAX_UNITS` with a word of what is asked for, those with most words first.
    Without text units if the question asks for no name.
    """
    asked = _read_asked(index, question, ())[1]
    is_defined = read_who_is(question) or read_what_is(question) or read_meant(question) or read_short_form(question)
    if asked is None and not is_defined and not asks_in_chinese(question):
        return ()
    named = index.snapshot.take("entities", index.names.find(first_clause(question)), ["text_unit_ids"])
    ids = sorted({unit_id for entity in named for unit_id in entity["text_unit_ids"] or ()})
    rows = index.snapshot.rows_of("text_units", ids)
    rows = np.sort(rows[rows >= 0])
    mask = index.document_mask.masks.get("text_units") if index.document_mask else None
    rows = (rows if mask is None else rows[mask[rows]])[:MAX_UNITS_SEARCHED]
    texts = index.snapshot.take("text_units", rows.tolist(), ["text"])
    if asked is None:
        return tuple(records.read_text_units(index, rows[:MAX_UNITS], np.zeros(len(rows[:MAX_UNITS]))))
    n_held = np.array([len(asked.focus & content_words(unit["text"])) for unit in texts], dtype=np.int64)
    order = np.lexsort((rows, -n_held))[:MAX_UNITS]
    order = order[n_held[order] > 0]
    found = records.read_text_units(index, rows[order], np.zeros(len(order))) if len(order) else ()
    if has_context:
        return tuple(found)
    return (*found, *read_within(index, question, index.settings.basic_search.max_context_tokens).text_units)


def _read_asked(
    index: IndexReader, question: str, units: Sequence[TextUnitRecord]
) -> tuple[QuestionAnalysis, AskedName | None]:
    analysis = analyze_question(index, first_clause(question), units)
    return analysis, read_asked_name(question, analysis.name_words)


def find_named_answer(index: IndexReader, question: str, units: Sequence[TextUnitRecord]) -> NamedAnswer | None:
    """Return the name or number that a question asks for; None if it asks for none, or if no candidate is clear."""
    if short := read_short_form(question):
        found = find_long_form(short, units)
        if found or not read_meant(question):
            return NamedAnswer(found[0], (found[1],)) if found else None
    analysis, asked = _read_asked(index, question, units)
    if asked is None:
        sentences = find_definition(question, analysis, units)
        return NamedAnswer("", sentences) if sentences else None
    if asked.role:
        stated = find_stated_role(index, analysis, asked.role, units)
        if stated or not asked.role.owner:
            return NamedAnswer(stated.name, stated.sentences) if stated and stated.name else None
    if asked.kind == "place" and (stated_place := find_stated_place(index, analysis, asked, units)):
        return NamedAnswer(stated_place.place, (stated_place.sentence,))
    named = _find_near(index, question, analysis, asked, units)
    if named is None and not asked.is_body and (role := read_role_of_verb(asked.clause)):
        stated = find_stated_role(index, analysis, role, units)
        return NamedAnswer(stated.name, stated.sentences) if stated and stated.name else None
    return named


def _find_near(
    index: IndexReader, question: str, analysis: QuestionAnalysis, asked: AskedName, units: Sequence[TextUnitRecord]
) -> NamedAnswer | None:
    """Return the clear candidate in the sentences that have the words of the question; None without one."""
    sought = asked.focus | (means_same(asked.verb.word) if asked.verb else frozenset())
    says_some = re.compile("|".join(map(re.escape, sorted(sought | irregular_forms(sought)))), re.IGNORECASE)
    places = _read_places(analysis, [unit for unit in units if says_some.search(unit.text)])
    places = [place for place in places if not repeats_question(question, place.sentence.text)]
    if asked.kind == "amount" and asked.verb and asked.verb.stem in _PAYING:
        places = [_read_wage(place, asked.verb.stem) for place in places]
    weights = _weigh_words(asked, places)
    near = [place for place in places if _share(place, weights) >= LEAST_SHARE]
    things = AskedThings(analysis, asked)
    if not asked.role:
        near = [
            place for place in near if things.are_named(place.sentence, place.words, place.words_before, place.before)
        ]
    if not near:
        return None
    names = CandidateNames(index, analysis, asked, [place.sentence.unit for place in near])
    scores: dict[str, list[tuple[float, int]]] = defaultdict(list)
    for number, place in enumerate(near):
        base = _share(place, weights) * _anchor_nearness(asked, place)
        if asked.is_role:
            base *= _says_whose(analysis, asked, place)
        if base:
            for mention in names.find(place.sentence):
                if not _fits_verb(asked, things, place, mention):
                    continue
                score = base * mention.weight * _nearness(asked, place.sentence.text, mention)
                scores[mention.key].append((score, number))
    return _choose(names, scores, near, asked)


def _fits_verb(asked: AskedName, things: AskedThings, place: _Place, mention: Mention) -> bool:
    """Return whether a name is what is asked of the verb; True if the question has none.

    Of a number of things, the sentence must have the verb: "led 22 passengers to safety" says nothing
    of how many died.
    """
    if asked.verb is None:
        return True
    if asked.kind == "count":
        return asked.verb.stem in LIGHT or bool(means_same(asked.verb.word) & place.words)
    text, verbs = place.sentence.text, find_verbs(place.sentence.text, means_same(asked.verb.word))
    if asked.kind in ("duration", "amount"):
        verbs = [verb for verb in verbs if belongs_to(text, verb, mention.start, mention.end)]
        return not verbs or any(things.are_said_of(place.sentence, verb, place.before) for verb in verbs)
    fits = belongs_to if asked.kind != "person" else is_patient if asked.verb.asks_patient else is_subject
    return any(
        fits(text, verb, mention.start, mention.end)
        and (asked.kind == "person" or things.are_said_of(place.sentence, verb, place.before))
        for verb in verbs
    )


def _choose(
    names: CandidateNames, scores: dict[str, list[tuple[float, int]]], near: Sequence[_Place], asked: AskedName
) -> NamedAnswer | None:
    totals = {}
    for key, found in scores.items():
        best_of = sorted({number: score for score, number in sorted(found)}.values(), reverse=True)
        totals[key] = sum(score * 0.5**i for i, score in enumerate(best_of[:6]))
    ranked = sorted(totals, key=lambda key: (-totals[key], key))
    if not ranked or totals[ranked[0]] < LEAST_SCORE:
        return None
    if len(ranked) > 1 and totals[ranked[0]] < CLEAR * totals[ranked[1]]:
        return None
    _, _, number = min((-round(score, 9), near[number].is_cut, number) for score, number in scores[ranked[0]])
    return NamedAnswer(names.display(ranked[0]), _support(near[number], asked))


def _support(place: _Place, asked: AskedName) -> tuple[Sentence, ...]:
    """Return the sentence with the name, and the neighbour that has the words of the question, if it has none."""
    if asked.focus & place.words:
        return (place.sentence,)
    if place.before and asked.focus & content_words(place.before.text):
        return (place.before, place.sentence)
    return (place.sentence, place.behind) if place.behind else (place.sentence,)


def _read_places(analysis: QuestionAnalysis, units: Sequence[TextUnitRecord]) -> list[_Place]:
    """Return the sentences of text units in reading order; one that two text units share counts once."""
    seen: set[tuple[str, str]] = set()
    places = []
    for unit in units:
        sentences = sentences_of(unit)
        words = [analysis.words_in(sentence.text) for sentence in sentences]
        whole = frozenset().union(*words, content_words(unit.document_title))
        for i, sentence in enumerate(sentences):
            key = (unit.document_id, sentence.folded)
            if key not in seen:
                seen.add(key)
                around = frozenset().union(*words[max(i - 1, 0) : i + 2])
                earlier = tuple(words[max(i - N_BEFORE, 0) : i])
                before = sentences[i - 1] if i else None
                behind = sentences[i + 1] if i + 1 < len(sentences) else None
                places.append(_Place(sentence, words[i], around, whole, earlier, before, behind))
    return places


def _read_wage(place: _Place, verb: str) -> _Place:
    """Return a sentence with the verb, too, if it names a sum of money for a time."""
    if not WAGE.search(place.sentence.text):
        return place
    return replace(place, words=place.words | {verb}, around=place.around | {verb})


def _weigh_words(asked: AskedName, places: Sequence[_Place]) -> dict[str, float]:
    """Return the weight of each word beside names: its rarity among the sentences."""
    n_holding = Counter(word for place in places for word in asked.focus & place.words)
    return {word: math.log(1 + (len(places) + 8) / (n_holding[word] + 0.5)) for word in sorted(asked.focus)}


def _share(place: _Place, weights: dict[str, float]) -> float:
    held = sum(w * (1.0 if word in place.words else NEIGHBOUR) for word, w in weights.items() if word in place.around)
    return held / sum(weights.values()) if weights else 0.0


def _anchor_nearness(asked: AskedName, place: _Place) -> float:
    """Return how near the text is to what the question starts from, 0-1."""
    if not asked.anchors:
        return 1.0
    for words, nearness in ((place.words, 1.0), (place.around, 0.7), (place.unit_words, 0.4)):
        if asked.anchors <= words:
            return nearness
    return 0.0


def _says_whose(analysis: QuestionAnalysis, asked: AskedName, place: _Place) -> float:
    """Return 1 if a sentence says whose role it is, 0.4 if a neighbour does, else 0."""
    owner = "|".join(pattern.pattern for pattern, words in analysis.forms if words & asked.anchors)
    owner = owner or "|".join(rf"{re.escape(word)}\w*" for word in sorted(asked.anchors))
    role = "|".join(rf"{re.escape(word[:-1] if len(word) > 4 else word)}\w*" for word in sorted(asked.focus))
    of = rf"(?:{owner})['\u2019]?s?['\u2019]?\s+(?:\w+\s+){{0,2}}(?:{role})|(?:{role})\s+(?:of|to|for)\s+(?:{owner})"
    if re.search(of, place.sentence.text, re.IGNORECASE):
        return 1.0
    beside = [s.text for s in (place.before, place.behind) if s]
    return 0.4 if any(re.search(of, text, re.IGNORECASE) for text in beside) else 0.0


def _nearness(asked: AskedName, text: str, mention: Mention) -> float:
    """Return how near a name is to a word of the question, 0-2: a form that names the answer counts double.

    The name of the holder of a role needs such a form, or both are owners: "to Scrooge's clerk's, to Bob's dwelling".
    """
    if asked.verb and asked.kind == "person":
        return 2.0
    is_owner = bool(_POSSESSIVE.match(text, mention.end))
    best = 0.0 if asked.is_role else 1.0 if asked.verb and asked.kind == "date" else 0.4
    for found in _WORD.finditer(text):
        word = re.sub(r"['\u2019]s?$", "", found[0])
        if stem(word.lower()) not in asked.focus:
            continue
        is_before = found.end() <= mention.start
        between = text[found.end() : mention.start] if is_before else text[mention.end : found.start()]
        if asked.is_role and is_owner:
            form = float(is_before and word != found[0])
        else:
            form = _weigh_form(asked, between, is_before) * (0.5 if is_owner else 1.0)
        distance = min(len(_WORD.findall(between)), HALF_DISTANCE if asked.is_role else 100)
        best = max(best, HALF_DISTANCE / (HALF_DISTANCE + distance) * form)
    return best


def _weigh_form(asked: AskedName, between: str, is_before: bool) -> float:
    """Return 2 for a form that names the answer; else 1, and 0 for the holder of a role."""
    if asked.is_role:
        return 2.0 if (_ROLE_BEFORE if is_before else _ROLE_BEHIND).match(between) else 0.0
    return 2.0 if (_BY if is_before else _SUBJECT).match(between) else 1.0
