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
from functools import cache, partial
from typing import Any

from graphrag_pipeline.indexing.extraction.names.chinese.acting_people import (
    add_is,
    drop_rests,
    find_acting_people,
    find_kin_people,
)
from graphrag_pipeline.indexing.extraction.names.chinese.bodies import (
    find_bodies,
    find_cities,
    find_family_places,
    find_units,
    join_places,
    rejoin_places,
)
from graphrag_pipeline.indexing.extraction.names.chinese.joined_words import PERSON_WORDS, join_endings, join_names
from graphrag_pipeline.indexing.extraction.names.chinese.name_evidence import (
    DETERMINERS,
    cut_adverb,
    cut_verb,
    find_person_in_place,
    find_sects,
    is_given_end,
    is_person,
    is_place_word,
    is_ship,
    is_shown_as_person,
    is_verb_like_place,
    is_verb_with_object,
    join_cut_names,
)
from graphrag_pipeline.indexing.extraction.names.chinese.people import (
    ACTS,
    ROLES,
    clan_of,
    find_people,
    find_repeated_sects,
    find_sects_with_members,
    has_sign,
    is_kinship,
    is_of_clan,
)
from graphrag_pipeline.indexing.extraction.names.chinese.repeated_names import find_repeated_names, find_speakers
from graphrag_pipeline.indexing.extraction.names.chinese.settlements import (
    add_ending,
    extend_places,
    find_places,
    find_settlements,
    is_common_place,
    is_storey,
)
from graphrag_pipeline.indexing.extraction.names.chinese.subjects import find_subjects, is_thing
from graphrag_pipeline.indexing.extraction.names.chinese.titled_people import (
    find_addressed_people,
    find_families,
    find_foreign_people,
    find_ranked_people,
    find_titled_people,
)
from graphrag_pipeline.indexing.extraction.names.chinese.word_lists import (
    ADDRESSES,
    COMMON_WORDS,
    DOUBLE_SURNAMES,
    HOUSE_ENDINGS,
    HOUSES,
    INSIDE,
    JOINED_ENDINGS,
    KINDS,
    NO_LITTLE,
    NO_NAMES,
    ORGANIZATION_ENDINGS,
    PLACE_ENDINGS,
    SITE_ENDINGS,
    SURNAMES,
    TEMPLES,
    VERB_SURNAMES,
)
from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.scripts import HAN, simplify

_log = logging.getLogger(__name__)
_H = f"[{HAN}]"
_HAN = late_re(f"{_H}+(?:[·・]{_H}+)*")
_TITLE = late_re("《([^《》\n]{2,16})》")
_KEPT = late_re("著(?=[名作称者书述录])|(?<=[显名原论编卓土专所合巨译遗])著|乾(?=[隆坤清陵卦元])")
_MARRIED = 2  # characters of 周氏
_EMPEROR = late_re("[汉唐宋元明清金辽][太高世中神仁真英徽钦孝光宁理德宪武文昭宣景元成玄肃顺穆敬哲度]{1,2}[宗祖帝]")
_BEFORE_PERSON = frozenset("和与跟同对向被把给让")
_ENDS_AS_PERSON = tuple(sorted(PERSON_WORDS - {"代表", "千金"}))
_KIN_ROLES = words("孙女 女儿 儿子 孙子 妻子 丈夫 父亲 母亲 女婿")
_WELL_KNOWN = 1_000  # count of a place in jieba's dictionary
_MAX_SINGLE = 3  # characters of a name with a surname of one character
_MIN_BARE_COUNT = 2  # occurrences of a person's name that does not start with a surname


def find_chinese_names(text: str, starts: list[int]) -> tuple[list[Name], dict[str, str]]:
    """Find the names in a Chinese document, in reading order, and their types by form.

    The rules read simplified characters; the names are as the document writes them. A word that jieba tags as a person
    counts if it starts with a surname or occurs more than once.

    Args:
        starts: where each sentence starts, in order.
    """
    tokenizer = _load_jieba()
    if tokenizer is None:
        return [], {}
    simple = _simplify(text)
    types = _type_names(simple, tokenizer)
    if not types:
        return [], {}
    pattern = re.compile("|".join(sorted(types, key=lambda form: (-len(form), form))))
    places = [match.span() for match in pattern.finditer(simple)]
    names = [Name(text[start:end], start, end, bisect_right(starts, start) - 1) for start, end in places]
    return names, {name.form: types[simple[name.start : name.end]] for name in names}


def _simplify(text: str) -> str:
    """Return a text in simplified characters, in which 著 stays in words such as 著名, and 乾 in names such as 乾隆."""
    return (
        "".join(
            old if _KEPT.match(text, place) else new
            for place, (old, new) in enumerate(zip(text, simplify(text), strict=True))
        )
        if _KEPT.search(text)
        else simplify(text)
    )


def _type_names(text: str, tokenizer: Any) -> dict[str, str]:
    """Return the type of each name in a text of simplified characters."""
    known = tokenizer.tokenizer.FREQ
    cut = list(_cut(tokenizer, text))
    words_of_text = join_cut_names(cut, SURNAMES | VERB_SURNAMES, known)
    tagged = extend_places(join_endings(list(join_names(iter(words_of_text))), known), text)
    counts = Counter(word for word, _, _ in tagged)
    kinds = {word: KINDS[kind] for word, kind, _ in tagged[::-1] if _is_chinese_name(word, kind, counts[word], known)}
    kinds = {add_ending(word, kind, text): _type_double(word, kind) for word, kind in kinds.items()}
    signs = f"{ACTS}|{'|'.join(sorted(ADDRESSES))}|的(?:{ROLES})"
    titles, places = tuple(sorted(PERSON_WORDS)), [word for word, kind in kinds.items() if kind == "GEO"]
    persons = {word: find_person_in_place(word, SURNAMES, text, signs, titles) for word in places}
    kinds = {persons.get(word) or word: "PERSON" if persons.get(word) else kind for word, kind in kinds.items()}
    kinds = {_whole(word, kind, text): kind for word, kind in kinds.items() if _is_named(word, kind, text, tokenizer)}
    kinds |= dict.fromkeys(find_people(text, known), "PERSON")
    kinds |= dict.fromkeys(find_titled_people(text, known, tokenizer.word_tag_tab, tokenizer.tokenizer.lcut), "PERSON")
    kinds |= dict.fromkeys(find_addressed_people(text, known) - NO_NAMES, "PERSON")
    words_only = partial(tokenizer.tokenizer.lcut, HMM=False)
    kinds |= dict.fromkeys(find_subjects(text, known, tokenizer.word_tag_tab, words_only), "PERSON")
    kinds |= dict.fromkeys(find_foreign_people(text, tokenizer.tokenizer.lcut), "PERSON")
    strange = [word for word, kind in kinds.items() if kind == "PERSON" and word[0] not in SURNAMES]
    sects = find_sects([*strange, *(word for word in places if text.count(word) > 1)], text)
    kinds = {sects.get(word, word): "ORGANIZATION" if word in sects else kind for word, kind in kinds.items()}
    surnames = SURNAMES | DOUBLE_SURNAMES
    repeated = find_repeated_names(text, surnames, known, ACTS, ROLES)
    repeated |= find_speakers(text, surnames, known, tokenizer.word_tag_tab)
    repeated -= kinds.keys() | COMMON_WORDS | NO_NAMES
    kinds |= dict.fromkeys((name for name in repeated if not name.endswith(ORGANIZATION_ENDINGS)), "PERSON")
    settlements = find_places(text) | (find_settlements(words_of_text, known) - NO_NAMES)
    kinds |= dict.fromkeys((place for place in settlements if not _is_shown(place, kinds.get(place, ""), text)), "GEO")
    kinds |= {clan_of(word): "ORGANIZATION" for word, kind, _ in tagged if kind in KINDS and is_of_clan(word)}
    kinds |= dict.fromkeys(find_ranked_people(text), "PERSON")
    kinds |= dict.fromkeys(find_sects_with_members(text, known) | find_repeated_sects(text, known), "ORGANIZATION")
    kinds |= dict.fromkeys(
        find_families(text, [word for word, kind in kinds.items() if kind == "PERSON"]), "ORGANIZATION"
    )
    kinds = {cut_verb(word, text, DOUBLE_SURNAMES) if kind == "PERSON" else word: kind for word, kind in kinds.items()}
    kinds = _add_composed(kinds, text, cut, tokenizer)
    kinds |= {match.group(1): "CONCEPT" for match in _TITLE.finditer(text)}
    return {
        word: _type_by_ending(word, kind, text)
        for word, kind in kinds.items()
        if not _is_extended(word, kinds, text)
        and not (kind == "PERSON" and (is_ship(word, SURNAMES, text) or _is_thing(word, text, known)))
        and not (kind == "GEO" and _is_person_with_word(word, kinds, known))
        and not (kind == "PERSON" and (word in PERSON_WORDS or any(f"{word}{unit}" in kinds for unit in "市县区省")))
        and not (kind == "PERSON" and is_kinship(word))
        and not (kind == "PERSON" and _is_verb_with_person(word, kinds, text))
    }


def _add_composed(kinds: dict[str, str], text: str, cut: list[tuple[str, str, int]], tokenizer: Any) -> dict[str, str]:
    """Return the names with the persons, places and bodies that consist of other words: 韩国栋, 江州市公安局."""
    acting = find_acting_people(text, cut, tokenizer.tokenizer.FREQ, tokenizer.word_tag_tab)
    people = {word for word, kind in kinds.items() if kind == "PERSON"} | acting
    rests, units = drop_rests(people, acting), find_units(cut)
    bodies = find_bodies(rejoin_places(cut, [word for word, kind in kinds.items() if kind == "GEO"], text))
    whole = {word: add_is(word, text) for word in people - rests}
    kinds = {
        whole.get(word, word): kind
        for word, kind in kinds.items()
        if word not in rests and not _is_cut_from(word, kind, acting, text) and not _is_joined(word, kind, units)
    }
    kinds |= dict.fromkeys(units | find_cities(cut) | find_family_places(cut, text, SURNAMES), "GEO")
    kinds |= dict.fromkeys({*map(whole.__getitem__, acting), *find_kin_people(text, cut)}, "PERSON")
    kinds |= dict.fromkeys(bodies, "ORGANIZATION")
    places = [word for word, kind in kinds.items() if kind == "GEO"]
    joined = join_places([word for word, kind in kinds.items() if kind == "ORGANIZATION"], places, text)
    return {joined.get(word, word): kind for word, kind in kinds.items() if not is_storey(word)}


def _is_cut_from(word: str, kind: str, people: set[str], text: str) -> bool:
    """Whether a word is only a part of persons' names, or a role with the start of one: 韩国, 女儿王国, 孙女张."""
    if kind == "PERSON" and word in people:
        return False
    has_role = any(word.startswith(role) and len(word) > len(role) for role in _KIN_ROLES)
    longer = [name for name in people if word in name and word != name]
    return has_role or (bool(longer) and text.count(word) == sum(map(text.count, longer)))


def _is_joined(word: str, kind: str, units: set[str]) -> bool:
    """Whether a place is one with an administration and the next place: 清河省清河."""
    return kind == "GEO" and any(word.startswith(unit) and word != unit for unit in units)


def _is_thing(word: str, text: str, known: dict[str, int]) -> bool:
    """Whether a guess of the tagger is counted as a thing and never acts: 一枚石符."""
    return not known.get(word) and is_thing(word, text) and not has_sign(word, text)


def _is_person_with_word(word: str, kinds: dict[str, str], known: dict[str, int]) -> bool:
    """Whether a guess of the tagger is a person with a verb behind or a role before: 韩立拜, 干部牛卫国."""
    if known.get(word):
        return False
    is_person_first = any(kinds.get(word[:cut]) == "PERSON" for cut in range(2, len(word)))
    return (is_person_first and word[-1] not in PLACE_ENDINGS | SITE_ENDINGS) or kinds.get(word[2:]) == "PERSON"


def _is_verb_with_person(word: str, kinds: dict[str, str], text: str) -> bool:
    """Whether a person's name is a more frequent one with the word before it: 谢洪四海, 和钟灵."""
    is_long = (len(word) > _MAX_SINGLE and word[:2] not in DOUBLE_SURNAMES) or word[0] in _BEFORE_PERSON
    return is_long and kinds.get(word[1:]) == "PERSON" and text.count(word) < text.count(word[1:])


def _is_named(word: str, kind: str, text: str, tokenizer: Any) -> bool:
    known = tokenizer.tokenizer.FREQ
    if kind == "GEO":
        return (
            not word.startswith(DETERMINERS)
            and not is_verb_like_place(word, text)
            and not is_verb_with_object(word, text, known, tokenizer.word_tag_tab)
            and is_place_word(word, text, known)
        )
    return kind != "PERSON" or is_person(word, text, known, word[0] in SURNAMES, ACTS, ROLES)


def _is_shown(word: str, kind: str, text: str) -> bool:
    return kind == "PERSON" and is_shown_as_person(word, text, ACTS, ROLES)


def _whole(word: str, kind: str, text: str) -> str:
    if kind == "PERSON" and len(word) == _MARRIED + 1 and word[1] == "氏":
        return word[:_MARRIED]  # 周氏早逝
    if kind == "PERSON" and not is_given_end(word, text):
        word = cut_adverb(word, DOUBLE_SURNAMES)
    return cut_verb(word, text, DOUBLE_SURNAMES) if kind == "PERSON" else word


def _type_double(word: str, kind: str) -> str:
    """Return PERSON for a double surname with a given name that the dictionary takes for a place: 欧阳靖."""
    is_person = kind == "GEO" and word[:2] in DOUBLE_SURNAMES and len(word) > 2 and word[-1] not in PLACE_ENDINGS
    return "PERSON" if is_person else kind


def _is_extended(word: str, kinds: dict[str, str], text: str) -> bool:
    """Whether a person's name is a more frequent one with the word after it: 萧炎独自.

    A beginning that longer names share, such as 耿大 of 耿大海 and 耿大江, is no name.
    """
    if kinds[word] != "PERSON":
        return False
    shorter = [word[:cut] for cut in range(2, len(word)) if kinds.get(word[:cut]) == "PERSON"]
    return any(_count_alone(name, kinds, text) > text.count(word) for name in shorter)


def _count_alone(name: str, kinds: dict[str, str], text: str) -> int:
    """Return how often a name occurs outside of two or more longer ones; outside of none, if only one is longer."""
    longer = [other for other in kinds if other.startswith(name) and other != name and kinds[other] == "PERSON"]
    return text.count(name) - (sum(map(text.count, longer)) if len(longer) > 1 else 0)


def _type_by_ending(word: str, kind: str, text: str) -> str:
    if kind != "CONCEPT" and len(word) >= 2 and (word[:-1] in SURNAMES | DOUBLE_SURNAMES) and word[-1] in "家氏府":
        return _type_clan(word, text)
    if _EMPEROR.fullmatch(word):
        return "PERSON"
    if kind == "PERSON" and word.endswith(HOUSE_ENDINGS):
        return "ORGANIZATION"
    if kind == "PERSON" and re.search(f"{word}的?(?:弟子|道士|和尚|道长|住持|方丈)", text) and word[-1] in TEMPLES:
        return "ORGANIZATION"
    if kind == "PERSON" and word.endswith(ORGANIZATION_ENDINGS):
        is_short = len(word) == 2 or has_sign(word, text)
        has_members = re.search(rf"{word}的?{_H}{{0,2}}?(?:宗主|长老|弟子|掌门|掌教|门下|成员|总裁)", text) is not None
        return "PERSON" if is_short and not has_members else "ORGANIZATION"
    is_strange = word[0] not in SURNAMES and word[-1] in PLACE_ENDINGS | SITE_ENDINGS
    if kind == "PERSON" and len(word) > 2 and is_strange and not _is_shown(word, kind, text):
        return "GEO"  # 望仙桥
    is_gone_to = word[-1] in "岭山谷镇城岛峰河湖湾村崖" and re.search(f"(?:在|往|到|去|从|离开|来到){word}", text)
    if kind == "PERSON" and word[0] not in SURNAMES and is_gone_to and not has_sign(word, text):
        return "GEO"  # 雪岭
    if kind == "PERSON" and len(word) > 2 and word[-1] in "镇村乡县洲区" and not has_sign(word, text):
        return "GEO"  # 黄金村
    if kind == "PERSON" and len(word) > 2 and word[-1] in PLACE_ENDINGS and not _is_shown(word, kind, text):
        visited = rf"(?:登上|来到|离开|前往|回到|走进|在){word}|{word}(?:的{_H}{{2,4}}[看站坐走说]|[上下里脚])"
        return "GEO" if re.search(visited, text) else kind
    return kind


def _type_clan(word: str, text: str) -> str:
    """Return ORGANIZATION for a family, such as 萧家, and PERSON for a woman by her family's name: 母亲周氏."""
    is_woman = word[-1] == "氏" and re.search(
        f"(?:母亲|妻子|夫人|妻|妾|婆婆|嫂子|奶奶|太太|姨娘|寡妇|寡嫂){word}", text
    )
    return "PERSON" if is_woman else "ORGANIZATION"


def _is_chinese_name(word: str, kind: str, count: int, known: dict[str, int]) -> bool:
    if kind not in KINDS or not 2 <= len(word) <= 20 or not _HAN.fullmatch(word):
        return False
    if word in NO_NAMES | COMMON_WORDS | HOUSES:
        return False
    if word[-1] in INSIDE and (KINDS[kind] == "GEO" or len(word) > 2) and not word.endswith("高中"):
        return False
    if KINDS[kind] == "GEO" and is_common_place(word) and known.get(word, 0) < _WELL_KNOWN:
        return False
    if KINDS[kind] == "GEO" and len(word) == 2 and not known.get(word) and word[-1] not in PLACE_ENDINGS:
        return False  # a guess of the tagger
    if KINDS[kind] == "ORGANIZATION" and word.endswith(_ENDS_AS_PERSON):
        return False  # 中学教师
    if KINDS[kind] == "ORGANIZATION" and word in JOINED_ENDINGS:
        return False  # 卫生院, without a name before it
    if KINDS[kind] != "PERSON" or "·" in word:
        return True
    if is_of_clan(word):
        return False
    has_surname = (word[0] in SURNAMES and len(word) <= 4) or word[:2] in DOUBLE_SURNAMES
    has_surname = has_surname or (word[0] in VERB_SURNAMES and len(word) == 3)
    has_surname = has_surname or (word[0] == "阿" and len(word) == 2 and word[1] not in NO_LITTLE)
    return has_surname or word[-2:] in JOINED_ENDINGS or count >= _MIN_BARE_COUNT


def _cut(tokenizer: Any, text: str) -> Iterator[tuple[str, str, int]]:
    """Yield (word, word class, offset) of every word."""
    place = 0
    for pair in tokenizer.cut(text):
        place = text.index(pair.word, place)
        yield pair.word, pair.flag, place
        place += len(pair.word)


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
