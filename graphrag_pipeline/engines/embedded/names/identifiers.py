"""Identifiers: names of systems, tables, tickets and files as engineers write them.

Found are codes (`TICKET-118`), snake_case, dotted and kebab-case names (`dim_customer`, `events.v3`, `billing-api`),
words in backticks, and words with a capital inside (`LanceDB`). English has words with hyphens, too: one is an
identifier as the value of a cell or a label, and in a document with other identifiers bare where English has a noun
("restart billing-api.", not "a follow-up call").

Keep out: names of people and places (`finder.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from graphrag_pipeline.text.document_names import CODE
from graphrag_pipeline.text.languages import SMALL_WORDS
from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.name_words import words

CAMEL = "camel"
"""A word with a capital inside: a product, a company ("LanceDB") or a person ("McDonald")."""

_SNAKE = r"[\p{L}\p{N}]+(?:\.[\p{L}\p{N}]+)*(?:_[\p{L}\p{N}]+)+(?:[.][\p{L}\p{N}_]+)*"
_DOTTED = r"[a-z][\w-]+(?:\.[a-z][\w-]+)+"
_CAMEL = r"\p{L}*\p{Ll}\p{Lu}\p{L}*\p{N}*"
_IDENTIFIER = late_regex(
    rf"(?<![\p{{L}}\p{{N}}_./@:$-])(?:(?P<code>{CODE})|(?P<snake>{_SNAKE})|(?P<dotted>{_DOTTED})|(?P<camel>{_CAMEL}))"
    r"(?![\p{L}\p{N}_@(]|[-./:]\w)"
)
_QUOTED = late_regex(r"\p{L}[\p{L}\p{N}_./:-]*[\p{L}\p{N}]")
_KEBAB = late_regex(r"(?<![\w./@:$-])[a-z][a-z0-9]+(?:-[a-z0-9]+)+(?![\w@(]|[-./:]\w)")
_CELL_START = late_regex(r"(?:^|\n|[|:;]) ?$")
_CELL_END = late_regex(r" ?(?:$|\n|[|;])")
_BEFORE = late_regex(r"([\w'’]+)[ ]$")
_AFTER = late_regex(r"[ ]([\w'’]+)")
_ABBREVIATIONS = frozenset({"e.g", "i.e", "a.m", "p.m", "z.b", "d.h", "u.a"})
_NO_BARE_NOUN = words("a an the this that these those no any each every some such more my our your his her its their")
_SMALL = SMALL_WORDS["en"] - {"of"}
_FUNCTION = {word.upper() for word in SMALL_WORDS["en"]}


def find_identifiers(codes: Iterable[str], prose: str) -> dict[str, str]:
    """Return identifier -> how it is written; CAMEL may be the name of something else.

    Args:
        codes: texts between backticks.
        prose: the text without code.
    """
    found = {match.group(): match.lastgroup or "" for match in _IDENTIFIER.finditer(prose)}
    found = {form: kind for form, kind in found.items() if form.lower() not in _ABBREVIATIONS and _has_letters(form)}
    quoted = Counter(code for code in codes if _QUOTED.fullmatch(code))
    for form, count in quoted.items():
        if count > 1 or any(not letter.isalpha() for letter in form):
            found.setdefault(form, "quoted")
    is_technical = bool(found)
    for match in _KEBAB.finditer(prose):
        place = prose, match.start(), match.end()
        if match.group() not in found and (_is_cell(*place) or (is_technical and _is_bare_noun(*place))):
            found[match.group()] = "kebab"
    return found


def _has_letters(form: str) -> bool:
    return sum(letter.isalpha() for letter in form) > 1


def _is_cell(text: str, start: int, end: int) -> bool:
    """Whether a word is the whole value of a cell or a label, and has no part that is a function word."""
    is_whole = _CELL_START.search(text, max(start - 4, 0), start) and _CELL_END.match(text, end)
    return bool(is_whole) and not any(part.upper() in _FUNCTION for part in text[start:end].split("-"))


def _is_bare_noun(text: str, start: int, end: int) -> bool:
    """Whether a word stands where only a name or an uncountable noun can: no article before, no noun behind."""
    before, after = _BEFORE.search(text, max(start - 20, 0), start), _AFTER.match(text, end)
    if before is None or before.group(1).upper() in _NO_BARE_NOUN:
        return False
    return (after is None and text[end : end + 1] in ".,;)") or (after is not None and after.group(1) in _SMALL)
