"""spaCy: named entities and part-of-speech tags of a text.

The default is the small English pipeline that is bundled (`bundled/en_core_web_sm`); `extraction.spacy_model` names any
installed pipeline or the path of one. Only its parts for entities and tags are loaded. Labels of OntoNotes and of
WikiNER become the entity types of this package; amounts, numbers, languages and peoples are no entities.

Keep out: what becomes of the entities (`finder.py`).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.engines.embedded.names.spacy_layers import can_follow, follow_moves, tag_tokens
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.text.name_words import CONCEPT, EVENT, GEO, ORGANIZATION, PERSON

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

os.environ.setdefault("BLIS_NUM_THREADS", "1")
"""The matrix product of spaCy uses one thread: the buckets of an index run side by side."""

TYPES = {
    **dict.fromkeys(("PERSON", "PER", "PRS"), PERSON),
    **dict.fromkeys(("ORG", "ORGANIZATION"), ORGANIZATION),
    **dict.fromkeys(("GPE", "LOC", "FAC"), GEO),
    **dict.fromkeys(("EVENT", "EVT"), EVENT),
    **dict.fromkeys(("PRODUCT", "LAW", "WORK_OF_ART", "WRK", "MISC"), CONCEPT),
}
"""Label of a spaCy pipeline -> entity type; other labels are not names."""
BUNDLED = "en_core_web_sm"
_NEEDED = ("tok2vec", "transformer", "tagger", "morphologizer", "ner")
_MOST_KNOWN = 250_000
"""Words that a pipeline keeps in memory with their vectors, about 1 kB each, before it is loaded again."""
_BATCH = 20_000
"""Characters of the text that the pipeline reads at once, about: its memory grows with them."""
_lock = threading.Lock()
"""A pipeline switches parts on and off and learns words, so one thread uses it at a time."""


@cache
def load_pipeline(name: str) -> Language:
    """Return a spaCy pipeline with only what finds entities and tags words.

    Args:
        name: of an installed pipeline, or its path; "" is the bundled one.

    Raises:
        PipelineError: there is no such pipeline, or it finds no entities.
    """
    import spacy

    source = name if name else str(files("graphrag_pipeline") / "bundled" / BUNDLED)
    try:
        found = spacy.load(source)
    except (OSError, ImportError, ValueError) as error:
        raise PipelineError(
            f"extraction.spacy_model: {name!r} is no spaCy pipeline that can be loaded ({error}). "
            "Install it (python -m spacy download NAME), give the path of its folder, or leave the option out."
        ) from error
    for component in found.component_names:
        if component not in _NEEDED:
            found.remove_pipe(component)
    if "ner" not in found.pipe_names:
        raise PipelineError(f"extraction.spacy_model: the pipeline {name!r} has no named entities (no part `ner`).")
    return found


def language_of(name: str = "") -> str:
    """Return the code of the language that a pipeline reads; "xx" is every one."""
    return str(load_pipeline(name).lang)


def find_entities(text: str, name: str = "") -> list[tuple[int, int, str]]:
    """Return (start, end, entity type) of the entities in a text, in order; none spans a line break.

    The type is "" for what is no name: dates, amounts, peoples.

    Args:
        text: sentences, separated by line breaks.
        name: as of `load_pipeline`.
    """
    pipeline = load_pipeline(name)
    found = []
    with _lock, pipeline.select_pipes(disable=_not_for_names(name)):
        for start, part in _batches(text):
            for first, last, label in _read_part(pipeline, part.replace("|", ";")):  # cells of a table
                if "\n" not in part[first:last]:
                    found.append((start + first, start + last, TYPES.get(label, "")))
    if len(pipeline.vocab) > _MOST_KNOWN:
        load_pipeline.cache_clear()
        _words_of.cache_clear()  # it would keep the pipeline
    return found


def _read_part(pipeline: Language, part: str) -> list[tuple[int, int, str]]:
    """Return (start, end, label) of the entities of a text."""
    ner: Any = pipeline.get_pipe("ner")
    if not can_follow(ner):
        return [(entity.start_char, entity.end_char, entity.label_) for entity in pipeline(part).ents]
    with pipeline.select_pipes(disable="ner"):
        doc = pipeline(_make_doc(pipeline, part))
    spans = ((doc[first:last], label) for first, last, label in follow_moves(ner, doc))
    return [(span.start_char, span.end_char, label) for span, label in spans]


def _make_doc(pipeline: Language, text: str) -> Doc:
    """Return the tokens of a text.

    spaCy's tokenizer remembers no word after the first exception in a text, such as "Mr.", so it meets new words alone.
    """
    words = _words_of(pipeline)
    for word in set(text.split()) - words:
        pipeline.make_doc(word)
        words.add(word)
    return pipeline.make_doc(text)


@cache
def _words_of(pipeline: Language) -> set[str]:
    """Return the set for the words that the tokenizer of a pipeline remembers."""
    tokenizer: Any = pipeline.tokenizer
    tokenizer.max_cache_size = _MOST_KNOWN
    return set()


def tag_words(sentences: Sequence[str]) -> Iterator[list[tuple[int, int, str]]]:
    """Yield for each English sentence (start, end, tag of the Penn Treebank) of its words, by the bundled pipeline."""
    pipeline = load_pipeline("")
    with _lock:
        docs = [_make_doc(pipeline, sentence) for sentence in sentences]
        tags = tag_tokens(pipeline, docs) if docs else []
    for doc, tagged in zip(docs, tags, strict=True):
        yield [(token.idx, token.idx + len(token), tag) for token, tag in zip(doc, tagged, strict=True)]


@cache
def _not_for_names(name: str) -> list[str]:
    """Return the parts that only tags need: the tagger, and the vectors of words if the names have their own."""
    pipeline = load_pipeline(name)
    taggers = [part for part in ("tagger", "morphologizer") if part in pipeline.pipe_names]
    names: Any = pipeline.get_pipe("ner")
    shared = names.model.get_ref("tok2vec") if "tok2vec" in pipeline.pipe_names else None
    has_own = shared is not None and not any("listener" in layer.name for layer in shared.walk())
    return [*taggers, *(("tok2vec",) if has_own else ())]


def _batches(text: str) -> Iterator[tuple[int, str]]:
    """Yield (start, part) of a text, cut at line breaks."""
    start = 0
    while start < len(text):
        end = len(text) if len(text) - start <= _BATCH else text.find("\n", start + _BATCH) + 1 or len(text)
        yield start, text[start:end]
        start = end
