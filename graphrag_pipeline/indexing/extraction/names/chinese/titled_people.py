"""Persons of a Chinese text behind a title, a role or "called", although they are named once: 水军都督孟长风.

A title says that a name follows. Where the name ends, the segmenter decides: behind a surname, the next word or two
single characters are the given name, unless they are common words. Monks, servants and bynames have no surname: a word
that no text uses otherwise follows their title (和尚慧明), or 阿, 小 and 老 are before one character (仆人阿贵).

Keep out: persons without a title (`people.py`), and what is a title (`word_lists.py`).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Mapping

from graphrag_pipeline.indexing.extraction.names.chinese.name_evidence import cut_adverb
from graphrag_pipeline.indexing.extraction.names.chinese.people import ACTS, ROLES
from graphrag_pipeline.indexing.extraction.names.chinese.word_lists import (
    ADDRESSES,
    BARE_TITLES,
    COMMON_WORDS,
    DOUBLE_SURNAMES,
    NO_LITTLE,
    NO_NAMES,
    RARE_SURNAMES,
    SURNAMES,
    TITLES,
    TRANSLITERATED,
)
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.scripts import HAN

Cut = Callable[[str], list[str]]
"""Cuts a text into words."""

_H = f"[{HAN}]"
_FUNCTION_SURNAMES = frozenset("从于时和通都那相后有步向容须")
_ALL_SURNAMES = (SURNAMES | RARE_SURNAMES) - _FUNCTION_SURNAMES
_READ_AHEAD = 8  # characters behind a title or a surname
_COMMON_COUNT, _VERY_COMMON_COUNT = 300, 2_000  # of a word in the segmenter's dictionary
_NOT_GIVEN = frozenset(
    "的了着过是在有和与不也都就又再还很没对向把被给从到说道问答看听想去来走进出上下里中前后这那他她它我你您们个位一二两几么吗呢吧啊叫姓将便"
    "则所以为于及其之每已才只却并而但因同跟让使令带领劝骂打杀救抓追喊送拿抱推拉踢躲逃跪哭嫁娶恨怕找等"
)
_PARTICLES = frozenset("的了着过们吗呢吧啊")
_TITLE = late_re(
    f"(?:{'|'.join(sorted(TITLES, key=len, reverse=True))}|{ROLES})(?:名?叫做?|名为|姓|[就便正]?是)?(?={_H})"
)
_BARE_TITLE = late_re(f"(?:{'|'.join(sorted(BARE_TITLES, key=len, reverse=True))})(?={_H})")
_CALLED = late_re(
    rf"(?:名叫|名为|叫做|叫作|唤作|取名|起名|真名是|名字叫|名字是|名字：|(?<=[人者子的长员师生手匠家兵医])叫|{_H}姓{_H}名)(?={_H})"
)
_MIN_FOREIGN = 3  # characters
_KIN = frozenset("父母祖爷奶公婆叔伯舅姑儿女孙哥姐弟妹妻夫友练学")
_GOES_ON = late_re(f"[，。！？；、和与的是]|{ACTS}")
_ADDRESSED = late_re(f"[“「]([{''.join(sorted(SURNAMES))}]{_H}{{1,2}})，(?=[你您咱别快我])")
_WHOLE = late_re(f"((?:{'|'.join(sorted(DOUBLE_SURNAMES))}|[{''.join(sorted(SURNAMES))}]){_H}{{1,2}})(?=[，。；、！])")
_NOT_CALLED = _NOT_GIVEN - frozenset("一二两几出前")
_NAMED_MONK = late_re(f"(?:法号|法名|道号)(?:叫做?|为|是)?({_H}{{2}})(?=[，。；、！？]|$)", re.MULTILINE)
_LITTLE = late_re(rf"[阿小老]{_H}")
_FOREIGN = late_re(rf"{_H}+(?:·{_H}+)+")
_TAILS = tuple(sorted(ADDRESSES, key=len, reverse=True))
_RANKS = "大夫|郎中|长老|师兄|师姐|师弟|师妹|师叔|师伯|掌门|护法|执事|道长|真人|嬷嬷|公公|掌柜|捕头|镖头|教头|员外"
_BEFORE_RANKED = "的和与跟向对被把给找请叫问见是由让到、拜求"
_NOT_RANKED = frozenset("于向任和方全位成时从大左")
"""Surnames that are mostly other words before a rank: 任长老, 向师兄."""
_RANKED = late_re(
    rf"(?:^|(?<=[^{HAN}])|(?<=[{_BEFORE_RANKED}]))([{''.join(sorted(SURNAMES - _NOT_RANKED))}](?:{_RANKS}))",
    re.MULTILINE,
)
_NO_FAMILY = "村庄庙湾口镇沟堡具庭长屯集坡冲桥港宅界"
"""What follows 家 in the name of a place: 张家口."""


def find_addressed_people(text: str, known: Mapping[str, int]) -> set[str]:
    """Return the persons whose full name begins a speech to them: “贺三刀，你还是这样。”"""
    found = {match.group(1) for match in _ADDRESSED.finditer(text)}
    return {name for name in found if not known.get(name) and not set(name[1:]) & _NOT_CALLED}


def find_titled_people(text: str, known: Mapping[str, int], tags: Mapping[str, str], cut: Cut) -> set[str]:
    """Return the persons behind a title, a role or "called".

    Args:
        known, tags: word -> count, and word class, in the segmenter's dictionary.
        cut: the segmenter.
    """
    found = set()
    for match in _TITLE.finditer(text):
        rest = text[match.end() : match.end() + _READ_AHEAD]
        found.add(
            _read_name(rest, known, cut, tags)
            or _read_unknown(match.group(), rest, known, cut)
            or _read_little(rest, known, cut)
        )
    for match in _CALLED.finditer(text):
        rest = text[match.end() : match.end() + _READ_AHEAD]
        found.add(
            _read_whole(rest)
            or _read_name(rest, known, cut, tags)
            or _read_bare(rest, known, cut)
            or _read_little(rest, known, cut)
        )
    for match in _BARE_TITLE.finditer(text):
        rest = text[match.end() : match.end() + _READ_AHEAD]
        found.add(_read_little(rest, known, cut) or _read_bare(rest, known, cut))
    found |= {match.group(1) for match in _NAMED_MONK.finditer(text)}
    return {name for name in found if name and name not in COMMON_WORDS | NO_NAMES}


def _words_ahead(rest: str, cut: Cut) -> list[str]:
    """Return the words up to the next punctuation mark; "" ends them."""
    match = re.match(f"{_H}+", rest)
    return [*cut(match.group()), ""] if match else [""]


def _read_name(rest: str, known: Mapping[str, int], cut: Cut, tags: Mapping[str, str]) -> str:
    """Return the surname and the given name that a text begins with; "" if it begins with a word or no surname."""
    surname = rest[:2] if rest[:2] in DOUBLE_SURNAMES else rest[:1]
    if surname not in DOUBLE_SURNAMES and surname not in _ALL_SURNAMES:
        return ""
    first = _words_ahead(rest, cut)[0]
    is_common = known.get(first, 0) >= _COMMON_COUNT and first[2:] == "" and tags.get(first, "")[:1] != "n"
    if len(surname) == 1 and len(first) > 1 and (is_common or known.get(first, 0) >= _VERY_COMMON_COUNT):
        return ""  # 老师高兴地说
    if len(first) == len(surname) + 2 and not known.get(first) and not set(first) & _NOT_GIVEN:
        return first
    given = _read_given(rest[len(surname) :], known, cut)
    return cut_adverb(surname + given, DOUBLE_SURNAMES) if given else ""


def _read_whole(rest: str) -> str:
    """Return the surname and the given name that fill a clause behind "called", whatever words they are: 何不归."""
    match = _WHOLE.match(rest)
    return match.group(1) if match and not set(match.group(1)[1:]) & _PARTICLES else ""


def _read_unknown(title: str, rest: str, known: Mapping[str, int], cut: Cut) -> str:
    """Return the unknown word, or the transliterated name, that alone stands between a title and what goes on."""
    words = _words_ahead(rest, cut)
    foreign = "".join(itertools.takewhile(lambda word: word and set(word) <= TRANSLITERATED, words))
    if len(foreign) >= _MIN_FOREIGN:
        return foreign
    name = words[0]
    is_new = len(name) in (2, 3) and not known.get(name) and not set(name) & (_NOT_GIVEN | _KIN)
    return (
        name
        if is_new and title[-1] not in _KIN | {"是"} and name not in BARE_TITLES and _GOES_ON.match(rest, len(name))
        else ""
    )


def _read_given(rest: str, known: Mapping[str, int], cut: Cut) -> str:
    first, second = (*_words_ahead(rest, cut), "")[:2]
    if not first or first[0] in _NOT_GIVEN or re.match(ACTS, first):
        return ""
    if len(first) == 1:
        is_cut = len(second) == 2 and known.get(first + second[0], 0) > known.get(second, 0)
        if is_cut and second[0] not in _NOT_GIVEN:
            return first + second[0]  # 长风 of 长风习剑, although 风习 is a word too
        goes_on = len(second) == 1 and second not in _NOT_GIVEN and not re.match(ACTS, rest[1:])
        return first + second if goes_on else first
    return first if len(first) == 2 and first[1] not in _PARTICLES else ""


def _read_bare(rest: str, known: Mapping[str, int], cut: Cut) -> str:
    """Return the name of two characters without a surname that a text begins with; "" if that is a common word."""
    first, second = (*_words_ahead(rest, cut), "")[:2]
    name = first if len(first) == 2 else first + second if len(first) == len(second) == 1 else ""
    if len(first) == 3 and not known.get(first):
        name = first
    is_name = name and not set(name) & _NOT_GIVEN and known.get(name, 0) < _COMMON_COUNT // 3
    if first[:1] == "阿" and len(name) > 2:
        return ""  # 阿福刚
    return name if is_name and not re.match(ACTS, name) else ""


def _read_little(rest: str, known: Mapping[str, int], cut: Cut) -> str:
    """Return the byname that a text begins with: 阿贵, 小翠, 老周."""
    match = _LITTLE.match(rest)
    if not match or match.group()[1] in NO_LITTLE | _NOT_GIVEN or known.get(match.group(), 0) >= _COMMON_COUNT:
        return ""
    first, second = (*_words_ahead(rest, cut), "")[:2]
    is_whole = first == match.group() or (len(first) == 1 and len(second) == 1)
    return match.group() if is_whole else ""


def find_foreign_people(text: str, cut: Cut) -> set[str]:
    """Return the names with a dot between their parts: 哈利·詹姆斯.

    They begin and end where the segmenter's words or the characters of transliterations do.
    """
    found = set()
    for match in _FOREIGN.finditer(text):
        first, *middle, last = match.group().split("·")
        words = cut(first)
        begin = words.pop()
        while words and set(begin + words[-1]) <= TRANSLITERATED:
            begin = words.pop() + begin
        end = next((last[: -len(tail)] for tail in _TAILS if last.endswith(tail) and len(last) > len(tail)), "")
        found.add("·".join([begin, *middle, end or _read_foreign_end(last, cut)]))
    return found


def _read_foreign_end(last: str, cut: Cut) -> str:
    words = cut(last)
    end = words[0]
    for word in words[1:]:
        if not set(end + word) <= TRANSLITERATED:
            break
        end += word
    return end


def find_ranked_people(text: str) -> set[str]:
    """Return the persons that a text names by a surname and a rank: 墨大夫, 厉长老."""
    return {match.group(1) for match in _RANKED.finditer(text)}


def find_families(text: str, people: Collection[str]) -> set[str]:
    """Return the families of persons that the text names: 沈家, where it names 沈德昌."""
    surnames = {name[:2] if name[:2] in DOUBLE_SURNAMES else name[0] for name in people}
    pattern = f"(?:{'|'.join(sorted(surnames & (_ALL_SURNAMES | DOUBLE_SURNAMES)))})家(?![{_NO_FAMILY}])"
    return set(re.findall(pattern, text)) if surnames else set()
