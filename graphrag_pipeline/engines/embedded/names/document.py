"""Names of one document: where they are, the canonical form of each, and its type.

Names are found first (`finder.py` and the proposals it reads), then terms outside of them, then the forms of one name
are linked. Each document is read alone, so that a new document changes only its own bucket.

Keep out: sentences and rows (`engines/embedded/extraction.py`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from graphrag_pipeline.engines.embedded.names.acronyms import find_acronyms, find_definitions
from graphrag_pipeline.engines.embedded.names.capitals import MIN_SINGLE, TURKIC, cut_suffixes, find_capitals, is_turkic
from graphrag_pipeline.engines.embedded.names.chinese import find_chinese_names
from graphrag_pipeline.engines.embedded.names.finder import Forms, clean_form, find_words, match_forms
from graphrag_pipeline.engines.embedded.names.folded_text import FoldedText, Name
from graphrag_pipeline.engines.embedded.names.forms import link_forms, vote_types
from graphrag_pipeline.engines.embedded.names.identifiers import CAMEL, find_identifiers
from graphrag_pipeline.engines.embedded.names.japanese import find_japanese_names
from graphrag_pipeline.engines.embedded.names.spacy_pipeline import find_entities, language_of
from graphrag_pipeline.engines.embedded.names.terms import find_terms
from graphrag_pipeline.engines.embedded.names.titles import DocumentTitle, spellings_in
from graphrag_pipeline.settings.indexing import GlossaryTerm
from graphrag_pipeline.text.dates import find_dates
from graphrag_pipeline.text.languages import detect_language
from graphrag_pipeline.text.name_words import CONCEPT, DOUBTFUL, EVENT, GEO, IDENTIFIER, PERSON

_MIN_ACRONYM_COUNT = 2
"""Occurrences of an acronym without a definition that spaCy does not take for a name."""


def name_things(
    text: str,
    prose: str,
    codes: Sequence[str],
    spans: Sequence[tuple[int, int]],
    about: DocumentTitle | None,
    spacy_model: str = "",
    glossary: Mapping[str, GlossaryTerm] | None = None,
) -> tuple[list[Name], dict[str, str], dict[str, str]]:
    """Return every name in a document, the canonical form of each written form, and the type of each canonical form.

    Args:
        text: what a reader sees of the document.
        prose: the same without listings and addresses, of the same length.
        codes: texts between backticks.
        spans: start and end of each sentence.
        about: the entity that the title names.
        spacy_model, glossary: as in `extraction`.
    """
    language = detect_language(prose) or (TURKIC if is_turkic(prose) else "")
    folded = FoldedText(cut_suffixes(prose, language), spans)
    forms = Forms(folded)
    for start, end, kind in _propose(folded, language, spacy_model):
        forms.add_entity(start, end, kind)
    identifiers = find_identifiers(codes, folded.text)
    for form, kind in identifiers.items():
        if kind != DOUBTFUL:
            forms.add_sure(form, "" if kind == CAMEL else IDENTIFIER)
    for form, term in (glossary or {}).items():
        forms.add_sure(form, term.type.upper())
    acronyms = _add_acronyms(folded, forms)
    if about is not None:
        for form in (about.name, *spellings_in(about, text)):
            forms.add_sure(form, about.type or "")
    types = forms.types()
    found = _with_dates(folded, forms.find(types), types)
    if language in ("en", ""):
        terms = find_terms(folded, found)
        types |= {term: CONCEPT for _, _, term in terms if term not in types}
        found = sorted([*found, *terms])
    doubtful = {form: kind for form, kind in identifiers.items() if kind == DOUBTFUL and form not in types}
    types |= doubtful
    found = sorted([*found, *_overlooked(found, match_forms(folded.text, find_words(folded.text), doubtful))])
    names = [folded.name_at(form, start, end) for start, end, form in found]
    counts = Counter(form for _, _, form in found)
    if about is not None:  # the title is a name of the document, also if the text does not contain it
        counts.setdefault(about.name, 1)
    links = link_forms(counts, types, acronyms)
    kinds = vote_types(counts, types, links)
    if about is not None:
        subject = links[about.name]
        surname = about.name.split()[-1]
        if kinds[subject] == PERSON and links.get(surname) == surname and types[surname] != GEO:
            links[surname] = subject
        links = {form: about.form if name == subject else name for form, name in links.items()}
        kinds[about.form] = about.type or kinds[subject]
    return names, links, kinds


def _propose(folded: FoldedText, language: str, spacy_model: str) -> list[tuple[int, int, str]]:
    """Return (start, end, type) of what may be names, by the means that there are for the language."""
    pipeline_language = language_of(spacy_model)
    if language in (pipeline_language, "") or pipeline_language == "xx":
        entities = find_entities(folded.prose, spacy_model)
        found = [entity for entity in entities if "\n" not in folded.text[entity[0] : entity[1]]]
        others = _overlooked(found, find_capitals(folded, language, MIN_SINGLE))
        return [*(name for name in found if name[2]), *others]
    if language == "zh":
        return [*find_chinese_names(folded.text), *find_capitals(folded, language)]
    if language == "ja":
        return [*find_japanese_names(folded.text), *find_capitals(folded, language)]
    return list(find_capitals(folded, language))


def _overlooked(
    found: Sequence[tuple[int, int, str]], others: Iterable[tuple[int, int, str]]
) -> Iterator[tuple[int, int, str]]:
    """Yield the others that overlap nothing found; what was found without a type only excludes what is inside of it."""
    ends = [end for _, end, _ in found]
    for start, end, kind in others:
        near = found[bisect_right(ends, start) : bisect_right(ends, end) + 1]
        if not any(a < end and start < b and (known or (a <= start and end <= b)) for a, b, known in near):
            yield start, end, kind


def _add_acronyms(folded: FoldedText, forms: Forms) -> dict[str, str]:
    """Add acronyms and their long forms to the names; return short -> long form."""
    defined: dict[str, str] = {}
    for short, (start, end) in find_definitions(folded.text).items():
        start, end = clean_form(folded.text, start, end)
        defined[short] = folded.text[start:end]
        forms.add_sure(short)
        forms.add_sure(defined[short])
    for acronym, count in find_acronyms(folded.text).items():
        if count >= _MIN_ACRONYM_COUNT:
            forms.add_sure(acronym)
    return defined


def _with_dates(
    folded: FoldedText, found: list[tuple[int, int, str]], types: dict[str, str]
) -> list[tuple[int, int, str]]:
    """Add the full dates outside of names; their form is day, month, year. `types` gets them as events."""
    dates = list(_overlooked(found, find_dates(folded.text)))
    types |= {form: EVENT for _, _, form in dates}
    return sorted([*found, *dates])
