"""The sentence that says who a person is, for "Who is Nob?": "Nob, the parrot, laughed."

The strongest form comes first (`understanding/definitions.py`), then the sentence with the whole name, then the one
that reads best alone. Before a sentence such as "And your brother, Tim?" the sentence before it is quoted too, since it
may say whose brother. If no sentence says who the person is, a speech to the person may: "It's I. Your uncle Scrooge.
Will you let me in, Fred?" At last, a speech may name the person whom the sentence before it describes: "At sight of an
old gentleman in a Welsh wig, Scrooge cried-- 'Why, it's old Fezziwig!'" For "What is peat?" the sentence that defines
it is quoted, for "What does E12 mean?" the entry of a list. Keep out: other passages about the person.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from graphrag_pipeline.query.question import content_words
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.passages import MAX_PASSAGE_SENTENCES, Sentence, sentences_of
from graphrag_pipeline.query.understanding.definitions import (
    describes_someone,
    is_addressed,
    is_identified,
    names_relation,
    rate_definition,
    rate_entry,
    rate_thing,
    read_meant,
    read_what_is,
    read_who_is,
    relates_addressee,
)
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.sentence_forms import count_words, weigh_form

MAX_WORDS = 60
"""Words of a sentence and the one before it, if both are quoted."""
WHOLE_NAME = 0.9
"""What a form with all words of the asked name adds: for "Who was Marley?", "Jacob Marley" and not "Jacob"."""
_QUOTES = "'\"\u2018\u201c"
_WHOSE = late_re(r"\b(?:his|her|their|its|my|your|our)\b", re.IGNORECASE)


def find_definition(question: str, analysis: QuestionAnalysis, units: Sequence[TextUnitRecord]) -> tuple[Sentence, ...]:
    """Return the sentence that says who or what a question asks for, with its context; empty if none does."""
    if thing := read_what_is(question):
        plain = re.compile("|".join([rf"\b{re.escape(thing)}\b", *_forms_of(thing, analysis)]), re.IGNORECASE)
        return _find_best(plain, units, lambda text: rate_thing(text, plain), lambda sentences, i: (sentences[i],))
    if entry := read_meant(question):
        name = re.compile(rf"(?<![\w-]){re.escape(entry)}(?![\w-])")
        return _find_best(name, units, lambda text: rate_entry(text, name), _with_next)
    asked = read_who_is(question)
    if not asked or analysis.words - analysis.name_words - content_words(asked):
        return ()
    name = _pattern_of(asked, analysis)

    def rate(text: str) -> float:
        strength = rate_definition(text, name)
        return strength and strength + WHOLE_NAME * _has_whole_name(text, name, content_words(asked))

    def with_context(sentences: Sequence[Sentence], i: int) -> tuple[Sentence, ...]:
        return _with_more(sentences, _with_context(sentences, i), i, rate)

    return (
        _find_best(name, units, rate, with_context) or _find_address(name, units) or _find_identification(name, units)
    )


def _find_best(
    name: re.Pattern[str],
    units: Sequence[TextUnitRecord],
    rate: Callable[[str], float],
    quote: Callable[[Sequence[Sentence], int], tuple[Sentence, ...]],
) -> tuple[Sentence, ...]:
    """Return what is quoted for the first sentence of the highest rate and form; empty if all rates are 0."""
    best: tuple[float, tuple[Sentence, ...]] = (0.0, ())
    for unit in units:
        if not name.search(unit.text):
            continue
        sentences = sentences_of(unit)
        for i, sentence in enumerate(sentences):
            strength = rate(sentence.folded)
            score = strength + 0.9 * weigh_form(sentence.folded) if strength else 0.0
            if score > best[0]:
                best = (score, quote(sentences, i))
    return best[1]


def _with_next(sentences: Sequence[Sentence], i: int) -> tuple[Sentence, ...]:
    """Return an entry of a list with the sentence behind it in its paragraph: "E12 Ignition failed. Measure it."."""
    behind = sentences[i + 1 : i + 2]
    goes_on = behind and "\n" not in sentences[i].unit.text[sentences[i].end : behind[0].start]
    fits = sum(count_words(one.folded) for one in (sentences[i], *behind)) <= MAX_WORDS
    return (sentences[i], *behind) if goes_on and fits else (sentences[i],)


def _with_more(
    sentences: Sequence[Sentence], quoted: tuple[Sentence, ...], i: int, rate: Callable[[str], float]
) -> tuple[Sentence, ...]:
    """Return a quotation with the next sentence of its paragraph, if that says who the person is, too, and fits."""
    behind = sentences[i + 1 : i + 2]
    if not behind or not rate(behind[0].folded):
        return quoted
    text = sentences[i].unit.text[sentences[i].end : behind[0].start]
    fits = sum(count_words(one.folded) for one in (*quoted, *behind)) <= MAX_WORDS
    return (*quoted, *behind) if fits and text.count("\n") < 2 else quoted


def _has_whole_name(text: str, name: re.Pattern[str], asked: frozenset[str]) -> bool:
    """Whether a form of the name in a sentence has all words that the question names: a part may name another."""
    return any(asked <= content_words(found.group()) for found in name.finditer(text))


def _find_address(name: re.Pattern[str], units: Sequence[TextUnitRecord]) -> tuple[Sentence, ...]:
    """Return the shortest run of sentences that addresses a person and says whose relative or servant; else empty."""
    found = [
        run
        for unit in units
        if name.search(unit.text)
        for sentences in [sentences_of(unit)]
        for i, sentence in enumerate(sentences)
        if is_addressed(sentence.folded, name)
        for run in _runs_that_end_at(sentences, i)
        if relates_addressee(" ".join(one.folded for one in run))
    ]
    return min(found, key=_is_cut_and_long, default=())


def _find_identification(name: re.Pattern[str], units: Sequence[TextUnitRecord]) -> tuple[Sentence, ...]:
    """Return the first sentence that names the person whom the sentence before it describes, behind it; else empty."""
    for unit in units:
        sentences = sentences_of(unit) if name.search(unit.text) else ()
        for before, sentence in pairwise(sentences):
            n_words = count_words(before.folded) + count_words(sentence.folded)
            if n_words <= MAX_WORDS and is_identified(sentence.folded, name) and describes_someone(before.folded):
                return (*_related_before(sentences, sentences.index(before), MAX_WORDS - n_words), before, sentence)
    return ()


def _related_before(sentences: Sequence[Sentence], i: int, n_words: float) -> Sequence[Sentence]:
    """Return the sentences before sentence i from the nearest that names a relation, if they fit; else none.

    "'Was I apprenticed here?' They went in. At sight of an old gentleman ..." says what he is to the speaker.
    """
    for start in range(i - 1, max(i - 1 - MAX_PASSAGE_SENTENCES, -1), -1):
        run = sentences[start:i]
        if sum(count_words(one.folded) for one in run) > n_words:
            return ()
        if names_relation(run[0].folded):
            return run
    return ()


def _is_cut_and_long(run: Sequence[Sentence]) -> tuple[bool, float]:
    """Sort runs that begin with a speech first, then short ones."""
    return not run[0].folded.startswith(tuple(_QUOTES)), sum(count_words(one.folded) for one in run)


def _runs_that_end_at(sentences: Sequence[Sentence], i: int) -> Iterator[tuple[Sentence, ...]]:
    """Yield the sentence, and it with those before it in the same paragraph that fit into one quotation."""
    for start in range(i, max(i - MAX_PASSAGE_SENTENCES, -1), -1):
        run = tuple(sentences[start : i + 1])
        text = run[0].unit.text[run[0].start : run[-1].end]
        is_talk = all(one.folded[:1] in _QUOTES for one in run)
        if ("\n\n" in text and not is_talk) or sum(count_words(one.folded) for one in run) > MAX_WORDS:
            return
        yield run


def _pattern_of(asked: str, analysis: QuestionAnalysis) -> re.Pattern[str]:
    written = rf"\b{re.escape(asked)}\b" if asked[:1].isalnum() else re.escape(asked)
    return re.compile("|".join([written, *_forms_of(asked, analysis)]))


def _forms_of(asked: str, analysis: QuestionAnalysis) -> list[str]:
    words = content_words(asked)
    return [pattern.pattern for pattern, held in analysis.forms if words <= held]


def _with_context(sentences: Sequence[Sentence], i: int) -> tuple[Sentence, ...]:
    sentence = sentences[i]
    if i and _WHOSE.search(sentence.folded):
        before = sentences[i - 1]
        is_same = sentence.unit.text[before.end : sentence.start].count("\n") < 2
        if is_same and count_words(before.folded) + count_words(sentence.folded) <= MAX_WORDS:
            return (before, sentence)
    return (sentence,)
