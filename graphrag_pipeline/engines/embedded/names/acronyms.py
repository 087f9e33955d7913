"""Acronyms and the long forms that a document gives them: "World Health Organization (WHO)".

The method is that of Schwartz and Hearst (A simple algorithm for identifying abbreviation definitions in biomedical
text, 2003): a short form in parentheses is looked for, letter by letter from its end, in the words before it. The
reverse, "WHO (World Health Organization)", is read the same way.
"""

from __future__ import annotations

from collections import Counter

from graphrag_pipeline.text.late_patterns import late_regex

MAX_ACRONYM = 10  # characters

_PAIR = late_regex(r"(?<=\w[\"”’']?[ ])\(([^()\n]{2,120})\)")
_SHORT = late_regex(r"[\"“]?(\p{L}[\p{L}\p{N}&./-]{1,9})[\"”]?(?=$|[,;])")
_WORDS = late_regex(r"[^\s()]+")
_ACRONYM = late_regex(r"(?<![\p{L}\p{N}_.&'’/-])\p{Lu}[\p{Lu}\p{N}&]{1,7}(?=s?(?![\p{L}\p{N}_&-]|\.\w|'\p{Lu}))")
_NUMBER_BEFORE = late_regex(r"[\d.,][ ]?$")


def find_definitions(text: str) -> dict[str, tuple[int, int]]:
    """Return acronym -> start and end of its first long form in a text.

    Args:
        text: sentences, separated by line breaks; a pair is inside one.
    """
    found: dict[str, tuple[int, int]] = {}
    for match in _PAIR.finditer(text):
        inside = match.group(1)
        short = _SHORT.match(inside)
        line = text.rfind("\n", 0, match.start()) + 1
        before = text[line : match.start()].rstrip()
        if short and _is_short_form(short.group(1)):
            place = _long_form(short.group(1), before)
            if place is not None:
                found.setdefault(short.group(1), (line + place, line + len(before)))
        elif words := _WORDS.findall(before):
            last = words[-1].strip('"“”')
            if _is_short_form(last) and _long_form(last, inside) == 0:
                found.setdefault(last, match.span(1))
    return found


def find_acronyms(text: str) -> Counter[str]:
    """Return each acronym of a text with its number of occurrences; units behind numbers and shouted lines are none."""
    found: Counter[str] = Counter()
    for match in _ACRONYM.finditer(text):
        acronym = match.group()
        words = text[text.rfind("\n", 0, match.start()) + 1 : text.find("\n", match.end())].split()
        if sum(map(str.isalpha, acronym)) < 2 or _NUMBER_BEFORE.search(text, max(match.start() - 2, 0), match.start()):
            continue
        if sum(map(str.isupper, words)) * 2 <= len(words) or len(words) < 2:
            found[acronym] += 1
    return found


def _is_short_form(short: str) -> bool:
    return 2 <= len(short) <= MAX_ACRONYM and sum(map(str.isupper, short)) >= 2


def _long_form(short: str, before: str) -> int | None:
    """Return where in the text before it the long form of an acronym starts; None if its letters are not there."""
    words = list(_WORDS.finditer(before))
    n_most = min(len(short) + 5, len(short) * 2)
    if not words:
        return None
    first = words[-n_most].start() if len(words) > n_most else 0
    letters = [letter.lower() for letter in short if letter.isalnum()]
    place = len(before)
    for number in range(len(letters) - 1, -1, -1):
        place -= 1
        while place >= first and not (
            before[place].lower() == letters[number] and (number or place == 0 or not before[place - 1].isalnum())
        ):
            place -= 1
        if place < first:
            return None
    long = before[place:]
    return place if " " in long and len(long) > len(short) and short not in long.split() else None
