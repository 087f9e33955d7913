"""The names of a document: its title, the parts of it, the stem of its file, and codes such as `TICKET-118` in both.

The index makes one entity of them; a search reads first what a question names by one. Keep out: tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from graphrag_pipeline.text.late_patterns import late_re, late_regex

DOCUMENT = "DOCUMENT"
"""Type of the entity that a document is."""
CODE = r"[A-Z][A-Z0-9]{1,9}(?:-[A-Z0-9]+)*-\d+[a-z]?"
"""A code of a ticket, an incident or a decision."""
MIN_LETTERS = 3
"""Letters of a name of a document."""

_CODE = late_regex(rf"(?<![\p{{L}}\p{{N}}./@:$-]){CODE}(?![\p{{L}}\p{{N}}]|-\w)")
_PART = late_re(r" ?[()\u2013\u2014|\u00b7] ?|: | - ")
_STEM_GAP = late_re(r"_|-(?=[a-z])")
"""Between the words of a file's name: a code there is followed by a hyphen and words in small letters."""
_NUMBERING = late_re(r"\d{1,4}[.)] ")


@dataclass(frozen=True)
class DocumentNames:
    """What a document is called.

    Attributes:
        main: its only code, else its title.
        others: its other names, in the order of the alphabet.
        has_code: whether a code is among them.
    """

    main: str
    others: tuple[str, ...]
    has_code: bool = False


def name_document(title: str, path: str) -> DocumentNames:
    """Return the names of a document; for a row of a file, the path says nothing and is empty."""
    title, stem = " ".join(title.split()), PurePosixPath(path).stem
    codes = list(dict.fromkeys(_CODE.findall(f"{title} {_STEM_GAP.sub(' ', stem)}")))
    numbering = _NUMBERING.match(title)
    bare = title[numbering.end() :] if numbering else title
    parts = [part for part in _PART.split(bare) if sum(map(str.isalpha, part)) >= MIN_LETTERS and " " in part]
    main = codes[0] if len(codes) == 1 else title or stem
    names = {title, bare, stem, *codes, *parts} - {main, ""}
    return DocumentNames(main, tuple(sorted(names)), bool(codes))
