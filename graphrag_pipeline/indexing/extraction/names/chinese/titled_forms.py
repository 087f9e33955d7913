"""Forms of address of a Chinese document whose bearer the document names in full: 陆师傅 is 陆明远.

Keep out: finding names (`cjk.py`), and ties between documents (`indexing/graph`).
"""

from __future__ import annotations

import re
from collections.abc import Collection

from graphrag_pipeline.indexing.extraction.names.chinese.people import ROLES
from graphrag_pipeline.indexing.extraction.names.chinese.word_lists import ADDRESSES, DOUBLE_SURNAMES, TITLES

_NO_TIES = frozenset(["太太", "夫人", "老爷", "老先生", "公子", "少爷", "小姐", "东家", "少东家", "千金"])
"""Forms of address of a relative who has the same surname."""
_KIN = (
    "父亲|母亲|祖父|祖母|爷爷|奶奶|外公|外婆|叔叔|伯父|舅舅|姑姑|儿子|女儿|孙女"
    "|孙子|哥哥|姐姐|弟弟|妹妹|妻子|丈夫|侄子|侄女|岳父|岳母"
)
_TITLES = (
    {*ROLES.split("|"), *TITLES, *ADDRESSES, "大夫", "捕头", "老板", "师傅", "警官", "书记"}
    - _NO_TIES
    - set(_KIN.split("|"))
)
_FULL = "，?(?:的?(?:全名|本名|大名|原名|真名)(?:叫做?|是)?|名叫|姓.名)"
_BESIDE = "[和与跟同及、对向问给]"


def find_titled_forms(people: Collection[str], text: str) -> dict[str, str]:
    """Return surname with a title -> full name, where exactly one full name of the document has the surname.

    A form beside the full name (陆师傅和陆明远), or of a relative (父亲陆师傅, 女儿陆明远), is another person. A
    text that says the full name (陆师傅本名陆明远) decides.
    """
    surnames = {name: _surname_of(name) for name in people}
    titled = {name: surname for name, surname in surnames.items() if name[len(surname) :] in _TITLES}
    full: dict[str, set[str]] = {}
    for name in people:
        if name not in titled and len(name) > len(_surname_of(name)) and not _is_short(name):
            full.setdefault(_surname_of(name), set()).add(name)
    pairs = [(form, name) for form, surname in titled.items() for name in sorted(full.get(surname, ()))]
    said = {form: name for form, name in pairs if re.search(f"{form}{_FULL}{name}", text)}
    single = {form: name for form, name in pairs if len(full[titled[form]]) == 1 and not _are_two(form, name, text)}
    return single | said


def _surname_of(name: str) -> str:
    return name[:2] if name[:2] in DOUBLE_SURNAMES else name[:1]


def _is_short(name: str) -> bool:
    """Whether a name is a byname or a rank of kinship: 老周, 秦二爷, 柳氏, 秦伯."""
    return (
        re.fullmatch(
            "[老小阿].|.氏|.[伯叔婶嫂爷娘]|.[一二三四五六七八九十老大小][爷娘叔伯婶嫂姑姐哥姨]|.大[妈爷叔婶嫂娘]", name
        )
        is not None
    )


def _are_two(form: str, name: str, text: str) -> bool:
    others = rf"{form}{_BESIDE}{name}|{name}{_BESIDE}{form}|(?:{_KIN})(?:名?叫)?(?:{form}|{name})"
    return re.search(rf"{others}|{name}的(?:{_KIN}){form}", text) is not None


def find_place_forms(places: Collection[str]) -> dict[str, str]:
    """Return place -> the same place with the word for its administration, if only one is named: 江陵 is 江陵市."""
    longer = {
        place: [long for long in places if len(long) == len(place) + 1 and long[:-1] == place] for place in places
    }
    return {
        place: found[0] for place, found in longer.items() if len(found) == 1 and found[0][-1] in "市县区省州镇乡村"
    }
