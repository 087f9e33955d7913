"""Scripts that are written without blanks between words, and Chinese characters in one form.

Chinese has two sets of characters: 葉知秋 and 叶知秋 are one name. Texts are compared in the simplified form, so that a
question in either set finds texts in the other; what is stored stays as written. Each character has one simplified
form, so offsets stay the same. Texts without Chinese are returned as they are.

Keep out: words (`sentence_forms.py`), and the language of a text (`languages.py`).
"""

from __future__ import annotations

import re
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
