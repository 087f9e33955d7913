"""Names in Chinese, which has neither capitals nor spaces: the words that jieba tags as names (the `[cjk]` extra).

Words and word classes are those of the segmenter, on simplified characters; names are as the document writes them. A
person's name that the dictionary does not have needs a surname or two occurrences. Without jieba no names are found,
and a warning says so.

Keep out: names in Latin script.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections import Counter, defaultdict
from functools import cache
from typing import Any

from graphrag_pipeline.text.languages import HAN, simplify
from graphrag_pipeline.text.late_patterns import late_re
from graphrag_pipeline.text.name_words import GEO, ORGANIZATION, PERSON

_log = logging.getLogger(__name__)

_TYPES = {"nr": PERSON, "nrt": PERSON, "nrfg": PERSON, "ns": GEO, "nsf": GEO, "nt": ORGANIZATION}
_HAN = late_re(f"[{HAN}]+")
_MAX_CHARACTERS = 8
_SURNAMES = frozenset(
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林郑谢罗梁宋唐许韩冯邓曹彭曾萧肖田董袁潘于蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖"
    "贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严武戴莫孔向汤温"
)
"""The commonest ones."""
_DOUBLE_SURNAMES = ("欧阳", "司马", "上官", "诸葛", "慕容", "令狐", "皇甫", "尉迟", "司徒", "纳兰")
_MIN_UNKNOWN = 2
"""Occurrences of a person's name that neither the dictionary has nor a surname begins."""


def find_chinese_names(text: str) -> list[tuple[int, int, str]]:
    """Return (start, end, type) of the names in a text, in order."""
    tokenizer = load_jieba()
    if tokenizer is None:
        return []
    simple = simplify(text)
    found: list[tuple[int, int, str, str]] = []
    for run in _HAN.finditer(simple):
        place = run.start()
        for word, kind in tokenizer.cut(run.group()):
            found.append((place, place + len(word), _TYPES.get(kind, ""), word))
            place += len(word)
    counts = Counter(word for _, _, kind, word in found if kind)
    votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for _, _, kind, word in found:
        votes[word][kind] += 1
    names = []
    for start, end, kind, word in found:
        if not kind or not 2 <= len(word) <= _MAX_CHARACTERS:
            continue
        is_known = word in tokenizer.tokenizer.FREQ
        is_known = is_known or word[0] in _SURNAMES or word.startswith(_DOUBLE_SURNAMES)
        if kind == PERSON and not is_known and counts[word] < _MIN_UNKNOWN:
            continue
        names.append((start, end, votes[word].most_common(1)[0][0] or kind))
    return names


@cache
def load_jieba() -> Any:
    """Return jieba's tagger, or None without the package."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of pkg_resources
            import jieba  # type: ignore[import-untyped,unused-ignore]
            import jieba.posseg  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        _log.warning("Chinese documents have no names without jieba: pip install 'graphrag-pipeline[cjk]'.")
        return None
    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    with tempfile.TemporaryDirectory(prefix="graphrag-jieba-") as folder:  # another user's cache may be damaged
        tokenizer.tmp_dir = folder
        tokenizer.initialize()
    return jieba.posseg.POSTokenizer(tokenizer)
