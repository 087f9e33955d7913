"""The prose of a document: what a reader sees of it, with code listings, addresses and paths replaced by spaces.

Examples of code and output have capitals and words that name nothing: "SELECT", "Index Cond", "name text". Markdown's
own code is known (`text/structure.py`); here are the listings of other texts. `mask_code` keeps every offset and every
line break, so that places in the prose are places in the text. Short code inside a sentence stays, because manuals name
their subjects so.

Feet and heads of pages repeat the title, the author and the date on each page.

A line is code if it has few small words, such as "the", and signs that prose has not: a prompt, a final semicolon, an
assignment, many brackets. Lines without signs belong to a listing if four in ten lines with them have signs.

Keep out: which words of the prose are names (`finder.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import regex

from graphrag_pipeline.text.late_patterns import late_regex
from graphrag_pipeline.text.name_words import words

GAP = "¤"
"""The character at the place of masked text, so that the words around it are not neighbours."""

_MARKUP = tuple(
    (signs, late_regex(pattern, regex.MULTILINE | regex.DOTALL))
    for signs, pattern in (
        ("://", r"\b(?:https?|ftp|file|git|ssh|mailto)://[^\s<>\[\]\"'”’]*[\w/]"),
        ("<", r"(?<!\w)[BCEFILSXZ](?=<)"),  # a code of Perl's documentation: B<bold>
        (":", r"(?<![\w:]):(?:[a-z]+:){1,2}(?=\w)"),  # a role of reStructuredText
        ("File: ", r"^File: [^\n]*,  Node: [^\n]*$"),  # the head, the menu and the index of a page of Info
        ("* ", r"^(?:\* Menu:|\* [^\n:]*::)[^\n]*$|^\* [^\n]+:[ \n][^\n]+\.(?=\s+\(line +\d)[^\n]*$"),
        ("..", r"^[ \t]*\.\.[ \t]+[\w:-]+::.*?$"),
        (":", r"^[ \t]*:[a-z][\w -]*:(?=[ \t]|$)"),
        ("/", r"(?<![\w/.~-])(?:~|\.{1,2})?(?:/[\w.+@%{}$*-]+){2,}/?"),  # /usr/share/doc
        ("/", r"(?<![\w/.-])[\w.+-]+(?:/[\w.+-]+)*/[\w+-]*\.[a-z][a-z0-9]{0,4}\b"),  # Objects/classobject.c
        ("-", r"(?<!\S)\S*(?:\b[A-Z]\w{0,3}'?-){4,}\S*"),  # a graph of commits
        ("::", r"(?<!\w)\w+(?:(?:::|->)\w+)+"),  # an identifier
        ("->", r"(?<!\w)\w+(?:(?:::|->)\w+)+"),
        (".", r"[A-Z][A-Z\d-]+\.(?:[A-Z\d-]+\.)*(?:COM|EDU|ORG|GOV|NET|LOCAL|EXAMPLE)\b"),  # MIT.EDU
    )
)
"""Signs that a text with the markup has, and the markup. Most texts have few of the signs."""
_MARK = late_regex(
    r"://|[<_]|::|->|/[^\s/]+/|/[\w.+-]*\.[a-z]|[A-Z]\.[A-Z]{3}|(?<!\w):[a-z]|^File: |^\* |"
    r"[A-Z]-[A-Z]\w{0,3}-",
    regex.MULTILINE,
)
_NOT_BREAK = late_regex(r"[^\n]")
_RULED = late_regex(  # a listing of AsciiDoc
    r"(?<=(?:\A|\n[ \t]*\n|\n\+\n))(-{4,}+)\n(?=[^\n]*\S)(?:(?!\1\n)[^\n]*\n){1,80}?\1(?=\n[ \t]*\n|\n?\Z)"
)
_PROMPT = late_regex(r"(?:\.\.\.|[$%]|\w[\w@~:/.-]*[#$])[ \t]+\S|@@ -|diff --git |index [0-9a-f]{7}")
_STATEMENT = late_regex(
    r"[\w.\[\]'\"]+ *(?:[-+*/|:]?=)(?!=) *\S|#(?:include|define|if|ifdef|ifndef|endif|else|undef|pragma)\b"
    r"|(?:def|class|for|while|if|elif|with|try|else|except|switch|struct)\b[^.]*[:{]$"
    r"|(?:import|from|return|raise|yield|const|static|void|int|char|unsigned|var|let)\s[\w.*, ]+;?$|[-+]{3} \S+$"
)
_END = late_regex(r"(?:[{}]|\*/|\\|[)\]]\s*;|[\w)\]]\(\))$")
_SIGN = late_regex(
    r"[{}<>=\\^]|[)\]]\s*;$|[$%@][\p{L}_{(]|\w[(\[](?!s\))|[])]\w|[({\[]$|::|(?<!\S)--?[a-zA-Z]|[|&]{2}|(?<![\p{L}\d])[+*/%](?![\p{L}\d])"
)
_RULE = late_regex(r"(.)\1*+|\|.*\|", regex.DOTALL)  # an underline, a row of a table
_ADDRESS = late_regex(r"<[^<>\s]+@[^<>\s]+>|(?<!\w)\w++://\S+")
_EMPHASIS = late_regex(r"\*\*(\S[^*\n]*)\*\*")
_EMPHASIS_MARK = late_regex(
    r"^[ \t]*(?:[#>*+•-]+[ \t]+|\d+[.)][ \t]+)+|\*{1,3}(?=\S)|(?<=\S)\*{1,3}|(?<!\w)_{1,2}(?=\w)|(?<=\w)_{1,2}(?!\w)|`",
    regex.MULTILINE,
)
_LETTERS = late_regex(r"(?<![\w-])[a-zA-Z][a-zA-Z'’]*+(?![\w(=])")
_LETTER = late_regex(r"[a-zA-Z]")
_BLOCK = late_regex(r"\S[^\n]*+(?:\n[ \t]*+\S[^\n]*+)*+")
_MAY_BE_CODE = late_regex(r"[{}<>=\\^_$@%]|\w[(\[]\w|\s[-*/+.]{1,3}[ \w]|::|[|&]{2}|[)\]]\s*;|\w[#$] ")
_ITEM = late_regex(r"(?:[-*+•#]+|>|\d+[.)]|[a-zA-Z][.)])\s+")
_SMALL = words("""
a an the of to in is are was were be been it its this that these those and or but not with by as at from on you your we
our they their he his she her which who what when where there can may must should will would has have had do does did so
than then also such no any all each only more most into about
""")
_FOOT = late_regex(r"age[ \t]+\d+(?:[ \t]+of[ \t]+\d+)?\]?[ \t]*$", regex.MULTILINE)
_FOOT_START = late_regex(r"(?:.*(?:[ \t]{3}|\[)|[ \t]*)[Pp]")
_HEAD = late_regex(r"\s*^([^\n]*)$", regex.MULTILINE)
_DIGITS = late_regex(r"\d+")
_MIN_PAGES = 3
_MIN_KEPT = 1_000  # characters of a listing that may be a text with kept lines
_MIN_PROSE_LINES = 0.6
_MAX_SMALL_SHARE = 0.2  # of the words of a line that is not prose; prose has a third
_MIN_SIGN_SHARE = 0.08  # of the characters of a line of code
_MIN_SIGN_LINES = 0.4  # of the lines of a listing


def mask_code(text: str) -> str:
    """Return the text with code, addresses and markup replaced by `GAP` and spaces; same length, same line breaks."""
    spans = [match.span() for match in _RULED.finditer(text)] + list(_find_listings(text))
    spans += _find_page_lines(text)
    if _MARK.search(text):
        for signs, pattern in _MARKUP:
            if signs in text:
                spans += [match.span() for match in pattern.finditer(text)]
    text = _EMPHASIS_MARK.sub(lambda mark: " " * len(mark.group()), text)
    parts, place = [], 0
    for start, end in sorted(spans):
        start = max(start, place)
        if start < end:
            parts += [text[place:start], GAP, _blank(text[start + 1 : end])]
            place = end
    return "".join(parts) + text[place:] if parts else text


def holds_prose(lines: Sequence[str]) -> bool:
    """Whether a long listing is a text whose lines are kept as they are, as in `<pre>` of a page: most are prose."""
    if sum(map(len, lines)) < _MIN_KEPT:
        return False
    return sum(is_prose(_bare(line)) for line in lines) >= _MIN_PROSE_LINES * len(lines)


def _blank(text: str) -> str:
    return _NOT_BREAK.sub(" ", text)


def _find_listings(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the lines of code; a listing is a run of lines of which none is prose or blank."""
    for block in _BLOCK.finditer(text):
        if not _MAY_BE_CODE.search(block.group()):
            continue
        run: list[tuple[int, str]] = []
        place = block.start()
        for line in block.group().split("\n"):
            if is_prose(_bare(line)):
                yield from _code_of(run)
                run = []
            elif line.strip():
                run.append((place, line))
            place += len(line) + 1
        yield from _code_of(run)


def _find_page_lines(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of the last lines of pages, "Hill  Standards Track  [Page 3]", and of heads that repeat."""
    ends = [match.span() for match in _FOOT.finditer(text)]
    feet = [
        (start, end)
        for place, end in ends
        if _FOOT_START.fullmatch(text, start := text.rfind("\n", 0, place) + 1, place)
    ]
    if len(feet) < _MIN_PAGES:
        return
    heads = [match.span(1) for _, end in feet if (match := _HEAD.match(text, end))]
    written = [_DIGITS.sub("0", text[start:end]) for start, end in heads]
    n_written = Counter(written)
    yield from feet
    yield from (head for head, line in zip(heads, written, strict=True) if n_written[line] >= _MIN_PAGES)


def _bare(line: str) -> str:
    """Return a line without white space around it, mark of a list, emphasis, and addresses."""
    bare = _EMPHASIS.sub(r"\1", line.strip())
    match = _ITEM.match(bare)
    return _ADDRESS.sub("", bare[match.end() :] if match else bare)


def is_prose(bare: str) -> bool:
    """Whether a line has several small words."""
    written = _LETTERS.findall(bare)
    n_small = _count_small(written)
    return n_small > 1 and n_small > _MAX_SMALL_SHARE * len(written) and not bare.startswith(">>> ")


def _count_small(written: list[str]) -> int:
    """Count small words; those in capitals belong to statements of a query language."""
    return sum(word.upper() in _SMALL and (word.islower() or word.istitle()) for word in written)


def _code_of(run: list[tuple[int, str]]) -> Iterator[tuple[int, int]]:
    bares = [_bare(line) for _, line in run]
    n_signs = [0 if _RULE.fullmatch(bare) else len(_SIGN.findall(bare)) for bare in bares]
    are_code = [_is_code(bare, n) for bare, n in zip(bares, n_signs, strict=True)]
    is_listing = sum(n_signs) > 1 < len(run) and sum(n > 0 for n in n_signs) >= _MIN_SIGN_LINES * len(run)
    for (start, line), is_code in zip(run, are_code, strict=True):
        if is_code or is_listing:
            yield start, start + len(line)


def _is_code(bare: str, n_signs: int) -> bool:
    """Whether a line that is not prose has a prompt, a statement or many signs."""
    if bare.startswith(">>> ") or _PROMPT.match(bare):
        return True
    if not n_signs or not _LETTER.search(bare):
        return False
    if _STATEMENT.match(bare) or _END.search(bare):
        return True
    return n_signs > 1 and (n_signs >= _MIN_SIGN_SHARE * len(bare) or not _count_small(_LETTERS.findall(bare)))
