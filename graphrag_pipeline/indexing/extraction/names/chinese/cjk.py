"""Names in Chinese, which has neither capitals nor spaces.

Words and word classes by jieba (the `[cjk]` extra), with checks against the document. Names that no
dictionary has, as in novels ("药老", "小医仙"), are found by what their bearers do or are called, and then everywhere
in the document. Without jieba, `find_chinese_names` returns no names and logs a warning.

Keep out: Japanese (`names/japanese.py`), and Latin script.
"""

from __future__ import annotations

import logging
import re
import tempfile
import warnings
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

from graphrag_pipeline.indexing.extraction.names.chinese.name_evidence import (
    DETERMINERS,
    cut_adverb,
    find_person_in_place,
    find_sects,
    is_person,
    is_place_word,
    is_shown_as_person,
    is_verb_like_place,
    join_cut_names,
)
from graphrag_pipeline.indexing.extraction.names.chinese.repeated_names import find_repeated_names
from graphrag_pipeline.indexing.extraction.names.chinese.word_lists import (
    ADDRESSES,
    COMMON_WORDS,
    DOUBLE_SURNAMES,
    HOUSE_ENDINGS,
    INSIDE,
    JOINED_ENDINGS,
    NO_BEGINNING,
    NO_NAMES,
    ORGANIZATION_ENDINGS,
    PLACE_ENDINGS,
    SURNAMES,
    VERB_SURNAMES,
)
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.text.scripts import HAN

_log = logging.getLogger(__name__)
_KINDS = {"nr": "PERSON", "nrt": "PERSON", "nrfg": "PERSON", "ns": "GEO", "nsf": "GEO", "nt": "ORGANIZATION"}
_H = f"[{HAN}]"
_ACTS = (
    "说道|说|问道|问|答道|回答|笑道|笑着|笑了|点头|点了点头|摇头|摇了摇头|叹|喊|想起|想到|教|拜|听了|听完|听说|看着|看了|握|"
    "走进|走出|走到|来到|坐在|站在|离开|低头|抬头|沉默|替|取出|拿出|从小|遇见|见到|第一次|推|转身|回头|起初|吸走|原名|本名|"
    "没有说话|皱眉|很会|战胜|打败|负责|主持|担任|自称|出身|派人|派出|带着|带领|率领|召集|统治|站|住在|登上|追|炼制|推开|表示|认为|"
    "介绍|指出|承认|建议|要求|汇报|报告|提出|解释|同意|不同意|骑着|拔|接过|回答说|低声|大声|接着说|毕业于|出生于|病逝|生于|辞官"
)
_MILD_ACTS = f"{_ACTS}|在|是|把|将|对|收|等|看|拿|走|坐"  # only after a form that is itself a sign of a person
_ROLES = (
    "父亲|母亲|祖父|祖母|爷爷|奶奶|外公|外婆|叔叔|伯父|舅舅|姑姑|儿子|女儿|孙女|孙子|弟子|徒弟|师父|师傅|老师|长老|族长|宗主|供奉|医师|炼药师|药师|掌柜|将军|哥哥|姐姐|弟弟|妹妹|"
    "妻子|丈夫|朋友|教授|校长|首领|队长|团长|强者|高手|掌教|店主|老板|少主|少爷|专家|工程师|教师|作家|画家|诗人|学者|记者|"
    "合伙人|创始人|局长|主任|经理|秘书|主席|书记|县长|市长|院长|部长|主编|教练|律师|代表|总统|总理|大臣|总督|将领|翻译家|传教士|"
    "大学士|侄子|侄女|同学|帮主|掌门|庄主|教习"
)
_SUBJECT = re.compile(
    rf"(?:^|(?<=[^\u4e00-\u9fff])|(?<=正是)|(?<=[宗门派帮会阁殿院谷家团国城镇]的))({_H}{{2,4}}?)(?=(?:{_ACTS}))",
    re.MULTILINE,
)
_BYNAME = re.compile(  # 药老, 小李, 小医仙
    rf"(?:^|(?<=[^\u4e00-\u9fff]))({_H}老|[小老阿](?:[{''.join(sorted(SURNAMES))}]|{_H}{{2}}))(?=(?:{_MILD_ACTS}))",
    re.MULTILINE,
)
_CLAN = re.compile(rf"(?:^|(?<=[^\u4e00-\u9fff])|(?<=[和与是]))({_H}{{2}})家(?=[，。、；和与的])", re.MULTILINE)
_DEFINED = re.compile(
    rf"(?:^|(?<=[。！？]))({_H}{{2,4}}?)(?:曾经?)?是[^，。！？\n]{{0,16}}(?:{_ROLES})(?=[，。！？；])", re.MULTILINE
)
_SECT = re.compile(
    rf"(?:^|(?<=[^\u4e00-\u9fff])|(?<=[是入自到]))({_H}{{2}}[宗派帮盟殿阁门])的?(?:{_H}{{2}})?(?:宗主|长老|弟子|掌门|掌教|门主|帮主|阁主)",
    re.MULTILINE,
)
_NO_SECT = frozenset("这那此本该两各的是")
_NOT_INSIDE = frozenset("他她它我你的了着把被")
_NO_OLD = frozenset("长元古月衰苍养父敬年家大很最太不变偏岳孤")
_PLACE = re.compile(
    rf"(?:登上|来到|离开|位于|前往|回到|到达|抵达|走进|进了|去了|离|包围了?|[住坐落]*在)"
    rf"({_H}{{2,3}}(?:山脉|帝国|[山镇城村谷峰庄寺庙岭]|观(?![看察测赏战点光])))(?![山镇城村谷峰脉门洞])"
)
_VILLAGES = frozenset("镇村县乡")
_SITES = frozenset("山寺涧路桥江河湖岛峰谷庙街")
_OFFICES = frozenset("局部厅社")
_SHORT_PLACE = 2  # characters of a place that may be the start of a longer one
_NO_STEM = frozenset("这那一二三四五六七八九十几两每各座个的了着他她它我你大小高在到从门")
_IS = re.compile(
    rf"(?:^|(?<=[^\u4e00-\u9fff]))({_H}{{2,4}}?)(?:(?:也|正|便|曾经?)?是[^，。！？\n]{{0,16}}(?:{_ROLES})(?=[，。！？；])|的(?:{_ROLES}))",
    re.MULTILINE,
)
_CALLED = re.compile(rf"(?:名叫|名为|叫做|叫作|原名|本名|自称|人称)(?![做作])({_H}{{2,4}})(?=[，。！？；、])")
_ROLE_BEFORE = re.compile(rf"(?:{_ROLES})({_H}{{2,4}}?)(?=[，。！？；、是不]|(?:{_ACTS}))")
_MET = re.compile(rf"(?:遇见|见到|认识|战胜|打败|嫁给|交给|发给|告诉|救下|拜)了?({_H}{{2,4}})(?=[，。！？；、])")
_NO_PERSON_STARTS = frozenset(
    "他她它我你您这那其一二三四五六七八九十几两每第有在是不没的了着过就便却也都还又再最很从向对把被与和但而所如因为若当只可以后前上下里外中时正将要会能想说看听来去到"
)
_MIN_EXTENDED = 3  # occurrences of a place after always the same character
_HAN = re.compile(f"{_H}+(?:[·・]{_H}+)*")
_COMMON_COUNT = 500  # of a word in jieba's dictionary
_MIN_BARE_COUNT = 2  # occurrences of a person's name that does not start with a surname


def find_chinese_names(text: str, starts: list[int]) -> tuple[list[Name], dict[str, str]]:
    """Find the names in a Chinese document, in reading order, and their types by form.

    A word that jieba tags as a person counts if it starts with a surname or occurs more than once.

    Args:
        starts: where each sentence starts, in order.
    """
    tokenizer = _load_jieba()
    if tokenizer is None:
        return [], {}
    known = tokenizer.tokenizer.FREQ
    words_of_text = join_cut_names(list(_cut(tokenizer, text)), SURNAMES | VERB_SURNAMES, known)
    tagged = _extend_places(_join_endings(list(_join_names(iter(words_of_text)))), text)
    counts = Counter(word for word, _, _ in tagged)
    kinds = {word: _KINDS[kind] for word, kind, _ in tagged[::-1] if _is_chinese_name(word, kind, counts[word], known)}
    kinds = {_add_ending(word, kind, text): _type_double(word, kind) for word, kind in kinds.items()}
    signs = f"{_ACTS}|{'|'.join(sorted(ADDRESSES))}|的(?:{_ROLES})"
    persons = {word: find_person_in_place(word, SURNAMES, text, signs) for word, kind in kinds.items() if kind == "GEO"}
    kinds = {persons.get(word) or word: "PERSON" if persons.get(word) else kind for word, kind in kinds.items()}
    kinds = {_whole(word, kind): kind for word, kind in kinds.items() if _is_named(word, kind, text, known)}
    kinds |= dict.fromkeys(_find_people(text, tokenizer), "PERSON")
    sects = find_sects([word for word, kind in kinds.items() if kind == "PERSON" and word[0] not in SURNAMES], text)
    kinds = {sects.get(word, word): "ORGANIZATION" if word in sects else kind for word, kind in kinds.items()}
    surnames = SURNAMES | DOUBLE_SURNAMES
    repeated = find_repeated_names(text, surnames, known, _ACTS, _ROLES) - kinds.keys() - COMMON_WORDS - NO_NAMES
    kinds |= dict.fromkeys((name for name in repeated if not name.endswith(ORGANIZATION_ENDINGS)), "PERSON")
    kinds |= dict.fromkeys(
        (place for place in _find_places(text) if not _is_shown(place, kinds.get(place, ""), text)), "GEO"
    )
    kinds |= {_clan_of(word): "ORGANIZATION" for word, kind, _ in tagged if kind in _KINDS and _is_of_clan(word)}
    kinds |= {match.group(1): "ORGANIZATION" for match in _SECT.finditer(text) if not _NO_SECT & set(match.group(1))}
    types = {
        word: _type_by_ending(word, kind, text) for word, kind in kinds.items() if not _is_extended(word, kinds, text)
    }
    if not types:
        return [], {}
    pattern = re.compile("|".join(sorted(types, key=lambda form: (-len(form), form))))
    names = [
        Name(match.group(), *match.span(), bisect_right(starts, match.start()) - 1) for match in pattern.finditer(text)
    ]
    return names, {name.form: types[name.form] for name in names}


def _is_named(word: str, kind: str, text: str, known: dict[str, int]) -> bool:
    if kind == "GEO":
        return (
            not word.startswith(DETERMINERS) and not is_verb_like_place(word, text) and is_place_word(word, text, known)
        )
    return kind != "PERSON" or is_person(word, text, known, word[0] in SURNAMES, _ACTS, _ROLES)


def _is_shown(word: str, kind: str, text: str) -> bool:
    return kind == "PERSON" and is_shown_as_person(word, text, _ACTS, _ROLES)


def _whole(word: str, kind: str) -> str:
    return cut_adverb(word, DOUBLE_SURNAMES) if kind == "PERSON" else word


def _find_people(text: str, tokenizer: Any) -> set[str]:
    """Return the words outside of the dictionary that a verb, a role or "called" shows to be persons."""
    found = Counter(
        cut_adverb(match.group(1), DOUBLE_SURNAMES)
        for pattern in (_SUBJECT, _IS, _ROLE_BEFORE, _MET)
        for match in pattern.finditer(text)
    )
    called = {match.group(1) for match in _CALLED.finditer(text)}
    known = tokenizer.tokenizer.FREQ
    clans = {match.group(1) for match in _CLAN.finditer(text) if not known.get(match.group(1))}
    sure = called | {match.group(1) for match in _DEFINED.finditer(text) if not _has_common_part(match.group(1), known)}
    return _find_bynames(text, known) | {
        word
        for word in [*found, *called]
        if not known.get(word)
        and not _is_of_clan(word)
        and word[0] not in _NO_PERSON_STARTS
        and not _NOT_INSIDE & set(word)
        and not word.endswith(ORGANIZATION_ENDINGS)
        and word not in NO_NAMES | COMMON_WORDS
        and (word in sure or word[0] in SURNAMES or word[:2] in clans or text.count(word) >= _MIN_BARE_COUNT)
        and not _ends_with_word(word, known)
    }


def _find_bynames(text: str, known: dict[str, int]) -> set[str]:
    """Return names such as 药老, 小李 and 小医仙 that do something at the start of a clause."""
    return {
        word
        for word in (match.group(1) for match in _BYNAME.finditer(text))
        if (word[0] not in _NO_OLD if word.endswith("老") else word[1:] in SURNAMES or not known.get(word[1:]))
        and (not known.get(word) or word[1:] in SURNAMES)
        and word[0] not in _NO_PERSON_STARTS
        and not _has_common_part(word, known)
    }


def _find_places(text: str) -> set[str]:
    """Return the whole names of places that a verb of motion or 在 shows: 云岚山, where a dictionary has 岚山."""
    return {match.group(1) for match in _PLACE.finditer(text) if not _NO_STEM & set(match.group(1)[:-1])}


def _add_ending(word: str, kind: str, text: str) -> str:
    """Return a place or body with the ending that always follows it: 青河村, where a dictionary has 青河, or 科技局."""
    if kind == "PERSON" or word[-1] in _VILLAGES:
        return word
    after = set(re.findall(f"{word}(.?)", text))
    endings = _VILLAGES | _SITES if len(word) == _SHORT_PLACE else _VILLAGES
    endings = _OFFICES if kind == "ORGANIZATION" else endings
    return word + min(after) if len(after) == 1 and after <= endings else word


def _type_double(word: str, kind: str) -> str:
    """Return PERSON for a double surname with a given name that the dictionary takes for a place: 欧阳靖."""
    is_person = kind == "GEO" and word[:2] in DOUBLE_SURNAMES and len(word) > 2 and word[-1] not in PLACE_ENDINGS
    return "PERSON" if is_person else kind


def _has_common_part(word: str, known: dict[str, int]) -> bool:
    """Whether a candidate of three or four characters begins or ends with a common word: 新院长."""
    return len(word) > 2 and max(known.get(word[:2], 0), known.get(word[-2:], 0)) >= _COMMON_COUNT


def _is_of_clan(word: str) -> bool:
    """Whether a word is a clan with a role: 萧家少主, but not the person 张家辉."""
    return len(word) > 3 and bool(_clan_of(word))


def _clan_of(word: str) -> str:
    """Return the clan that a word starts with; "" if none."""
    n = 2 if word[:2] in DOUBLE_SURNAMES else 1
    return word[: n + 1] if word[:n] in SURNAMES | DOUBLE_SURNAMES and word[n : n + 1] in ("家", "氏") else ""


def _ends_with_word(word: str, known: dict[str, int]) -> bool:
    """Whether a candidate consists of common words: "两位老人"."""
    return any(
        known.get(word[:cut], 0) and known.get(word[cut:], 0) >= _COMMON_COUNT for cut in range(2, len(word) - 1)
    )


def _is_extended(word: str, kinds: dict[str, str], text: str) -> bool:
    """Whether a person's name is a more frequent one with the word after it: 萧炎独自."""
    shorter = (word[:cut] for cut in range(2, len(word)))
    return kinds[word] == "PERSON" and any(
        kinds.get(name) == "PERSON" and text.count(name) > text.count(word) for name in shorter
    )


def _type_by_ending(word: str, kind: str, text: str) -> str:
    if kind == "PERSON" and len(word) >= 2 and (word[:-1] in SURNAMES | DOUBLE_SURNAMES) and word[-1] in "家氏":
        return "ORGANIZATION"  # 萧家: a clan
    if kind == "PERSON" and word.endswith(HOUSE_ENDINGS):
        return "ORGANIZATION"
    if kind == "PERSON" and word.endswith(ORGANIZATION_ENDINGS):
        is_short = len(word) == 2 or _acts(word, text)
        has_members = re.search(rf"{word}的?(?:宗主|长老|弟子|掌门|掌教|门下|成员|总裁)", text) is not None
        return "PERSON" if is_short and not has_members else "ORGANIZATION"
    if kind == "PERSON" and len(word) > 2 and word[-1] in PLACE_ENDINGS and not _is_shown(word, kind, text):
        return (
            "GEO"
            if re.search(rf"(?:登上|来到|离开|前往|回到|走进|在){word}|{word}的{_H}{{2,4}}[看站坐走说]", text)
            else kind
        )
    return kind


def _acts(word: str, text: str) -> bool:
    """Whether a name does something or has a form of address or a role: 王耀宗是一位教师."""
    follows = f"{_ACTS}|{'|'.join(sorted(ADDRESSES))}"
    is_defined = any(match.group(1) == word for match in _DEFINED.finditer(text))
    return is_defined or re.search(f"{word}(?:{follows})", text) is not None


def _is_chinese_name(word: str, kind: str, count: int, known: dict[str, int]) -> bool:
    if kind not in _KINDS or not 2 <= len(word) <= 20 or not _HAN.fullmatch(word):
        return False
    if word in NO_NAMES or word in COMMON_WORDS or (word[-1] in INSIDE and (_KINDS[kind] == "GEO" or len(word) > 2)):
        return False
    if _KINDS[kind] == "GEO" and len(word) == 2 and not known.get(word) and word[-1] not in PLACE_ENDINGS:
        return False  # a guess of the tagger
    if _KINDS[kind] != "PERSON" or "·" in word:
        return True
    if _is_of_clan(word):
        return False
    has_surname = (word[0] in SURNAMES and len(word) <= 4) or word[:2] in DOUBLE_SURNAMES
    has_surname = has_surname or (word[0] in VERB_SURNAMES and len(word) == 3)
    return has_surname or word[-2:] in JOINED_ENDINGS or count >= _MIN_BARE_COUNT


def _cut(tokenizer: Any, text: str) -> Iterator[tuple[str, str, int]]:
    """Yield (word, word class, offset) of every word."""
    place = 0
    for pair in tokenizer.cut(text):
        place = text.index(pair.word, place)
        yield pair.word, pair.flag, place
        place += len(pair.word)


def _join_names(tagged: Iterator[tuple[str, str, int]]) -> Iterator[tuple[str, str, int]]:
    """Join a single surname with the next character or form of address: 萧 + 战, 张 + 教授."""
    before: tuple[str, str, int] | None = None
    for word, kind, place in tagged:
        if before is not None:
            surname, surname_kind, start = before
            if start + len(surname) == place and _follows_surname(word, kind):
                yield surname + word, "nr", start
                before = None
                continue
            yield surname, surname_kind, start
            before = None
        if len(word) == 1 and kind == "nr" and word in SURNAMES:
            before = word, kind, place
        else:
            yield word, kind, place
    if before is not None:
        yield before


def _join_endings(tagged: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Join a double surname with its given name, and words with a following "山脉", "拍卖行" or "女王"."""
    joined: list[tuple[str, str, int]] = []
    for word, kind, place in tagged:
        before = joined[-1] if joined and joined[-1][2] + len(joined[-1][0]) == place else None
        is_single = kind == "ns" and len(word) == 2 and before is not None and before[1] == "n" and len(before[0]) == 1
        if before and before[0] in DOUBLE_SURNAMES and len(word) <= 2 and (kind == "dg" or kind[0] not in "updcxrmf"):
            joined[-1] = (before[0] + word, "nr", before[2])
        elif before and (is_single or (word in JOINED_ENDINGS and len(before[0]) > 1)) and _is_nominal(before):
            while len(joined) > 1 and _is_nominal(joined[-2]) and joined[-2][2] + len(joined[-2][0]) == joined[-1][2]:
                last = joined.pop()
                joined[-1] = (joined[-1][0] + last[0], last[1], joined[-1][2])
            joined[-1] = (joined[-1][0] + word, JOINED_ENDINGS.get(word, "ns"), joined[-1][2])
        else:
            joined.append((word, kind, place))
    return joined


def _is_nominal(tagged: tuple[str, str, int]) -> bool:
    return tagged[1] in ("n", "nz", "nr", "nrt", "nrfg", "ns", "q", "b", "j", "ng") and len(tagged[0]) <= 3


def _follows_surname(word: str, kind: str) -> bool:
    if word in ADDRESSES:
        return True
    is_given = (
        len(word) == 1
        and word not in "说问答看走拿笑叹喊"
        and kind not in ("uj", "ul", "uz", "ud", "c", "p", "d", "x", "r", "m")
    )
    return (is_given or (len(word) == 2 and kind.startswith("nr"))) and _HAN.fullmatch(word) is not None


def _extend_places(tagged: list[tuple[str, str, int]], text: str) -> list[tuple[str, str, int]]:
    """Extend a place by the character that always precedes it: 山镇 to 青山镇."""
    before: dict[str, list[str]] = {}
    for word, kind, place in tagged:
        if _KINDS.get(kind) == "GEO" and word[-1] in PLACE_ENDINGS:
            before.setdefault(word, []).append(text[place - 1 : place])
    extended = {
        word
        for word, first in before.items()
        if len(first) >= _MIN_EXTENDED
        and len(set(first)) == 1
        and _HAN.fullmatch(first[0])
        and first[0] not in NO_BEGINNING
    }
    return [
        (text[place - 1] + word, kind, place - 1) if word in extended else (word, kind, place)
        for word, kind, place in tagged
    ]


@cache
def _load_jieba() -> Any:
    """Load jieba's tagger with its bundled dictionary and a private cache file; return None without the extra."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # jieba has old escapes and imports pkg_resources
            import jieba  # type: ignore[import-untyped,unused-ignore]
            import jieba.posseg  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        _log.warning(
            "no entities are extracted from Chinese documents without jieba; run: pip install 'graphrag-pipeline[cjk]'"
        )
        return None
    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    with tempfile.TemporaryDirectory(prefix="graphrag-jieba-") as folder:
        tokenizer.tmp_dir = folder
        tokenizer.initialize()
    return jieba.posseg.POSTokenizer(tokenizer)
