"""Language detection by the commonest function words or the script, for the languages that rules distinguish.

Add here: a language, with about 25 of its commonest function words.

Scripts that are written without blanks between words, and Chinese characters in one form.

Chinese has two sets of characters: 葉知秋 and 叶知秋 are one name. Texts are compared in the simplified form, so that a
question in either set finds texts in the other; what is stored stays as written. Each character has one simplified
form, so offsets stay the same. Texts without Chinese are returned as they are.

Keep out: anything that needs a download.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from importlib.resources import files

HAN = "\u3400-\u4dbf\u4e00-\u9fff"
"""For a character class: Chinese characters, also in Japanese."""
CJK = (
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
"""For a character class: Chinese and Japanese, in which each character counts as a word."""
UNSPACED = (
    f"{CJK}\u0e01-\u0e4e\u0e81-\u0ece\u0edc-\u0edf\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f\u1780-\u17d3\u17d7\u17dc\u17dd"
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa0-\uffdc"
)
"""For a character class: scripts that write words, or words and their endings, without blanks between them.

Besides Chinese and Japanese: Thai, Lao, Burmese, Khmer and Korean.
"""
_FIRST_UNSPACED = "\u0e01"
_UNSPACED_LETTER = re.compile(f"[{UNSPACED}]")
_HAN_CHARACTER = re.compile(f"[{HAN}]")
_FAR_CHARACTER = re.compile("[\u3400-\U0010ffff]")  # one range is searched for in a third of the time
_MOST_FORMS = 3
"""Traditional forms of one simplified character that are searched for; nearly all have fewer."""


def is_unspaced(letter: str) -> bool:
    """Return whether a character is of a script that needs no blank beside a word."""
    return letter >= _FIRST_UNSPACED and _UNSPACED_LETTER.match(letter) is not None


def joins(left: str, right: str) -> bool:
    """Return whether two adjacent characters, "" at an end of the text, belong to one word of a script with blanks."""
    return left.isalnum() and right.isalnum() and not is_unspaced(left) and not is_unspaced(right)


def has_han(text: str) -> bool:
    """Return whether a text has a Chinese character."""
    return not text.isascii() and _FAR_CHARACTER.search(text) is not None and _HAN_CHARACTER.search(text) is not None


def simplify(text: str) -> str:
    """Return a text with simplified Chinese characters, of the same length."""
    return text.translate(_load_simplified()) if has_han(text) else text


def spell_both(text: str) -> list[str]:
    """Return a text as it is written, and its other spellings in simplified and in traditional characters.

    One simplified character may stand for several traditional ones: 发 is 發 or 髮. The n-th traditional spelling has
    the n-th of them, the commonest first, so that a full text search has each of them once.
    """
    if not has_han(text):
        return [text]
    simple, forms = simplify(text), _load_forms()
    traditional = [
        "".join((forms.get(letter, letter)[n:] or forms.get(letter, letter))[0] for letter in simple)
        for n in range(_MOST_FORMS)
    ]
    return list(dict.fromkeys((text, simple, *traditional)))


@cache
def _load_simplified() -> dict[int, str]:
    """Return the simplified form of each traditional character."""
    return {ord(form): simple for simple, forms in _load_forms().items() for form in forms if form != simple}


@cache
def _load_forms() -> dict[str, str]:
    """Return the traditional forms of each simplified character, the commonest first (2,800 characters, 20 KB)."""
    path = files("graphrag_pipeline") / "bundled" / "chinese_characters" / "characters.txt"
    lines = (line for line in path.read_text(encoding="utf-8").split("\n") if not line.startswith("#"))
    return {entry[0]: entry[1:] for line in lines for entry in line.split()}


_SAMPLE = 6_000  # characters
_MIN_HITS = 3
_MIN_SHARE = 0.08  # of the words
_MIN_SCRIPT_SHARE = 0.3  # of the characters

_WORD = re.compile(r"(?<!\w\w['\u2019])[^\W\d_]{2,}")
"""Single letters are words of several languages, and initials; endings behind an apostrophe look like small words."""
_HAN = re.compile(f"[{HAN}]")
_KANA = re.compile(r"[\u3041-\u30fa]")

SMALL_WORDS: dict[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "en": """the of and to a in is was that it for with as his her he she on at by from were are not be this which
            had""",
        "de": """der die das und ist nicht ein eine einer eines einem den dem des mit von zu auf für im am auch sich war
            sie er es wurde als bei nach hat aus dass aber wie noch nur vom zum zur""",
        "fr": """le la les de des du et est un une en que qui dans pour pas sur au aux par avec ce cette il elle était
            ont mais son sa ses leur plus nous vous""",
        "es": """el la los las de del y es un una en que por con para su sus se al lo como más pero fue era este esta no
            cuando también había desde sin""",
        "it": """il lo la gli le di del della dei e è un una in che per con non si al alla sono era come più ma nel
            nella dal anche suo sua questo""",
        "pt": """o a os as de do da dos das e é um uma em que por com para não se no na mais mas foi seu sua ao como
            era""",
        "nl": """de het een en van is in dat op te niet met voor zijn aan er ook als bij door naar maar werd om hij
            zij""",
    }.items()
}
LANGUAGE_NAMES = {"en": "English", "de": "German", "fr": "French", "es": "Spanish", "it": "Italian", "pt": "Portuguese",
                  "nl": "Dutch", "zh": "Chinese", "ja": "Japanese"}  # fmt: skip
"""English names of the languages that can be detected."""
_LANGUAGES = {
    word: [language for language, words in SMALL_WORDS.items() if word in words]
    for word in frozenset().union(*SMALL_WORDS.values())
}


def is_other_language(text: str, language: str) -> bool:
    """Return whether a short text has more function words of another language than of one of `SMALL_WORDS`."""
    found = [_LANGUAGES.get(word, []) for word in _WORD.findall(text.lower())]
    hits = Counter(one for languages in found for one in languages)
    return hits[language] < max(hits.values(), default=0)


def detect_language(text: str) -> str:
    """Return "en", "de", "fr", "es", "it", "pt", "nl", "zh" or "ja"; "" if the text does not decide."""
    sample = text[:_SAMPLE]
    if not sample.isascii():
        n_han, n_kana = len(_HAN.findall(sample)), len(_KANA.findall(sample))
        if n_han + n_kana > _MIN_SCRIPT_SHARE * len("".join(sample.split())):
            return "ja" if n_kana > 0.1 * n_han else "zh"
    words = _WORD.findall(sample.lower())
    hits = Counter(language for word in words if word in _LANGUAGES for language in _LANGUAGES[word])
    best = max(SMALL_WORDS, key=hits.__getitem__)
    return best if hits[best] >= max(_MIN_HITS, _MIN_SHARE * len(words)) else ""
