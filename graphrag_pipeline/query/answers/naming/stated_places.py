"""The place that a "where" question asks for, from sentences that state it: "The party was held in the old barn".

A statement answers if its sentence has the words for what happens, besides "hold", "give" or "take place", and if the
sentence, one near it or the title has the names of the question. The nearest place in the sentence that is nearest to
the names answers. Keep out: reading a sentence (`understanding/place_statements.py`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, stem
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.passages import Sentence, sentences_of
from graphrag_pipeline.query.understanding.asked_name import AskedName
from graphrag_pipeline.query.understanding.place_statements import LIGHT, read_made_places, read_places
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis
from graphrag_pipeline.query.understanding.role_statements import leading_name
from graphrag_pipeline.query.understanding.time_forms import ENGLISH_MONTHS
from graphrag_pipeline.query.word_families import means_same
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentence_forms import has_pronoun

_MONTHS = frozenset(map(stem, ENGLISH_MONTHS))
_WORD = late_re(r"[^\W_]+")
_OF_ANOTHER = r"\bof [A-Z][\w-]+ [Ii]n (?:the )?"
"""What makes a place that of a name: "the seed swap of Kirkby in Bloom"."""
MAX_TO_PRONOUN = 40
"""Characters before a verb in which its pronoun stands; farther off, the verb often has another subject."""
_GOES_ON = late_re(r"\W*(?:It|They)\b")
N_NEAR = 3
"""Sentences on each side in which a name is near."""


@dataclass(frozen=True)
class StatedPlace:
    """A place, and the sentence that states it."""

    place: str
    sentence: Sentence
    score: float


def find_stated_place(
    index: IndexReader, analysis: QuestionAnalysis, asked: AskedName, units: Sequence[TextUnitRecord]
) -> StatedPlace | None:
    """Return the place that a question asks for; None if no sentence states one."""
    found = [stated for unit in units for stated in _read_unit(analysis, asked, unit)]
    found.sort(key=lambda stated: -stated.score)
    return next((stated for stated in found if not _is_person(index, stated.place)), None)


def _stands_for_another(text: str, events: frozenset[str]) -> bool:
    """Return whether a pronoun for a person of another sentence precedes each verb, and no name begins the sentence."""
    if leading_name(text):
        return False
    happens = [word.start() for word in _WORD.finditer(text) if stem(word[0]) in events]
    return bool(happens) and all(has_pronoun(text[max(start - MAX_TO_PRONOUN, 0) : start]) for start in happens)


def _is_person(index: IndexReader, name: str) -> bool:
    types = {entity["type"] for entity in index.snapshot.take("entities", index.names.find(name), ["type"])}
    return types == {"PERSON"} and name[:1].isupper()


def _read_unit(analysis: QuestionAnalysis, asked: AskedName, unit: TextUnitRecord) -> list[StatedPlace]:
    anchors, events = asked.anchors, (asked.focus - LIGHT) or asked.focus
    verbs = means_same(asked.verb.word) if asked.verb else frozenset()
    things = events - verbs
    if not (events | verbs) & content_words(unit.text):
        return []
    sentences = sentences_of(unit)
    words = [content_words(sentence.text) for sentence in sentences]
    title = analysis.words_in(unit.document_title)
    found = []
    for i, sentence in enumerate(sentences):
        around, own = slice(max(i - N_NEAR, 0), i + N_NEAR + 1), analysis.words_in(sentence.text)
        goes_on = i > 0 and bool(_GOES_ON.match(sentence.text)) and things | anchors <= words[i - 1] | words[i]
        is_about = goes_on or anchors - _MONTHS <= own or _stands_for_another(sentence.folded, events)
        is_said = goes_on or (things <= words[i] and (events <= words[i] or bool(verbs & words[i])))
        stated = list(read_places(sentence.text, events, asked.verb)) if is_about and is_said else []
        if events & frozenset().union(*words[around]):
            stated += read_made_places(sentence.text, events)
        stated = [one for one in stated if not re.search(rf"{_OF_ANOTHER}{re.escape(one.place)}", sentence.text)]
        if not stated or sentence.text.rstrip("'\"\u2019\u201d ").endswith("?"):
            continue
        beside = analysis.words_in(" ".join(near.text for near in sentences[around]))
        levels = ((own, 1.0), (beside | title, 0.8))
        nearness = next((weight for held, weight in levels if anchors <= held), 0.0)
        found += [StatedPlace(one.place, sentence, one.nearness * nearness) for one in stated if nearness]
    return found
