"""The legacy encoding of a text file that is not Unicode, guessed from its bytes.

A text whose accented letters are those of one language comes first (`latin_alphabets.py`). Else cp1252 wins if the
bytes read as Western words, unless another encoding gives clearly more of a known language in a text with enough
letters to judge. Keep out: BOM, NUL bytes and UTF-8 (`formats.py`).
"""

from __future__ import annotations

import re

from graphrag_pipeline.inputs.latin_alphabets import WESTERN, find_latin_encoding

_NOT_LEGACY = ["utf_7", "utf_8", "utf_16", "utf_16_le", "utf_16_be", "utf_32", "utf_32_le", "utf_32_be"]
_ACCENTED = frozenset("àâäáãåæçèéêëìíîïñòóôöõøœùúûüýÿßðþšžÀÂÄÁÃÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÖÕØŒÙÚÛÜÝŸÐÞŠŽ")
_SIGNS = frozenset("«»‹›“”„‘’‚–—…•€£§°·¿¡ªº©®™½¼¾²³±×´\xa0")
_SIGN_INSIDE = re.compile(r"[^\W\d_][«»‹›“”„‘‚…•€£§°¿¡ª©®™½¼¾²³±×´]+[^\W\d_]|£[a-z]{2}")
"""A sign between two letters or before them, where other encodings have a letter."""
_MIN_FOREIGN_BYTES = 8
"""Bytes above ASCII from which the likeness to a language is evidence against cp1252."""
_MARGIN = 0.1  # of coherence, 0 to 1
_NOISE = 0.02  # of chaos, 0 to 1


def guess_encoding(data: bytes) -> str | None:
    """Return the likeliest legacy encoding of a file; None if no encoding gives a text."""
    if latin := find_latin_encoding(data):
        return latin
    from charset_normalizer import from_bytes

    best = from_bytes(data, cp_exclusion=_NOT_LEGACY).best()
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
