"""Chinese words that the segmenter takes for persons, or cuts: whole names, and no verbs or things.

The segmenter's dictionary has words such as 封印 (to seal) as persons, and it cuts 林琅天 after 林琅 because 天 is a
word too. What surrounds a word in the whole document decides: a person speaks, has a role or stands beside another
person; a verb takes 了 or 无法; a thing is counted (这封信).

Keep out: names that the segmenter does not see (`cjk.py`, `repeated_names.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise

from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.text.scripts import HAN

Tagged = tuple[str, str, int]
"""A word, its word class, and its offset."""

_H = f"[{HAN}]"
_BESIDE = "[和与跟同及、]"
_AS_VERB = "[了过着]|[之以]|起来|开来"
_BEFORE_VERB = "(?:无法|开始|进行|重新|能够|必须|需要|可以|加以|已经?|曾经?|未|再次|[这那一两三几每][道个座层处次种重])"
_NUMBER = "[这那一两二三四五六七八九十百千几数半每某]"
_COUNTED = "[声把柄道座条只头股阵片种层次件场所]"
_MORE_ACTS = "希望|建议|介绍|要求|回应|展示|指出|赞成|强调|宣布|提出|批准|推荐|邀请|擅长|承认|发现|决定"
_MORE_ROLES = "代表|局长|主席|主任|书记|县长|市长|院长|经理|总裁|秘书|医生|护士|律师|法官|警官|教练|同学|先生|女士"
_SECTS = "[宗派帮盟教殿阁班社]"
WORD_SURNAMES = frozenset(
    "封古应高安常严温成时方万白黄金石关向易任全席强包花路管解计水平明文毛云双单屈柔连祝冷江洪伍马牛龙熊毕卫纪齐康宁晋辛游左华柏喻储鲁"
)
"""Surnames that begin many common words: a name of two characters with one needs a sign of a person."""
_ANIMAL_SURNAMES = frozenset("马牛龙熊")
_MOTIONS, _GOALS = frozenset("回归出进入返赴离"), frozenset("国城村京乡家海宫府校")
_OF_THINGS = "[匹头只条把张件本辆艘朵棵支面块枚颗幅]"
_VERBS = frozenset("劝问叫让请骂打救告教带求送陪")
_OBJECTS = frozenset("他她我你咱大")
_OF_COMPANY = frozenset("陪跟随带领护伴扶搀拉牵拽抱背拥押送追迎拦围望盯守")
_VERBS_OF_COMPANY = words("陪同 陪伴 陪护 跟随 随同 伴随 带领 护送 护卫 押送 追随 搀扶")
_RARE_COUNT = 100  # of a word in the segmenter's dictionary
_BEFORE_VERB_ONLY = "曾经|一度|足以|无法|能够|不断|屡次"
_TO_PLACE = "(?:[在到往去从回入出]|来到|离开|来自|位于|抵达|前往|经过)"
_PARTS_OF_FACE = frozenset("舌嘴眉脸眼牙")
_FAME, _LANDS = frozenset("震扬慑霸扫傲惊"), words("大陆 帝国 王国 世界")
_SIDES = frozenset("东西南北")
_SHOPS = frozenset("店铺馆行厂")
_MIN_KNOWN_PLACE = 20
_COMMON_COUNT = 500  # of a word in the segmenter's dictionary
DETERMINERS = ("整个", "全部", "各个", "这个", "那个", "某个", "另一", "所有")
"""Beginnings of a phrase for any place: 整个大陆."""
_ADVERBS = frozenset("曾便也却已又就都只才乃竟仍未即正刚将")
_GIVEN_ADVERBS = frozenset("刚正")
_JOINED_KINDS = frozenset(["q", "n", "a", "g", "ng", "vg", "ag", "tg", "nr", "j", "b", "zg", "z"])
_SPLIT_KINDS = frozenset(["v", "n", "a", "ad", "q", "b", "t", "f", "nr", "m"])
_UNITS = "市县省区镇乡村州国"
"""Ends of the names of places that have an administration: 高雄市."""
_MAX_DEFINITION = 16  # characters between 是 and what a person is
_MAX_SINGLE = 3  # characters of a name with a surname of one character


def join_cut_names(tagged: Sequence[Tagged], surnames: Collection[str], known: Mapping[str, int]) -> list[Tagged]:
    """Join a surname or a name of two characters with the given name that the segmenter cut off: 林琅 + 天, 应 + 玄子.

    A name is joined with the character behind it if that character is a word by itself that cannot follow a name, and
    always stands there.

    Args:
        surnames: of one character.
        known: word -> count in the segmenter's dictionary.
    """
    following: dict[str, set[str]] = {}
    for (word, _, start), (after, kind, place) in pairwise(tagged):
        if start + len(word) == place:
            following.setdefault(word, set()).add(_given_end(after, kind, known))
        else:
            following.setdefault(word, set()).add("")
    joined: list[Tagged] = []
    for word, kind, place in tagged:
        before = joined[-1] if joined and joined[-1][2] + len(joined[-1][0]) == place else None
        if before and _is_cut(before, surnames) and following.get(before[0]) == {word[0]}:
            joined[-1] = (before[0] + word[0], "nr", before[2])
            joined += [(word[1:], "x", place + 1)] if len(word) > 1 else []
        elif before and before[0] in surnames and before[1] in _SPLIT_KINDS and _is_given(word, kind, surnames, known):
            joined[-1] = (before[0] + word, "nr", before[2])
        else:
            joined.append((word, kind, place))
    return joined


def _given_end(word: str, kind: str, known: Mapping[str, int]) -> str:
    """Return the character at the start of a word that may end the name before it; "" if it is a word of its own."""
    if not re.fullmatch(rf"{_H}+", word):
        return ""
    if len(word) == 1:
        return word if kind in _JOINED_KINDS and word not in _ADVERBS else ""
    return word[0] if len(word) == 2 and not known.get(word) and word[0] not in _ADVERBS else ""


def _is_cut(tagged: Tagged, surnames: Collection[str]) -> bool:
    word, kind, _ = tagged
    return len(word) == 2 and kind in ("nr", "nrfg") and word[0] in surnames


def _is_given(word: str, kind: str, surnames: Collection[str], known: Mapping[str, int]) -> bool:
    """Whether a word that no dictionary has is a given name whose surname was taken for a word of its own."""
    return kind == "nr" and len(word) == 2 and not known.get(word) and word[0] not in surnames


def cut_adverb(word: str, double_surnames: Collection[str]) -> str:
    """Return a name without the adverb behind it: 欧阳烈曾 is 欧阳烈."""
    n_least = 3 if word[:2] in double_surnames else 2
    return word[:-1] if len(word) > n_least and word[-1] in _ADVERBS else word


def is_given_end(word: str, text: str) -> bool:
    """Return whether the adverb at the end of a name belongs to it: it always follows, twice or more, as in 涂志刚."""
    return word[-1] in _GIVEN_ADVERBS and 1 < text.count(word) == text.count(word[:-1])


def cut_verb(word: str, text: str, double_surnames: Collection[str]) -> str:
    """Return a name without the verb at its end: 彭九劝 before 他 is 彭九, 葛叶陪 before 着 or 同 is 葛叶."""
    after = [text[place.end() : place.end() + 1] for place in re.finditer(word, text)]
    n_least = 4 if word[:2] in double_surnames else 3
    if len(word) < n_least or not after:
        return word
    is_act = len(word) == _MAX_SINGLE and word[-1] in _VERBS and set(after) <= _OBJECTS
    is_company = word[-1] in _OF_COMPANY and all(c == "着" or word[-1] + c in _VERBS_OF_COMPANY for c in after)
    return word[:-1] if is_act or is_company else word


def is_person(word: str, text: str, known: Mapping[str, int], has_surname: bool, acts: str, roles: str) -> bool:
    """Return whether the document shows a word as a person, or at least not as something else.

    Args:
        acts, roles: alternatives of a regular expression: what persons do, and what they are called by.
    """
    if has_surname and len(word) > _MAX_SINGLE and known.get(word):
        return False  # 严格管理: a phrase of the dictionary
    if len(re.findall(f"{_NUMBER}{_COUNTED}?{word}", text)) == text.count(word):
        return False
    is_described = len(word) == _MAX_SINGLE and word[0] in WORD_SURNAMES and known.get(word[1:], 0) >= _COMMON_COUNT
    if is_described and word[-1] not in "路山河江湖城镇村桥" and not _count_signs(word, text, acts, roles):
        return False  # 白胡子
    if len(word) > 2 or (has_surname and word[0] not in WORD_SURNAMES):
        return True
    n_signs, n_others = _count_signs(word, text, acts, roles), _count_other_uses(word, text)
    if re.search(f"把{word}在", text) or (not n_signs and text.count(word) == 1 and word[0] in _ANIMAL_SURNAMES):
        return False  # 把马拴在
    return n_signs > n_others if known.get(word) else n_signs >= n_others


def _count_signs(word: str, text: str, acts: str, roles: str) -> int:
    """Return how often a word does what persons do, has a role, or stands beside 和."""
    follows = rf"{word}(?={acts}|{_MORE_ACTS}|{_BESIDE}{_H}|的(?:{roles}))"
    return len(re.findall(rf"{follows}|(?:{roles}|{_MORE_ROLES}|{_BESIDE}){word}", text))


def _count_other_uses(word: str, text: str) -> int:
    return len(re.findall(rf"{word}(?={_AS_VERB})|{_BEFORE_VERB}{word}|的{word}", text))


def is_verb_like_place(word: str, text: str) -> bool:
    """Return whether a place of the dictionary is a verb each time: 新建六所小学."""
    n_as_verb = len(re.findall(rf"{word}(?:[了过着]|{_NUMBER}{_H})", text))
    return len(word) == 2 and n_as_verb == text.count(word)


def is_place_word(word: str, text: str, known: Mapping[str, int]) -> bool:
    """Return whether a word that the segmenter takes for a place may be one, by its form and the words before it.

    A verb of motion with a goal of every day is an act (回国), what is counted as an animal or a thing is one
    (一匹白马), what a year follows is an era (永乐年间), and a rare word that ends with a part of a place is that part
    (城门口).
    """
    if len(word) == len("回国") and word[0] in _MOTIONS and word[1] in _GOALS:
        return False
    if word[-1] in _SHOPS and len(word) == len("古董店"):
        return False
    if re.match(f"{_NUMBER}+[年月]", word) or (word[1] in _SIDES and _is_after_span(word, text)):
        return False  # 三十年河东
    if len(re.findall(f"{word}(?:元|[一二三四五六七八九十]{{1,3}})?年", text)) == text.count(word):
        return False  # 永乐年间: an era
    if len(word) > len("门口") and word[-1] == "口" and known.get(word, 0) < _MIN_KNOWN_PLACE:
        return False
    return re.search(f"{_NUMBER}{_OF_THINGS}{word}", text) is None


def is_verb_with_object(word: str, text: str, known: Mapping[str, int], tags: Mapping[str, str]) -> bool:
    """Return whether a word that the segmenter takes for a place is a verb before its object: 名震大陆, 吐舌头.

    An adverb that only verbs take precedes it each time (曾经名震大陆), its verb is doubled (吐了吐舌头), or it is a
    verb and a noun in the dictionary and the text never goes to it or speaks of its inside.

    Args:
        known, tags: word -> count, and word class, in the segmenter's dictionary.
    """
    if known.get(word, 0) >= _RARE_COUNT or word[-1] in _UNITS:
        return False
    before = f"(?:{_BEFORE_VERB_ONLY}|{word[0]}[了一])"
    if len(re.findall(f"{before}{word}", text)) == text.count(word):
        return True
    return _is_verb_and_noun(word, known, tags) and not re.search(
        f"{_TO_PLACE}{word}|{word}(?:[上里内中外]|境内|附近|周边|一带|位于|坐落)", text
    )


def _is_verb_and_noun(word: str, known: Mapping[str, int], tags: Mapping[str, str]) -> bool:
    """Whether a word is a verb before a noun (吐舌头, 横眉), a doubled verb (歇歇脚), or fame in a land (名震大陆)."""
    is_verb = tags.get(word[0], "").startswith("v")
    if len(word) == len("横眉"):
        return is_verb and word[1] in _PARTS_OF_FACE
    if word[0] == word[1] and is_verb and len(word) == len("歇歇脚"):
        return True
    is_noun = tags.get(word[1:]) == "n" and known.get(word[1:], 0) >= _RARE_COUNT
    return (is_verb and is_noun) or (word[-2:] in _LANDS and word[-3] in _FAME)


def _is_after_span(word: str, text: str) -> bool:
    return all(re.search("[十百千几数]年$", text[: place.start()][-4:]) for place in re.finditer(word, text))


def find_person_in_place(word: str, surnames: Collection[str], text: str, signs: str, titles: tuple[str, ...]) -> str:
    """Return the person whose given name is a place: 徐南平教授, 陈泰山是村里的木匠; "" if no sign shows a person.

    Args:
        signs: alternatives of a regular expression: what persons do, and what they are called by behind a name.
        titles: words for what a person is: before the name, or at the end of a clause that says so.
    """
    before = set(re.findall(f"(.){word}", text))
    is_whole = word[0] in surnames and len(word) == _MAX_SINGLE and word[-1] not in _UNITS
    names = [word] if is_whole else []
    names += [min(before) + word] if len(before) == 1 and before <= set(surnames) else []
    is_one = rf"是[^，。！？；\n]{{0,{_MAX_DEFINITION}}}(?:{'|'.join(titles)})(?=[，。！？；、])"
    behind = re.compile(f"{signs}|{is_one}")
    return next((name for name in names if _is_shown_person(name, text, behind, titles)), "")


def _is_shown_person(name: str, text: str, behind: re.Pattern[str], titles: tuple[str, ...]) -> bool:
    return any(
        behind.match(text, place.end())
        or (text.endswith(titles, 0, place.start()) and not re.match(f"{_H}?[{_UNITS}]", text[place.end() :][:2]))
        for place in re.finditer(name, text)
    )


def is_ship(word: str, surnames: Collection[str], text: str) -> bool:
    """Return whether a name is that of a ship each time that no surname is before it: 佩兰号, beside 林佩兰."""
    after = re.findall(f"(?<![{''.join(sorted(s for s in surnames if len(s) == 1))}]){word}(.?)", text)
    return bool(after) and set(after) == {"号"}


def find_sects(words: Collection[str], text: str) -> dict[str, str]:
    """Return word -> sect, for words that the same ending of a sect always follows: 血月 -> 血月教."""
    after = {word: set(re.findall(f"{word}(.?)", text)) for word in words}
    return {word: word + min(last) for word, last in after.items() if len(last) == 1 and re.match(_SECTS, min(last))}


def is_shown_as_person(word: str, text: str, acts: str, roles: str) -> bool:
    """Return whether persons' signs outnumber the places: 和林震山, although 在林震山 looks like a mountain."""
    as_place = len(re.findall(rf"(?:登上|来到|位于|前往|回到|到达|抵达|走进|进了|去了){word}", text))
    return _count_signs(word, text, acts, roles) > as_place
