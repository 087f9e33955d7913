"""Persons that a Chinese text shows by what they do, what they are called, and what they are to others.

Names that no dictionary has, as in novels (药老, 小医仙), are found where a verb of a person, a role or "called" is
beside them. Keep out: persons behind a title (`titled_people.py`), and the dictionary's own words (`cjk.py`).
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from graphrag_pipeline.indexing.extraction.names.chinese.name_evidence import cut_adverb
from graphrag_pipeline.indexing.extraction.names.chinese.word_lists import (
    ADDRESSES,
    COMMON_WORDS,
    DOUBLE_SURNAMES,
    NO_NAMES,
    ORGANIZATION_ENDINGS,
    SURNAMES,
)
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.scripts import HAN

_H = f"[{HAN}]"
_COMMON_COUNT = 500  # of a word in the segmenter's dictionary
_WELL_KNOWN_WORD = 1_000  # count of 高兴, which 高兴地 begins with
_MIN_BARE_COUNT = 2  # occurrences of a person's name that does not start with a surname
ACTS = (
    "说道|说|问道|问|答道|回答|笑道|笑着|笑了|点头|点了点头|摇头|摇了摇头|叹|喊|想起|想到|教|拜|听了|听完|听说|看着|看了|握|"
    "走进|走出|走到|来到|坐在|站在|离开|低头|抬头|沉默|替|取出|拿出|从小|遇见|见到|第一次|推|转身|回头|起初|吸走|原名|本名|"
    "没有说话|皱眉|很会|战胜|打败|负责|主持|担任|自称|出身|派人|派出|带着|带领|率领|召集|统治|站|住在|登上|追|炼制|推开|表示|认为|"
    "介绍|指出|承认|建议|要求|汇报|报告|提出|解释|同意|不同意|骑着|拔|接过|回答说|低声|大声|接着说|毕业于|出生于|病逝|生于|辞官"
)
_TRAITS = "擅长|善于|精通|心地|性情|为人"
_MILD_ACTS = f"{ACTS}|{_TRAITS}|在|是|把|将|对|收|等|看|拿|走|坐"  # only after a form that shows a person by itself
ROLES = (
    "父亲|母亲|祖父|祖母|爷爷|奶奶|外公|外婆|叔叔|伯父|舅舅|姑姑|儿子|女儿|孙女|孙子|弟子|徒弟|师父|师傅|老师|长老|族长|宗主|供奉|医师|炼药师|药师|掌柜|将军|哥哥|姐姐|弟弟|妹妹|"
    "妻子|丈夫|朋友|教授|校长|首领|队长|团长|强者|高手|掌教|店主|老板|少主|少爷|专家|工程师|教师|作家|画家|诗人|学者|记者|"
    "合伙人|创始人|局长|主任|经理|秘书|主席|书记|县长|市长|院长|部长|主编|教练|律师|代表|总统|总理|大臣|总督|将领|翻译家|传教士|"
    "大学士|侄子|侄女|同学|帮主|掌门|庄主|教习"
)
_SUBJECT = late_re(
    rf"(?:^|(?<=[^\u4e00-\u9fff])|(?<=正是)|(?<=[宗门派帮会阁殿院谷家团国城镇]的))({_H}{{2,4}}?)(?=(?:{ACTS}))",
    re.MULTILINE,
)
_BYNAME = late_re(  # 药老, 小李, 小医仙
    rf"(?:^|(?<=[^\u4e00-\u9fff]))({_H}老|[小老阿](?:[{''.join(sorted(SURNAMES))}]|{_H}{{2}}))(?=(?:{_MILD_ACTS}))",
    re.MULTILINE,
)
_CLAN = late_re(rf"(?:^|(?<=[^\u4e00-\u9fff])|(?<=[和与是]))({_H}{{2}})家(?=[，。、；和与的])", re.MULTILINE)
_DEFINED = late_re(
    rf"(?:^|(?<=[。！？]))({_H}{{2,4}}?)(?:曾经?)?是[^，。！？\n]{{0,16}}(?:{ROLES})(?=[，。！？；])", re.MULTILINE
)
_MEMBERS = (
    "[宗门帮阁教堂香盟宫谷寨楼庄岛]主|长老|弟子|掌门|掌教|门主|帮主|阁主|教主|堂主|香主|师兄|师姐|师弟|师妹|护法|圣女|传人|门徒|教众|帮众"
    "|左使|右使|少[宗阁庄帮门]主"
)
_SECT = late_re(
    rf"(?:^|(?<=[^\u4e00-\u9fff])|(?<=[是入自到被和与连从]))({_H}{{1,2}}[宗派帮盟殿阁门教堂宫])(?:的?{_H}{{0,2}}?(?:{_MEMBERS})|的人(?![{HAN}]?[家品生]))",
    re.MULTILINE,
)
_JOINED_SECT = late_re(
    rf"(?:加入|拜入|投靠|投奔|离开|攻打|来到|回到|返回|逃出|带回|创立|消灭|剿灭|围攻)了?({_H}{{2}}[宗派帮盟教])(?![{HAN}]?[派学育])"
)
_NO_SECT = frozenset("连就而却将这那此本该两各的是内外大小正邪名贵敝师同掌入出几每众某他她我你天朝满全")
_MAY_BE_SECT = late_re(rf"(?=({_H}{{2}}[宗派帮盟阁殿宫教门]))")
_MIN_REPEATED = 3
_COMMON_GROUP = 100
"""Least count of a common word that ends like a sect in the segmenter's dictionary: 宗教, 专门."""
_NOT_INSIDE = frozenset("他她它我你的了着把被")
_NO_OLD = frozenset("长元古月衰苍养父敬年家大很最太不变偏岳孤")
_IS = late_re(
    rf"(?:^|(?<=[^\u4e00-\u9fff]))({_H}{{2,4}}?)(?:(?:也|正|便|曾经?)?是[^，。！？\n]{{0,16}}(?:{ROLES})(?=[，。！？；])|的(?:{ROLES}))",
    re.MULTILINE,
)
_KINSHIP = late_re(
    "[大小老二三四五六七八九十]?"
    "(?:师[兄弟姐妹叔伯父母娘公祖哥侄]|师兄弟|师姐妹|[表堂][兄弟哥姐妹]|[兄弟哥姐妹嫂叔伯姑姨舅婶]{1,2}|徒弟|徒儿|弟子)"
)
_CALLED = late_re(rf"(?:名叫|名为|叫做|叫作|原名|本名|自称|人称)(?![做作])({_H}{{2,4}})(?=[，。！？；、])")
_ROLE_BEFORE = late_re(rf"(?:{ROLES})({_H}{{2,4}}?)(?=[，。！？；、是不]|(?:{ACTS}))")
_MET = late_re(rf"(?:遇见|见到|认识|战胜|打败|嫁给|交给|发给|告诉|救下|拜)了?({_H}{{2,4}})(?=[，。！？；、])")
_NO_PERSON_STARTS = frozenset(
    "他她它我你您这那其一二三四五六七八九十几两每第有在是不没的了着过就便却也都还又再最很从向对把被与和但而所如因为若当只可以后前上下里外中时正将要会能想说看听来去到"
)


def find_people(text: str, known: Mapping[str, int]) -> set[str]:
    """Return the words outside of the dictionary that a verb, a role or "called" shows to be persons."""
    found = Counter(
        cut_adverb(match.group(1), DOUBLE_SURNAMES)
        for pattern in (_SUBJECT, _IS, _ROLE_BEFORE, _MET)
        for match in pattern.finditer(text)
    )
    called = {match.group(1) for match in _CALLED.finditer(text)}
    clans = {match.group(1) for match in _CLAN.finditer(text) if not known.get(match.group(1))}
    sure = called | {match.group(1) for match in _DEFINED.finditer(text) if not has_common_part(match.group(1), known)}
    return _find_bynames(text, known) | {
        word
        for word in [*found, *called]
        if not known.get(word)
        and not is_of_clan(word)
        and word[0] not in _NO_PERSON_STARTS
        and not _NOT_INSIDE & set(word)
        and not word.endswith(ORGANIZATION_ENDINGS)
        and word not in NO_NAMES | COMMON_WORDS
        and (word in sure or word[0] in SURNAMES or word[:2] in clans or text.count(word) >= _MIN_BARE_COUNT)
        and not _ends_with_word(word, known)
        and not (len(word) > 2 and known.get(word[:2], 0) >= _WELL_KNOWN_WORD)
    }


def _find_bynames(text: str, known: Mapping[str, int]) -> set[str]:
    """Return names such as 药老, 小李 and 小医仙 that do something at the start of a clause."""
    return {
        word
        for word in (match.group(1) for match in _BYNAME.finditer(text))
        if (word[0] not in _NO_OLD if word.endswith("老") else word[1:] in SURNAMES or not known.get(word[1:]))
        and (not known.get(word) or word[1:] in SURNAMES)
        and word[0] not in _NO_PERSON_STARTS
        and not has_common_part(word, known)
    }


def has_common_part(word: str, known: Mapping[str, int]) -> bool:
    """Whether a candidate of three or four characters begins or ends with a common word: 新院长."""
    return len(word) > 2 and max(known.get(word[:2], 0), known.get(word[-2:], 0)) >= _COMMON_COUNT


def is_kinship(word: str) -> bool:
    """Return whether a word only says what a person is to others, without a name: 小师弟, 大师兄, 二姐."""
    return _KINSHIP.fullmatch(word) is not None


def is_of_clan(word: str) -> bool:
    """Whether a word is a clan with a role: 萧家少主, but not the person 张家辉."""
    return len(word) > 3 and bool(clan_of(word))


def clan_of(word: str) -> str:
    """Return the clan that a word starts with; "" if none."""
    n = 2 if word[:2] in DOUBLE_SURNAMES else 1
    return word[: n + 1] if word[:n] in SURNAMES | DOUBLE_SURNAMES and word[n : n + 1] in ("家", "氏") else ""


def _ends_with_word(word: str, known: Mapping[str, int]) -> bool:
    """Whether a candidate consists of common words: "两位老人"."""
    return any(
        known.get(word[:cut], 0) and known.get(word[cut:], 0) >= _COMMON_COUNT for cut in range(2, len(word) - 1)
    )


def has_sign(word: str, text: str) -> bool:
    """Whether a name does something or has a form of address or a role: 王耀宗是一位教师."""
    follows = f"{ACTS}|{'|'.join(sorted(ADDRESSES))}"
    is_defined = any(match.group(1) == word for match in _DEFINED.finditer(text))
    return is_defined or re.search(f"{word}(?:{follows})", text) is not None


def find_sects_with_members(text: str, known: Mapping[str, int]) -> set[str]:
    """Return the sects that the text shows by heads, members, or a person who joins or leaves: 云岚宗弟子."""
    found = {match.group(1) for match in _SECT.finditer(text)}
    found |= {match.group(1) for match in _JOINED_SECT.finditer(text) if not known.get(match.group(1))}
    return {word for word in found if not _is_common_group(word, known)}


def find_repeated_sects(text: str, known: Mapping[str, int]) -> set[str]:
    """Return the sects that a text names three times behind different words: 听潮阁, 铁衣盟."""
    before: defaultdict[str, set[str]] = defaultdict(set)
    counts = Counter(match.group(1) for match in _MAY_BE_SECT.finditer(text))
    for match in _MAY_BE_SECT.finditer(text):
        before[match.group(1)].add(text[max(match.start() - 1, 0) : match.start()])
    return {
        word
        for word, n in counts.items()
        if n >= _MIN_REPEATED and len(before[word]) > 1 and not known.get(word) and not _NO_SECT & set(word[:-1])
    }


def _is_common_group(word: str, known: Mapping[str, int]) -> bool:
    is_general = len(word) == 2 and word[0] in _NO_SECT
    return is_general or bool(_NO_SECT - set("天") & set(word[:-1])) or known.get(word, 0) >= _COMMON_GROUP
