"""Public bodies and administrative places of a Chinese text: 江州市公安局, 南岭县第二中学, 国家天文台, 清河省.

The segmenter cuts a body into a place, what the body does, and a word for a kind of body. The parts are one name if
they follow each other without a verb or a particle between them. Of several places before it (湖南省湘潭县法院), the
nearest with an administration belongs to the body. The places before it are places of their own.

Keep out: firms and houses (`cjk.py`), and sects (`people.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import pairwise

from graphrag_pipeline.indexing.extraction.names.chinese.name_evidence import Tagged
from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.text.late_patterns import late_re

_BODIES = words("""
法院 地方法院 高级人民法院
中级人民法院 人民法院 检察院 人民检察院 医院 人民医院 大学 学院 中学 小学 高中 一中 二中 三中
四中 公安局 公安厅 派出所 委员会 政府 人民政府
科学院 研究院 研究所 研究中心 天文台 气象台 电视台 广播电台 图书馆 博物馆 美术馆 文化馆 卫生院 消防队 交警队 税务局
处理厂 自来水厂 发电厂 化工厂 监测站 中心站 管理处 服务中心
""")
_OFFICES = late_re(".{1,4}(?:[局厅]|学院)|.{1,3}委员会|人民(?:法院|检察院|医院|政府)|.安分局")
"""Words for an office: 教育局, 居民委员会."""
_NO_OFFICES = words("""
结局 大局 布局 格局 当局 全局 邮局 饭局 客厅 餐厅 大厅 舞厅 歌厅 死局 骗局 棋局 败局 僵局 赌局 开局 书局
药局
""")
_BEFORE_ROLES = ("大学", "医院", "法院", "中学")
_UNITS = frozenset("省市县区州镇乡村")
_NATIONAL = words("国家 国立 中央 全国 中国 省立 市立 县立 省 市 县 区")
"""What is before a body instead of the name of a place."""
_MODIFIER_KINDS = frozenset(["n", "nz", "vn", "b", "m", "j", "nt", "an", "f", "ng", "a", "l", "s", "ns", "nr"])
_AND = frozenset("和与")
_NO_MODIFIERS = words("""
记者 代表 学生 老师 教授 居民 市民 村民 有关 当地 一家 这家 那家 一所 一个 两所 几家 人们 里 上 中 各
""")
_SHORT_BODY = 2  # characters of a word for a body that says nothing of its field: 学院
_MAX_MODIFIERS = 3  # words between the place and the word for a body
_BEFORE_SHORT = frozenset("各每这那全省市县区某本该")
_FAMILY_PLACE = "庄村镇沟湾屯坪集堡寨坡铺岭"

CITIES = words("""
保定 酒泉 承德 邢台 邯郸 廊坊 衡水 张家口 大同 阳泉 长治 晋城 朔州 晋中 运城 忻州 临汾 吕梁 包头 乌海 赤峰
通辽 抚顺 本溪 丹东 锦州 营口 阜新 辽阳 盘锦 铁岭 葫芦岛 四平 辽源 通化 白城 齐齐哈尔 鸡西 鹤岗 佳木斯
七台河 牡丹江 绥化 无锡 徐州 常州 苏州 南通 连云港 淮安 盐城 扬州 镇江 泰州 宿迁 宁波 温州 嘉兴 湖州 绍兴
金华 衢州 舟山 台州 丽水 芜湖 蚌埠 淮南 马鞍山 淮北 铜陵 安庆 黄山 滁州 阜阳 宿州 六安 亳州 池州 宣城 莆田
三明 泉州 漳州 南平 龙岩 宁德 景德镇 萍乡 九江 新余 鹰潭 赣州 吉安 宜春 抚州 上饶 淄博 枣庄 东营 烟台 潍坊
济宁 泰安 威海 日照 临沂 德州 聊城 滨州 菏泽 开封 洛阳 平顶山 安阳 鹤壁 新乡 焦作 濮阳 许昌 漯河 三门峡 南阳
商丘 信阳 周口 驻马店 十堰 宜昌 襄阳 鄂州 荆门 孝感 荆州 黄冈 咸宁 随州 株洲 湘潭 衡阳 邵阳 岳阳 常德 张家界
益阳 郴州 永州 怀化 娄底 韶关 珠海 汕头 佛山 江门 湛江 茂名 肇庆 惠州 梅州 汕尾 河源 阳江 清远 东莞 潮州
揭阳 云浮 柳州 桂林 梧州 北海 钦州 贵港 玉林 百色 贺州 河池 来宾 崇左 三亚 自贡 攀枝花 泸州 德阳 绵阳 广元
遂宁 内江 乐山 南充 眉山 宜宾 广安 达州 雅安 巴中 资阳 遵义 安顺 毕节 铜仁 曲靖 玉溪 保山 昭通 丽江 普洱
临沧 日喀则 林芝 铜川 宝鸡 咸阳 渭南 延安 汉中 榆林 安康 商洛 嘉峪关 金昌 白银 天水 武威 张掖 平凉 庆阳 定西
陇南 石嘴山 吴忠 固原 中卫 克拉玛依 吐鲁番 哈密
""") - words(
    "来宾 白银 安顺 日照 安康 长治 大同 四平 三明 河源 定西 中卫 平凉 新余 信阳 周口 安庆 普洱 固原 德州 天水 哈密 铜陵"
)
"""Cities of China that are no other words, whatever class the segmenter's dictionary gives them."""


def find_bodies(tagged: Sequence[Tagged]) -> set[str]:
    """Return the bodies that begin with their place, or with 国家, 市 and the like."""
    tagged = _join_schools(_split_bodies(tagged))
    found = {_read_body(tagged, place) for place, (word, _, _) in enumerate(tagged) if _is_body(word)}
    return found - {""}


def find_units(tagged: Sequence[Tagged]) -> set[str]:
    """Return the places with the word for their administration that the segmenter cuts off: 清河 + 省."""
    tagged = _split_bodies(tagged)
    return {
        word + unit
        for (word, kind, start), (unit, _, place) in pairwise(tagged)
        if kind == "ns" and len(word) > 1 and word[-1] not in _UNITS and unit in _UNITS and start + len(word) == place
    }


def rejoin_places(tagged: Sequence[Tagged], places: Collection[str], text: str) -> list[Tagged]:
    """Join the words of a place with an administration that the segmenter cuts elsewhere: 新 + 海市."""
    units = sorted((place for place in places if place[-1] in _UNITS), key=len, reverse=True)
    spans = {match.start(): match.end() for match in re.finditer("|".join(units), text)} if units else {}
    ends = {start + len(word) for word, _, start in tagged}
    joined: list[Tagged] = []
    limit = 0
    for word, kind, start in tagged:
        if start < limit:
            continue
        end = spans.get(start, 0)
        is_cut = end > start + len(word) and end in ends
        joined.append((text[start:end], "ns", start) if is_cut else (word, kind, start))
        limit = end if is_cut else start + len(word)
    return joined


def join_places(bodies: Collection[str], places: Collection[str], text: str) -> dict[str, str]:
    """Return body -> the body with its place, where the text always writes that before it: 沙北区 + 人民法院."""
    units = "|".join(sorted((place for place in places if place[-1] in _UNITS), key=len, reverse=True))
    found = {}
    for body in bodies if units else ():
        before = re.findall(f"({units})?{body}", text) if _is_body(body) else []
        if before and len(set(before)) == 1 and before[0]:
            found[body] = before[0] + body
    return found


def find_cities(tagged: Sequence[Tagged]) -> set[str]:
    """Return the cities of China for which the segmenter has another word class: 酒泉."""
    return {word for word, _, _ in tagged if word in CITIES}


def find_family_places(tagged: Sequence[Tagged], text: str, surnames: Collection[str]) -> set[str]:
    """Return the villages that are named after a family: 柳家庄."""
    starts = {place for _, _, place in tagged}
    single = "".join(sorted(name for name in surnames if len(name) == 1))
    pattern = rf"[{single}]家[{_FAMILY_PLACE}](?![{_FAMILY_PLACE}园主稼里])"
    return {match.group() for match in re.finditer(pattern, text) if match.start() in starts}


def _split_bodies(tagged: Sequence[Tagged]) -> list[Tagged]:
    """Cut 省林业厅 behind a place to 省 + 林业厅, and 大学教授 to 大学 + 教授."""
    parts: list[Tagged] = []
    for word, kind, start in tagged:
        before, before_kind, before_start = parts[-1] if parts else ("", "", 0)
        is_cut = word in ("局", "厅") and before_kind in _MODIFIER_KINDS - {"ns"} and len(before) > 1
        if is_cut and before_start + len(before) == start:  # 生态环境 + 局
            parts[-1] = (before + word, "nt", before_start)
            continue
        n = next((len(body) for body in _BEFORE_ROLES if word.startswith(body) and len(word) > len(body)), 0)
        n = n or int(len(word) > 2 and word[0] in _UNITS and _is_body(word[1:]))
        parts += [(word[:n], "n", start), (word[n:], kind, start + n)] if n else [(word, kind, start)]
    return parts


def _join_schools(tagged: Sequence[Tagged]) -> list[Tagged]:
    """Join 中 + 学校 + 长 to 中学 + 校长."""
    joined = list(tagged)
    for place in range(1, len(joined) - 1):
        (level, kind, start), (school, _, middle), (head, _, _) = joined[place - 1 : place + 2]
        if school == "学校" and head == "长" and level[-1] in "中小大":
            joined[place - 1] = (level[:-1], kind, start)
            joined[place] = (level[-1] + "学", "n", middle - 1)
            joined[place + 1] = ("校长", "n", middle + 1)
    return [word for word in joined if word[0]]


def _is_body(word: str) -> bool:
    return word in _BODIES or (_OFFICES.fullmatch(word) is not None and word not in _NO_OFFICES)


def _read_body(tagged: Sequence[Tagged], last: int) -> str:
    """Return the body whose last word is at an index; "" if no place is before it."""
    first, most = last, _MAX_MODIFIERS
    while first > 0 and last - first < most and _is_next(tagged, first - 1):
        word, kind, _ = tagged[first - 1]
        is_field = first < last or len(tagged[last][0]) > _SHORT_BODY
        if word in _AND and is_field and first > 1:  # 住房和城乡建设局, 文化和旅游局
            first, most = first - 1, _MAX_MODIFIERS + 2
            continue
        if most > _MAX_MODIFIERS and (kind == "nt" or _is_body(word)):  # behind 华中科技大学
            return "" if tagged[first][0] in _AND else _join(tagged, first, last)
        if _is_place(tagged, first - 1) or word in _NATIONAL:
            return _join(tagged, _first_of_place(tagged, first - 1), last)
        is_ordinal = kind == "m" and word[0] == "第"  # 第一污水处理厂
        if (kind not in _MODIFIER_KINDS and not is_ordinal) or word in _NO_MODIFIERS:
            return ""
        first -= 1
    if first > 0 and _is_next(tagged, first - 1) and _is_place(tagged, first - 1):
        return _join(tagged, _first_of_place(tagged, first - 1), last)
    return ""


def _is_next(tagged: Sequence[Tagged], place: int) -> bool:
    """Whether a word ends where the next one begins."""
    word, _, start = tagged[place]
    return start + len(word) == tagged[place + 1][2]


def _is_place(tagged: Sequence[Tagged], place: int) -> bool:
    word, kind, _ = tagged[place]
    if kind == "ns" or word in CITIES:
        return len(word) > 1
    if word not in _UNITS or place == 0 or not _is_next(tagged, place - 1):
        return False
    stem, stem_kind, _ = tagged[place - 1]
    return stem_kind == "ns" or (len(stem) == 2 and stem_kind in ("nr", "nz"))


def _first_of_place(tagged: Sequence[Tagged], place: int) -> int:
    """Return the index of the first word of the place that ends at an index; -1 if it is only 市 behind 各."""
    word = tagged[place][0]
    if _is_place(tagged, place) and word in _UNITS:
        return place - 1
    if len(word) == 1 and place > 0 and _is_next(tagged, place - 1) and tagged[place - 1][0][-1] in _BEFORE_SHORT:
        return -1
    return place


def _join(tagged: Sequence[Tagged], first: int, last: int) -> str:
    return "" if first < 0 else "".join(word for word, _, _ in tagged[first : last + 1])
