"""Names that commas, "and" and "in" hold together: departments, joint councils, canals, and cases at law.

"Department for Environment, Food and Rural Affairs" is one body, "Harkness v Wyre Fishing Company" one case, and
"Westmorland and Furness Council agrees" names one council. "The Leeds and Liverpool Canal" is one, "Devon and Cornwall
Police" one force, and "Kirkby in Bloom" one body in a document that says it twice or has "Yorkshire in Bloom", too.

Keep out: firms of two names (`firm_pairs.py`), connectors inside a phrase (`phrases.py`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from graphrag_pipeline.indexing.extraction.names.cues import GIVEN_NAMES
from graphrag_pipeline.indexing.extraction.names.forms.joined_bodies import find_joined_bodies
from graphrag_pipeline.indexing.extraction.names.gazetteer import load_places
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, is_also_a_word, title_of
from graphrag_pipeline.indexing.extraction.names.types.word_types import CONCEPT, GEO, ORGANIZATION, PERSON
from graphrag_pipeline.text.late_patterns import late_regex

_NAME = r"\p{Lu}[\p{L}’'-]++(?:[ ](?:of[ ](?:the[ ])?|&[ ])?\p{Lu}[\p{L}’'-]++)*+"
_IN = " in "
_SIDE = late_regex(r"\b(?:Great|Little|Upper|Lower|North|South|East|West|Old|New)\s$")
_TOWN = r"\p{Lu}[\p{Lu}.’'-]++(?:[ ]\p{Lu}[\p{Lu}.’'-]++){0,3}+"  # of a dateline: "ST. LOUIS"
_WIRE = r"\(\p{Lu}[\p{L}. ]{1,40}\)"  # an agency
_FIELD = r"\p{Lu}\p{Ll}++(?:[ ]\p{Lu}\p{Ll}++)?+"
_PLACE = r"\p{Lu}\p{Ll}{2,}+"
_BODY = r"(?:Senate|House|Government|Parliament|Congress|Council|Cabinet|Treasury|Party|Church|University|College)\b"
_FIRM_NOUNS = (
    "contractors?|lawyers|advisers|brokers|consultants|auctioneers|solicitors|accountants|architects|auditors|builders"
    "|publishers?|surveyors"
)
_NOBLES = "Prince|Princess|Duke|Duchess|Earl|Count|Countess|Marquess|Marquis|Baron|Baroness|Archduke|Lord|King|Queen"
_ROUTES = "Canal|Railway|Walk|Way|Trail|Line"
_FIRM_AFTER = r"(?=[,.;](?![ ]\p{Lu}\p{Ll}+[ ]and)|[ ](?:has|is|was|of|in|for|to)\b)"
_JOINED = "Building Society|Credit Union|Agricultural Society|Hospitals? Trust|Gazette|Chronicle|Surgery|Hospice"
_KINDS = (
    (
        "Department of|Department for|Ministry of|Ministry for",
        late_regex(
            rf"\b(?:Department|Ministry)[ ](?:of|for)[ ](?:the[ ])?{_FIELD}(?:,[ ]{_FIELD})+,?[ ]and[ ]{_FIELD}"
        ),
        ORGANIZATION,
    ),
    (
        " Council| Police| Constabulary",
        late_regex(
            rf"(?<!\b(?:[Bb]oth|[Bb]etween|(?!The\b)\p{{Lu}}\p{{L}}*)[ ])\b(?!{_BODY}){_PLACE}"
            rf"[ ]and[ ](?!{_BODY}){_PLACE}"
            r"(?:[ ](?:District|Borough|City|County))?[ ](?:Police|Constabulary|Council(?=[.,;:'’)]"
            r"|[ ](?:has|is|was|had|will|would|in|to|for|on|at|by|and|\p{Ll}{2,}(?:s|ed))\b))(?![ ]\p{Lu})"
        ),
        ORGANIZATION,
    ),
    (
        " (",
        late_regex(rf"\b{_NAME}[ ]\(\p{{Lu}}[\p{{L}}. ]++\)[ ](?:Ltd|Limited|Inc|plc|PLC|LLC|LLP|Pty|Corp)\b"),
        ORGANIZATION,
    ),
    (
        "th |st |nd |rd ",
        late_regex(
            r"\b(?:(?:East|West|North|South)[ ])?\d{1,3}(?:st|nd|rd|th)[ ](?:Street|Avenue|Road)\b(?![ ]\p{Lu})"
        ),
        GEO,
    ),
    (
        " LTD| LIMITED| INC| PLC| LLC| GMBH",
        late_regex(
            r"(?<![\p{Lu}&’'-][ ])\b(?:\p{Lu}[\p{Lu}&’'-]+[ ]|&[ ]|AND[ ]){1,5}"
            r"(?:\(\p{Lu}+\)[ ])?(?:LTD|LIMITED|INC|PLC|LLC|GMBH)\b"
        ),
        ORGANIZATION,
    ),
    (
        " - | – | — |- |— ",
        late_regex(
            rf"(?:^|(?<=\n))[ \t]*\K{_TOWN}(?=(?:,[ ]\p{{Lu}}\p{{L}}[\p{{L}}. ]{{1,30}})?"
            rf"(?:,[ ]\p{{Lu}}\p{{Ll}}+\.?[ ]\d{{1,2}}(?:[ ]{_WIRE})?|[ ]{_WIRE})[ ]?[-–—]{{1,2}}[ ]?[\p{{Lu}}“\"])"
            rf"|(?:^|(?<=\n))[ \t]*\K{_TOWN}(?=,[ ]\p{{Lu}}\p{{L}}[\p{{L}}. ]{{1,30}}[ ]?[-–—]{{1,2}}[ ]?[\p{{Lu}}“\"])"
        ),
        GEO,
    ),
    (
        " - | – | — |- |— ",
        late_regex(r"(?:^|(?<=\n))[^\n]{4,60}[ ]\(\K\p{Lu}[\p{L}. ]+(?=\)[ ]?[-–—]{1,2}[ ]?[\p{Lu}“\"])"),
        ORGANIZATION,
    ),
    (
        " and District ",
        late_regex(rf"\b{_PLACE}[ ]and[ ]District(?:[ ]\p{{Lu}}\p{{Ll}}++)+"),
        ORGANIZATION,
    ),
    (
        ", |lawyers |advisers |brokers |consultants |auctioneers |solicitors |accountants |architects |auditors "
        "|builders |surveyors ",
        late_regex(rf"\b(?:{_FIRM_NOUNS}),?[ ]\K{_PLACE}[ ]and[ ]{_PLACE}{_FIRM_AFTER}"),
        ORGANIZATION,
    ),
    (
        "Building Society|Credit Union|Agricultural Society|Hospital|Gazette|Chronicle|Surgery|Hospice",
        late_regex(rf"\b[Tt]he[ ]\K(?!{_BODY}){_PLACE}[ ]and[ ](?!{_BODY}){_PLACE}[ ](?:{_JOINED})\b(?![ ]\p{{Lu}})"),
        ORGANIZATION,
    ),
    (
        _ROUTES,
        late_regex(rf"\b[Tt]he[ ]\K{_PLACE}[ ]and[ ]{_PLACE}[ ](?:{_ROUTES})\b(?![ ]\p{{Lu}})"),
        GEO,
    ),
    (
        " of ",
        late_regex(rf"\b(?:{_NOBLES})[ ]of[ ]{_PLACE}[ ]and[ ]{_PLACE}(?![ ](?:of|\p{{Lu}})|['’])"),
        PERSON,
    ),
    ("HM ", late_regex(r"\bHM[ ]\p{Lu}\p{Ll}++[ ]and[ ]\p{Lu}\p{Ll}++(?:[ ]\p{Lu}\p{Ll}++)*+"), ORGANIZATION),
    (
        " v | v. ",
        late_regex(
            rf"(?!(?:See|In|But|As|Per|And)[ ])\b(?:R|{_NAME}"
            rf"(?:(?<=\b(?:Co|Inc|Ltd|Corp))\.)?(?:[ ]\([^()\n]{{3,60}}\))?)[ ]v\.?[ ]{_NAME}"
        ),
        CONCEPT,
    ),
)
"""A part of every such name, the pattern, and the type."""


def join_composites(names: Iterable[Name], text: str, starts: Sequence[int]) -> tuple[list[Name], dict[str, str]]:
    """Return the names in reading order, with each composite in the place of its parts, and the type of its form.

    Args:
        starts: start offset of each sentence, in order.
    """
    names = list(names)
    found: list[Name] = []
    types: dict[str, str] = {}
    for part, pattern, kind in _KINDS:
        if any(word in text for word in part.split("|")):
            for match in pattern.finditer(text):
                form = match.group().replace("’", "'")
                if kind == PERSON and title_of(form.split()[-1]) in GIVEN_NAMES:  # "the Duke of York and Ann"
                    continue
                start, end = match.span()
                found.append(Name(form, start, end, bisect_right(starts, start) - 1))
                types[form] = kind
    ends = {name.end for name in found}
    joined = (name for name in find_joined_bodies(names, text) if name.end not in ends)
    for name in (*_find_inner(names, text), *joined):
        found.append(name)
        types[name.form] = ORGANIZATION
    if not found:
        return names, {}
    found.sort(key=lambda name: name.start)
    begins = [name.start for name in found]
    kept = [name for name in names if not _is_inside(name, found, begins)]
    return sorted(kept + found, key=lambda name: (name.start, name.end)), types


def _find_inner(names: Sequence[Name], text: str) -> Iterator[Name]:
    """Yield names that "in" holds together: "Kirkby in Bloom", if two of them end alike, and no place is there."""
    pairs = [
        (a, b)
        for a, b in pairwise(names)
        if b.start - a.end == len(_IN) and text.startswith(_IN, a.end) and _may_be_inner(a, b)
    ]
    counts = Counter(b.form for _, b in pairs)
    for a, b in pairs:
        if counts[b.form] > 1:
            side = _SIDE.search(text, max(a.start - 8, 0), a.start)  # "Great Wendle in Bloom"
            start = side.start() if side else a.start
            yield Name(" ".join(text[start : b.end].split()), start, b.end, a.sentence)


def _may_be_inner(first: Name, second: Name) -> bool:
    title = title_of(second.form)
    is_word = second.form.istitle() and second.form.isalpha() and is_also_a_word(second.form)
    return is_word and title not in load_places() and title_of(first.form).split()[0] not in GIVEN_NAMES


def _is_inside(name: Name, found: Sequence[Name], begins: Sequence[int]) -> bool:
    before = bisect_left(begins, name.end)
    return before > 0 and found[before - 1].end > name.start
