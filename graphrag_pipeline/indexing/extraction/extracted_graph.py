"""Embedded extraction: entities and relationships of text units by rules, without a model.

Each document is read alone, so that a new document changes only its own bucket. The rules are in `names/`:
`names/finder.py` (places of names), `names/types/` (entity types), `names/forms/` (forms of one name),
`names/document_titles.py` (the entity that a document is about), `names/terms/` (key phrases),
`names/predicates.py` (verbs between names). This module makes rows.

Mentions are counted as in the GraphRAG paper (Edge et al. 2024, arXiv:2404.16130): text units overlap, and a sentence
in two text units counts in both. There is one entity mention per text unit, sentence and written form of an entity.
There is one relationship mention per text unit, pair and sentence. `start` and `end` are offsets into the document: of
the first occurrence of the name in the sentence for an entity, of the sentence for a relationship.

`name` is the canonical form of the entity in its document ("Ebenezer Scrooge" where the text says "Mr. Scrooge");
`normalize_title(name)` is its key. `written` is `document.text[start:end]`. It includes the article if the document
mostly writes the name with it ("the Ghost"). If the title of a document is a name, its first text unit has one more
mention, with `is_about` and without a place.

Keep out: steps that need the whole corpus (`indexing/graph`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import pyarrow as pa

from graphrag_pipeline.indexing.extraction.lines import split_lines
from graphrag_pipeline.indexing.extraction.names.acts import find_acts, prefer_acts
from graphrag_pipeline.indexing.extraction.names.chinese.cjk import find_chinese_names
from graphrag_pipeline.indexing.extraction.names.chinese.titled_forms import find_place_forms, find_titled_forms
from graphrag_pipeline.indexing.extraction.names.cited_words import drop_cited
from graphrag_pipeline.indexing.extraction.names.cues import INITIAL_HONORIFICS
from graphrag_pipeline.indexing.extraction.names.dates import find_dates
from graphrag_pipeline.indexing.extraction.names.document_titles import DocumentTitle, find_title, read_title
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
from graphrag_pipeline.indexing.extraction.names.occurrences import Name, include_articles, title_of
from graphrag_pipeline.indexing.extraction.names.phrases import is_heading
from graphrag_pipeline.indexing.extraction.names.predicates import find_predicate
from graphrag_pipeline.indexing.extraction.names.prose import mask_code
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
from graphrag_pipeline.indexing.extraction.names.types.attendance import find_attendees, find_initials, find_rolls
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
from graphrag_pipeline.settings.settings import ExtractionSettings
from graphrag_pipeline.tables import CLAIM_MENTIONS, ENTITY_MENTIONS, RELATIONSHIP_MENTIONS, Table
from graphrag_pipeline.text.languages import SMALL_WORDS, detect_language
from graphrag_pipeline.text.sentences import split_sentences

STRENGTH = 1.0  # of one sentence that contains two entities


@dataclass(frozen=True, slots=True)
class _Occurrence:
    title: str
    name: str
    type: str
    start: int
    end: int
    written: str


@dataclass(frozen=True, slots=True)
class _About:
    """The entity that the document is about, described by the first sentence."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class _TaggedSentence:
    start: int
    end: int
    description: str  # "" for a heading or a fragment
    occurrences: tuple[_Occurrence, ...]


@dataclass
class _Columns:
    """Rows of a mentions table, collected by column, which is faster than dictionaries."""

    table: Table
    values: dict[str, list] = field(init=False)

    def __post_init__(self) -> None:
        self.values = {name: [] for name in self.table.schema.names}

    def add(self, *row: object) -> None:
        for column, value in zip(self.values.values(), row, strict=True):
            column.append(value)

    def to_table(self) -> pa.Table:
        return self.table.sort(pa.table(self.values, schema=self.table.schema))


def extract_graph(documents: pa.Table, text_units: pa.Table, settings: ExtractionSettings) -> dict[str, pa.Table]:
    """Find the entities of each text unit and the pairs that occur in one sentence.

    Args:
        documents: `documents` rows; needs `id`, `title` and `text`.
        text_units: `text_units` rows of these documents; needs `id`, `document_id`, `start`, `end`.

    Returns:
        `entity_mentions`, `relationship_mentions` and `claim_mentions` (always empty), by table name.
    """
    entities, relationships = _Columns(ENTITY_MENTIONS), _Columns(RELATIONSHIP_MENTIONS)
    units = _units_by_document(text_units)
    columns = (documents[name].to_pylist() for name in ("id", "title", "text"))
    for document_id, title, text in zip(*columns, strict=True):
        sentences, about = read_document(title, text)
        starts = [sentence.start for sentence in sentences]
        ends = [sentence.end for sentence in sentences]
        first = min((start for _, start, _ in units.get(document_id, ())), default=0)
        for unit_id, start, end in units.get(document_id, ()):
            touched = sentences[bisect_right(ends, start) : bisect_left(starts, end)]
            n_entities = _add_entities(unit_id, start, end, touched, entities)
            if about is not None and start == first:
                row = (about.name, about.type, about.description, None, None, None, None, True)
                entities.add(unit_id, n_entities, *row)
            _add_relationships(unit_id, start, end, touched, text, settings, relationships)
    return {
        "entity_mentions": entities.to_table(),
        "relationship_mentions": relationships.to_table(),
        "claim_mentions": CLAIM_MENTIONS.empty(),
    }


def read_document(title: str, text: str) -> tuple[list[_TaggedSentence], _About | None]:
    """Return the sentences of a document that contain names, with these names, and the entity it is about, or None."""
    spans = split_lines(text, split_sentences(text))
    rolls = find_rolls(text)
    headings = [is_heading(text, *span) and not any(a <= span[0] < b for _, a, b in rolls) for span in spans]
    about = read_title(title, text)
    names, links, types = _name_things(mask_code(text), spans, headings, about, title)
    by_sentence: defaultdict[int, list[_Occurrence]] = defaultdict(list)
    for name in sorted(include_articles(names, text), key=lambda name: (name.start, name.end)):
        form = links[name.form]
        by_sentence[name.sentence].append(
            _Occurrence(title_of(form), form, types[form], name.start, name.end, text[name.start : name.end])
        )
    sentences = [
        _TaggedSentence(*spans[n], "" if headings[n] else _fold(text, spans[n]), tuple(by_sentence[n]))
        for n in sorted(by_sentence)
    ]
    if about is None:
        return sentences, None
    first = next((span for span, heading in zip(spans, headings, strict=True) if not heading), (0, 0))
    return sentences, _About(about.form, types[about.form], _fold(text, first))


def _fold(text: str, span: tuple[int, int]) -> str:
    return " ".join(text[slice(*span)].split())


def _name_things(
    text: str, spans: list[tuple[int, int]], headings: list[bool], about: DocumentTitle | None, title: str
) -> tuple[list[Name], dict[str, str], dict[str, str]]:
    """Return every name in the document, the canonical form of each written form, and the type of each form."""
    starts = [start for start, _ in spans]
    language = detect_language(text)
    is_english = language in ("en", "")
    acronyms: dict[str, str] = {}
    if language in ("zh", "ja"):
        names, types = (find_chinese_names if language == "zh" else find_japanese_names)(text, starts)
        names = _prefer(names, find_names(text, spans, headings))  # names in Latin script
    else:
        names = find_names(text, spans, headings, SMALL_WORDS.get(language, frozenset()))
        if language == "de":
            names = keep_german_names(names, text)
        firms, numbered, composites = set[str](), set[str](), dict[str, str]()
        if is_english:
            names = drop_offices(names, text, find_attendees(text))
            names = split_joined(drop_cited(names, text, headings), text)
            names = join_species(names, text, starts)
            names, acronyms = place_acronyms(names, text, starts)
            names, firms = join_firm_pairs(names, text)
            names, numbered = join_numbers(names, text)
            names, composites = join_composites(names, text, starts)
            names, works = join_quoted_titles(names, text, starts)
            composites |= dict.fromkeys(works, CONCEPT)
        acts = find_acts(text, starts) if is_english else []
        names = prefer_acts(acts, sorted(names + find_dates(text, spans), key=lambda name: (name.start, name.end)))
        types = (
            _type_addressed(names, language) | {act.form: CONCEPT for act in acts} | dict.fromkeys(firms, ORGANIZATION)
        )
        types |= dict.fromkeys(numbered, CONCEPT) | composites
        types |= {name.form: CONCEPT for name in names if is_english and is_species(name.form)}
    if about is not None:
        names = _prefer(find_title(about, text, starts), names)
    acronyms |= find_acronyms(names, text)
    if is_english:
        acronyms |= find_initials({name.form for name in names}, text)
    written_types = type_acronyms(type_names(names, text, is_english), acronyms) | types
    if about is not None and (defined := find_defined_type(about.name, names, text)):
        written_types[about.name] = defined
    if about is not None:  # the title is a name of the document, also if the text does not contain it
        names.append(Name(about.name, len(text), len(text), -1))
        written_types.setdefault(about.name, about.type or type_by_words(about.name) or UNKNOWN)
    links = find_canonical_forms(names, written_types, acronyms, language)
    if language == "zh":
        links |= find_titled_forms({form for form, kind in written_types.items() if kind == PERSON}, text)
        links |= find_place_forms({form for form, kind in written_types.items() if kind == GEO})
    if about is not None:
        surnames = find_subject_surname(about.name, names, written_types, text)
        links = {form: links[about.name] if {form, link} & surnames else link for form, link in links.items()}
        written_types |= dict.fromkeys(surnames, PERSON)
    types = vote_types(names, written_types, links)
    if is_english:
        types = type_terms(names, types, links, text)
        adjectives = {form for form in find_adjectives(names, text) if types[links[form]] == CONCEPT}
        names = [name for name in names if name.form not in adjectives or name.sentence < 0]
        names = drop_heading_names(names, types, links, text, spans, headings)
    if about is not None:
        names.pop()
        canonical = links[about.name]
        links = {form: about.form if name == canonical else name for form, name in links.items()}
        types[about.form] = about.type or types[canonical]
    if is_english:
        kin = link_kin(names, links, types, text)
        names, compounds = join_compounds(names, types, links, text)
        links = {form: kin.get(link, compounds.get(link, link)) for form, link in links.items()}
        names, eponyms = join_eponyms(names, types, links, text)
        links |= {form: form for form in (*compounds.values(), *eponyms)}
        types |= dict.fromkeys((*compounds.values(), *eponyms), CONCEPT)
        is_explaining = explains(text)
        names = names if is_explaining else drop_parties(names, links)
        terms = {
            title_of(form): link
            for form, link in links.items()
            if types.get(link) == CONCEPT and (is_explaining or " " in form)
        }
        concepts = find_concepts(text, names, starts, headings, terms.keys())
        speakers = find_speakers(text, concepts)
        if reports(text, sum(types[links[name.form]] in PROPER for name in names)):
            concepts = drop_ordinary_terms(concepts, text, title)
            names = drop_held_places(names)
        elif tells_story(text):
            concepts = drop_story_terms(concepts, text, title)
        concepts = join_of_terms(concepts, text)
        names += concepts
        links |= {concept.form: terms.get(title_of(concept.form), concept.form) for concept in concepts}
        types |= {concept.form: CONCEPT for concept in concepts} | dict.fromkeys(speakers, PERSON)
        links = link_term_forms(names, links, types)
        types = dict.fromkeys(links.values(), CONCEPT) | types
    return names, links, types


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


def _units_by_document(text_units: pa.Table) -> dict[str, list[tuple[str, int, int]]]:
    units: defaultdict[str, list[tuple[str, int, int]]] = defaultdict(list)
    columns = (text_units[name].to_pylist() for name in ("document_id", "id", "start", "end"))
    for document_id, unit_id, start, end in zip(*columns, strict=True):
        units[document_id].append((unit_id, start, end))
    return units


def _add_entities(unit_id: str, start: int, end: int, sentences: list[_TaggedSentence], entities: _Columns) -> int:
    """Add a mention per sentence and written form; return their number."""
    n_entities = 0
    for sentence in sentences:
        seen: set[tuple[str, str]] = set()
        for o in _inside(sentence, start, end):
            key = (o.title, title_of(o.written))
            if key in seen:
                continue
            seen.add(key)
            row = (o.name, o.type, sentence.description, o.start, o.end, None, o.written, None)
            entities.add(unit_id, n_entities, *row)
            n_entities += 1
    return n_entities


def _add_relationships(
    unit_id: str,
    start: int,
    end: int,
    sentences: list[_TaggedSentence],
    text: str,
    settings: ExtractionSettings,
    relationships: _Columns,
) -> None:
    n_relationships = 0
    for sentence in sentences:
        first: dict[str, _Occurrence] = {}
        for occurrence in _inside(sentence, start, end):
            first.setdefault(occurrence.title, occurrence)
        met = list(first.values())
        is_list = len(met) > settings.max_entities_per_sentence
        for a, b in pairwise(met) if is_list else combinations(met, 2):
            predicate = find_predicate(text, a.end, b.start)
            row = (a.name, b.name, sentence.description, STRENGTH, sentence.start, sentence.end, None, predicate)
            relationships.add(unit_id, n_relationships, *row)
            n_relationships += 1


def _inside(sentence: _TaggedSentence, start: int, end: int) -> Iterator[_Occurrence]:
    return (o for o in sentence.occurrences if start <= o.start and o.end <= end)
