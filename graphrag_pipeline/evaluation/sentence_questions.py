"""Gold questions without a model: about two related entities, answered by the sentences that name both.

The relationship is drawn with a seed. It counts if both entities are named together in a complete sentence of one
document alone, so the evidence is known. The reference answers are these sentences themselves, the longest first. Such
a question names what its answer names. So it tests whether an index still finds and quotes a passage, which is easier
than most questions of people. Keep out: questions by a model (`generated_questions.py`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.evaluation.questions import SEED, Question
from graphrag_pipeline.query import records
from graphrag_pipeline.text.extractive import sentences_of
from graphrag_pipeline.text.languages import detect_language
from graphrag_pipeline.text.sentence_forms import (
    MAX_WORDS,
    count_words,
    fold,
    has_open_quote,
    is_cry,
    is_sentence,
    leans_on_context,
)

if TYPE_CHECKING:
    from graphrag_pipeline.query.index.graph_index import GraphIndex

MAX_ANSWERS = 5
"""Most reference answers of a question."""
_COLUMNS = ["source_id", "target_id", "text_unit_ids"]
_WORDINGS = {
    "en": "What is known about {a} and {b}?",
    "de": "Was ist über {a} und {b} bekannt?",
    "fr": "Que sait-on de {a} et de {b} ?",
    "es": "¿Qué se sabe de {a} y de {b}?",
    "it": "Che cosa si sa di {a} e di {b}?",
    "pt": "O que se sabe sobre {a} e {b}?",
    "nl": "Wat is er bekend over {a} en {b}?",
    "zh": "关于{a}和{b}，文中说了什么？",
    "ja": "{a}と{b}について何が書かれていますか？",
}
"""Language of the sentence -> the question."""


def generate_from_sentences(index: GraphIndex, n: int) -> list[Question]:
    """Generate at most n questions, no two with the same fullest answer.

    Raises:
        PipelineError: no sentence of the index names two related entities.
    """
    rows = list(range(index.snapshot.n_rows("relationships")))
    random.Random(SEED).shuffle(rows)
    found: dict[str, Question] = {}
    for row in rows:
        [relationship] = index.snapshot.take("relationships", np.array([row]), _COLUMNS)
        question = _question_about(index, relationship)
        if question:
            found.setdefault(question.answers[0], question)
        if len(found) == n:
            break
    if not found:
        raise PipelineError(
            "no sentence of the index names two related entities, so no question can be generated without a model; set "
            "`chat_model.model` or `evaluation.model`"
        )
    return list(found.values())


def _question_about(index: GraphIndex, relationship: dict[str, Any]) -> Question | None:
    """Return a question about both entities; None if no sentence of one document alone names them by two names."""
    rows = index.snapshot.rows_of("text_units", relationship["text_unit_ids"])
    rows = rows[rows >= 0]
    units = records.read_text_units(index, rows, np.zeros(len(rows)))
    if len({unit.document_id for unit in units}) != 1:
        return None
    ends = index.snapshot.rows_of("entities", [relationship["source_id"], relationship["target_id"]])
    candidates = dict.fromkeys(text for unit in units for text in sentences_of(unit.text) if _reads_alone(text))
    answers = sorted((text for text in candidates if set(ends.tolist()) <= set(index.names.find(text))), key=len)
    if not answers:
        return None
    fullest = answers[-1]
    a, b = (_written_name(entity, fullest) for entity in index.snapshot.take("entities", ends, ["title", "names"]))
    if fold(a) in fold(b) or fold(b) in fold(a):
        return None
    wording = _WORDINGS.get(detect_language(fullest), _WORDINGS["en"])
    kept = tuple(answers[: -MAX_ANSWERS - 1 : -1])
    return Question(wording.format(a=a, b=b), (units[0].document_id,), kept, "local")


def _reads_alone(sentence: str) -> bool:
    leans = leans_on_context(sentence) or is_cry(sentence) or has_open_quote(sentence)
    return is_sentence(sentence) and not leans and count_words(sentence) <= MAX_WORDS


def _written_name(entity: dict[str, Any], sentence: str) -> str:
    """Return the longest name of an entity that a sentence writes, else its title."""
    names: Sequence[str] = [name for name in entity["names"] or () if fold(name) in fold(sentence)]
    return max(names, key=lambda name: (name in sentence, len(name), name), default=entity["title"])
