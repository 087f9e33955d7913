"""Persons of a Chinese text whose names a segmenter cuts: 沈大山 is 沈 and 大山 for it.

A surname with one or two characters after it, which is not the start of a word, is a name if the text repeats it
between different neighbours and once shows a person: by a verb of speaking, a companion, or a role before it.

A name without a surname counts if a sentence begins with its speech or says what person it is, and the text repeats it
otherwise: 熏儿轻声说道, 熏儿是古族的大小姐.

Keep out: names that the segmenter finds or a definition shows (`cjk.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping

import regex

from graphrag_pipeline.indexing.extraction.names.chinese.people import has_common_part
from graphrag_pipeline.indexing.extraction.names.chinese.subjects import PERSON_NOUNS
from graphrag_pipeline.text.late_patterns import late_regex

_MIN_COUNT = 2
_MIN_NEIGHBOURS = 2  # different characters before, and after
_MIN_WHOLE = 0.8  # of the occurrences of a name of two characters have the same third one
_COMPANY = "[和与跟对向给找叫让]"
_COMMON_COUNT = 200  # of a word in the dictionary
_NOT_GIVEN = frozenset(
    "的了着过是在有和与不也都就又再还很没对向把被给从到说道问答看听想去来走进出上下里中前后这那他她它我你您们个位一二两几么吗呢吧啊"
    "，。！？；：、“”‘’…家氏姓府门宗帮派镇村城县市路街"
)
_SAYS = "[说道问答喊叫喝]"
_IS_PERSON = rf"曾?是(?:[^，。！？；\n]{{0,16}}[的位名个])?\p{{Han}}{{0,2}}(?:{PERSON_NOUNS})(?=[，。！？；、\n]|$)"
_SPEECH = late_regex(  # 熏儿走上前来，轻声说道：“, and ”熏儿说。
    rf"(?:^|(?<=[。！？…”」』\n]|[。！？…，]\"))\s*(?=\p{{Han}}[^。！？“”\"「」『』\n]{{1,24}}?{_SAYS}[：:，]?\s?[“\"「『])(\p{{Han}}{{2,3}})"
    rf"|(?:^|(?<=[。！？…”」』\n]))\s*(?=\p{{Han}}{{2,3}}?(?:{_IS_PERSON}))(\p{{Han}}{{2,3}})"
    rf"|(?<=[。！？…，][”\"」』])(?=\p{{Han}}{{2,9}}{_SAYS}[。，])(\p{{Han}}{{2,3}})",
    regex.MULTILINE,
)
_OTHER_USE = "[，。！？、；：的是和与跟对向把被在]"
_NO_NAME_ENDS = frozenset("人者们员声然地")
_NO_NAME_STARTS = frozenset("本该此其某各每只忽众诸")
_RARE_COUNT = 10  # of a word in the dictionary
_WORD_COUNT = 50
"""The same for a word across the end of a name: 师弟 in 小师弟 is one, so 小师 is no name."""
_NO_SURNAMES = frozenset("于向任何万方成")
"""Surnames that are mostly other words."""


def find_repeated_names(
    text: str, surnames: Collection[str], known: Mapping[str, int], acts: str, roles: str
) -> set[str]:
    """Return the names of persons that a text repeats.

    Args:
        surnames: of one or two characters.
        known: word -> count in a dictionary.
        acts, roles: alternatives of a regular expression: what persons do, and what they are called by before a name.
    """
    counts = Counter(_candidates(text, surnames, known))
    places = {name: [m.start() for m in regex.finditer(name, text)] for name, n in counts.items() if n >= _MIN_COUNT}
    whole = _prefer_longer({name: len(found) for name, found in places.items()})
    before, after = rf"(?:{roles}|{_COMPANY}|告诉|见到|看着|遇见)", rf"(?:{acts}|{_COMPANY}|亲自|的(?:{roles}))"
    return {
        name
        for name in whole
        if _has_neighbours(name, places[name], text) and regex.search(f"{before}{name}|{name}{after}", text)
    }


def _candidates(text: str, surnames: Collection[str], known: Mapping[str, int]) -> Iterator[str]:
    single = "".join(sorted(name for name in surnames if len(name) == 1 and name not in _NO_SURNAMES))
    double = "|".join(sorted(name for name in surnames if len(name) == 2))
    for match in regex.finditer(rf"(?:{double}|[{single}])(?=(\p{{Han}}{{1,2}}))", text):
        surname, given = match.group(), match.group(1)
        for n in range(1, len(given) + 1):
            name = surname + given[:n]
            is_word = len(surname) == 1 and known.get(name[:2], 0) >= _COMMON_COUNT
            if not is_word and not known.get(name) and not set(given[:n]) & _NOT_GIVEN:
                yield name


def _prefer_longer(counts: Mapping[str, int]) -> set[str]:
    """Return the names without those that are nearly always the start of a longer one, and longer ones of rare ends."""
    longer: defaultdict[str, list[str]] = defaultdict(list)
    for name in counts:
        longer[name[:-1]].append(name)
    chosen = set()
    for name, n in counts.items():
        if name[:-1] in counts and n < _MIN_WHOLE * counts[name[:-1]]:
            continue
        if not any(counts[more] >= _MIN_WHOLE * n for more in longer[name]):
            chosen.add(name)
    return chosen


def _has_neighbours(name: str, places: list[int], text: str) -> bool:
    """Whether different characters precede and follow a name; the start and the end of a clause differ each time."""
    before = [text[place - 1 : place] for place in places]
    after = [text[place + len(name) : place + len(name) + 1] for place in places]
    return all(
        len({c for c in side if c.isalnum()}) + sum(not c.isalnum() for c in side) >= _MIN_NEIGHBOURS
        for side in (before, after)
    )


def find_speakers(text: str, surnames: Collection[str], known: Mapping[str, int], tags: Mapping[str, str]) -> set[str]:
    """Return the names without a surname that begin a sentence with a speech, and that the text repeats: 熏儿.

    A name ends where its occurrences go on differently, once as no act of speaking.

    Args:
        surnames: of one or two characters.
        known, tags: word -> count, and word class, in the segmenter's dictionary.
    """
    found = set()
    for match in _SPEECH.finditer(text):
        ahead = next(filter(None, match.groups()))
        names = (ahead[:n] for n in (2, 3) if len(ahead) >= n)
        found.add(next((name for name in names if _is_speaker(name, text, surnames, known, tags)), ""))
    return found - {""}


def _is_speaker(
    name: str, text: str, surnames: Collection[str], known: Mapping[str, int], tags: Mapping[str, str]
) -> bool:
    if (name[0] in surnames and name[1] != "儿") or name[:2] in surnames or name[0] in _NO_NAME_STARTS:
        return False
    if name[-1] in _NO_NAME_ENDS or set(name) & _NOT_GIVEN or has_common_part(name, known):
        return False
    if known.get(name, 0) >= _RARE_COUNT or (known.get(name) and not tags.get(name, "").startswith("n")):
        return False
    after = [text[match.end() : match.end() + 1] for match in regex.finditer(name, text)]
    whole = [char for char in after if known.get(name[-1] + char, 0) < _WORD_COUNT]
    return len(set(whole)) >= _MIN_NEIGHBOURS and any(regex.match(_OTHER_USE, char) for char in whole)
