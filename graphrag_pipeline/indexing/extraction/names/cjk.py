"""Names in Chinese and Japanese, which have neither capitals nor spaces.

Chinese: words and word classes by jieba (the `[cjk]` extra), with checks against the document. Without jieba,
`find_chinese_names` returns no names and logs a warning. Japanese: names before a form of address, places and
organizations by their endings, foreign names in katakana; no package is needed.

Keep out: Latin script.
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

from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.indexing.extraction.names.finder import Name

_log = logging.getLogger(__name__)
_KINDS = {"nr": "PERSON", "nrt": "PERSON", "nrfg": "PERSON", "ns": "GEO", "nsf": "GEO", "nt": "ORGANIZATION"}
_SURNAMES = frozenset("""
王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾萧肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任
沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔向汤
温云古柳楚洛慕欧司诸張劉陳楊黃趙吳孫馬鄭謝羅許韓馮鄧蕭葉蘇呂盧鍾譚陸範賈韋鄒龍賀顧錢嚴
""") - {"\n"}
_ADDRESSES = words("先生 老先生 女士 小姐 太太 教授 老师 医生 博士 总统 主席 经理 师傅 大人 姑娘 老爷")
_NO_NAMES = _ADDRESSES | words("大海 后山 高山 家乡 故乡 老家 城里 城市 海上 江湖 山林 天空 大地 世界 人间")
_INSIDE = frozenset("里上中下边内外前后")
_PLACE_ENDINGS = frozenset("镇村城山县市河湖岛州街路门谷峰宗国")
_NO_BEGINNING = frozenset("在到了的从来去往向进出回和与是这那有座个条过离于把被对")
_MIN_EXTENDED = 3  # occurrences of a place after always the same character
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+(?:[·・][\u3400-\u4dbf\u4e00-\u9fff]+)*")
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
    tagged = _extend_places(list(_join_names(_cut(tokenizer, text))), text)
    counts = Counter(word for word, _, _ in tagged)
    names: list[Name] = []
    types: dict[str, str] = {}
    for word, kind, place in tagged:
        if _is_chinese_name(word, kind, counts[word]):
            names.append(Name(word, place, place + len(word), bisect_right(starts, place) - 1))
            types.setdefault(word, _KINDS[kind])
    return names, types


def _is_chinese_name(word: str, kind: str, count: int) -> bool:
    if kind not in _KINDS or not 2 <= len(word) <= 20 or not _HAN.fullmatch(word):
        return False
    if word in _NO_NAMES or (_KINDS[kind] == "GEO" and word[-1] in _INSIDE):
        return False
    if _KINDS[kind] != "PERSON" or "·" in word:
        return True
    return (word[0] in _SURNAMES and len(word) <= 4) or count >= _MIN_BARE_COUNT


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
        if len(word) == 1 and kind == "nr" and word in _SURNAMES:
            before = word, kind, place
        else:
            yield word, kind, place
    if before is not None:
        yield before


def _follows_surname(word: str, kind: str) -> bool:
    if word in _ADDRESSES:
        return True
    is_given = len(word) == 1 and kind not in ("uj", "ul", "uz", "ud", "c", "p", "d", "x", "r", "m")
    return (is_given or (len(word) == 2 and kind.startswith("nr"))) and _HAN.fullmatch(word) is not None


def _extend_places(tagged: list[tuple[str, str, int]], text: str) -> list[tuple[str, str, int]]:
    """Extend a place by the character that always precedes it: 山镇 to 青山镇."""
    before: dict[str, list[str]] = {}
    for word, kind, place in tagged:
        if _KINDS.get(kind) == "GEO" and word[-1] in _PLACE_ENDINGS:
            before.setdefault(word, []).append(text[place - 1 : place])
    extended = {
        word
        for word, first in before.items()
        if len(first) >= _MIN_EXTENDED
        and len(set(first)) == 1
        and _HAN.fullmatch(first[0])
        and first[0] not in _NO_BEGINNING
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


_KANJI = "\u4e00-\u9fff々"
_KATAKANA = "\u30a1-\u30faー"
_ADDRESSED = re.compile(
    rf"([{_KANJI}]{{1,4}}|[{_KATAKANA}]{{2,}}(?:・[{_KATAKANA}]{{2,}})*)"
    r"(?:さん|さま|ちゃん|くん|氏|様|君|先生|教授|博士|社長|首相|大統領)"
)
_FOREIGN = re.compile(rf"[{_KATAKANA}]{{2,}}(?:[・＝][{_KATAKANA}]{{2,}})+")
_PLACE = re.compile(rf"[{_KANJI}]{{1,4}}?(?:都|道|府|県|市|区|町|村|駅|川|山|島|湖|城)(?![{_KANJI}])")
_ORGANIZATION = re.compile(
    rf"株式会社[{_KANJI}{_KATAKANA}]{{1,12}}|[{_KANJI}{_KATAKANA}]{{1,10}}"
    r"(?:株式会社|大学|銀行|新聞|省|庁|党|協会|委員会|研究所|病院)"
)
_COMMON = words("皆 先 奥 母 父 兄 姉 弟 妹 息子 娘 患者 学生 お客 神 殿 諸 同 両 彼 僕 何 登山 下山 沢山 帰")
_COUNTRY = re.compile(
    "|".join(sorted(words("日本 中国 韓国 米国 英国 東京 京都 大阪 北海道 アメリカ イギリス フランス ドイツ イタリア")))
)


def find_japanese_names(text: str, starts: list[int]) -> tuple[list[Name], dict[str, str]]:
    """Find the names in a Japanese document, in reading order, and their types by form.

    A name with a form of address (山田さん, 佐藤氏) is a person; all its occurrences in the document then count.
    """
    types: dict[str, str] = {}
    for pattern, kind in ((_ORGANIZATION, "ORGANIZATION"), (_PLACE, "GEO"), (_COUNTRY, "GEO"), (_FOREIGN, "PERSON")):
        for match in pattern.finditer(text):
            if match.group() not in _COMMON and len(match.group()) > 1:
                types.setdefault(match.group(), kind)
    for match in _ADDRESSED.finditer(text):
        if match.group(1) not in _COMMON and len(match.group(1)) > 1:
            types[match.group(1)] = "PERSON"
    if not types:
        return [], {}
    longest_first = sorted(types, key=lambda form: (-len(form), form))
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    names = [
        Name(match.group(), match.start(), match.end(), bisect_right(starts, match.start()) - 1)
        for match in pattern.finditer(text)
    ]
    return names, {name.form: types[name.form] for name in names}
