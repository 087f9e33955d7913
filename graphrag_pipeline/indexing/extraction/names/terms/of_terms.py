"""Terms that "of" joins to the noun before them: "weapons of mass destruction", never "mass destruction" alone.

Keep out: the choice of terms (`concepts.py`), names with "of" (`phrases.py`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from graphrag_pipeline.indexing.extraction.names.cues import STOPWORDS, words
from graphrag_pipeline.indexing.extraction.names.occurrences import Name
from graphrag_pipeline.indexing.extraction.names.terms.concept_words import GENERAL, VAGUE_FIRST
from graphrag_pipeline.indexing.extraction.names.terms.word_forms import may_be_adjective, may_be_noun
from graphrag_pipeline.text.late_patterns import late_regex

_HEAD = late_regex(r"\b(\p{L}\p{Ll}{3,})[ \n]of[ \n]$")
_MAX_BEFORE = 24  # characters of the head and "of"
_MIN_MENTIONS = 2
# Nouns that say how much, which part or what is done, and belong to no term: "lack of drinking water".
_MEASURES = words("""
number numbers amount amounts lack kind kinds type types sort sorts form forms part parts level levels rate rates use
end start rest time times case cases cause causes risk risks effect effects loss losses price prices cost costs state
production sale sales purchase supply absence presence means piece pieces group groups couple dozens hundreds thousands
millions majority minority share half quarter range series variety list host lots plenty member members head chief
minister ministry department board bank director issue question matter problem charge charges count counts piece
treatment management development introduction history importance role value benefits course evidence fear fears
hours days weeks months years acres kilometres miles tonnes tons litres metres percentage proportion
""")


def join_of_terms(concepts: Iterable[Name], text: str) -> list[Name]:
    """Return the terms of a document, with those that follow one noun and "of" at each mention extended by these.

    Args:
        concepts: every occurrence of the terms in lower case.
    """
    concepts = list(concepts)
    heads: defaultdict[str, set[str]] = defaultdict(set)
    places: dict[Name, int] = {}
    n_mentions: defaultdict[str, int] = defaultdict(int)
    for concept in concepts:
        if " " in concept.form:
            start, head = _find_head(concept, text)
            heads[concept.form].add(head)
            n_mentions[concept.form] += 1
            places[concept] = start
    joined = {
        form: min(found)
        for form, found in heads.items()
        if len(found) == 1 and "" not in found and n_mentions[form] >= _MIN_MENTIONS
    }
    return [
        replace(concept, form=f"{joined[concept.form]} of {concept.form}", start=places[concept])
        if concept.form in joined
        else concept
        for concept in concepts
    ]


def _find_head(concept: Name, text: str) -> tuple[int, str]:
    """Return offset and word of the noun before "of" and a term; (0, "") if none belongs to it."""
    match = _HEAD.search(text, max(concept.start - _MAX_BEFORE, 0), concept.start)
    head = match.group(1).lower() if match else ""
    key = head.upper()
    is_bare = key in _MEASURES | STOPWORDS | GENERAL | VAGUE_FIRST
    if match is None or is_bare or not may_be_noun(head) or may_be_adjective(head):
        return 0, ""
    return match.start(), head
