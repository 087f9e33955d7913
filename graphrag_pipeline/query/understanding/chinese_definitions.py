"""Chinese sentences that say who a person is, for questions such as 萧炎是谁？

Keep out: the layout of answers.
"""

from __future__ import annotations

import re

_WHO_IS = re.compile(r"\s*([\u4e00-\u9fff·]{2,8}?)(?:究竟|到底)?是(?:谁|什么人|何人)[\s？?。]*")
_APPOSITION = r"，(?:表?字|号|本名|原名|原[为是]|本[为是]|曾[为是]|乃|[为是])"
_COPULA = (
    r"(?:原本|原|本|曾经?|便|就|乃)?[是为]"
    r"(?!在|从|被|把|对|由|昨|今|明|当|第.{1,3}[个次位].*的人|[^，。！？]*的[，。！？])"
)


def asked_person(question: str) -> str:
    """Return the name in a Chinese question that asks who a person is and nothing else; "" for other questions."""
    match = _WHO_IS.fullmatch(question)
    return match.group(1) if match else ""


def defines_person(name: str, sentence: str) -> bool:
    """Whether a sentence begins with a name and says who that is: no cleft such as 萧炎是昨天离开的."""
    return re.match(f"{re.escape(name)}(?:{_APPOSITION}|{_COPULA})", sentence) is not None
