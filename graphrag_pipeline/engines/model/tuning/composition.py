"""Texts of the tuned prompt files: the base prompt with persona, subject, rating scale and examples in their places.

The base is the user's file if it has the places, else the default. Braces of inserted text are doubled, so that a
prompt renders what was inserted. Keep out: files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from graphrag_pipeline.engines.model.tuning.examples import Example
from graphrag_pipeline.engines.model.tuning.requests import Description, RatingScale
from graphrag_pipeline.models.prompts import Prompt

TUNED_PROMPTS = ("extract_graph", "summarize_descriptions", "community_report")
"""Prompts of a tuned set."""

_EXAMPLES = re.compile(r"^EXAMPLE\n.*?^(?=The passage to read:)", re.MULTILINE | re.DOTALL)
_RATING = re.compile(r"^- rating: .*$", re.MULTILINE)
_PLACES = {"extract_graph": _EXAMPLES, "community_report": _RATING}
"""Places that a base must have."""


def choose_base(own: Prompt, default: Prompt) -> Prompt:
    """Return the user's prompt if tuned text can be inserted, else the default."""
    place = _PLACES.get(own.name)
    return own if own.is_escaped and (place is None or place.search(own.text)) else default


def compose_prompts(
    bases: Mapping[str, Prompt], description: Description, scale: RatingScale | None, examples: Sequence[Example]
) -> dict[str, str]:
    """Return the texts of the tuned prompts by name.

    Args:
        scale, examples: None or empty to keep those of the base.
    """
    texts = {name: f"{_introduce(description)}\n\n{base.text}" for name, base in bases.items()}
    if examples:
        shown = "".join(_render_example(example, number) for number, example in enumerate(examples, 1))
        texts["extract_graph"] = _EXAMPLES.sub(lambda _: f"{_double(shown)}\n", texts["extract_graph"], count=1)
    if scale:
        line = f"- rating: {scale.criterion}, from 0 ({scale.low}) to 10 ({scale.high})."
        texts["community_report"] = _RATING.sub(lambda _: _double(line), texts["community_report"], count=1)
    return texts


def _introduce(description: Description) -> str:
    language = f", mostly in {description.language}" if description.language else ""
    return _double(f"{description.persona}\nThe texts are from a collection about {description.domain}{language}.")


def _render_example(example: Example, number: int) -> str:
    """Render an example in the format of extraction replies."""
    records = [f'("entity"<|>{e.name}<|>{e.type}<|>{e.description})' for e in example.entities]
    records += [
        f'("relationship"<|>{r.source}<|>{r.target}<|>{r.description}<|>{r.strength:g})' for r in example.relationships
    ]
    joined = "\n##\n".join(records)
    return f"EXAMPLE {number}\nPassage: {example.passage.text}\n{joined}\n<|COMPLETE|>\n"


def _double(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
