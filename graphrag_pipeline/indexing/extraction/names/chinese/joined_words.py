"""Words of a Chinese text that are one name together: 萧 + 战, 张 + 教授, 云岚 + 山脉, 顺风 + 镖局.

Keep out: names that surnames and other words of the document show to be cut (`name_evidence.py`), and public bodies
(`bodies.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphrag_pipeline.indexing.extraction.names.chinese.people import ROLES
from graphrag_pipeline.indexing.extraction.names.chinese.word_lists import (
    ADDRESSES,
    DOUBLE_SURNAMES,
    HOUSES,
    JOINED_ENDINGS,
    NO_NAMES,
    SURNAMES,
    TITLES,
)
from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.text.scripts import HAN

PERSON_WORDS = frozenset(ROLES.split("|")) | TITLES
_COMMON_COUNT = 500  # of a word in the segmenter's dictionary
_SHORT = 2  # characters of the name of a house
_GOING = words("上山 下山 进山 出山 登山 进城 出城 回城 上岗 上岸 下海 下河 下乡 进村 出村")
"""Acts that the segmenter takes for places: 一个人上山采药."""


def join_names(tagged: Iterator[tuple[str, str, int]]) -> Iterator[tuple[str, str, int]]:
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


def join_endings(tagged: list[tuple[str, str, int]], known: dict[str, int]) -> list[tuple[str, str, int]]:
    """Join a double surname with its given name, and words with a following "山脉", "拍卖行" or "女王"."""
    joined: list[tuple[str, str, int]] = []
    for word, kind, place in tagged:
        before = joined[-1] if joined and joined[-1][2] + len(joined[-1][0]) == place else None
        is_single = kind == "ns" and len(word) == 2 and before is not None and before[1] in ("n", "ns")
        is_single = is_single and before is not None and len(before[0]) == 1 and word not in _GOING
        if before and before[0] in DOUBLE_SURNAMES and len(word) <= 2 and (kind == "dg" or kind[0] not in "updcxrmf"):
            joined[-1] = (before[0] + word, "nr", before[2])
        elif before and word in HOUSES and _is_stem_of_house(before, known):
            joined[-1] = (before[0] + word, "nt", before[2])
        elif before and (is_single or (word in JOINED_ENDINGS and len(before[0]) > 1)) and _is_nominal(before):
            while len(joined) > 1 and _is_nominal(joined[-2]) and joined[-2][2] + len(joined[-2][0]) == joined[-1][2]:
                if joined[-2][0] in PERSON_WORDS or joined[-2][0].endswith("方"):
                    break  # 儿子马长江, 投资方远山资本
                last = joined.pop()
                joined[-1] = (joined[-1][0] + last[0], last[1], joined[-1][2])
            joined[-1] = (joined[-1][0] + word, JOINED_ENDINGS.get(word, "ns"), joined[-1][2])
        else:
            joined.append((word, kind, place))
    return joined


def _is_stem_of_house(tagged: tuple[str, str, int], known: dict[str, int]) -> bool:
    return len(tagged[0]) == _SHORT and tagged[1][0] in "naz" and known.get(tagged[0], 0) < _COMMON_COUNT


def _is_nominal(tagged: tuple[str, str, int]) -> bool:
    return (
        tagged[0] not in NO_NAMES
        and tagged[1] in ("n", "nz", "nr", "nrt", "nrfg", "ns", "q", "b", "j", "ng")
        and len(tagged[0]) <= 4
    )


def _follows_surname(word: str, kind: str) -> bool:
    if word in ADDRESSES:
        return True
    is_given = (
        len(word) == 1
        and word not in "说问答看走拿笑叹喊"
        and kind not in ("uj", "ul", "uz", "ud", "c", "p", "d", "x", "r", "m")
    )
    return (is_given or (len(word) == 2 and kind.startswith("nr"))) and re.fullmatch(f"[{HAN}]+", word) is not None
