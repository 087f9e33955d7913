"""Names of one document: where they are, the canonical form of each, and its type.

The steps have an order. Names are found and joined first, then typed one by one, then linked to the canonical form that
the document has for them. What needs types and links comes last: key phrases, which are terms and no names.

Keep out: sentences and rows (`extracted_graph.py`), rules on names (`names/`).
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from graphrag_pipeline.indexing.extraction.names.acts import find_acts, prefer_acts
from graphrag_pipeline.indexing.extraction.names.chinese.cjk import find_chinese_names
from graphrag_pipeline.indexing.extraction.names.chinese.titled_forms import find_place_forms, find_titled_forms
from graphrag_pipeline.indexing.extraction.names.cited_words import drop_cited
from graphrag_pipeline.indexing.extraction.names.cues import INITIAL_HONORIFICS
from graphrag_pipeline.indexing.extraction.names.dates import find_dates
from graphrag_pipeline.indexing.extraction.names.document_titles import DocumentTitle, find_title
from graphrag_pipeline.indexing.extraction.names.finder import find_names
from graphrag_pipeline.indexing.extraction.names.forms.acronyms import place_acronyms
from graphrag_pipeline.indexing.extraction.names.forms.aliases import find_acronyms, find_canonical_forms
from graphrag_pipeline.indexing.extraction.names.forms.composites import join_composites
from graphrag_pipeline.indexing.extraction.names.forms.compounds import join_compounds
from graphrag_pipeline.indexing.extraction.names.forms.eponyms import join_eponyms
from graphrag_pipeline.indexing.extraction.names.forms.firm_pairs import join_firm_pairs
from graphrag_pipeline.indexing.extraction.names.forms.heading_names import drop_heading_names, split_joined
from graphrag_pipeline.indexing.extraction.names.forms.kinship import link_kin
from graphrag_pipeline.indexing.extraction.names.forms.numbered import join_numbers
from graphrag_pipeline.indexing.extraction.names.forms.offices import drop_offices, drop_parties
from graphrag_pipeline.indexing.extraction.names.forms.person_forms import find_subject_surname
from graphrag_pipeline.indexing.extraction.names.forms.plurals import link_term_forms
from graphrag_pipeline.indexing.extraction.names.forms.quoted_titles import join_quoted_titles
from graphrag_pipeline.indexing.extraction.names.forms.species import is_species, join_species
from graphrag_pipeline.indexing.extraction.names.german import keep_german_names
from graphrag_pipeline.indexing.extraction.names.japanese import find_japanese_names
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, title_of
from graphrag_pipeline.indexing.extraction.names.terms.concepts import find_concepts, find_speakers
from graphrag_pipeline.indexing.extraction.names.terms.of_terms import join_of_terms
from graphrag_pipeline.indexing.extraction.names.terms.ordinary_words import (
    drop_held_places,
    drop_ordinary_terms,
    drop_story_terms,
    reports,
    tells_story,
)
from graphrag_pipeline.indexing.extraction.names.terms.term_signs import find_adjectives
from graphrag_pipeline.indexing.extraction.names.types.acronym_types import type_acronyms
from graphrag_pipeline.indexing.extraction.names.types.attendance import find_attendees, find_initials
from graphrag_pipeline.indexing.extraction.names.types.kind_cues import find_defined_type
from graphrag_pipeline.indexing.extraction.names.types.name_types import (
    type_names,
    vote_types,
)
from graphrag_pipeline.indexing.extraction.names.types.registers import explains
from graphrag_pipeline.indexing.extraction.names.types.term_types import type_terms
from graphrag_pipeline.indexing.extraction.names.types.word_types import (
    CONCEPT,
    GEO,
    ORGANIZATION,
    PERSON,
    PROPER,
    UNKNOWN,
    type_by_words,
)
from graphrag_pipeline.text.languages import SMALL_WORDS, detect_language


@dataclass(frozen=True, slots=True)
class _Document:
    """One document as its names are found.

    Attributes:
        text: its text without code.
        spans: start and end of each sentence; `starts` are the starts alone.
        headings: whether each sentence is a heading.
        about: the entity that its title names, or None.
        language: a code, or "" if it is not known.
    """

    text: str
    title: str
    spans: list[tuple[int, int]]
    starts: list[int]
    headings: list[bool]
    about: DocumentTitle | None
    language: str

    @property
    def is_english(self) -> bool:
        return self.language in ("en", "")


@dataclass(frozen=True, slots=True)
class _Found:
    """The names of a document as written.

    Attributes:
        types: forms whose type is known from how they are found.
        acronyms: short -> long form.
    """

    names: list[Name]
    types: dict[str, str]
    acronyms: dict[str, str]


def name_things(
    text: str, spans: list[tuple[int, int]], headings: list[bool], about: DocumentTitle | None, title: str
) -> tuple[list[Name], dict[str, str], dict[str, str]]:
    """Return every name in a document, the canonical form of each written form, and the type of each form.

    Args:
        text: the text without code.
        spans: start and end of each sentence.
        headings: whether each sentence is a heading.
        about: the entity that the title names.
        title: the title of the document.
    """
    language = detect_language(text)
    document = _Document(text, title, spans, [start for start, _ in spans], headings, about, language)
    found = _find_chinese_or_japanese(document) if language in ("zh", "ja") else _find_spaced(document)
    names = found.names if about is None else _prefer(find_title(about, text, document.starts), found.names)
    acronyms = _find_all_acronyms(document, names, found.acronyms)
    written_types = _type_written(document, names, acronyms, found.types)
    if about is not None:  # the title is a name of the document, also if the text does not contain it
        names.append(Name(about.name, len(text), len(text), -1))
    links = _link_forms(document, names, written_types, acronyms)
    types = vote_types(names, written_types, links)
    if document.is_english:
        names, types = _type_terms_and_drop_adjectives(document, names, links, types)
    if about is not None:
        names.pop()
        links, types = _name_subject(about, links, types)
    if document.is_english:
        names, links, types = _join_terms(document, names, links, types)
        names, links, types = _add_concepts(document, names, links, types)
    return names, links, types


def _find_chinese_or_japanese(document: _Document) -> _Found:
    """Return the names of a text without spaces, and those in Latin script."""
    find = find_chinese_names if document.language == "zh" else find_japanese_names
    names, types = find(document.text, document.starts)
    latin = find_names(document.text, document.spans, document.headings)
    return _Found(_prefer(names, latin), types, {})


def _find_spaced(document: _Document) -> _Found:
    """Return the names and dates of a text with spaces between words; in English, words of one name are joined."""
    text, language = document.text, document.language
    names = find_names(text, document.spans, document.headings, SMALL_WORDS.get(language, frozenset()))
    if language == "de":
        names = keep_german_names(names, text)
    found = _join_forms(document, names) if document.is_english else _Found(names, {}, {})
    acts = find_acts(text, document.starts) if document.is_english else []
    dated = sorted(found.names + find_dates(text, document.spans), key=lambda name: (name.start, name.end))
    names = prefer_acts(acts, dated)
    types = _type_addressed(names, language) | {act.form: CONCEPT for act in acts} | found.types
    types |= {name.form: CONCEPT for name in names if document.is_english and is_species(name.form)}
    return _Found(names, types, found.acronyms)


def _join_forms(document: _Document, names: list[Name]) -> _Found:
    """Drop offices and cited words, and join words that together are one name, in the order that the rules need."""
    text, starts = document.text, document.starts
    names = drop_offices(names, text, find_attendees(text))
    names = split_joined(drop_cited(names, text, document.headings), text)
    names = join_species(names, text, starts)
    names, acronyms = place_acronyms(names, text, starts)
    names, firms = join_firm_pairs(names, text)
    names, numbered = join_numbers(names, text)
    names, composites = join_composites(names, text, starts)
    names, works = join_quoted_titles(names, text, starts)
    types = dict.fromkeys(firms, ORGANIZATION) | dict.fromkeys(numbered, CONCEPT)
    return _Found(names, types | composites | dict.fromkeys(works, CONCEPT), acronyms)


def _find_all_acronyms(document: _Document, names: list[Name], placed: dict[str, str]) -> dict[str, str]:
    """Return short -> long form: acronyms placed as names, those of other long forms, and initials of persons."""
    acronyms = placed | find_acronyms(names, document.text)
    if document.is_english:
        acronyms |= find_initials({name.form for name in names}, document.text)
    return acronyms


def _type_written(
    document: _Document, names: list[Name], acronyms: dict[str, str], known: dict[str, str]
) -> dict[str, str]:
    """Return the type of each written form, and of the name that the title has.

    Args:
        known: types that count before the evidence of the text.
    """
    about = document.about
    types = type_acronyms(type_names(names, document.text, document.is_english), acronyms) | known
    if about is None:
        return types
    if defined := find_defined_type(about.name, names, document.text):
        types[about.name] = defined
    types.setdefault(about.name, about.type or type_by_words(about.name) or UNKNOWN)
    return types


def _link_forms(
    document: _Document, names: list[Name], written_types: dict[str, str], acronyms: dict[str, str]
) -> dict[str, str]:
    """Return the canonical form of each written form. Surnames of the subject become PERSON in `written_types`."""
    text, language, about = document.text, document.language, document.about
    links = find_canonical_forms(names, written_types, acronyms, language)
    if language == "zh":
        links |= find_titled_forms({form for form, kind in written_types.items() if kind == PERSON}, text)
        links |= find_place_forms({form for form, kind in written_types.items() if kind == GEO})
    if about is not None:
        surnames = find_subject_surname(about.name, names, written_types, text)
        links = {form: links[about.name] if {form, link} & surnames else link for form, link in links.items()}
        written_types |= dict.fromkeys(surnames, PERSON)
    return links


def _type_terms_and_drop_adjectives(
    document: _Document, names: list[Name], links: dict[str, str], types: dict[str, str]
) -> tuple[list[Name], dict[str, str]]:
    """Return the names without adjectives and words of headings, and the types with those of terms."""
    text = document.text
    types = type_terms(names, types, links, text)
    adjectives = {form for form in find_adjectives(names, text) if types[links[form]] == CONCEPT}
    names = [name for name in names if name.form not in adjectives or name.sentence < 0]
    return drop_heading_names(names, types, links, text, document.spans, document.headings), types


def _name_subject(
    about: DocumentTitle, links: dict[str, str], types: dict[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return links and types with the form of the title as the canonical form of what the document is about."""
    canonical = links[about.name]
    links = {form: about.form if name == canonical else name for form, name in links.items()}
    return links, types | {about.form: about.type or types[canonical]}


def _join_terms(
    document: _Document, names: list[Name], links: dict[str, str], types: dict[str, str]
) -> tuple[list[Name], dict[str, str], dict[str, str]]:
    """Link kin to their person, and join names with the nouns that make a term of them: compounds and eponyms."""
    text = document.text
    kin = link_kin(names, links, types, text)
    names, compounds = join_compounds(names, types, links, text)
    links = {form: kin.get(link, compounds.get(link, link)) for form, link in links.items()}
    names, eponyms = join_eponyms(names, types, links, text)
    joined = (*compounds.values(), *eponyms)
    return names, links | {form: form for form in joined}, types | dict.fromkeys(joined, CONCEPT)


def _add_concepts(
    document: _Document, names: list[Name], links: dict[str, str], types: dict[str, str]
) -> tuple[list[Name], dict[str, str], dict[str, str]]:
    """Return names, links and types with the key phrases of the document, and with its speakers without a name."""
    text = document.text
    is_explaining = explains(text)
    names = names if is_explaining else drop_parties(names, links)
    terms = {
        title_of(form): link
        for form, link in links.items()
        if types.get(link) == CONCEPT and (is_explaining or " " in form)
    }
    concepts = find_concepts(text, names, document.starts, document.headings, terms.keys())
    speakers = find_speakers(text, concepts)
    if reports(text, sum(types[links[name.form]] in PROPER for name in names)):
        concepts = drop_ordinary_terms(concepts, text, document.title)
        names = drop_held_places(names)
    elif tells_story(text):
        concepts = drop_story_terms(concepts, text, document.title)
    concepts = join_of_terms(concepts, text)
    names = names + concepts
    links = links | {concept.form: terms.get(title_of(concept.form), concept.form) for concept in concepts}
    types = types | {concept.form: CONCEPT for concept in concepts} | dict.fromkeys(speakers, PERSON)
    links = link_term_forms(names, links, types)
    return names, links, dict.fromkeys(links.values(), CONCEPT) | types


def _type_addressed(names: list[Name], language: str) -> dict[str, str]:
    """Type names after one-letter honorifics: "M. Dupont" is a person in French; elsewhere M is an initial."""
    honorifics = tuple(f"{letter}. " for letter in sorted(INITIAL_HONORIFICS.get(language, ())))
    return {name.form: PERSON for name in names if honorifics and name.form.startswith(honorifics)}


def _prefer(names: list[Name], others: list[Name]) -> list[Name]:
    """Return `names` and those of `others` that overlap none or contain one, such as "Mr. Marley" for "Marley"."""
    starts = [name.start for name in names]
    kept = []
    for other in others:
        before = bisect_left(starts, other.end)
        overlapping = [name for name in names[max(before - 2, 0) : before] if name.end > other.start]
        if all(other.start <= name.start and name.end < other.end and other.form != name.form for name in overlapping):
            kept.append(other)
    return names + kept
