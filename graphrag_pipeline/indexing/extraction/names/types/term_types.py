"""Names that are terms: CONCEPT is their type, and in a technical document that of every name without evidence.

Keep out: types of names by evidence (`name_types.py`), signs of a term (`terms/term_signs.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from graphrag_pipeline.indexing.extraction.names.cues import BODIES, OFFICES
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import (
    find_lower_words,
    is_code,
    is_term,
    read_term_uses,
)
from graphrag_pipeline.indexing.extraction.names.types.attendance import choose_attendees, find_attendees
from graphrag_pipeline.indexing.extraction.names.types.registers import explains
from graphrag_pipeline.indexing.extraction.names.types.word_types import CONCEPT, ORGANIZATION, PERSON, UNKNOWN

_MIN_TERM_SHARE = 0.5  # of the names of a document that explains terms
_MIN_PERSONS = 0.4  # of the names of a document that tells of persons; a common word may name one there ("the Phantom")


def type_terms(names: Iterable[Name], types: Mapping[str, str], links: Mapping[str, str], text: str) -> dict[str, str]:
    """Return the types with CONCEPT for each name of type UNKNOWN that is a term.

    In a document whose names are mostly terms, and in an explanation, every name without evidence is one.

    Args:
        names: every occurrence of a name in the document.
        types: type by canonical form.
        links: canonical form of each written form.
    """
    names = list(names)
    terms, is_technical = find_terms(names, types, links, text)
    unknown = {form for name in names if types[form := links[name.form]] == UNKNOWN}
    typed = dict(types) | dict.fromkeys(unknown if is_technical or explains(text) else terms, CONCEPT)
    bodies = {form: ORGANIZATION for form in types if form.istitle() and form.upper() in BODIES}
    return typed | bodies | {form: PERSON for form in unknown if form.istitle() and form.upper() in OFFICES}


def find_terms(
    names: Iterable[Name], types: Mapping[str, str], links: Mapping[str, str], text: str
) -> tuple[set[str], bool]:
    """Return the names of type UNKNOWN that are terms, and whether the names of the document are mostly terms.

    Args:
        names, types, links: as in `type_terms`.
    """
    names = list(names)
    counts: Counter[str] = Counter()
    uses: defaultdict[str, Counter[str]] = defaultdict(Counter)
    # Minutes name the same persons again and again, and are no story.
    attendees = choose_attendees({name.form for name in names}, find_attendees(text))
    others = [name for name in names if name.form not in attendees]
    n_persons = sum(types[links[name.form]] == PERSON for name in others)
    is_story = n_persons >= _MIN_PERSONS * len(others)
    for name in names:
        form = links[name.form]
        if types[form] == UNKNOWN:
            counts[form] += 1
            uses[form].update(read_term_uses(text, name))
    lower = find_lower_words(text) if counts else set()
    titled = {form for form in counts if form.istitle() and form.upper() in OFFICES | BODIES}
    terms = {
        form
        for form, n in counts.items()
        if form not in titled and (is_code(form) or (not is_story and is_term(form, n, uses[form], lower)))
    }
    n_terms = sum(counts[form] for form in terms) + sum(types[links[name.form]] == CONCEPT for name in others)
    return terms, n_terms >= _MIN_TERM_SHARE * len(others)
