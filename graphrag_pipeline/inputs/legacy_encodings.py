"""The legacy encoding of a text file that is not Unicode, guessed from its bytes.

A text whose accented letters are those of one language comes first (`find_latin_encoding`). Else cp1252 wins if the
bytes read as Western words, unless another encoding gives clearly more of a known language in a text with enough
letters to judge. Keep out: BOM, NUL bytes and UTF-8 (`formats.py`).
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

WESTERN = "cp1252"
_LETTERS: Mapping[str, Mapping[str, str]] = {
    WESTERN: {
        "Catalan": "à7 é5 ó5 è5 í4 ç2 ò2 ú2 á1 ï1 ü1 -kw",
        "Danish, Norwegian": "å12 æ9 ø9 é1 ö1 -qwxz",
        "Dutch, English": "é4 ë3 ï2 ö1 ü1 è1 ê1 á1 ó1 -",
        "Finnish, Estonian": "ä25 õ6 ö4 ü4 å1 š1 ž1 -cfqwxz",
        "French": "é19 à5 è4 ê3 ç2 ô1 â1 î1 û1 ù1 ë1 ï1 œ1 ü1 -kw",
        "German": "ü7 ä6 ö3 ß3 é1 -qxy",
        "Icelandic": "ð40 á18 í16 þ15 ó10 æ9 ö8 é6 ú6 ý2 -cqwz",
        "Irish": "á9 é7 í9 ó7 ú6 -jkqvwxyz",
        "Italian": "à6 è4 ù2 ò2 ì1 é1 -jkwxy",
        "Portuguese": "ã7 ç5 á5 ê4 é3 ó3 í3 ú2 õ2 à1 â1 ô1 -kwy",
        "Spanish": "ó8 í7 á6 é5 ñ3 ú2 ü1 -kw",
        "Swedish": "ä18 ö13 å13 é1 ü1 -qwz",
    },
    "cp1250 iso8859_2": {
        "Croatian, Slovenian": "č11 š10 ž7 ć5 đ3 -qwxy",
        "Czech": "í33 á22 ě16 é13 ř12 ý11 ž10 č10 š8 ů7 ú2 ó1 ť1 ď1 ň1 -qwx",
        "Hungarian": "é35 á34 ö10 ó10 ő9 í7 ü6 ú3 ű2 -qwx",
        "Polish": "ł18 ę11 ą10 ó9 ż8 ś7 ć4 ń2 ź1 -qvx",
        "Romanian": "ă35 ş12 ţ11 î10 â9 -kqwy",
        "Slovak": "á20 í11 č10 ý9 ž9 é8 š8 ú8 ť6 ľ4 ô2 ň2 ď2 ä1 ó1 ŕ1 -qwx",
    },
    "cp1257": {
        "Latvian": "ā45 ī20 ē16 š9 ņ5 ū4 ļ4 ķ2 ž2 č1 ģ1 -fhqwxy",
        "Lithuanian": "ė17 š12 ų12 ž8 į6 ą5 ū5 č4 ę2 -fhqwx",
    },
    "cp1254": {"Turkish": "ı51 ü19 ş18 ç12 ğ11 ö8 i̇2 â1 î1 -jqwx"},
}
"""Encodings -> language -> its accented letters, each with its number per 1,000 letters of usual text, at least 1.

The letters behind `-` are in names and foreign words only.
"""
_RARE = math.log(0.05)
"""Of a letter that is in names and foreign words only."""
_OUTSIDE = math.log(2e-5)
"""Of a letter that the language does not have, as in a name, or of a sign where no language has one."""
_MIN_EVIDENCE = math.log(100)
_LESS_USUAL = math.log(5)
"""Of the encoding of a language that is not the one of Windows."""
_MAX_ACCENTED = 0.4  # of the letters
_MAX_OUTSIDE = 0.1  # of the letters above ASCII
_WORD = 4  # letters of a text too short for shares
_STRANGE = re.compile(
    r"[\x80-\x9f]|(?<=[^\W\d_])[«»‹›“”„‘‚…•€£§°¿¡ªº©®™½¼¾²³¹±×´¶¦¤¬]+(?=[^\W\d_])"
    r"|[£ªº½¼¾²³¹±¶¦¤¬](?=[a-z])|(?<=[a-záéíóúäöü])[¼¾±¶¦¤¬]"
)
"""A control character, a sign between two letters, or one beside a letter that it does not belong to."""


def find_latin_encoding(data: bytes) -> str | None:
    """Return the encoding in which a text is of one language; None if that does not show.

    Another encoding than cp1252 must be a hundred times as likely as cp1252.
    """
    if not any(byte > 127 for byte in data):
        return None
    scores = {
        encoding: max(alphabet.score(text) for alphabet in _alphabets(encodings)) - place * _LESS_USUAL
        for encodings in _LETTERS
        for place, encoding in enumerate(encodings.split())
        if (text := _decode(data, encoding)) is not None
    }
    if not scores:
        return None
    best = max(scores, key=lambda encoding: (scores[encoding], encoding == WESTERN))
    if WESTERN in scores and scores[best] < scores[WESTERN] + _MIN_EVIDENCE:
        best = WESTERN
    text = _decode(data, best) or ""
    return best if any(alphabet.has(text) for alphabet in _alphabets(_group_of(best))) else None


def _decode(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None


def _group_of(encoding: str) -> str:
    return next(encodings for encodings in _LETTERS if encoding in encodings.split())


@dataclass(frozen=True)
class Alphabet:
    """The letters of a language.

    Attributes:
        shares: accented letter -> its share of all letters.
        rare: letters without accents that are in names and foreign words only.
    """

    shares: Mapping[str, float]
    rare: frozenset[str]

    def score(self, text: str) -> float:
        """Return the log-likelihood of a text, apart from that of letters without accents that the language has."""
        found, plain = _count_letters(text)
        accented = sum(
            n * (math.log(self.shares[letter]) if letter in self.shares else _OUTSIDE) for letter, n in found.items()
        )
        n_strange = sum(len(match[0]) for match in _STRANGE.finditer(text))
        n_rare = sum(plain[letter] for letter in self.rare)
        usual = plain.total() * math.log(1 - sum(self.shares.values()))
        return accented + n_strange * _OUTSIDE + n_rare * _RARE + usual

    def has(self, text: str) -> bool:
        """Return whether the accented letters of a text are those of the language, and not too many."""
        found, plain = _count_letters(text)
        n_above, n_all = found.total(), found.total() + plain.total()
        n_outside = sum(n for letter, n in found.items() if letter not in self.shares)
        is_usual = n_above <= _MAX_ACCENTED * n_all or n_all <= _WORD
        return bool(n_above) and is_usual and n_outside <= _MAX_OUTSIDE * n_above and not _STRANGE.search(text)


@functools.cache
def _alphabets(encodings: str) -> list[Alphabet]:
    """Return the alphabets of the languages of an encoding."""
    return [_parse(listed) for listed in _LETTERS[encodings].values()]


def _parse(listed: str) -> Alphabet:
    *accented, rare = listed.split()
    letters = {item.rstrip("0123456789"): item for item in accented}
    shares = {letter: int(item.removeprefix(letter)) / 1000 for letter, item in letters.items()}
    return Alphabet(shares, frozenset(rare.removeprefix("-")))


def _count_letters(text: str) -> tuple[Counter[str], Counter[str]]:
    """Count the letters above ASCII and those of ASCII, in lower case; the dotted I of Turkish is two characters."""
    letters = Counter(letter.lower() for letter in text if letter.isalpha() and letter not in "ªº")
    plain = Counter({letter: n for letter, n in letters.items() if letter.isascii()})
    return letters - plain, plain


_NOT_LEGACY = ["utf_7", "utf_8", "utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le", "utf_32_be"]
_SHIFTED = ["cp932", "shift_jis", "shift_jis_2004", "shift_jisx0213"]
_ACCENTED = frozenset("àâäáãåæçèéêëìíîïñòóôöõøœùúûüýÿßðþšžÀÂÄÁÃÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÖÕØŒÙÚÛÜÝŸÐÞŠŽ")
_SIGNS = frozenset("«»‹›“”„‘’‚–—…•€£§°·¿¡ªº©®™½¼¾²³±×´\xa0")
_SIGN_INSIDE = re.compile(r"[^\W\d_][«»‹›“”„‘‚…•€£§°¿¡ª©®™½¼¾²³±×´]+[^\W\d_]|£[a-z]{2}")
"""A sign between two letters or before them, where other encodings have a letter."""
_MIN_FOREIGN_BYTES = 8
"""Bytes above ASCII from which the likeness to a language is evidence against cp1252."""
_MARGIN = 0.1  # of coherence, 0 to 1
_NOISE = 0.02  # of chaos, 0 to 1


_ESCAPES = {"iso2022_jp_2": (b"\x1b$B", b"\x1b$@", b"\x1b(J"), "iso2022_kr": (b"\x1b$)C",), "hz": (b"~{",)}
"""Encodings whose bytes are all ASCII -> how a stretch in another script may begin."""
_KANA_SHARE = 0.2
"""Of the characters above ASCII, from which a text is Japanese; other legacy encodings give kana by chance only."""


def find_escaped_encoding(data: bytes) -> str | None:
    """Return the encoding of ASCII bytes in which escapes switch to a script of East Asia; None for others."""
    for encoding, openings in _ESCAPES.items():
        if any(opening in data for opening in openings) and data.isascii():
            text = _decode(data, encoding)
            if text is not None and not text.isascii():
                return encoding
    return None


def _find_japanese(data: bytes) -> str | None:
    """Return the encoding in which a text has the kana that Japanese cannot do without; None for other texts."""
    for encoding in ("euc_jp", "cp932"):
        above = [character for character in _decode(data, encoding) or "" if not character.isascii()]
        if sum("\u3040" <= character <= "\u309f" for character in above) > _KANA_SHARE * len(above):
            return encoding
    return None


def guess_encoding(data: bytes) -> str | None:
    """Return the likeliest legacy encoding of a file; None if no encoding gives a text."""
    if japanese := _find_japanese(data):
        return japanese
    if latin := find_latin_encoding(data):
        return latin
    from charset_normalizer import from_bytes

    shifted = [character for character in data.decode("cp932", "replace") if not character.isascii()]
    n_narrow = sum("\uff61" <= character <= "\uff9f" for character in shifted)
    excluded = _NOT_LEGACY + (_SHIFTED if 2 * n_narrow > len(shifted) else [])  # it fits Thai and Russian bytes, too
    best = from_bytes(data, cp_exclusion=excluded).best()
    western = from_bytes(data, cp_isolation=[WESTERN]).best()
    gain = (best.coherence if best else 0.0) - (western.coherence if western else 0.0)
    text = data.decode(WESTERN, "replace")
    if reads_as_western(text):
        n_foreign = len(data) - len(data.translate(None, bytes(range(128, 256))))
        return WESTERN if best is None or n_foreign < _MIN_FOREIGN_BYTES or gain <= _MARGIN else str(best.encoding)
    is_noisy = western is None or (best is not None and western.chaos > best.chaos + _NOISE)
    if western and (best is None or not (is_noisy or gain > _MARGIN or _SIGN_INSIDE.search(text))):
        return WESTERN
    return str(best.encoding) if best else None


def reads_as_western(text: str) -> bool:
    """Return whether a text decoded as cp1252 is words of Western languages: few accents, and no signs in words."""
    foreign = {character for character in text if ord(character) > 127}
    if not foreign <= _ACCENTED | _SIGNS or _SIGN_INSIDE.search(text):
        return False
    n_letters = sum(character.isalpha() for character in text)
    return 2 * sum(character in _ACCENTED for character in text) <= n_letters
