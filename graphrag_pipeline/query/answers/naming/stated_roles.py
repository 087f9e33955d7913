"""The holder of a role, from sentences that state it: "Her husband, the bus conductor Frank Ellis".

A statement answers if its owner is that of the question ("Who is A's wife?": "A's wife, N"), or if its holder is and
the role is that of the other person: "Fred came in to his uncle Scrooge" makes Fred the nephew. Then the gender of the
question must be that of the pronoun or title. Of an office, a statement without an owner answers a question without
one, for what the document is titled after, or for a body that the text calls "the board". The words before an office
must be those of the question: the finance director is not the director. Sentences that give different names give none,
but a present holder of an office is preferred. Without a statement, conversations may name a speaker who has the role:
most of them must give one name.
English alone. Keep out: reading a sentence (`understanding/role_statements.py`) or a conversation
(`understanding/spoken_roles.py`), names by nearness (`named_answers.py`).
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from graphrag_pipeline.query.answers.naming.short_names import is_short_for
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.question import content_words, stem
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.passages import MAX_PASSAGE_SENTENCES, Sentence, sentences_of
from graphrag_pipeline.query.understanding.asked_role import GROUP_STEMS, AskedRole
from graphrag_pipeline.query.understanding.question_analysis import QuestionAnalysis
from graphrag_pipeline.query.understanding.role_statements import NAME, RoleReader, RoleStatement
from graphrag_pipeline.query.understanding.spoken_roles import Speaker, SpokenRole, read_spoken_roles
from graphrag_pipeline.text.late_patterns import late_re

_PARENTS = late_re(
    rf"(?P<title>King |Count |Duke |Emperor |Sir )?(?P<father>{NAME}) and "
    rf"(?:(?P<wife>his (?:[a-z]+ )?wife),? ?)?(?P<mother>{NAME})?"
)
_PLAIN_WORDS = frozenset(
    """new present current only old young elder younger eldest good dear poor own little trusted faithful long-time
    beloved great famous local same""".split()  # noqa: SIM905
)
"""Words before an office that make it no other one."""
MAX_CHARS_NEAR = 1_500
"""Characters on each side of a conversation in which the speaker without a name is named."""
MIN_NAMED = 2
_TAGGED = late_re(rf"(?:(?P<owner>{NAME})['\u2019]s? |[Tt]he )(?P<role>[a-z -]+)")
_LEAVES = (
    r",?\s+(?:who\s+)?(?:(?:has|had|is|was|will|also|then)\s+)*(?:(?:stepped|stood|step|stand|stepping|standing)\s+down"
    r"|resign|retir|died\b)"
)
"""What is behind the name of one who holds an office no longer: "The Secretary, Mr Holt, stepped down"."""
_MEETING = content_words("meeting")
"""The owner of an office in the minutes of a meeting, which seldom say of what it is."""
_OF_A_PEOPLE = late_re(r"\w+(?:ish|ese|ian|ean|ch)")


@dataclass(frozen=True)
class StatedRole:
    """A name, and the sentence that states its role, behind the one that says whose pronoun it is, if there is one."""

    name: str
    sentences: tuple[Sentence, ...]
    is_past: bool = False


def find_stated_role(
    index: IndexReader, analysis: QuestionAnalysis, asked: AskedRole, units: Sequence[TextUnitRecord]
) -> StatedRole | None:
    """Return the holder of the role that a question asks for; None if no sentence states one.

    The name is empty if sentences disagree.
    """
    types = functools.cache(functools.partial(_read_types, index))
    titles = {unit.document_id: _heading(unit) for unit in units if unit.start == 0}
    found = [
        stated
        for unit in units
        for stated in _read_unit(analysis, asked, unit, titles.get(unit.document_id, unit.document_title), types)
    ]
    if asked.is_now:
        found = [stated for stated in found if not stated.is_past] or found
    found = found or _find_spoken(analysis, asked, units, types)
    if not found:
        return None
    longest = max(found, key=lambda stated: len(stated.name))
    words = content_words(longest.name)
    if not all(_without_initials(stated.name, words) <= words for stated in found):
        return StatedRole("", ())
    return replace(longest, name=_full_name(index, longest.name))


def _full_name(index: IndexReader, name: str) -> str:
    """Return the longest form of the only person of the index that is called by a name of one word."""
    rows = index.names.find(name) if " " not in name else []
    persons = index.snapshot.take("entities", rows, ["title", "type", "names"])
    if len(persons) != 1 or persons[0]["type"] != "PERSON":
        return name
    fuller = [
        form for form in persons[0]["names"] or () if name in form.split() and form.upper() == persons[0]["title"]
    ]
    return max(fuller, key=lambda form: (len(form.split()), form), default=name)


def _without_initials(name: str, whole: frozenset[str]) -> frozenset[str]:
    """Return the words of a name without the initials of another: "P. Ainsley" may be Patricia Ainsley."""
    initials = {word[0] for word in whole}
    return frozenset(word for word in content_words(name) if len(word) > 1 or word not in initials)


def _heading(unit: TextUnitRecord) -> str:
    """Return the first line of a document if it is a heading, else the title."""
    first, _, rest = unit.text.strip().partition("\n")
    return first if rest and len(first) < 120 and first[-1:] not in ".!?,;'\"\u201d\u2019" else unit.document_title


def _read_types(index: IndexReader, name: str) -> frozenset[str]:
    """Return the types of the entities of a name; empty if the index has none."""
    return frozenset(entity["type"] for entity in index.snapshot.take("entities", index.names.find(name), ["type"]))


def _may_be_person(types: frozenset[str]) -> bool:
    return "PERSON" in types or types <= {"UNKNOWN"}


def _read_unit(
    analysis: QuestionAnalysis,
    asked: AskedRole,
    unit: TextUnitRecord,
    title: str,
    types: Callable[[str], frozenset[str]],
) -> Iterator[StatedRole]:
    direct = asked.words
    inverse = asked.known.inverses if asked.known else ()
    text = unit.text.lower()
    words = [word for word in dict.fromkeys((*direct, *inverse)) if word[:4] in text or word in ("spouse", "successor")]
    if not words:
        return
    sentences = sentences_of(unit)

    def is_person(name: str) -> bool:
        return _may_be_person(types(name)) and (" " in name or bool(types(name)))

    reader = RoleReader([sentence.folded for sentence in sentences], title, is_person)
    for i, sentence in enumerate(sentences):
        for word in words:
            for said in reader.read(i, word, asked.modifiers):
                names = _answers(analysis, asked, said, (title, unit.text), (word in direct, word in inverse))
                for name in names:
                    has_left = asked.is_now and re.search(rf"{re.escape(name)}{_LEAVES}", sentence.folded)
                    if not has_left and _is_holder(asked, name, said.is_plain, types):
                        before = (sentences[i - 1],) if said.is_back and i else ()
                        yield StatedRole(name, (*before, sentence), said.is_past)


def _answers(
    analysis: QuestionAnalysis, asked: AskedRole, said: RoleStatement, near: tuple[str, str], ways: tuple[bool, bool]
) -> Iterator[str]:
    """Yield the names that a statement gives as the holder: directly, or from the other person's role.

    Args:
        near: title of the document, and text around the statement.
        ways: whether the word of the statement is the role that is asked for, and whether it is that of the other.
    """
    is_direct, is_inverse = ways
    if is_direct and _has_modifiers(asked, said) and _is_owner(analysis, asked, said.owner, *near):
        yield said.holder
    if is_inverse and asked.owner and _is_named(analysis, asked, said.holder):
        yield from _owners(asked, said)


def _owners(asked: AskedRole, said: RoleStatement) -> Iterator[str]:
    """Yield the owner of a statement if its gender is asked for; of parents the one that is."""
    if parents := _PARENTS.search(said.owner):
        if asked.head in ("father", "mother") and (parents["title"] or parents["wife"]):
            yield from filter(None, [parents[asked.head]])
        return
    gender = asked.known.gender if asked.known else ""
    fits = not gender or gender == said.gender or (not said.gender and asked.head in ("husband", "wife"))
    if fits and (name := re.search(rf"{NAME}$", said.owner)):
        yield name[0]


def _has_modifiers(asked: AskedRole, said: RoleStatement) -> bool:
    if not asked.modifiers <= said.modifiers:
        return False
    return asked.known is not None or said.modifiers - asked.modifiers <= _PLAIN_WORDS


def _is_owner(analysis: QuestionAnalysis, asked: AskedRole, owner: str, title: str, text: str) -> bool:
    """Return whether an owner is that of the question; an office without one is that of the document's title."""
    if owner:
        if not asked.owner:
            return asked.known is None
        noun = owner.split()[-1]
        return _is_named(analysis, asked, owner) or (
            asked.known is None and noun == noun.lower() and is_short_for(f"the {noun}", asked.owner, text)
        )
    if asked.known is not None:
        return False
    return asked.owner <= content_words(title) | _MEETING | (GROUP_STEMS & content_words(text))


def _is_named(analysis: QuestionAnalysis, asked: AskedRole, name: str) -> bool:
    """Return whether a name or phrase is the owner of the question: it has its words, or is a form of its entity."""
    if asked.owner <= content_words(name):
        first = next((word for word in name.split() if word[:1].isupper() and word not in ("The", "A", "An")), "")
        return asked.known is not None or not first or stem(first.lower()) in asked.owner
    return any(asked.owner <= words and pattern.fullmatch(name) for pattern, words in analysis.forms)


def _is_holder(asked: AskedRole, name: str, is_plain: bool, types: Callable[[str], frozenset[str]]) -> bool:
    """Return whether a name may be that of the holder: a person, or unknown beside the role, and not the owner."""
    words = content_words(name)
    if not words or words <= asked.owner or (len(words) == 1 and words & asked.owner):
        return False
    known = types(name)
    if not asked.is_person or "PERSON" in known or (asked.may_be_body and "ORGANIZATION" in known):
        return True
    return _may_be_person(known) and bool(is_plain or known) and not _OF_A_PEOPLE.fullmatch(name)


def _find_spoken(
    analysis: QuestionAnalysis,
    asked: AskedRole,
    units: Sequence[TextUnitRecord],
    types: Callable[[str], frozenset[str]],
) -> list[StatedRole]:
    """Return the holders that most conversations give, those in the shortest quotation first."""
    found: dict[str, StatedRole] = {}
    counts: Counter[str] = Counter()
    for unit in units:
        for name, said in _read_spoken(analysis, asked, unit, types):
            sentences = tuple(s for s in sentences_of(unit) if s.end > said.start and s.start <= said.end)
            text = unit.text[sentences[0].start : sentences[-1].end]
            if name in text and len(sentences) <= MAX_PASSAGE_SENTENCES and _is_holder(asked, name, True, types):
                counts[name] += 1
                known = found.get(name)
                if known is None or _length(sentences) < _length(known.sentences):
                    found[name] = StatedRole(name, sentences)
    most = counts.most_common(1)
    is_clear = bool(most) and most[0][1] * 3 > 2 * counts.total()
    return [found[most[0][0]]] if is_clear else list(found.values())


def _length(sentences: Sequence[Sentence]) -> int:
    return sum(len(sentence.text) for sentence in sentences)


def _read_spoken(
    analysis: QuestionAnalysis, asked: AskedRole, unit: TextUnitRecord, types: Callable[[str], frozenset[str]]
) -> Iterator[tuple[str, SpokenRole]]:
    """Yield the names of speakers who have the role that is asked for."""
    direct = asked.words
    inverse = asked.known.inverses if asked.known else ()
    text = unit.text.lower()
    if not any(word in text for word in (*direct, *inverse)):
        return

    def is_person(name: str, opens: bool) -> bool:
        return "PERSON" in types(name) or (not opens and _may_be_person(types(name)))

    for said in read_spoken_roles(unit.text, is_person):
        if not said.role:
            holder = said.holder if _phrase_says(analysis, asked, said.holder.phrase, unit) else None
        elif said.owner and said.role in direct and _is_speaker(analysis, asked, said.owner, said, unit.text, types):
            holder = said.holder
        elif said.owner and said.role in inverse and _is_speaker(analysis, asked, said.holder, said, unit.text, types):
            gender = asked.known.gender if asked.known else ""
            holder = said.owner if gender in ("", said.owner.gender) else None
        else:
            holder = None
        if holder:
            yield from ((name, said) for name in holder.names)


def _phrase_says(analysis: QuestionAnalysis, asked: AskedRole, phrase: str, unit: TextUnitRecord) -> bool:
    """Return whether the phrase for a speaker is the role that is asked for: "Hale's nephew", "the keeper"."""
    found = _TAGGED.fullmatch(phrase)
    words = found["role"].split() if found else []
    if found is None or asked.head not in words or not asked.modifiers <= set(words):
        return False
    if set(words[: words.index(asked.head)]) - asked.modifiers - _PLAIN_WORDS:
        return False
    if found["owner"]:
        return bool(asked.owner) and _is_named(analysis, asked, found["owner"])
    return asked.known is None and asked.owner <= analysis.words_in(unit.text)


def _is_speaker(
    analysis: QuestionAnalysis,
    asked: AskedRole,
    speaker: Speaker,
    said: SpokenRole,
    text: str,
    types: Callable[[str], frozenset[str]],
) -> bool:
    """Return whether a speaker is the owner of the question.

    One who is only "the boy" or "she" is the person whom the text around the conversation names most.
    """
    if any(_is_named(analysis, asked, name) for name in (speaker.phrase, *speaker.names) if name):
        return True
    if speaker.names or not speaker.phrase.lower().startswith(("the ", "he", "she")):
        return False
    around = text[max(said.start - MAX_CHARS_NEAR, 0) : said.start + MAX_CHARS_NEAR]
    named = Counter(found[0] for found in re.finditer(rf"\b{NAME}", around))
    n_owner = sum(n for name, n in named.items() if asked.owner & content_words(name))
    present = content_words(" ".join((*said.holder.names, *(said.owner.names if said.owner else ()))))
    absent = [name for name in named if not (asked.owner | present) & content_words(name) and "PERSON" in types(name)]
    others = [named[name] for name in absent]
    return n_owner >= MIN_NAMED and n_owner > max(others, default=0)
