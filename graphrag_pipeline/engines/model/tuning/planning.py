"""A request for a tuned set: sample, passages and prompts, and the name that follows from them. Nothing is sent.

Keep out: what the model writes (`tuner.py`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from graphrag_pipeline.engines.model.extraction.conversations import build_graph_prompt
from graphrag_pipeline.engines.model.extraction.extractor import ModelExtractor
from graphrag_pipeline.engines.model.tuning.composition import TUNED_PROMPTS, choose_base
from graphrag_pipeline.engines.model.tuning.corpus import Corpus
from graphrag_pipeline.engines.model.tuning.requests import MAX_TYPES
from graphrag_pipeline.engines.model.tuning.sample_names import SampleNames, read_names
from graphrag_pipeline.engines.model.tuning.sampling import Passage, SampledUnit, choose_passages, choose_units
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.inspection.extraction_room import (
    ExtractionRoom,
    find_extraction_room,
    find_window,
)
from graphrag_pipeline.models.endpoints.windows import count_prompt, prompt_room
from graphrag_pipeline.models.prompts import Prompt, load_prompt
from graphrag_pipeline.pipeline.root import PROMPTS_FOLDER, Root
from graphrag_pipeline.pipeline.tuned_sets import TunedSet, find_set
from graphrag_pipeline.settings.section import SET_NAME, TuningSample

SECTION = "tuning"
PROMPTS = ("tune_corpus", "tune_entity_types", "tune_rating", "tune_example")
CANDIDATES_PER_EXAMPLE = 2
MAX_CONTEXT_TOKENS = 4000
"""Most tokens of the sample in one call, with an equal share for each text unit; less in a smaller window."""
MAX_EXAMPLE_TOKENS = 150
"""Most tokens of the passage of an example: short enough that a model copies its form."""
INTRODUCTION_TOKENS = 80
"""Tokens of the persona and the subject at the start of a tuned prompt, about."""
PASSAGE_SHARE = 4
"""The passage of an example takes at most one in so many tokens of a prompt."""


@dataclass(frozen=True)
class Given:
    """What the user gives instead of the model; None or empty is written by the model."""

    domain: str | None = None
    language: str | None = None
    persona: str | None = None
    entity_types: tuple[str, ...] = ()

    def listed(self) -> dict[str, Any]:
        """Return what is given, by name."""
        return {name: value for name, value in asdict(self).items() if value}


@dataclass(frozen=True)
class Tuning:
    """A request for a tuned set: the sample and all that its replies depend on.

    Attributes:
        name: of the set.
        fingerprint: hash of everything that decides the set.
        names: of the sample, which are not entity types.
        room: most tokens of a prompt of `tune`; None if the window of its model is not known.
        extraction: what the window of the extraction model leaves; None if it is not known.
    """

    name: str
    fingerprint: str
    settings: TuningSample
    given: Given
    units: tuple[SampledUnit, ...]
    passages: tuple[Passage, ...]
    prompts: dict[str, Prompt]
    bases: dict[str, Prompt]
    names: SampleNames
    room: int | None = None
    extraction: ExtractionRoom | None = None


def plan_tuning(root: Root, corpus: Corpus, settings: TuningSample, given: Given, name: str | None = None) -> Tuning:
    """Choose the sample and the passages of the examples; nothing is sent.

    Raises:
        PipelineError: no chat model is named, the name cannot be that of a folder, or the extraction prompt does not
            fit the window of its model.
    """
    if not root.settings.chat_model_for(SECTION).model:
        raise PipelineError(
            "a chat model writes the prompts; set `chat_model.model` or `tuning.model` in settings.yaml"
        )
    if name is not None and not SET_NAME.fullmatch(name):
        raise PipelineError(f"{name!r} is not a name for a tuned set; use letters, digits, `.`, `_` and `-`")
    units = choose_units(
        corpus.units,
        settings.sample,
        settings.size,
        settings.seed,
        root.settings.storage.n_buckets,
        lambda: root.static_embedder,
    )
    room, extraction = _find_room(root), find_extraction_room(root)
    mentions = corpus.find_by_rule([unit.id for unit in units])
    passages = choose_passages(
        units,
        mentions,
        MAX_EXAMPLE_TOKENS if room is None else min(MAX_EXAMPLE_TOKENS, room // PASSAGE_SHARE),
        root.settings.text_units.encoding,
        settings.n_examples * CANDIDATES_PER_EXAMPLE,
    )
    own = {prompt: load_prompt(root.path / PROMPTS_FOLDER, prompt) for prompt in TUNED_PROMPTS}
    bases = {prompt: choose_base(own[prompt], load_prompt(None, prompt)) for prompt in TUNED_PROMPTS}
    _refuse_too_long(root, bases["extract_graph"], extraction)
    prompts = {prompt: root.prompt(prompt) for prompt in PROMPTS}
    rooms = [room, extraction.n_room - extraction.n_unit if extraction else None]
    fingerprint = _fingerprint(root, settings, given, units, passages, [*prompts.values(), *bases.values()], rooms)
    return Tuning(
        name or f"tuned-{fingerprint[:8]}",
        fingerprint,
        settings,
        given,
        tuple(units),
        tuple(passages),
        prompts,
        bases,
        read_names((unit.text for unit in units), mentions),
        room,
        extraction,
    )


def _find_room(root: Root) -> int | None:
    window = find_window(root, SECTION)
    return None if window is None else prompt_room(window, root.settings.reply_tokens_for(SECTION))


def _refuse_too_long(root: Root, base: Prompt, extraction: ExtractionRoom | None) -> None:
    """Raise if the prompt that the set is made from does not fit with a persona, so that no call is paid for it."""
    if extraction is None:
        return
    n_prompt = (
        count_prompt(build_graph_prompt("", replace(ModelExtractor(root).plan, prompt=base))) + INTRODUCTION_TOKENS
    )
    if not extraction.fits(n_prompt):
        raise PipelineError(
            f"no tuned prompt would fit: with persona and subject, {extraction.explain(n_prompt)}. Nothing was sent; "
            f"{extraction.advise(n_prompt)}"
        )


def _fingerprint(
    root: Root,
    settings: TuningSample,
    given: Given,
    units: Sequence[SampledUnit],
    passages: Sequence[Passage],
    prompts: Sequence[Prompt],
    rooms: Sequence[int | None],
) -> str:
    model = root.settings.chat_model_for(SECTION)
    decisive: list[Any] = [
        [model.model, model.parameters],
        [settings.model_dump(mode="json"), MAX_CONTEXT_TOKENS, MAX_TYPES, MAX_EXAMPLE_TOKENS],
        asdict(given),
        [[unit.id, unit.text] for unit in units],
        [[passage.text_unit_id, passage.text] for passage in passages],
        [[prompt.name, prompt.sha256] for prompt in prompts],
        [root.settings.extraction.language, list(root.settings.extraction.entity_types)],
    ]
    if any(room is not None for room in rooms):
        decisive.append(["rooms", *rooms])
    return stable_hash("tuned set", json.dumps(decisive, sort_keys=True))


def find_written(root: Root, tuning: Tuning) -> TunedSet | None:
    """Return the set if it was written before.

    Raises:
        PipelineError: a set of this name was written from another sample, model or other options.
    """
    found = find_set(root.path, tuning.name)
    if found and found.fingerprint != tuning.fingerprint:
        raise PipelineError(
            f"the tuned set `{tuning.name}` exists and was written from another sample, model, options or prompts; it "
            "is not overwritten: pass another --name"
        )
    return found
