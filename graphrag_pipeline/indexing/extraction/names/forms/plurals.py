"""Forms of one term: "Contributions" is "Contribution", "REs" is "RE", "work-flow" is "workflow", and "config file" is
"configuration file". "TGT" is the "ticket granting ticket" of a document that never says so.

Keep out: names of persons, organizations, places and events, whose plurals are others: two Cratchits, one Cratchit.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.terms.background import english_rank
from graphrag_pipeline.indexing.extraction.names.terms.word_forms import singular_term
from graphrag_pipeline.indexing.extraction.names.types.word_types import CONCEPT, UNKNOWN

_MIN_CLIPPED, _MIN_CUT = 4, 3  # letters of a clipped word, and those cut off: "config", "repo"
_MIN_INITIALS = 3  # letters of an acronym
_MOST_PLURALS = 4  # times as frequent as the singular; "Build-Depends" is a name of its own beside "build-depend"


def link_term_forms(names: Iterable[Name], links: Mapping[str, str], types: Mapping[str, str]) -> dict[str, str]:
    """Return links in which forms of one term have the same canonical form.

    A plural is linked to its singular if the document has that as a term, and a plural acronym always. Of spellings
    that differ in spaces and hyphens, the most frequent one stands for all. A clipped word stands for the only term of
    the document that has it in full, and an acronym of three letters or more for the only term with its initials.

    Args:
        names: every occurrence of a name or term in the document.
        links: canonical form of each written form.
        types: type of each canonical form.
    """
    counts = Counter(links[name.form] for name in names)
    terms = {title_of(form): form for form in sorted(counts) if types[form] == CONCEPT}
    known = {title.lower() for title in terms}
    singulars = {title: singular.upper() for title in terms if (singular := singular_term(title.lower(), known))}
    spellings: defaultdict[str, list[str]] = defaultdict(list)
    for title in terms:
        spellings[singulars.get(title, title).replace(" ", "").replace("-", "")].append(title)
    chosen: dict[str, str] = {}
    for titles in spellings.values():
        most = max(counts[terms[title]] for title in titles)
        kept = [title for title in titles if _MOST_PLURALS * counts[terms[title]] >= most]
        best = min(kept, key=lambda title: (title in singulars, -counts[terms[title]], title))
        chosen |= {terms[title]: terms[best] for title in titles}
    single = {title: form for title, form in terms.items() if chosen[form] == form}
    longs = _find_clipped(single) | _find_initials(single)
    chosen = {form: longs.get(best, best) for form, best in chosen.items()}
    return {form: _cut_plural(chosen.get(link, link), types) for form, link in links.items()}


def _find_clipped(terms: Mapping[str, str]) -> dict[str, str]:
    """Return the terms with a clipped word, and the only one with its full form: "config file", "configuration file".

    A clipped word is none of English prose, has four letters or more, and begins a word of prose that is longer by
    three letters or more: not "slurm" and "slurmd".

    Args:
        terms: form by title.
    """
    starts: defaultdict[str, list[str]] = defaultdict(list)
    for title in terms:
        starts[" ".join(word[:_MIN_CLIPPED] for word in title.split())].append(title)
    found = {}
    for titles in starts.values():
        for title in titles if len(titles) > 1 else ():
            full = [other for other in titles if other != title and _is_clipped(title.split(), other.split())]
            if len(full) == 1:
                found[terms[title]] = terms[full[0]]
    return found


def _is_clipped(words: Sequence[str], full: Sequence[str]) -> bool:
    pairs = [(word.removesuffix("S"), long) for word, long in zip(words, full, strict=True) if word != long]
    return all(
        len(word) >= _MIN_CLIPPED
        and len(long) >= len(word) + _MIN_CUT
        and long.startswith(word)
        and english_rank(word.lower()) is None
        and english_rank(long.lower()) is not None
        for word, long in pairs
    )


def _find_initials(terms: Mapping[str, str]) -> dict[str, str]:
    """Return the acronyms that are the initials of one term in small letters: "TGT", "ticket granting ticket"."""
    spelled: defaultdict[str, list[str]] = defaultdict(list)
    for form in terms.values():
        words = form.replace("-", " ").split()
        if form.islower() and len(words) >= _MIN_INITIALS:
            spelled["".join(word[0] for word in words).upper()].append(form)
    longs = {short: forms[0] for short, forms in spelled.items() if len(forms) == 1}
    return {form: longs[form] for form in terms.values() if form.isupper() and form in longs}


def _cut_plural(form: str, types: Mapping[str, str]) -> str:
    stem = form[:-1]
    is_acronym = form.endswith("s") and len(stem) > 1 and stem.isupper() and stem.replace("-", "").isalpha()
    return stem if is_acronym and types.get(form) in (CONCEPT, UNKNOWN) else form
