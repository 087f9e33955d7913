"""Analysis of a question: the entities that it names, and the kind of answer that it expects.

The answer to "Who is Ebenezer Scrooge's clerk?" is a passage with "Scrooge", "clerk" and the name of someone else. So:
- Each written form of an entity that the question names counts as the question's words for it. The index has the forms.
- An answer to "who" names a person or an organization, to "where" a place or an organization, to "when" or "how many" a
  number or a month. The question itself does not name it. "Which company" asks for an organization and "in which part"
  for a place. An answer has their name, and seldom the words "company" and "part".
- A question such as "Who is Jacob Marley?" has no other content words than names. The answer is in the sentences of the
  entity's description.
Question words are English and Chinese, and the basic ones of German, French, Spanish and Italian. Keep out: scores.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, is_english, is_latin, stem, topic_words
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.understanding.asked_verb import read_asked_verb
from graphrag_pipeline.query.understanding.place_statements import NOUN_PHRASE
from graphrag_pipeline.query.word_families import family_of, said_by
from graphrag_pipeline.text.extractive import sentences_of, words_of
from graphrag_pipeline.text.late_patterns import late_re

MAX_ACRONYM = 4
_NONE: frozenset[str] = frozenset()
_CAPITAL = late_re(r"(?<=[\s(\"'\u2018\u201c-])[A-Z\u00c0-\u00de][\w-]*")

_COLUMNS = ["title", "type", "names", "description"]
_TYPES_OF = {"person": ("PERSON", "ORGANIZATION"), "place": ("GEO", "ORGANIZATION"), "body": ("ORGANIZATION",)}
_KINDS = {
    "person": r"who(?:m|se)?|wer|we[nm]|wessen|qui|qui[eé]n|chi",
    "place": r"where|wo(?:hin|her)?|où|d[oó]nde|dove",
    "number": r"how\s+(?:many|much|old|long|far|often)|when|(?:what|which)\s+(?:year|date|day|number|age)"
    r"|wann|wie\s?viele?|wie\s+(?:alt|lange|oft)|quand|combien|cu[aá]ndo|cu[aá]nt[oa]s?|quant[oi]",
}
_LATIN = {kind: late_re(rf"\W*(?:\w+\s+)?(?:{words})\b", re.IGNORECASE) for kind, words in _KINDS.items()}
_CHINESE = {
    "person": late_re("[谁誰]"),
    "place": late_re("哪[里裡裏儿兒]|何[处處]"),
    "number": late_re("多少|[几幾]|何[时時]|[什甚][么麼][时時]候"),
}
BODY = (
    r"(?:company|firm|business|corporation|manufacturer|contractor|supplier|retailer|airline|insurer|publisher|bank|agency"
    r"|charity|organi[sz]ation)"
)
"""Nouns that ask for the name of an organization: "Which company owns the cable?"."""
_WHICH = late_re(
    rf"\W*(?:(?:by|for|from|in|at|to|with)\s+)?(?:which|what)\s+(?P<body>{BODY})\s"
    r"|\W*(?:in|at|to|from|near)\s+(?:which|what)\s+"
    r"(?P<place>parts?|town|city|village|country|county|district|region|street)\s",
    re.IGNORECASE,
)
_NUMBER = late_re(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|(?:twen|thir|for|fif|six|seven|eigh"
    r"|nine)ty|hundreds?|thousands?|millions?|dozen|half|double|twice|once|first|second|third|january|february|march"
    r"|april|june|july|august|september|october|november|december)\b|[一二三四五六七八九十百千万两]",
    re.IGNORECASE,
)
_MEASURE = late_re(r"\W*how\s+(often|old|long|far|tall|high|wide|deep|heavy|big|large)\b", re.IGNORECASE)
_HOW_OFTEN = late_re(r"\W*how\s+often\b", re.IGNORECASE)
_HOW_MANY = late_re(
    r"\W*how\s+many\s+(?:[a-z]+\s+(?:of\s+)?)??([a-z]+)\b(?=\s+(?:\w+(?:ed|n)|do|did|does|will|would|are|is|were|was"
    r"|has|have|had|can|could|must|may)\b)",
    re.IGNORECASE,
)
_RATE = late_re(r"\b(?:every|each|daily|weekly|monthly|hourly|yearly|annually|once|twice|times|per)\b", re.IGNORECASE)
_USED_TO = late_re(r"\bused? to (\w+)", re.IGNORECASE)
_WHY = late_re(r"\W*(?:why\b|what\s+(?:is|was|were|are)\s+the\s+(?:\w+\s+)?reasons?\b)", re.IGNORECASE)
_CAUSE = late_re(
    r"\b(?:because|since|due|owing|thanks|reasons?|causes?|caused|therefore|so that|after|blam\w+|led to|result\w*"
    r"|in order to|for fear|in protest)\b",
    re.IGNORECASE,
)
_WHEN = late_re(r"\W*when\b", re.IGNORECASE)
_TIME = late_re(
    rf"{_NUMBER.pattern}|\b(?:when|after|before|until|once|soon|during|since|spring|summer|autumn|winter|christmas|easter"
    r"|(?:sun|mon|tues|wednes|thurs|fri|satur|yester)day|today|tomorrow|night|morning|evening|noon|midnight)\b",
    re.IGNORECASE,
)
_WHERE = late_re(r"\W*(?:\w+\s+)?where\b", re.IGNORECASE)
_PART_OF = late_re(
    r"\W*(?:what|who)(?:\s+(?:is|was|are|were)|['\u2019]s)\s+the\s+(?P<asked>.+?)\s+of\s+(?P<owner>.+)",
    re.IGNORECASE | re.DOTALL,
)
_ACTS = frozenset("own found find made make gave give played play named name showed shown show".split())  # noqa: SIM905
"""Verbs that ask in "Find ..." and "Name ...", and say what was done in "Who found ...?"."""


@dataclass(frozen=True)
class QuestionAnalysis:
    """Analysed question, to compare passages with.

    Attributes:
        words: stems of its content words.
        name_words: those of `words` that name entities, without what is asked of them ("the output of the boiler").
        forms: (pattern of the written forms of a named entity, the words of the question that name it).
        answer: pattern of the names or numbers that an answer contains; None if unknown.
        description: sentences of the descriptions of the named entities, if the question has only names; else ().
        said_by: family of a word by which a text may say words of the question besides names -> those words.
        asks_number: whether the answer is a number or a date.
    """

    question: str
    words: frozenset[str]
    name_words: frozenset[str]
    forms: tuple[tuple[re.Pattern[str], frozenset[str]], ...]
    answer: re.Pattern[str] | None
    description: tuple[str, ...]
    said_by: Mapping[str, frozenset[str]] = field(default_factory=dict)
    asks_number: bool = False

    def words_in(self, text: str) -> frozenset[str]:
        """Return the stems of a text's content words, and the words of the question that it says in other words.

        Those are words for the entities that it names, and words of a near meaning (`word_families.py`).
        """
        return self.own_words_in(text) | self.other_words_in(text)

    def own_words_in(self, text: str) -> frozenset[str]:
        """Return the stems of a text's content words, and the words of the question for the entities that it names."""
        return content_words(text).union(*(words for pattern, words in self.forms if pattern.search(text)))

    def other_words_in(self, text: str) -> frozenset[str]:
        """Return the words of the question that a text says by a word of a near meaning, or itself."""
        if not self.said_by:
            return _NONE
        return _NONE.union(*(self.said_by.get(family_of(word), _NONE) for word in words_of(text)))

    def is_answered_by(self, text: str) -> bool:
        """Return whether a text contains what an answer would name; True if the kind of answer is unknown."""
        return self.answer is None or bool(self.answer.search(text))

    def is_described_by(self, text: str) -> bool:
        """Return whether a text begins with a sentence of the description."""
        return text.startswith(self.description) if self.description else False


def analyze_question(index: IndexReader, question: str, units: Sequence[TextUnitRecord]) -> QuestionAnalysis:
    """Return the analysis of a question; candidates for its answer are the entities in the text units."""
    kind, noun = _read_kind(question)
    words = _read_words(question, units)
    words = words - content_words(noun) or words
    named = index.names.find(question)
    entities = _read_names(index, named)
    forms = _read_forms(words, entities)
    name_words = frozenset().union(*(stood_for for _, stood_for in forms)) - _read_part(question, forms)
    asks_about_names = kind != "number" and not words - name_words
    kind = "" if asks_about_names else kind
    answer = _CAUSE if _WHY.match(question) else None
    answer = answer or (
        _number_pattern(question) if kind == "number" else _pattern_of_others(index, question, kind, named, units)
    )
    description = [s for e in entities for s in sentences_of(e["description"] or "")] if asks_about_names else []
    near = _read_said_by(question, words - name_words)
    asks_number = kind == "number" and is_english(question)
    return QuestionAnalysis(question, words, name_words, tuple(forms), answer, tuple(description), near, asks_number)


def _read_words(question: str, units: Sequence[TextUnitRecord]) -> frozenset[str]:
    """Return the content words of a question, with a verb that elsewhere only asks ("found"), without a measure.

    No answer repeats "often", and "old" and "long" count only if a text unit has them.
    """
    words = topic_words(question)
    if measure := _MEASURE.match(question):
        said = measure[1].lower()
        is_said = said != "often" and any(re.search(rf"\b{said}\b", unit.text, re.IGNORECASE) for unit in units)
        words = words if is_said else (words - {stem(said)} or words)
    if once := _USED_TO.search(question):
        words = words - {stem("used")} | {stem(once[1].lower())}
    asked = read_asked_verb(question)
    return words | {asked.stem} if asked and asked.word in _ACTS else words


def _read_part(question: str, forms: Sequence[tuple[re.Pattern[str], frozenset[str]]]) -> frozenset[str]:
    """Return the words of what is asked of another thing: of "What is the nominal output of the boiler?" the output.

    None of a name with "of" in it ("the Bank of England"), and none if the words behind "of" name nothing.
    """
    found = _PART_OF.match(question) if is_english(question) else None
    if found is None:
        return _NONE
    owner = content_words(found["owner"])
    asked = content_words(found["asked"]) - owner
    is_name = any(asked & stood_for and owner & stood_for for _, stood_for in forms)
    return asked if not is_name and any(owner & stood_for for _, stood_for in forms) else _NONE


def _number_pattern(question: str) -> re.Pattern[str]:
    """Return the pattern of a number; of what "how many" counts, a rate for "how often", any time for "when"."""
    if not is_english(question):
        return _NUMBER
    if _HOW_OFTEN.match(question):
        return _RATE
    if _WHEN.match(question):
        return _TIME
    counted = _HOW_MANY.match(question)
    if counted is None:
        return _NUMBER
    named = rf"(?:[\s-]+[\w'\u2019-]+){{0,2}}?[\s-]+{re.escape(stem(counted[1].lower()))}"
    return re.compile(rf"(?:{_NUMBER.pattern})[\w,]*(?:\.\d+)?(?:{named}|(?=\s*(?:[.,;:!?)]|\Z)))", re.IGNORECASE)


def _read_said_by(question: str, words: frozenset[str]) -> dict[str, frozenset[str]]:
    """Return family -> the words of an English question that a word of the family says, of words without a capital."""
    said: dict[str, frozenset[str]] = {}
    if not is_english(question):
        return said
    capitals = {found.lower() for found in _CAPITAL.findall(question)}
    for word in sorted(words_of(question) - capitals):
        if (base := stem(word)) in words:
            for family in said_by(word):
                said[family] = said.get(family, _NONE) | {base}
    return said


def read_name_words(index: IndexReader, question: str) -> frozenset[str]:
    """Return the stems of a question's content words that name entities of the index."""
    forms = _read_forms(topic_words(question), _read_names(index, index.names.find(question)))
    return frozenset().union(*(stood_for for _, stood_for in forms))


def _read_forms(
    words: frozenset[str], entities: Sequence[dict[str, Any]]
) -> list[tuple[re.Pattern[str], frozenset[str]]]:
    """Return (pattern of the written forms, the words of the question that name it) of each entity that has some."""
    forms = []
    for entity in entities:
        written = _written_forms(entity)
        stood_for = words & frozenset().union(*map(content_words, written))
        if stood_for:
            forms.append((_pattern_of(written), stood_for))
    return forms


def _read_kind(question: str) -> tuple[str, str]:
    """Return the kind of an answer, and the noun of "which company" or "in which part"; "" for what is unknown."""
    found = _WHICH.match(question) if is_english(question) else None
    if found is None:
        return kind_of(question), ""
    kind = found.lastgroup or ""
    return kind, found[kind]


def kind_of(question: str) -> str:
    """Return the kind of answer by the question's first words: person, place or number; "" if unknown."""
    if is_latin(question):
        return next((kind for kind, pattern in _LATIN.items() if pattern.match(question)), "")
    return next((kind for kind, pattern in _CHINESE.items() if pattern.search(question)), "")


def _pattern_of_others(
    index: IndexReader, question: str, kind: str, named: list[int], units: Sequence[TextUnitRecord]
) -> re.Pattern[str] | None:
    """Return the pattern of the entities of a kind that the text units name and the question does not; None if none.

    "Where" may be answered by a place without a name, too: "in chambers".
    """
    if kind not in _TYPES_OF:
        return None
    rows = index.snapshot.rows_of("text_units", [unit.id for unit in units])
    ids = {e for unit in index.snapshot.take("text_units", rows, ["entity_ids"]) for e in unit["entity_ids"] or ()}
    rows = index.snapshot.rows_of("entities", sorted(ids))
    others = _read_names(index, [row for row in rows.tolist() if row >= 0 and row not in named])
    written = {form for e in others if e["type"] in _TYPES_OF[kind] for form in _written_forms(e)}
    without_name = [NOUN_PHRASE] if _WHERE.match(question) else []
    return _pattern_of(written, *without_name) if written or without_name else None


def _read_names(index: IndexReader, rows: list[int]) -> list[dict[str, Any]]:
    """Return entities, without those that are named by another entity, such as "Scrooge's clerk"."""
    entities = index.snapshot.take("entities", rows, _COLUMNS)
    return [entity for entity in entities if "'S " not in entity["title"]]


def _written_forms(entity: dict[str, Any]) -> set[str]:
    return set(entity["names"] or ()) or {entity["title"]}


def _pattern_of(written: Iterable[str], *further: str) -> re.Pattern[str]:
    """Return the pattern that matches any of some names, the longest first, or of some further patterns."""
    longest_first = sorted(written, key=lambda form: (-len(form), form))
    return re.compile("|".join([*map(_match_form, longest_first), *further]))


def _match_form(form: str) -> str:
    """Return the pattern of a name, between word boundaries if its script has them.

    Case is ignored for a long name in capitals, since an import may have the name in capitals only.
    """
    spaced = r"\s+".join(re.escape(word) for word in form.split())
    bounded = rf"\b{spaced}\b" if is_latin(form) and form[:1].isalnum() and form[-1:].isalnum() else spaced
    return f"(?i:{bounded})" if form.isupper() and len(form) > MAX_ACRONYM else bounded
