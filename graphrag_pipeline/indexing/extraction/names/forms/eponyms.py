"""Eponyms: terms of a name and a noun, of which the name alone names nothing: "Marshall score", "Ringer's lactate".

Keep out: acronyms and their nouns (`compounds.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

from graphrag_pipeline.indexing.extraction.names.cues import words
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.types.word_types import ORGANIZATION
from graphrag_pipeline.text.late_patterns import late_regex

_NOUNS = words("""
algorithm artery body buffer catheter cell cells chorea classification coefficient comet constant contracture correction
criteria criterion curve cycle disease distribution dressing duct effect encephalopathy equation estimator fever filter
forceps formula fracture function gradient grade graph index inequality kernel lactate law laws lemma lymphoma manoeuvre
maneuver matrix medium method model node number oedema palsy paradox point pondweed principle procedure process protocol
pump ratio reaction reagent reflex regression sampling scale score sequence series sign solution space spot stain
statistic syndrome tendon test theorem tensor transform transformation triangle tube tumour tumor valve
""")
_FOLLOWED = late_regex(r"(?P<owner>['’]s|(?<=s)['’])?[ \n]+(?P<noun>\p{Ll}{3,}+)(?![\p{L}'’-])")


def join_eponyms(
    names: Iterable[Name], types: Mapping[str, str], links: Mapping[str, str], text: str
) -> tuple[list[Name], set[str]]:
    """Return the names, with those that one noun of science always follows extended by it, and the forms of the terms.

    Args:
        names: every occurrence of a name in the document.
        types: type by canonical form; organizations stay.
        links: canonical form of each written form; a name with another form stays.
    """
    names = list(names)
    shared = {link for form, link in links.items() if form != link}
    tails: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        tails[name.form].add(_read_tail(name, text))
    joined = {
        form: min(found)
        for form, found in tails.items()
        if len(found) == 1
        and "" not in found
        and links.get(form, form) == form
        and form not in shared
        and types.get(form) != ORGANIZATION
    }
    extended = [_extend(name, joined[name.form], text) if name.form in joined else name for name in names]
    return extended, {form + tail for form, tail in joined.items()}


def _read_tail(name: Name, text: str) -> str:
    """Return what follows a name of one word with a capital: " score", "'s lactate"; "" if it is no such noun."""
    if not (name.form.istitle() and name.form.replace("-", "").isalpha()):
        return ""
    match = _FOLLOWED.match(text, name.end)
    if match is None or title_of(match["noun"]) not in _NOUNS:
        return ""
    return f"{(match['owner'] or '').replace('’', chr(39))} {match['noun']}"


def _extend(name: Name, tail: str, text: str) -> Name:
    match = _FOLLOWED.match(text, name.end)
    return replace(name, form=name.form + tail, end=match.end("noun")) if match else name
