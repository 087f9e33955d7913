"""The names of a document: its title, the parts of it, the stem of its file, and codes such as `TICKET-118` in both.

A file with a number in a folder of its kind has both as a name: `adr/0018-ledger.md` is "ADR 18".

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
_NUMBERING = late_re(r"0*(\d{1,4})[.)] ")
_NUMBERED_STEM = late_re(r"(0*([1-9]\d{0,2}))[-_. ]+(?=[^\W\d_])")
_LONGEST_ACRONYM = 4  # letters of the name of a folder that is written in capitals


@dataclass(frozen=True)
class DocumentNames:
    """What a document is called.

    Attributes:
        main: its only code, or the name by its folder if the title has the same number, else its title.
        others: its other names, in the order of the alphabet.
        has_code: whether a code, or such a number, is among them.
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
    by_folder = _name_by_folder(path)
    if by_folder and (
        (numbering and by_folder[0].endswith(f" {numbering[1]}")) or title.startswith(f"{by_folder[0]}:")
    ):
        codes = codes or by_folder[:1]
    main = codes[0] if len(codes) == 1 else title or stem
    names = {title, bare, stem, *codes, *parts, *by_folder} - {main, ""}
    return DocumentNames(main, tuple(sorted(names)), bool(codes))


def _name_by_folder(path: str) -> list[str]:
    """Return "ADR 18", "ADR-18", "ADR 0018" and "ADR-0018" for `adrs/0018-ledger.md`; [] for other paths."""
    numbered, folder = _NUMBERED_STEM.match(PurePosixPath(path).stem), PurePosixPath(path).parent.name
    if not numbered or not folder.isalpha():
        return []
    kind = folder[:-1] if folder.endswith("s") and not folder.endswith("ss") else folder
    kind = kind.upper() if len(kind) <= _LONGEST_ACRONYM else kind
    return [f"{kind}{gap}{number}" for gap in " -" for number in dict.fromkeys((numbered[2], numbered[1]))]
