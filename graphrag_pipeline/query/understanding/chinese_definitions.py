"""Chinese sentences that say who a person is or who has a role, for questions such as 萧炎是谁？ and 谁是萧炎的老师？

Simplified and traditional characters are read alike. Keep out: the layout of answers.
"""

from __future__ import annotations

import re

_WHO_IS = re.compile(r"\s*([\u4e00-\u9fff·]{2,8}?)(?:究竟|到底)?是(?:[谁誰]|[什甚][么麼]人|何人)[\s？?。]*")
_APPOSITION = r"，(?:表?字|[号號]|本名|原名|原[为為是]|本[为為是]|曾[为為是]|乃|[为為是])"
_COPULA = (
    r"(?:原本|原|本|曾经?|便|就|乃)?[是为為]"
    r"(?!在|[从從]|被|把|[对對]|由|昨|今|明|[当當]|第.{1,3}[个個次位].*的人|[^，。！？]*的[，。！？])"
)


def asked_person(question: str) -> str:
    """Return the name in a Chinese question that asks who a person is and nothing else; "" for other questions."""
    match = _WHO_IS.fullmatch(question)
    return match.group(1) if match else ""


def defines_person(name: str, sentence: str) -> bool:
    """Whether a sentence begins with a name and says who that is: no cleft such as 萧炎是昨天离开的."""
    return re.match(f"{re.escape(name)}(?:{_APPOSITION}|{_COPULA})", sentence) is not None


_OWNED = r"([\u4e00-\u9fff·]{2,8}?)的([\u4e00-\u9fff]{1,6}?)"
_END = r"[呢啊？?。\s]*"
_WHO_HAS_ROLE = (re.compile(rf"\s*[谁誰]是{_OWNED}{_END}"), re.compile(rf"\s*{_OWNED}是[谁誰]{_END}"))
_IS_NAMED = r"(?:，?(?:名叫|叫做?|名[为為]|便?是|乃是|就是)|，)[^谁誰]"
_IS = r"[\u4e00-\u9fff·]{2,8}(?:正?是|就是|乃是?|便是|成[为為]了?|做了?)"


def asked_role(question: str) -> tuple[str, str] | None:
    """Return the owner and the role in a Chinese question for the holder of a role, such as 谁是萧炎的老师？"""
    found = next((match for pattern in _WHO_HAS_ROLE if (match := pattern.fullmatch(question))), None)
    return (found[1], found[2]) if found else None


def states_role(owner: str, role: str, sentence: str) -> bool:
    """Whether a sentence says who has a role to a person: 药老是萧炎的老师, or 萧炎的老师名叫药老.

    The person before 的 must be the owner, so another person's role does not count.
    """
    owned = f"{re.escape(owner)}的{re.escape(role)}"
    named = re.search(rf"(?<![\u4e00-\u9fff]){owned}{_IS_NAMED}", sentence)
    return named is not None or re.search(rf"{_IS}{owned}(?=[，。！；]|$)", sentence) is not None
