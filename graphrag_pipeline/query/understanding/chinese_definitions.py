"""Chinese questions for a person, a place, a date or an age, and sentences that say who a person is or has a role.

For questions such as 萧炎是谁？ and 谁打败了萧炎？ Simplified and traditional characters are read alike:
the functions get any text, and read it in simplified characters. Keep out: the answer (`answers/naming`), and layout.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.scripts import HAN, has_han, simplify

_H = f"[{HAN}]"
_NAME = f"[{HAN}·]{{2,8}}?"
_WHO = "谁|什么人|何人|甚么人"
_WHO_IS = late_re(rf"\s*((?!{_H}+的{_H}+是){_NAME})(?:究竟|到底)?是(?:{_WHO})[\s？?。]*")
_APPOSITION = r"，(?:表?字|号|本名|原名|原[为是]|本[为是]|曾[为是]|乃|[为是])"
_COPULA = (
    r"(?:原本|原|本|曾经?|便|就|乃)?[是为]"
    r"(?!在|从|被|把|对|由|昨|今|明|当|第.{1,3}[个次位].*的人|[^，。！？]*的[，。！？])"
)
_END = late_re(r"[呢啊呀吗？?。！!\s]*\Z")
_ASIDE = r"(?:究竟|到底|后来|最后|最先|首先|曾经?|亲手|又|一直)*"
_SUBJECT = late_re(
    rf"(?:(?P<before>[^，。]{{0,12}}?)，?)(?:是)?{_ASIDE}(?:{_WHO}){_ASIDE}(?!是|的)(?P<verb>.{{1,24}}?)的?"
)
_BY_WHOM = late_re(rf"(?P<object>{_NAME})(?:是)?被(?:{_WHO})(?P<verb>.{{1,8}}?)的?")
_OBJECT = late_re(rf"(?P<rest>.{{3,20}}?)(?:{_WHO})")
_PLACE = late_re(
    r"(?P<before>.{2,20}?)(?P<at>在|到了?|去了?|往|进了?|于)?(?:哪里|哪儿|何处|什么地方)(?P<verb>.{0,14}?)的?"
)
_DATE = late_re(
    r"(?P<before>.{0,16}?)(?:是)?在?(?:什么时候|何时|哪一?年|哪一?天|几时|几月几[日号])(?P<verb>.{0,16}?)的?"
)
_AGE = late_re(rf"(?P<name>{_NAME})(?:今年|现在)?(?:有)?(?:多大(?:年纪|岁数|了)?|[几多][少]?岁了?)")


TITLES = (
    "[商匠师生士人员长官将尚童仆夫妇婢鬟帅侠客盗贼霸手家者工农兵头丁妾妃爷计快役卒吏]|父亲?|母亲?|祖父|祖母|爷爷|奶奶|儿子?|女儿?|叔叔?|伯父|舅舅?|姑姑?|姨妈?"
    "|哥哥?|弟弟?|姐姐?|妹妹?|妻子?|丈夫|朋友|好友|县令|知府|都督|御史|总督|巡抚|主任|教授|经理|主席|书记|总裁|队员|徒弟|弟子|掌门|掌柜|帮主|管家|皇帝|公公"
)
"""Alternatives of a regular expression: what a title or a trade before a name ends with."""


@dataclass(frozen=True)
class ChineseQuestion:
    """What a Chinese question asks for, in simplified characters.

    Attributes:
        kind: "holder" of a role, "subject" or "object" of a verb, "place", "date" or "age".
        name: the person whose role or age is asked for, or the words before "where" or "when"; "" for other kinds.
        verb: the role, or the other words: a verb with its object or, of an object, its subject.
    """

    kind: str
    name: str
    verb: str


def read_chinese_question(question: str) -> ChineseQuestion | None:
    """Return what a Chinese question asks for; None for another kind of question, or another language."""
    if not has_han(question):
        return None
    asked = _END.sub("", simplify(question).strip())
    if role := asked_role(question):
        return ChineseQuestion("holder", *role)
    if found := _AGE.fullmatch(asked):
        return ChineseQuestion("age", found["name"], "")
    if found := _DATE.fullmatch(asked):
        return ChineseQuestion("date", found["before"], found["verb"])
    if found := _PLACE.fullmatch(asked):
        return ChineseQuestion("place", found["before"], found["verb"])
    if found := _BY_WHOM.fullmatch(asked):
        return ChineseQuestion("subject", "", found["verb"] + found["object"])
    if _WHO_IS.fullmatch(asked):
        return None
    if found := _SUBJECT.fullmatch(asked):
        return ChineseQuestion("subject", "", found["verb"])
    if found := _OBJECT.fullmatch(asked):
        return ChineseQuestion("object", "", found["rest"])
    return None


def asks_in_chinese(question: str) -> bool:
    """Return whether a question is a Chinese one for a person, a place, a date or an age."""
    return bool(asked_person(question)) or read_chinese_question(question) is not None


def asked_person(question: str) -> str:
    """Return the name in a Chinese question that asks who a person is and nothing else; "" for other questions."""
    match = _WHO_IS.fullmatch(simplify(question))
    return match.group(1) if match else ""


def defines_person(name: str, sentence: str) -> bool:
    """Whether a sentence begins with a name and says who that is: no cleft such as 萧炎是昨天离开的."""
    return re.match(f"{re.escape(simplify(name))}(?:{_APPOSITION}|{_COPULA})", simplify(sentence)) is not None


def rate_person(name: str, sentence: str) -> float:
    """Return how plainly a sentence says who a person is, 0-1.

    1 for a sentence that defines the name at its beginning, less for a clause that does, for "called", as in
    一个名叫叶知秋的画家, and for a word right before the name, as in 富商钱万里; 0 for any other mention.
    """
    name, sentence = re.escape(simplify(name)), simplify(sentence)
    ratings = (
        (1.0, f"{name}(?:{_APPOSITION}|{_COPULA})"),
        (0.9, f".*[，；：“]{name}{_COPULA}"),
        (0.8, f".*(?:名叫|叫做?|名为|唤作|便是|就是|正是|真名是){name}(?!{_VERBS})"),
        (0.7, f".*(?:{TITLES}){name}"),
    )
    return next((rating for rating, pattern in ratings if re.match(pattern, sentence, re.DOTALL)), 0.0)


_VERBS = "[去来走吃回等]"
_OWNED = rf"({_NAME})的({_H}{{1,6}}?)"
_ROLE_END = r"[呢啊？?。\s]*"
_WHO_HAS_ROLE = (late_re(rf"\s*谁是{_OWNED}{_ROLE_END}"), late_re(rf"\s*{_OWNED}是谁{_ROLE_END}"))
_IS_NAMED = r"(?:，?(?:名叫|叫做?|名为|便?是|乃是|就是)|，)[^谁]"
_IS = rf"[{HAN}·]{{2,8}}(?:正?是|就是|乃是?|便是|成为了?|做了?)"


def asked_role(question: str) -> tuple[str, str] | None:
    """Return the owner and the role in a Chinese question for the holder of a role, such as 谁是萧炎的老师？"""
    asked = simplify(question)
    found = next((match for pattern in _WHO_HAS_ROLE if (match := pattern.fullmatch(asked))), None)
    return (found[1], found[2]) if found else None


def states_role(owner: str, role: str, sentence: str) -> bool:
    """Whether a sentence says who has a role to a person: 药老是萧炎的老师, or 萧炎的老师名叫药老.

    The person before 的 must be the owner, so another person's role does not count.
    """
    owned = f"{re.escape(simplify(owner))}的{re.escape(simplify(role))}"
    sentence = simplify(sentence)
    named = re.search(rf"(?<!{_H}){owned}{_IS_NAMED}", sentence)
    return named is not None or re.search(rf"{_IS}{owned}(?=[，。！；]|$)", sentence) is not None
