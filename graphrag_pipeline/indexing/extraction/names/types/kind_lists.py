"""Lists that say what kind their names are of: "Suppliers: A, B", "three firms had tendered: A, B", "tools such as A".

Keep out: persons in attendance lists (`attendance.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import regex

from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.types.trade_cues import FIRM, PRODUCT
from graphrag_pipeline.text.late_patterns import late_regex

PLACE = "place role"
_KINDS = (
    (
        FIRM,
        r"(?:suppliers|contractors|sponsors|insurers|partners|funders|bidders|vendors|clients|customers|firms|companies"
        r"|builders|banks|charities|shops|stores|lenders|brokers|unions|tenders|quot(?:e|ation)s|competitors|rivals|agencies"
        r"|employers|landlords|publishers|airlines|organi[sz]ations|bodies|societies|clubs|providers|merchants|universities)",
    ),
    (
        PRODUCT,
        r"(?:tools|programs|software|stack|apps|applications|services\sused|packages|products|platforms|databases|languages"
        r"|frameworks|libraries|browsers|licen[cs]es|subscriptions|systems)",
    ),
    (
        PLACE,
        r"(?:places|venues|sites|locations|routes|stops|towns|villages|streets|cities|countries|parishes|stations)",
    ),
)
_OPENERS = tuple(
    (
        kind,
        late_regex(
            rf"(?:^[\s*_#>•-]*|\b)(?i:{nouns})\b(?:[^.,;:\n(]{{0,50}}(?:\([^()\n]*\))?:[*_]*|,?\s(?:such\sas|like|including|namely))\s+(?=\p{{Lu}})",
            regex.MULTILINE,
        ),
        late_regex(rf",?\s+(?:and|or)\s+other\s+(?:\p{{Ll}}+\s+)?{nouns}\b"),
    )
    for kind, nouns in _KINDS
)
_BEGINS = late_regex(
    r"(?::[*_]*+|such\sas|like|including|namely|searched|searches\s(?:of|in)|(?:indexed|retrieved)\s\w+)"
    r"\s+(?:the\s+)?(?=\p{Lu})"
)
_WINDOW = 160  # characters before a list that may say what it lists
_SEARCHED = (
    PRODUCT,
    late_regex(r"\b(?:searched|searches\s(?:of|in)|indexed\sin|retrieved\sfrom)\s+(?:the\s+)?(?=\p{Lu})"),
    late_regex(r",?\s+(?:and|or)\s+(?:the\s+)?\p{Lu}\p{L}+\s+(?:were|was)\s+searched\b"),
)
_END = late_regex(r"[.!?](?=\s|$)|\n|;")
_SEPARATOR = late_regex(
    r"(?:\p{Lu}[\p{L}'’-]*\s?){0,4}(?:\([^()\n]*\)|[£$€\d,.%\s])*(?:,|;)?\s*(?:(?:and|or|&)\s+)?(?:the\s+)?"
)


def find_kinds(names: Iterable[Name], text: str) -> Iterator[tuple[str, str]]:
    """Yield the forms in lists of one kind, with the cue of that kind: `FIRM`, `PRODUCT` or `PLACE`.

    Args:
        names: every occurrence of a name, in the order of the text.
    """
    ordered = sorted(names, key=lambda name: (name.start, -name.end))
    places = [match.end() for match in _BEGINS.finditer(text)]
    for kind, before, after in (*_OPENERS, _SEARCHED):
        begins = {
            opener.end() for place in places for opener in before.finditer(text, max(place - _WINDOW, 0), place + 1)
        }
        for start in sorted(begins):
            yield from ((form, kind) for form in _read_list(ordered, text, start))
        for name in ordered:
            if text.startswith((" and ", " or ", ", and ", ", or "), name.end) and after.match(text, name.end):
                yield name.form, kind


def _read_list(names: list[Name], text: str, start: int) -> Iterator[str]:
    """Yield the forms from `start` on that only commas, "and", sums of money and asides separate."""
    end = _END.search(text, start)
    limit = end.start() if end else len(text)
    place = start
    for name in names:
        if place <= name.start < limit:
            if not _SEPARATOR.fullmatch(text, place, name.start):
                return
            yield name.form
            place = name.end
