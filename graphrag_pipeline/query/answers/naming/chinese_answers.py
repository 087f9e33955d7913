"""The name, place, date or age that a Chinese question asks for, with the sentence that states it.

Only what a sentence states counts, clause by clause:
- a person who does what is asked: the last person before the verb that is no possessor and stands behind no
  preposition, the one between 被 and the verb, or the one of 放火的人是; a clause without a subject has that of the one
  before it, and 他 or 她 that of the sentence before, if that begins with a person
- who has a title: 甲是镇上的木匠
- the holder of a role: 甲是乙的老师, 乙的老师(名)叫甲, 她的父亲甲 behind a sentence about 乙
- a place behind 在, 到 or 进 beside the verb, a date in the clause of the verb, an age behind its person
Sentences that disagree name nothing. Persons are entities of the index. Simplified and traditional characters are read
alike; the answer is as its sentence writes it. Keep out: other languages (`named_answers.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from graphrag_pipeline.query.answers.naming.named_answers import NamedAnswer
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.results import TextUnitRecord
from graphrag_pipeline.query.selection.passages import Sentence, runs_without_question
from graphrag_pipeline.query.understanding.chinese_definitions import (
    TITLES,
    ChineseQuestion,
    asked_person,
    rate_person,
    read_chinese_question,
    states_role,
)
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.scripts import HAN, simplify

Found = tuple[str, str]
"""An answer in simplified characters, and as it is written."""

MOST_OF_SUBJECT = 0.75
"""Least share of the characters of the words before "when" that a sentence and the one before it have."""
LEAST_SHARE = 0.6
"""Least share of the characters of a question's object that the clause and its neighbours have."""
MAX_TITLE = 4  # characters of a title between "is" and a name
MAX_PLACE = 16
"""Most characters of a place that is no name: 古庙旁边的小屋里."""
_H = f"[{HAN}]"
_CLAUSE = late_re(r"[^，；：。！？“”\n]+")
_ASPECT = late_re("[了过着的]|一[个位名件封座把]")
_SENT = late_re(f"[派让命令请](?:{_H}{{0,3}}(?:{TITLES}))?$")
_NEGATION = late_re("(?:没有?人?|不|未曾?|无人|别)[^，。]{0,3}$")
_BEHIND = late_re(f"[对向给跟和与把将被从比为替让同叫派请命令](?:{_H}{{0,3}}(?:{TITLES}))?$")
_JOINED = ("的", "和", "与", "、")
_AT = "(?:在|到|于|进|入|至|去|往|回)了?"
_ERA = (
    "(?:民国|宣统|光绪|同治|咸丰|道光|嘉庆|乾隆|雍正|康熙|顺治|崇祯|天启|万历|隆庆|嘉靖|正德|弘治|成化|景泰|宣德|永乐|洪武|至正|至元|绍兴|靖康"
    "|宣和|元丰|熙宁|庆历|天圣|景德|开宝|建隆|天宝|开元|贞观|武德|大业|开皇|昭和|大正|明治)"
)
_DATE = late_re(
    rf"(?:[去今明前]年|[\d〇零一二三四五六七八九十]{{2,4}}年|{_ERA}[元一二三四五六七八九十]+年)?"
    r"(?:[\d一二三四五六七八九十正腊冬]{1,3}月(?:初?[\d一二三四五六七八九十廿]{1,3}[日号]?)?)"
    rf"|{_ERA}[元一二三四五六七八九十]+年(?:[春夏秋冬][天季]?)?"
    r"|[\d〇零一二三四五六七八九十]{2,4}年(?:[春夏秋冬][天季]?)?|(?:去|今|明|前|同|次|第二)年[春夏秋冬]?天?"
    r"|[上下]个月|(?:昨|今|明|当|第二)[天日晚](?:早上|上午|中午|下午|晚上|夜里|夜)?|星期[一二三四五六日天]|周[一二三四五六日]"
)
_AGE = late_re(r"(?:\d+|[〇零一二三四五六七八九十百]+)岁")
_FATHERS = ("父亲", "爸爸", "爹")
_DISCIPLES = "弟子|徒弟|徒儿|门生|学生"
_INVERSES = dict.fromkeys(_FATHERS, "[女儿子]") | dict.fromkeys(("师父", "师傅", "老师"), _DISCIPLES)
"""What a person is to the holder of a role. A father has the surname of the child."""
_AGENTS = late_re("^(?:皇帝|官府|警方|政府|公司|法院|众人|大家|人们|村民|老人|女子|男子|少年|孩子|士兵|敌人|有人)")


@dataclass(frozen=True)
class _Read:
    """A sentence with its text in simplified characters, the persons in it, and the person that 他 stands for."""

    sentence: Sentence
    text: str
    people: tuple[re.Match[str], ...]
    before: Sentence | None
    topic: str
    topic_written: str

    def at(self, start: int, end: int) -> Found:
        return self.text[start:end], self.sentence.text[start:end]

    def find_people(self, start: int, end: int) -> list[re.Match[str]]:
        return [person for person in self.people if start <= person.start() and person.end() <= end]


def find_chinese_answer(index: IndexReader, question: str, units: Sequence[TextUnitRecord]) -> NamedAnswer | None:
    """Return what a Chinese question asks for; None if no sentence states it, or if sentences disagree."""
    if name := asked_person(question):
        said = _find_best(question, units, lambda sentence: rate_person(name, sentence))
        is_title = re.search(f"(?:{TITLES})$", name) is not None
        return said or (_find_stated(index, question, ChineseQuestion("titled", name, ""), units) if is_title else None)
    asked = read_chinese_question(question)
    if asked is None:
        return None
    stated = _find_stated(index, question, asked, units)
    if stated is None and asked.kind == "holder":
        return _find_best(question, units, lambda sentence: float(states_role(asked.name, asked.verb, sentence)))
    return stated


def _find_best(question: str, units: Sequence[TextUnitRecord], rate: Callable[[str], float]) -> NamedAnswer | None:
    """Return the first of the sentences with the highest rating, without a name; None if all have 0."""
    sentences = [one for unit in units for run in runs_without_question(unit, question) for one in run]
    best = max(sentences, key=lambda sentence: rate(sentence.folded), default=None)
    return NamedAnswer("", (best,)) if best and rate(best.folded) else None


def _find_stated(
    index: IndexReader, question: str, asked: ChineseQuestion, units: Sequence[TextUnitRecord]
) -> NamedAnswer | None:
    named = _match_any(_forms(index, index.names.find(question)))
    doers = ("PERSON", "ORGANIZATION") if asked.kind == "subject" else ("PERSON",)
    people = _match_any(_forms(index, _rows_in(index, units), doers))
    readers: dict[str, Callable[[_Read], Iterable[Found]]] = {
        "holder": lambda read: _read_holder(read, asked, people.fullmatch(asked.name) is not None),
        "titled": lambda read: _read_titled(read, asked.name),
        "subject": lambda read: _read_subject(read, asked.verb, named),
        "object": lambda read: _read_object(read, asked.verb, named),
        "place": lambda read: _read_place(read, asked, named),
        "date": lambda read: _read_date(read, asked),
        "age": lambda read: _read_age(read, asked.name),
    }
    is_asked = {match.group() for match in named.finditer(simplify(question))}
    found: dict[str, tuple[_Read, str]] = {}
    for read in _read_all(question, units, people):
        for simple, written in readers[asked.kind](read):
            if simple not in is_asked:
                found.setdefault(simple, (read, written))
    whole = {text for text in found if not any(text != other and text in other for other in found)}
    if len(whole) != 1:
        return None
    read, written = found[whole.pop()]
    return NamedAnswer(written, _support(read, named))


def _support(read: _Read, named: re.Pattern[str]) -> tuple[Sentence, ...]:
    """Return the sentence, and the one before it if the sentence has no name of the question and that one has."""
    needs_more = read.before is not None and not named.search(read.text) and named.search(simplify(read.before.text))
    return (read.before, read.sentence) if needs_more and read.before else (read.sentence,)


def _rows_in(index: IndexReader, units: Sequence[TextUnitRecord]) -> list[int]:
    """Return the rows of the entities of text units."""
    rows = index.snapshot.rows_of("text_units", [unit.id for unit in units])
    ids = {e for unit in index.snapshot.take("text_units", rows, ["entity_ids"]) for e in unit["entity_ids"] or ()}
    found = index.snapshot.rows_of("entities", sorted(ids))
    return [row for row in found.tolist() if row >= 0]


def _forms(index: IndexReader, rows: Sequence[int], types: Sequence[str] = ()) -> set[str]:
    """Return the written forms of entities in simplified characters."""
    entities = index.snapshot.take("entities", list(rows), ["title", "type", "names"])
    kept = [one for one in entities if not types or one["type"] in types]
    return {simplify(form) for one in kept for form in (*(one["names"] or ()), one["title"])}


def _match_any(forms: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(forms, key=lambda form: (-len(form), form))
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def _read_all(question: str, units: Sequence[TextUnitRecord], people: re.Pattern[str]) -> Iterator[_Read]:
    """Yield the sentences of text units, each with the person that the sentences before it are about."""
    for unit in units:
        for run in runs_without_question(unit, question):
            topic, written, before = "", "", None
            for sentence in run:
                text = simplify(sentence.text)
                found = tuple(people.finditer(text))
                yield _Read(sentence, text, found, before, topic, written)
                is_clear = len({person.group() for person in found}) == 1
                if found and (is_clear or not any(mark in text[: found[0].start()] for mark in "，；：")):
                    topic, written = found[0].group(), sentence.text[slice(*found[0].span())]
                elif text[:1] not in "他她":
                    topic, written = "", ""
                before = sentence


# ------------------------------------------------------------------------------------------------------------- readers


def _read_holder(read: _Read, asked: ChineseQuestion, is_person: bool) -> Iterator[Found]:
    """Yield who has a role to a person, or of a place or body if `is_person` is false."""
    yield from (read.at(*one.span()) for one in _find_holders(read, asked))
    if asked.verb in _INVERSES:
        yield from (read.at(*one.span()) for one in _find_inverse(read, asked))
    if not is_person and _is_of_place(read, asked):
        for match in re.finditer(rf"(?:^|[，；。]|{re.escape(asked.name)}){re.escape(asked.verb)}", read.text):
            yield from (read.at(*one.span()) for one in read.people if one.start() == match.end())


def _find_holders(read: _Read, asked: ChineseQuestion) -> Iterator[re.Match[str]]:
    """Yield the persons of 乙的老师甲, 乙的老师叫甲, 甲是乙的老师, 他的老师甲 and 乙写信给老师甲."""
    role, owner = re.escape(asked.verb), re.escape(asked.name)
    owned = rf"(?:(?<!{_H})|(?<=[给把被和与跟向对叫同让派找])|(?<=就是)|(?<=正是)){owner}的{role}"
    owned += rf"|[他她其]的?{role}" if asked.name in (read.topic, *_first_name(read)) else ""
    for match in re.finditer(rf"(?:{owned})(?P<named>[，、]?(?:名叫|叫做?|名为|便?是|乃是|就是))?，?", read.text):
        yield from _right_behind(read, match.end(), MAX_TITLE if match["named"] else 0)
    for match in re.finditer(rf"(?:正?是|就是|乃是?|便是|成为了?|做了?|，){owner}的{role}(?=[，。！；]|$)", read.text):
        start = _clause_at(read.text, match.start())[0]
        yield from (one for one in read.find_people(start, match.start())[-1:] if one.end() == match.start())
        if read.text[start : match.start()] in ("他", "她") and start > 1:
            before = read.find_people(*_clause_at(read.text, start - 2))
            yield from before if len(before) == 1 else ()
    if read.text.startswith(asked.name):
        for match in re.finditer(rf"(?<![他她们]){role}", read.text):
            if not read.find_people(len(asked.name), match.start()):
                yield from _right_behind(read, match.end(), 0)


def _find_inverse(read: _Read, asked: ChineseQuestion) -> Iterator[re.Match[str]]:
    """Yield the person of 甲是乙的女儿, for 甲的父亲."""
    inverse = _INVERSES[asked.verb]
    stated = rf"{re.escape(asked.name)}(?:，[^。；！？]{{0,12}}，)?是[^，。]{{0,14}}的{_H}{{0,4}}(?:{inverse})"
    for match in re.finditer(stated, read.text):
        for one in read.find_people(*match.span()):
            is_kin = asked.verb not in _FATHERS or one.group()[0] == asked.name[0]
            if is_kin and read.text[one.end()] == "的":
                yield one
    for match in re.finditer(rf"的(?:{inverse}){re.escape(asked.name)}", read.text):  # 乙的弟子甲
        yield from (one for one in read.people if one.end() == match.start() and asked.verb not in _FATHERS)


def _read_titled(read: _Read, title: str) -> Iterator[Found]:
    """Yield who has a title: 甲是镇上的木匠, 数学老师甲."""
    for match in re.finditer(re.escape(title), read.text):
        yield from (read.at(*one.span()) for one in _right_behind(read, match.end(), 0))
        start, end = _clause_at(read.text, match.start())
        if match.end() == end and (copula := re.search("[是为][^是为]*$", read.text[start : match.start()])):
            yield from filter(None, [_subject_of(read, start, start + copula.start())])


def _is_of_place(read: _Read, asked: ChineseQuestion) -> bool:
    """Whether a bare role is that of a place or body: 县长 of any county, 校长 beside the name of the school."""
    is_beside = asked.name in read.text or (read.before is not None and asked.name in simplify(read.before.text))
    return asked.verb[0] == asked.name[-1] or is_beside


def _right_behind(read: _Read, place: int, max_title: int) -> list[re.Match[str]]:
    """Return the person at a place, or behind a title there: 和尚净尘."""
    behind = next((one for one in read.people if one.start() >= place), None)
    title = read.text[place : behind.start()] if behind else ""
    is_title = len(title) <= max_title and re.fullmatch(rf"{_H}*(?:{TITLES})", title) is not None
    return [behind] if behind and (not title or is_title) else []


def _first_name(read: _Read) -> tuple[str, ...]:
    """Return the person that a sentence begins with, if any."""
    return (read.people[0].group(),) if read.people and read.people[0].start() == 0 else ()


def _read_subject(read: _Read, asked: str, named: re.Pattern[str]) -> Iterator[Found]:
    """Yield the persons who do what is asked, in the place that the question names: 在北京."""
    if (where := re.match(rf"在({named.pattern}|\d+年?|{_H}{{2}})", asked)) and where[1] not in read.text:
        return
    for verb in _find_verb(read, asked, named):
        start, end = _clause_at(read.text, verb.start())
        if _NEGATION.search(read.text[start : verb.start()]):
            continue
        after = read.text[verb.end() : end]
        if cleft := re.match(rf".{{0,8}}?的(?:人|凶手|{_H}{{2}})(?:正|就|便)?是", after):
            inside = read.find_people(verb.end() + cleft.end(), end)
            yield from (read.at(*one.span()) for one in inside[-1:])
            continue
        passive = read.text.rfind("被", start, verb.start())
        if passive >= 0:
            inside = read.find_people(passive, verb.start())
            yield from (read.at(*one.span()) for one in inside[-1:])
            continue
        if subject := _subject_of(read, start, verb.start()):
            yield subject


def _subject_of(read: _Read, start: int, end: int, n_back: int = 2) -> Found | None:
    """Return the subject of the words before a verb, or of the clauses before them."""
    between = read.text[start:end]
    people = read.find_people(start, end)
    sent = [one for one in people if _SENT.search(read.text, start, one.start())]  # 派捕快卢四追赶
    inside = sent[-1:] or [one for one in people if not _is_dependent(read.text, start, one)]
    if inside:
        return read.at(*inside[0].span()) if len(inside) == 1 else None
    if _AGENTS.match(between) or read.find_people(start, end):
        return None
    if start > 0 and n_back:
        before = _clause_at(read.text, start - 2)
        return _subject_of(read, *before, n_back - 1) if before[1] <= start else None
    is_pronoun = re.match("[他她]", read.text) is not None
    if is_pronoun and read.topic and read.before is not None:
        return read.topic, read.topic_written
    return None


def _is_dependent(text: str, start: int, person: re.Match[str]) -> bool:
    """Whether a person is a possessor, or behind a preposition that is at `start` or later."""
    return text[person.end() :][:1] in _JOINED or _BEHIND.search(text, start, person.start()) is not None


def _read_object(read: _Read, asked: str, named: re.Pattern[str]) -> Iterator[Found]:
    """Yield the one person behind the verb, whose subject the question names."""
    name = named.match(asked)
    if not name:
        return
    verb_text = _ASPECT.sub("", asked[name.end() :])
    verb = re.compile("[了过着]?".join(map(re.escape, verb_text))) if verb_text else re.compile("(?!)")
    for match in verb.finditer(read.text):
        start, end = _clause_at(read.text, match.start())
        subject = _subject_of(read, start, match.start())
        is_subject = subject is not None and subject[0] == name.group()
        behind = [one for one in read.find_people(match.end(), end) if not _is_dependent(read.text, match.end(), one)]
        if is_subject and len(behind) == 1:
            yield read.at(*behind[0].span())


def _read_place(read: _Read, asked: ChineseQuestion, named: re.Pattern[str]) -> Iterator[Found]:
    """Yield the place beside the verb."""
    match = named.match(asked.name)
    whole = asked.name if asked.verb or asked.name in read.text else asked.name[:-1]
    name = match.group() if match else whole
    if not (name in read.text or read.topic == name):
        return
    held = re.sub("[在到去了]+$", "", asked.name[len(name) :])
    verb = asked.verb or held
    phrase = rf"([^，。！？；“”]{{2,{MAX_PLACE}}}?)"
    if not verb:
        patterns = [rf"{re.escape(name)}(?:位于|坐落在|坐落于|就?在){phrase}(?=[，。！？；])"]
    else:
        plain = _ASPECT.sub("", verb).removeprefix("被")
        if sum(letter in read.text for letter in plain) < LEAST_SHARE * len(plain):
            return
        core = "了?".join(map(re.escape, plain[:2]))
        at = _AT if len(plain) == 1 else f"(?:{_AT}|(?={_H}))"
        is_held = not asked.verb
        pattern = (
            rf"{core}{at}{phrase}(?=[，。！？；])" if is_held else rf"{_AT}{phrase}(?=(?:被[^，。]{{0,10}})?{core})"
        )
        patterns = [pattern]
    for pattern in patterns:
        for match in re.finditer(pattern, read.text):
            yield read.at(*match.span(1))


def _read_date(read: _Read, asked: ChineseQuestion) -> Iterator[Found]:
    """Yield the only date of the clause with the verb, or of the one before it."""
    subject = re.sub("[在是]$", "", asked.name)
    verb = _ASPECT.sub("", asked.verb) or subject[-2:].removesuffix("在")
    around = read.text + (simplify(read.before.text) if read.before else "")
    if sum(letter in around for letter in subject) < MOST_OF_SUBJECT * len(subject):
        return
    if sum(letter in read.text for letter in verb) < len(verb):
        return
    for match in re.finditer(f"{'了?'.join(map(re.escape, verb[:2]))}(?![人者家])", read.text):
        start, end = _clause_at(read.text, match.start())
        dates = list(_DATE.finditer(read.text, start, end))
        if not dates and start > 1:
            dates = list(_DATE.finditer(read.text, *_clause_at(read.text, start - 2)))
        if len(dates) == 1:
            yield read.at(*dates[0].span())


def _read_age(read: _Read, name: str) -> Iterator[Found]:
    """Yield the age in a sentence that begins with a person, or with 他 behind one, or right before the person."""
    owner = re.escape(name)
    is_about = read.text.startswith(name) or (read.topic == name and re.match("[他她]", read.text))
    ages = list(_AGE.finditer(read.text))
    beside = rf"({_AGE.pattern})的[^，。；]{{0,10}}?{owner}|{owner}，?(?:今年)?({_AGE.pattern})"
    if found := re.search(beside, read.text):
        yield read.at(*found.span(found.lastindex or 0))
    elif is_about and len(ages) == 1 and not re.search("岁(?:时|那年|的时候|就|以后|才)", read.text[ages[0].start() :]):
        yield read.at(*ages[0].span())


# --------------------------------------------------------------------------------------------------------------- words


def _clause_at(text: str, place: int) -> tuple[int, int]:
    """Return the start and end of the clause around a place."""
    found = next((one.span() for one in _CLAUSE.finditer(text) if one.start() <= place < one.end()), None)
    return found or (max(place, 0), max(place, 0))


def _find_verb(read: _Read, asked: str, named: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Yield the places of the verb of a question in a sentence that has its object and the names in it."""
    names = {match.group() for match in named.finditer(asked)}
    if asked[:1] in "没不未" or not all(name in read.text or name == read.topic for name in names):
        return
    plain = _ASPECT.sub("", named.sub("", asked))
    for n in (2, 1):
        verb, rest = plain[:n], set(plain[n:])
        if len(verb) < n or (n == 1 and not rest and not names):
            return
        share = sum(letter in read.text for letter in rest) / len(rest) if rest else 1.0
        pattern = re.compile(f"{'(?:[了过着]|一个)?'.join(map(re.escape, verb))}(?![人者家])")
        places = list(pattern.finditer(read.text)) if share >= LEAST_SHARE else []
        if places:
            yield from places
            return
