"""Identifiers: names of systems, tables, tickets and files as engineers write them.

Found are codes (`TICKET-118`), snake_case, dotted and kebab-case names (`dim_customer`, `events.v3`, `billing-api`),
words in backticks, and words with a capital inside (`LanceDB`). English has words with hyphens, too: one is an
identifier as the value of a cell or a label. Bare where English has a noun with an article ("restart billing-api.", not
"a follow-up call"), it is one in a document with other identifiers, or if it is a compound of nouns that recurs so.
Otherwise it is doubtful: other documents decide (`indexing/graph/merge.py`).

Keep out: names of people and places (`finder.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from graphrag_pipeline.engines.embedded.names.spacy_pipeline import tag_words
from graphrag_pipeline.text.document_names import CODE
from graphrag_pipeline.text.languages import SMALL_WORDS
from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.name_words import DOUBTFUL, words
from graphrag_pipeline.text.word_ranks import token_rank

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
    """Return identifier -> how it is written; CAMEL may be the name of something else, DOUBTFUL an English word.

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
    bare: Counter[str] = Counter()
    for match in _KEBAB.finditer(prose):
        form, place = match.group(), (prose, match.start(), match.end())
        if form not in found and _is_cell(*place):
            found[form] = "kebab"
        elif _is_bare_noun(*place):
            bare[form] += 1
    for form, count in bare.items():
        if is_technical or not _has_function_word(form):
            is_sure = is_technical or (count > 1 and _is_compound(form))
            found.setdefault(form, "kebab" if is_sure else DOUBTFUL)
    return found


def _is_compound(form: str) -> bool:
    """Whether nouns make a word, and it is no word of English also when written in one (`run-time`, "runtime")."""
    [tags] = tag_words([f"They saw {form.replace('-', ' ')}."])
    return token_rank(form.replace("-", "")) is None and all(tag[:2] in ("NN", "CD") for _, _, tag in tags[2:-1])


def _has_letters(form: str) -> bool:
    return sum(letter.isalpha() for letter in form) > 1


def _is_cell(text: str, start: int, end: int) -> bool:
    """Whether a word is the whole value of a cell or a label, and has no part that is a function word."""
    is_whole = _CELL_START.search(text, max(start - 4, 0), start) and _CELL_END.match(text, end)
    return bool(is_whole) and not _has_function_word(text[start:end])


def _has_function_word(form: str) -> bool:
    return any(part.upper() in _FUNCTION for part in form.split("-"))


def _is_bare_noun(text: str, start: int, end: int) -> bool:
    """Whether a word stands where only a name or an uncountable noun can: no article before, no noun behind."""
    before, after = _BEFORE.search(text, max(start - 20, 0), start), _AFTER.match(text, end)
    if before is None or before.group(1).upper() in _NO_BARE_NOUN:
        return False
    return (after is None and text[end : end + 1] in ".,;)") or (after is not None and after.group(1) in _SMALL)
