"""Passages for examples: in each text unit of the sample, the run of whole sentences that names most.

Languages take turns, so that a corpus in several languages gets examples in each. Keep out: prompts.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphrag_pipeline.engines.model.tuning.sampling import SampledUnit
from graphrag_pipeline.text.entity_types import CONCEPT
from graphrag_pipeline.text.languages import detect_language
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline.text.tokens import count_tokens_each

_MARKS = re.compile(r"<\||\|>|##|</?\s*(?:text|data|passage|input_text|document)\b", re.IGNORECASE)
"""Text that a prompt or a reply of extraction could take for its own marks."""


@dataclass(frozen=True)
class Passage:
    """A passage of a text unit.

    Attributes:
        text: on one line.
        names: names in it that the embedded engine finds, without key phrases.
        language: as rules detect it; "" if they cannot.
    """

    text_unit_id: str
    document_id: str
    text: str
    names: frozenset[str]
    language: str


def choose_passages(
    units: Sequence[SampledUnit], mentions: Mapping[str, Sequence[Mapping]], max_tokens: int, encoding: str, n: int
) -> list[Passage]:
    """Return at most `n` passages, one per text unit, those with most names first, languages in turn.

    Args:
        mentions: text unit id -> rows with `name`, `type` and `written` of the embedded engine.
    """
    found = (_choose_passage(unit, mentions.get(unit.id, ()), max_tokens, encoding) for unit in units)
    ranked = sorted((p for p in found if p), key=lambda p: (-len(p.names), p.text_unit_id))
    turn: Counter[str] = Counter()
    turns = []
    for passage in ranked:
        turns.append(turn[passage.language])
        turn[passage.language] += 1
    return [ranked[place] for place in sorted(range(len(ranked)), key=lambda place: turns[place])[:n]]


def _choose_passage(unit: SampledUnit, mentions: Sequence[Mapping], max_tokens: int, encoding: str) -> Passage | None:
    """Return the window of sentences with most names; of equal ones the first; None if none can be used."""
    spans = split_sentences(unit.text)
    sentences = [unit.text[start:end] for start, end in spans]
    tokens = count_tokens_each(sentences, encoding)
    forms = {row["written"] or row["name"]: row["name"] for row in mentions if row["type"] != CONCEPT}
    best: tuple[int, str, frozenset[str]] | None = None
    for first in range(len(sentences)):
        last, n_tokens = first, 0
        while last < len(sentences) and n_tokens + tokens[last] <= max_tokens:
            n_tokens += tokens[last]
            last += 1
        text = " ".join(unit.text[spans[first][0] : spans[last - 1][1]].split()) if last > first else ""
        if not text or _MARKS.search(text):
            continue
        names = frozenset(name for form, name in forms.items() if form in text)
        if best is None or len(names) > best[0]:
            best = (len(names), text, names)
    return Passage(unit.id, unit.document_id, best[1], best[2], detect_language(unit.text)) if best else None
