"""Persons of a Chinese text who are the subject of a clause, or the object of a verb that takes persons: 林动发誓.

A surname with one or two characters at the start of a clause is a name if a predicate follows. The predicate also
shows where the name ends: 林动 before 发誓, 徐凤年 before 被. A surname that begins many common words (石, 金) needs a
predicate of a person: speech, thought, life, or a definition by a word for persons.

Keep out: persons behind a title (`titled_people.py`), and names that only repetition shows (`repeated_names.py`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from graphrag_pipeline.indexing.extraction.names.chinese.name_evidence import WORD_SURNAMES
from graphrag_pipeline.indexing.extraction.names.chinese.people import ACTS, ROLES
from graphrag_pipeline.indexing.extraction.names.chinese.word_lists import (
    ADDRESSES,
    COMMON_WORDS,
    DOUBLE_SURNAMES,
    NO_NAMES,
    RARE_SURNAMES,
    SURNAMES,
    TITLES,
)
from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.scripts import HAN

Cut = Callable[[str], list[str]]
"""Cuts a text into words."""

_H = f"[{HAN}]"
_READ_AHEAD = 6  # characters behind a name
_NONE, _ANY, _OF_PERSON = 0, 1, 2
"""What a predicate shows: nothing, that something ends before it, or that a person does."""
_RARE_WORD = 300  # least count of a common word in the segmenter's dictionary
_PREDICATE_KINDS = frozenset(["v", "vd", "vi", "d", "ad", "p", "c", "t", "uj"])
_NOT_GIVEN = frozenset(
    "的了着过是在有和与不也都就又再还很没对向把被给从到说道问答看听想去来走进出上下里中前后内外那这他她它我你您们个位一二两几么吗呢吧啊叫姓将便"
    "则所以为于及其之已才却但因跟让使令带某等或且而只最更太家氏府国市县区镇村州省军队朝代"
)
_NO_END = frozenset("门宗派帮教殿阁盟山江河湖")
"""Last characters of names of sects and places: such a name needs a predicate of a person."""
_ROLE_WORDS = frozenset(ROLES.split("|")) | TITLES | ADDRESSES
PERSON_NOUNS = "|".join(
    sorted(
        _ROLE_WORDS - {"代表", "千金"} | words("子弟 少年 少女 青年 孩子 男孩 女孩 男子 女子 姑娘 孤儿 天才 人物"),
        key=lambda word: (-len(word), word),
    )
)
DEFINED = rf"(?:也|正|便|就|曾经?|原来?|本)?是[^，。！？；\n]{{0,20}}(?:{PERSON_NOUNS}|[人者员])(?=[，。！？；、\n]|$)"
_SPEECH = (
    "发誓|立誓|喊道|骂|怒|哭|笑|冷笑|大笑|微笑|苦笑|怒道|叹道|喝道|沉声|轻声|反问|追问|答应|拒绝|劝|吩咐|命令|感慨|坦言|透露|"
    "强调|称|呼吁|宣布|提醒|交代|否认"
)
_THOUGHT = (
    "知道|觉得|决定|愿意|希望|喜欢|讨厌|相信|打算|害怕|担心|发现|明白|记得|忘记|不服气|不肯|不敢|忍不住|看见|看到|听到|"
    "望着|盯着|判断|心里|心中|心想"
)
_LIFE = (
    f"今年|{_H}{{1,3}}岁|出生|独自|拜|拜师|嫁|娶|辞职|毕业|跪|躺|醒|受伤|战死|去世|死后|逝世|入狱|落网|上学|退休|当上|当了|晚年|幼年|"
    "自幼|抬起|低下|握紧|拔出|挥|骑|背着|提着|抱着|牵着|转过|睁开|闭上|咬|掏出|递给|接过|捡|搬到|跟着|赶到|跑|逃|加入|打败|击败|伸手|点了|摇了"
)
OF_PERSONS = f"(?:{DEFINED}|{ACTS}|{_SPEECH}|{_THOUGHT}|{_LIFE})"
"""What persons do, feel, live through, and are defined by: alternatives of a regular expression."""
_OF_PERSONS = late_re(OF_PERSONS)
_OPENINGS = (
    "但是?|可是|而|然而|后来|于是|然后|这时|此时|随后|当时|原来|结果|只见|忽然|突然|终于|最后|今天|昨天|昨日|第二天|有一天|从此|"
    "因为|如果|虽然|不过|当"
)
_TAKING = (  # verbs and prepositions that persons follow
    "打败|击败|打伤|救|喜欢|爱上|嫁给|娶了|交给|递给|送给|告诉|看见|见到|遇见|遇到|认识|想念|怀念|跟随|跟着|拜访|陪|被|把|让|请|叫|"
    "责备|帮助|追赶|抓住|抓获|逮捕|杀死|战胜|寻找|保护|背叛"
)
_FUNCTION_WORDS = frozenset("从于时和通都那相后有步向容须在一曾")
"""Surnames that are mostly adverbs and prepositions at the start of a clause."""
_SINGLE = "".join(sorted((SURNAMES | RARE_SURNAMES) - _FUNCTION_WORDS))
_SURNAME = f"(?:{'|'.join(sorted(DOUBLE_SURNAMES))}|[{_SINGLE}])"
_SUBJECT = late_re(rf"(?:^|(?<=[^{HAN}]))(?:{_OPENINGS})?({_SURNAME})(?={_H})", re.MULTILINE)
_OBJECT = late_re(rf"(?:{_TAKING})[了过着]?({_SURNAME})(?={_H})")
_THING = "[枚块颗粒张件把柄本面根支串片座条只份种]"


def find_subjects(text: str, known: Mapping[str, int], tags: Mapping[str, str], cut: Cut) -> set[str]:
    """Return the names of persons that a predicate shows at the start of a clause, or behind a verb that takes persons.

    Args:
        known, tags: word -> count, and word class, in the segmenter's dictionary.
        cut: the segmenter, without words that the dictionary lacks.
    """
    found = set()
    for pattern, is_subject in ((_SUBJECT, True), (_OBJECT, False)):
        for match in pattern.finditer(text):
            found.add(_read_person(text, match.start(1), len(match.group(1)), is_subject, known, tags, cut))
    found.discard("")
    return {name for name in found if not is_thing(name, text) and not _is_longer(name, found, text)}


def _read_person(
    text: str, start: int, n_surname: int, is_subject: bool, known: Mapping[str, int], tags: Mapping[str, str], cut: Cut
) -> str:
    """Return the name that begins at `start`; "" if none does."""
    grades = {
        name: grade
        for name in _candidates(text[start : start + n_surname + 2], n_surname)
        if (grade := _grade(text, start + len(name), is_subject, tags, cut))
        and _may_be_person(name, grade, known, tags)
    }
    if len(grades) < 2:
        return next(iter(grades), "")
    long, short = sorted(grades, key=len, reverse=True)
    if grades[long] != grades[short]:
        return max(grades, key=lambda name: grades[name])
    first = cut(text[start + len(short) : start + len(short) + _READ_AHEAD])[0]
    return short if len(first) > 1 else long


def _candidates(ahead: str, n_surname: int) -> Iterator[str]:
    for n in (n_surname + 2, n_surname + 1):
        given = ahead[n_surname:n]
        if len(ahead) >= n and re.fullmatch(f"{_H}+", given) and not _NOT_GIVEN & set(given):
            yield ahead[:n]


def _grade(text: str, end: int, is_subject: bool, tags: Mapping[str, str], cut: Cut) -> int:
    """Return what the text behind a name shows: `_NONE`, `_ANY` or `_OF_PERSON`."""
    if _OF_PERSONS.match(text, end):
        return _OF_PERSON
    ahead = re.match(f"{_H}+", text[end : end + _READ_AHEAD])
    if not ahead:
        return _NONE if is_subject else _ANY
    return _ANY if tags.get(cut(ahead.group())[0], "") in _PREDICATE_KINDS else _NONE


def _may_be_person(name: str, grade: int, known: Mapping[str, int], tags: Mapping[str, str]) -> bool:
    """Whether a surname with a given name may be a person before a predicate of a grade."""
    if name in NO_NAMES | COMMON_WORDS or known.get(name, 0) >= _RARE_WORD:
        return False
    n_surname = 2 if name[:2] in DOUBLE_SURNAMES else 1
    given = name[n_surname:]
    if given in _ROLE_WORDS or given[-2:] in _ROLE_WORDS:
        return False
    if n_surname == 1 and len(name) > 2 and known.get(name[:2], 0) >= _RARE_WORD:
        return False  # 许多人, 周围群
    is_sure = n_surname == 2 or (name[0] in SURNAMES and name[0] not in WORD_SURNAMES)
    is_open = not known.get(name) or tags.get(name, "").startswith("nr")
    return grade == _OF_PERSON or (is_sure and is_open and name[-1] not in _NO_END)


def is_thing(name: str, text: str) -> bool:
    """Return whether a text counts a name as a thing, or speaks of its inside: 一枚石符, 石符中住着."""
    return (
        re.search(
            f"[一两三四五六七八九十几数半这那每]{_THING}{name}(?!的)|{name}(?:中(?!的是|[了毒箭计招枪弹奖])|[里内])(?=[^，。])",
            text,
        )
        is not None
    )


def _is_longer(name: str, found: set[str], text: str) -> bool:
    """Whether a name is a shorter one with the word behind it: the shorter one is also before other characters."""
    return name[:-1] in found and text.count(name) < text.count(name[:-1])
