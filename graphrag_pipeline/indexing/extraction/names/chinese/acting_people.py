"""Persons of a Chinese text whose names are made of other words: 韩国栋, 温柔, 金融融, 柳如是, 秦二爷.

A segmenter cuts a country out of 韩国栋 and takes 温柔 for an adjective. What surrounds the name decides: a role before
it (总设计师韩国栋), what persons do behind it, and that the text repeats it with the same characters. The more common
the word that a name contains, the more signs it needs.

Keep out: names without a common word in them (`subjects.py`, `titled_people.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from graphrag_pipeline.indexing.extraction.names.chinese.name_evidence import Tagged
from graphrag_pipeline.indexing.extraction.names.chinese.people import ROLES
from graphrag_pipeline.indexing.extraction.names.chinese.subjects import DEFINED, OF_PERSONS
from graphrag_pipeline.indexing.extraction.names.chinese.word_lists import DOUBLE_SURNAMES, NO_NAMES, SURNAMES, TITLES
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.scripts import HAN

_H = f"[{HAN}]"
_MORE_SURNAMES = frozenset("时常于夏金江祖师乐温安平和文花高白黄")
"""Surnames that are common words. They count, because a name needs a role or repetition here."""
_SINGLE = "".join(sorted((SURNAMES | _MORE_SURNAMES) - frozenset("从向任全万")))
_START = late_re(f"(?:{'|'.join(sorted(DOUBLE_SURNAMES))}|[{_SINGLE}])(?={_H})")
_NO_GIVEN = frozenset(
    "的了着过是在有和与不也都就又再还很没对向把被给从到说道问答看听想去来走进出上里中前后内外那这他她它我你您们个位几么吗呢吧啊叫姓将便"
    "则所以为及其之已却但因跟让使令带某等或且而只最更太家氏市县区镇村省队地得面曾乃竟仍未刚"
)
_NO_GIVEN_AFTER_COUNTRY = frozenset("人队军方籍男女货语产式系史党政府商团企媒际内外王会")
"""Characters behind a country that make another word, or begin one: 韩国人, 法国队."""
_ADVERB = "(?:常常?|总是?|也|都|便|又|就|却|马上|立刻|昨[日天]|今[日天]|随即|连忙|急忙|笑着|低声|大声|曾|曾经|已经)?"
_MORE_ACTS = (
    "安慰|承诺|汇报|获得|获奖|跑|走|推|跪|哭|笑|高兴|说|写|修|带|唱|递|打开|接过|点|低|抬|咬|摆手|叹|告诉|答|问|喊|赶|转|现任|就任|"
    "介绍|指出|表示|认为|透露|建议|宣布|强调|回忆|站|坐|躺|住|教|来自|听|看|在|生了|生下|留在|成了|记录|去|病|曾任|预测|嫁|推测"
)
_ACT = late_re(f"{_ADVERB}(?:{OF_PERSONS}|{_MORE_ACTS})")
_ROLE_WORDS = tuple(
    sorted(
        {
            *ROLES.split("|"),
            *TITLES,
            "名叫",
            "叫做",
            "取名",
            "本名",
            "全名",
            "大名",
            "叫",
            "爸爸",
            "妈妈",
            "姑娘",
            "被告人",
        }
    )
)
_DEFINED = late_re(DEFINED)
_BESIDE = ("对", "向", "和", "与", "把", "被", "给", "让", "问", "找", "叫", "替", "跟", "告诉")
_RARE_COUNT, _COMMON_COUNT, _VERY_COMMON_COUNT = 50, 300, 6_000  # of a word in the segmenter's dictionary
_MAX_PLACE_COUNT = 600  # of a place whose name a person may have: 安宁
_OTHER_KINDS = frozenset(["d", "t", "p", "c", "r", "m", "f", "q", "nt", "ad"])
"""Word classes that no person has: adverbs, times, prepositions, pronouns, numbers, sides, counters, bodies."""
_ROLE_ENDS = frozenset("员师匠户")
"""Last characters of words for a trade: 技术员."""
_ENDS = _NO_GIVEN | frozenset("常总刚")
_MIN_WHOLE = 0.8  # of the occurrences of two characters have the same third one

_KIN = "爷|娘|叔|伯|婶|嫂|姑|姐|哥|姨|少爷|小姐|奶奶|太太|公子"
_RANKED = late_re(f"[{_SINGLE}](?:[一二三四五六七八九十老大小](?:{_KIN})|大[妈爷叔婶嫂娘伯]|[爷婶嫂])")
_WITH_IS = late_re(rf"是(?=[是的写说问笑叹]|[^{HAN}])")


def find_acting_people(
    text: str, tagged: Sequence[Tagged], known: Mapping[str, int], tags: Mapping[str, str]
) -> set[str]:
    """Return the persons whose names are other words, or begin with one, as their roles and acts show.

    Args:
        tagged: the words of the text; a name begins where a word does, or behind a role.
        known, tags: word -> count, and word class, in the segmenter's dictionary.
    """
    starts = {place for _, _, place in tagged}
    ends = {place + len(word) for word, kind, place in tagged if kind == "n" and word[1:] and word[-1] in _ROLE_ENDS}
    signs: dict[str, list[tuple[bool, bool, bool]]] = {}
    for match in _START.finditer(text):
        for name in _candidates(text, match.start(), len(match.group()), known):
            sign = _read_signs(text, match.start(), match.start() + len(name), starts, ends)
            if sign is not None:
                signs.setdefault(name, []).append(sign)
    shown = {name for name, found in signs.items() if _is_shown(name, found, text, known, tags)}
    return {name for name in shown if not _is_part(name, shown, text)}


def find_kin_people(text: str, tagged: Sequence[Tagged]) -> set[str]:
    """Return the persons that a text names by a surname and a rank of kinship: 秦二爷, 蒋大妈."""
    starts = {place for _, _, place in tagged}
    return {match.group() for match in _RANKED.finditer(text) if match.start() in starts}


def add_is(name: str, text: str) -> str:
    """Return a name with the 是 that belongs to it: 柳如是, where 柳如是是 or 柳如是说 shows that 是 is no verb."""
    places = [match.end() for match in re.finditer(name, text)]
    is_always = len(name) == 2 and len(places) > 1 and all(text.startswith("是", place) for place in places)
    return f"{name}是" if is_always and any(_WITH_IS.match(text, place) for place in places) else name


def drop_rests(people: Collection[str], acting: Collection[str]) -> set[str]:
    """Return the names that are an acting person with the adverb or verb behind: 江海常, 江海是, 古丽记录."""
    pairs = ((name, name[cut:]) for name in people for cut in (2, 3) if name[:cut] in acting and name not in acting)
    return {name for name, rest in pairs if rest and (rest in _ENDS or _ACT.fullmatch(rest))}


def _candidates(text: str, start: int, n_surname: int, known: Mapping[str, int]) -> list[str]:
    ahead = text[start : start + n_surname + 2]
    names = [ahead[:n] for n in (n_surname + 1, n_surname + 2) if len(ahead) >= n]
    return [
        name
        for name in names
        if re.fullmatch(f"{_H}+", name)
        and not _NO_GIVEN & set(name[n_surname:])
        and not (len(name) > 2 and known.get(name))
        and (word := text[max(0, start - 1) : start] + name) not in _ROLE_WORDS
        and not known.get(word)
        and not (name[1] == "国" and name[2:] and name[-1] in _NO_GIVEN_AFTER_COUNTRY)
    ]


def _read_signs(
    text: str, start: int, end: int, starts: Collection[int], role_ends: Collection[int]
) -> tuple[bool, bool, bool] | None:
    """Return whether a role is before a span, an act behind it, or the end of a clause; None if it is inside a word."""
    is_first = start == 0 or not re.match(_H, text[start - 1])
    has_role = (
        start in role_ends
        or text.endswith(_ROLE_WORDS, 0, start)
        or (is_first and _DEFINED.match(text, end) is not None)
    )
    if not (has_role or is_first or (start in starts and text.endswith(_BESIDE, 0, start))):
        return None
    return has_role, _ACT.match(text, end) is not None, not re.match(_H, text[end : end + 1])


def _is_shown(
    name: str, signs: Sequence[tuple[bool, bool, bool]], text: str, known: Mapping[str, int], tags: Mapping[str, str]
) -> bool:
    """Whether the signs of a name outweigh the common word that it is, or begins with."""
    n_roles = sum(has_role and (acts or ends) for has_role, acts, ends in signs)
    n_acting = sum(has_role and acts for has_role, acts, _ in signs)
    n_acts = sum(acts for _, acts, _ in signs)
    kind, count = tags.get(name, "x"), known.get(name, 0)
    if len(name) == 2 and (count < _RARE_COUNT or kind.startswith("nr")):
        return n_acting > 0 or (n_roles > 0 and text.count(name) > 1)
    if len(name) == 2 and kind == "ns" and name not in NO_NAMES:
        return count < _MAX_PLACE_COUNT and n_roles > 0 and n_acts > 1
    if len(name) == 2:
        return kind not in _OTHER_KINDS and n_acting > 0 and n_acts > 1 and count < _VERY_COMMON_COUNT
    is_free = known.get(name[1:], 0) < _COMMON_COUNT or n_acts > 1
    return (n_acting > 0 and is_free) or (n_roles > 0 and n_acts > 0)


def _is_part(name: str, shown: Collection[str], text: str) -> bool:
    """Whether a name is nearly always the beginning of a longer one that is shown, too."""
    return any(
        other != name and other.startswith(name) and text.count(other) >= _MIN_WHOLE * text.count(name)
        for other in shown
    )
