"""Names in Japanese: before a form of address, by the endings of places and organizations, and in katakana.

No package is needed. Keep out: Chinese (`chinese.py`).
"""

from __future__ import annotations

from collections.abc import Iterator

from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.name_words import GEO, ORGANIZATION, PERSON, words

_KANJI = "\u4e00-\u9fff々"
_KATAKANA = "\u30a1-\u30faー"
_FOREIGN_WORD = rf"[{_KATAKANA}]{{2,40}}"
"""Bounded, and tried at the start of a run only, so that the time is linear in a text without any other character."""
_ADDRESSED = late_re(
    rf"([{_KANJI}]{{1,4}}|(?<![{_KATAKANA}]){_FOREIGN_WORD}(?:・{_FOREIGN_WORD}){{0,5}})"
    r"(?:さん|さま|ちゃん|くん|氏|様|君|先生|教授|博士|社長|首相|大統領)"
)
_FOREIGN = late_re(rf"(?<![{_KATAKANA}]){_FOREIGN_WORD}(?:[・＝]{_FOREIGN_WORD}){{1,5}}")
_JAPANESE_PLACE = late_re(rf"[{_KANJI}]{{1,4}}?(?:都|道|府|県|市|区|町|村|駅|川|山|島|湖|城)(?![{_KANJI}])")
_ORGANIZATION = late_re(
    rf"株式会社[{_KANJI}{_KATAKANA}]{{1,12}}|[{_KANJI}{_KATAKANA}]{{1,10}}"
    r"(?:株式会社|大学|銀行|新聞|省|庁|党|協会|委員会|研究所|病院)"
)
_COMMON = words("皆 先 奥 母 父 兄 姉 弟 妹 息子 娘 患者 学生 お客 神 殿 諸 同 両 彼 僕 何 登山 下山 沢山 帰")
_COUNTRY = late_re(
    "|".join(sorted(words("日本 中国 韓国 米国 英国 東京 京都 大阪 北海道 アメリカ イギリス フランス ドイツ イタリア")))
)


def find_japanese_names(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, type) of the names in a Japanese text; one with a form of address (山田さん) is a person."""
    for pattern, kind in (
        (_ORGANIZATION, ORGANIZATION),
        (_JAPANESE_PLACE, GEO),
        (_COUNTRY, GEO),
        (_FOREIGN, PERSON),
        (_ADDRESSED, PERSON),
    ):
        for match in pattern.finditer(text):
            start, end = match.span(1 if pattern is _ADDRESSED else 0)
            if end - start > 1 and text[start:end] not in _COMMON:
                yield start, end, kind
