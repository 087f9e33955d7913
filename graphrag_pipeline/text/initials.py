"""Letters of an abbreviation that start words of its long form, as Schwartz and Hearst (2003) count them.

Keep out: where a text pairs the two (`engines/embedded/names/acronyms.py`).
"""

from __future__ import annotations

from collections.abc import Sequence


def letters_of(short: str) -> list[str]:
    """Return the letters and digits of an abbreviation in order, in small letters."""
    return [letter.lower() for letter in short if letter.isalnum()]


def count_initials(letters: Sequence[str], words: Sequence[str]) -> int:
    """Return how many letters of an abbreviation start words of its long form, in order.

    Args:
        letters: in small letters.
        words: of the long form, none empty.
    """
    n_found = 0
    for word in words:
        if n_found < len(letters) and word[0].lower() in letters[n_found:]:
            n_found += 1
    return n_found
