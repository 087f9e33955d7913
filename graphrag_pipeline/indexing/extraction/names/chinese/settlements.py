"""Places of a Chinese text whose names a segmenter cuts: 云岚山, 青石镇, 望海亭.

A stem and a word for a kind of place are a name if the stem is no common word, and no number or determiner precedes.
Keep out: places that the dictionary has whole (`cjk.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

from graphrag_pipeline.indexing.extraction.names.chinese.name_evidence import Tagged
from graphrag_pipeline.indexing.extraction.names.chinese.word_lists import KINDS, NO_BEGINNING, PLACE_ENDINGS
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.scripts import HAN

_H = f"[{HAN}]"
_PLACE = late_re(
    rf"(?:登上|来到|离开|位于|前往|回到|到达|抵达|走进了?|进了|去了|离|从|包围了?|[住坐落]*在)"
    rf"({_H}{{2,3}}(?:山脉|帝国|[山镇城村谷峰庄寺庙岭林崖台]|楼(?=[上里中前内])|观(?![看察测赏战点光])))(?![山镇城村谷峰脉门洞])"
)
_VILLAGES = frozenset("镇村县乡")
_SITES = frozenset("山寺涧路桥江河湖岛峰谷庙街亭塔楼港湾渡关洲")
_OFFICES = frozenset("局部厅社")
_SHORT_PLACE = 2  # characters of a place that may be the start of a longer one
_MIN_EXTENDED = 3  # occurrences of a place after always the same character
_SETTLED = frozenset("镇村城县乡岛洲港寨堡岭峰江河湖亭塔寺庙州湾渡崖关峡滩坪坡沟谷庵")
_BEHIND = frozenset("上里中外内边下水")
"""What follows the word for a place: 青石镇上."""
_STEM_KINDS = frozenset(["n", "nr", "nrt", "nrfg", "ns", "nz", "nt", "ng", "x", "j", "b", "nrj"])
_COMMON_STEM = 600
"""Least count of a common word in the segmenter's dictionary: 附近 in 附近村."""
_WATERS, _PARTS = frozenset("河海湖江山水井池桥城村镇路街"), frozenset("底面边岸头口沿畔心脚腰顶")
_SIZES = frozenset("古旧老新小大荒破县省山边")
_RARE_STEM = 100
"""The same for a word that is no noun: 苍梧 in 苍梧山."""
_GOING = frozenset("在到往来去于回离过")
_COUNTED = frozenset("这那一二三四五六七八九十几两每某各座个条片些间家")
_DIRECTIONS = frozenset("东南西北上下前后左右内外中老新大小古旧")
_NO_STEM = frozenset("这那一二三四五六七八九十几两每各座个的了着他她它我你大小高在到从门")


def find_places(text: str) -> set[str]:
    """Return the whole names of places that a verb of motion or 在 shows: 云岚山, where a dictionary has 岚山."""
    return {match.group(1) for match in _PLACE.finditer(text) if not _NO_STEM & set(match.group(1)[:-1])}


def add_ending(word: str, kind: str, text: str) -> str:
    """Return a place or body with the ending that always follows it: 青河村, where a dictionary has 青河, or 科技局."""
    if kind == "PERSON" or word[-1] in _VILLAGES:
        return word
    after = set(re.findall(f"{word}(?!市场|山区|山脉|山地|河流|江水|湖水)(.?)", text))
    endings = _VILLAGES | _SITES | {"市"} if len(word) == _SHORT_PLACE else _VILLAGES
    endings = _OFFICES if kind == "ORGANIZATION" else endings
    return word + min(after) if len(after) == 1 and after <= endings else word


def extend_places(tagged: Sequence[Tagged], text: str) -> list[Tagged]:
    """Extend a place by the character that always precedes it: 山镇 to 青山镇."""
    before: dict[str, list[str]] = {}
    for word, kind, place in tagged:
        if KINDS.get(kind) == "GEO" and word[-1] in PLACE_ENDINGS:
            before.setdefault(word, []).append(text[place - 1 : place])
    extended = {
        word
        for word, first in before.items()
        if len(first) >= _MIN_EXTENDED
        and len(set(first)) == 1
        and re.fullmatch(_H, first[0])
        and first[0] not in NO_BEGINNING
    }
    return [
        (text[place - 1] + word, kind, place - 1) if word in extended else (word, kind, place)
        for word, kind, place in tagged
    ]


def is_common_place(word: str) -> bool:
    """Return whether a word only says what kind or part of a place it is: 古庙, 旧城, 河底."""
    is_part = len(word) == 2 and word[0] in _WATERS and word[1] in _PARTS
    return is_part or (len(word) == 2 and word[0] in _SIZES and (word[1] in _SETTLED or word[1] in _SITES))


def find_settlements(tagged: Sequence[Tagged], known: Mapping[str, int]) -> set[str]:
    """Return places that consist of a rare word of two characters and a word for a kind of place: 青石镇, 白浪城."""
    found = set()
    before: Tagged = ("", "", 0)
    for (stem, kind, place), (word, _, start) in pairwise([before, *tagged]):
        is_next = place + len(stem) == start and len(stem) == _SHORT_PLACE
        is_kind = word[0] in _SETTLED | {"山"} and (len(word) == 1 or (len(word) == 2 and word[1] in _BEHIND))
        if is_next and is_kind and _is_stem(stem, kind, known) and before[0][-1:] not in _COUNTED:
            found.add(stem + word[0])
        is_new = len(word) == _SHORT_PLACE + 1 and word[-1] in _SETTLED and not known.get(word)
        is_named = stem[-1:] in _GOING or word[-1] in _VILLAGES | {"城", "寨"}
        if is_new and is_named and not (_NO_STEM | _COUNTED) & set(word):
            found.add(word)  # 在望潮渡
        before = (stem, kind, place)
    return found


def _is_stem(stem: str, kind: str, known: Mapping[str, int]) -> bool:
    is_rare = kind == "ns" or known.get(stem, 0) < (_COMMON_STEM if kind in _STEM_KINDS else _RARE_STEM)
    return (
        (kind in _STEM_KINDS or kind in ("a", "z", "i", "l"))
        and is_rare
        and not (_NO_STEM | _COUNTED) & set(stem)
        and stem[-1] not in _DIRECTIONS
    )


def is_storey(word: str) -> bool:
    """Return whether a word only counts the storeys or parts of a building: 六楼, 三栋."""
    return re.fullmatch("[一二三四五六七八九十百\\d]+[楼层栋号]", word) is not None
