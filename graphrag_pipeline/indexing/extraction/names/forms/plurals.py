"""Plurals and spellings of terms: "Contributions" is "Contribution", "REs" is "RE", and "work-flow" is "workflow".

Keep out: names of persons, organizations, places and events, whose plurals are others: two Cratchits, one Cratchit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.terms.word_forms import singular_of
from graphrag_pipeline.indexing.extraction.names.types.word_types import CONCEPT, UNKNOWN

_MOST_PLURALS = 4  # times as frequent as the singular; "Build-Depends" is a name of its own beside "build-depend"


def link_term_forms(names: Iterable[Name], links: Mapping[str, str], types: Mapping[str, str]) -> dict[str, str]:
    """Return links in which forms of one term have the same canonical form.

    A plural is linked to its singular if the document has that as a term, and a plural acronym always. Of spellings
    that differ in spaces and hyphens, the most frequent one stands for all.

    Args:
        names: every occurrence of a name or term in the document.
        links: canonical form of each written form.
        types: type of each canonical form.
    """
    counts = Counter(links[name.form] for name in names)
    terms = {title_of(form): form for form in sorted(counts) if types[form] == CONCEPT}
    known = {title.lower() for title in terms}
    singulars = {title: singular.upper() for title in terms if (singular := singular_of(title.lower(), known, least=4))}
    spellings: defaultdict[str, list[str]] = defaultdict(list)
    for title in terms:
        spellings[singulars.get(title, title).replace(" ", "").replace("-", "")].append(title)
    chosen: dict[str, str] = {}
    for titles in spellings.values():
        most = max(counts[terms[title]] for title in titles)
        kept = [title for title in titles if _MOST_PLURALS * counts[terms[title]] >= most]
        best = min(kept, key=lambda title: (title in singulars, -counts[terms[title]], title))
        chosen |= {terms[title]: terms[best] for title in titles}
    return {form: _cut_plural(chosen.get(link, link), types) for form, link in links.items()}


def _cut_plural(form: str, types: Mapping[str, str]) -> str:
    stem = form[:-1]
    is_acronym = form.endswith("s") and len(stem) > 1 and stem.isupper() and stem.replace("-", "").isalpha()
    return stem if is_acronym and types.get(form) in (CONCEPT, UNKNOWN) else form
