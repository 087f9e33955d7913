"""Writing a tuned set: sample, requests in their order, checks, prompt files. Stored replies are never paid again.

The same steps run with two ways to ask. `ModelAsker` sends requests. `CostCounter` sends nothing: it takes stored
replies, counts the others and goes on with a guess, so that the cost is known before. An interrupted run continues
where it stopped, because each reply is stored when it arrives and the files are written at the end.

Two ways to get the replies of tuning: `ModelAsker` sends requests, `CostCounter` counts what they would cost.

`CostCounter` takes stored replies, counts the other requests and goes on with a guess, so that the cost of later
requests is known before, too.

Keep out: prompts and replies (`requests.py`), the comparison with the present prompts (`comparison.py`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from graphrag_pipeline.engines.model.extraction.conversations import build_graph_prompt
from graphrag_pipeline.engines.model.extraction.extractor import ModelExtractor
from graphrag_pipeline.engines.model.extraction.reply_fields import read_type
from graphrag_pipeline.engines.model.tuning.composition import compose_prompts
from graphrag_pipeline.engines.model.tuning.examples import DraftedExample, Example, check_example, choose_examples
from graphrag_pipeline.engines.model.tuning.planning import MAX_CONTEXT_TOKENS, SECTION, Tuning
from graphrag_pipeline.engines.model.tuning.requests import (
    MAX_TYPES,
    Description,
    RatingScale,
    ReadExample,
    ReadTypes,
    ask_corpus,
    ask_example,
    ask_rating,
    ask_types,
)
from graphrag_pipeline.engines.model.tuning.sampling import Passage, SampleRequest
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.inspection.costs import StageEstimate, with_price
from graphrag_pipeline.inspection.extraction_room import ExtractionRoom, find_extraction_room
from graphrag_pipeline.models.endpoints.windows import count_prompt
from graphrag_pipeline.models.pool import Work, complete_all, complete_within_window, run_all
from graphrag_pipeline.models.ports import ChatModel, ChatReply, ChatRequest, Failure
from graphrag_pipeline.models.prompts import load_prompt
from graphrag_pipeline.pipeline.root import PROMPTS_FOLDER, Root
from graphrag_pipeline.pipeline.tuned_sets import TunedExample, TunedSet, write_set
from graphrag_pipeline.text.languages import LANGUAGE_NAMES, detect_language
from graphrag_pipeline.text.tokens import count_tokens_each

T = TypeVar("T")

REPLY_TOKENS = {"corpus": 80, "entity types": 60, "rating scale": 90}
"""Guessed tokens of a reply, by the record of its request; for an example `EXAMPLE_TOKENS`."""
EXAMPLE_TOKENS = 600


class Asker(Protocol):
    """A way to get the replies of requests."""

    def ask(self, requests: Sequence[ChatRequest[T]], guess: T) -> Sequence[T | Failure]:
        """Return what the replies say, in order; `guess` is what a reply might say."""
        ...

    def ask_about_sample(self, request: SampleRequest[T], room: int | None, guess: T) -> T | Failure:
        """Return what the reply to a request about the sample says; the sample is cut to what the window holds.

        Args:
            room: most tokens of a prompt; None if the window is not known.

        Raises:
            PipelineError: the window has no room for a sample.
        """
        ...


class ModelAsker:
    """Sends requests to a chat model."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    def ask(self, requests: Sequence[ChatRequest[T]], guess: T) -> list[T | Failure]:
        """See `Asker.ask`.

        Raises:
            PipelineError: the endpoint gave no answer to a request; the next try asks for that one only.
        """
        return self._read(complete_all(self._model, requests))

    def ask_about_sample(self, request: SampleRequest[T], room: int | None, guess: T) -> T | Failure:
        """See `Asker.ask_about_sample`; a window that the endpoint tells by a refusal is kept to, too."""
        first = request.fit(room)
        work = Work(first.record, partial(complete_within_window, self._model, first, request.shorten))
        [found] = run_all(self._model.stage, [work], 1)
        [value] = self._read([found if isinstance(found, Failure) else found[0]])
        return value

    def _read(self, replies: Sequence[ChatReply[T] | Failure]) -> list[T | Failure]:
        unanswered = [reply for reply in replies if isinstance(reply, Failure) and reply.is_unanswered]
        if unanswered:
            raise PipelineError(
                f"{unanswered[0].record}: {unanswered[0].reason}; {len(unanswered)} of {len(replies)} calls were not "
                "answered. Nothing was written; replies so far are stored, so run the same command again"
            )
        return [reply if isinstance(reply, Failure) else reply.value for reply in replies]


class CostCounter:
    """Counts what requests would cost; implements `Asker` without sending."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.n_calls = self.n_cached = self.prompt_tokens = self.completion_tokens = 0

    def ask(self, requests: Sequence[ChatRequest[T]], guess: T) -> list[T | Failure]:
        """See `Asker.ask`."""
        return [
            self._count(request, reply, guess)
            for request, reply in zip(requests, self._model.recall(requests), strict=True)
        ]

    def ask_about_sample(self, request: SampleRequest[T], room: int | None, guess: T) -> T | Failure:
        """See `Asker.ask_about_sample`."""
        [found] = self.ask([request.fit(room)], guess)
        return found

    def _count(self, request: ChatRequest[T], reply: ChatReply[T] | None, guess: T) -> T:
        if reply is not None:
            self.n_cached += 1
            return reply.value
        self.n_calls += 1
        self.prompt_tokens += sum(count_tokens_each([message["content"] for message in request.messages]))
        self.completion_tokens += REPLY_TOKENS.get(request.record, EXAMPLE_TOKENS)
        return guess


_GUESSED = Description(*(" ".join(["word"] * n) for n in (10, 1, 25)))


def estimate_tuning(root: Root, tuning: Tuning) -> StageEstimate:
    """Return the calls, tokens and cost of writing a set; replies that are stored cost nothing."""
    counter = CostCounter(root.models.chat_model(SECTION))
    _Writer(root, tuning, counter).write()
    tokens = counter.prompt_tokens, counter.completion_tokens
    return with_price(root.settings, StageEstimate(SECTION, counter.n_calls, counter.n_cached, *tokens), SECTION)


def write_tuned_set(root: Root, tuning: Tuning) -> TunedSet:
    """Let the model write a set, check it and write its files beside the present prompts.

    Raises:
        PipelineError: the model described no corpus, no request can be answered, or the budget is spent. Replies so
            far are stored.
    """
    tuned, texts = _Writer(root, tuning, ModelAsker(root.models.chat_model(SECTION))).write()
    write_set(root.path, tuned, texts)
    return tuned


class _Writer:
    """One run of the steps; collects what is refused, and remarks on what stays as it was."""

    def __init__(self, root: Root, tuning: Tuning, asker: Asker) -> None:
        self._root, self._tuning, self._asker = root, tuning, asker
        self._refused: Counter[str] = Counter()
        self._remarks: list[str] = []

    def write(self) -> tuple[TunedSet, dict[str, str]]:
        """Return the manifest and the texts of the prompts, by name."""
        tuning, settings = self._tuning, self._tuning.settings
        description = self._describe()
        types = self._choose_types(description)
        scale = self._choose_scale(description)
        examples = self._write_examples(description, types)
        self._note_bases()
        texts = compose_prompts(tuning.bases, description, scale, examples)
        model = self._root.settings.chat_model_for(SECTION)
        tuned = TunedSet(
            name=tuning.name,
            fingerprint=tuning.fingerprint,
            model={"model": model.model, "parameters": model.parameters},
            options=settings.model_dump(mode="json", exclude={"adopted", "model"}) | {"given": tuning.given.listed()},
            sample=tuple((unit.id, unit.document_id) for unit in tuning.units),
            languages=dict(sorted(Counter(detect_language(unit.text) for unit in tuning.units).items())),
            domain=description.domain,
            language=description.language,
            persona=description.persona,
            entity_types=types,
            rating=asdict(scale) if scale else {},
            examples=tuple(_describe_example(example) for example in examples),
            refused=dict(sorted((+self._refused).items())),
            remarks=tuple(self._remarks),
            bases={name: prompt.sha256 for name, prompt in tuning.bases.items()},
            prompts={name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
            settings=_settings_of(tuning, types),
        )
        return tuned, texts

    def _ask(self, ask: Callable[[str], ChatRequest[T]], guess: T) -> T | Failure:
        """Return the reply to a request about the sample, with as much of it as the window allows."""
        tuning, encoding = self._tuning, self._root.settings.text_units.encoding
        request = SampleRequest(ask, tuning.units, MAX_CONTEXT_TOKENS, encoding)
        return self._asker.ask_about_sample(request, tuning.room, guess)

    def _describe(self) -> Description:
        """Return domain, language and persona: those given, the others by the model."""
        given = self._tuning.given
        if given.domain and given.language and given.persona:
            return Description(given.domain, given.language, given.persona)
        found = self._ask(partial(ask_corpus, self._tuning.prompts["tune_corpus"]), _GUESSED)
        if isinstance(found, Failure):
            raise PipelineError(
                f"the model did not describe the corpus: {found.reason}. Try another model (`tuning.model`), or pass "
                "--domain, --language and --persona"
            )
        language = given.language or self._check_language(found.language)
        domain = given.domain or found.domain
        return Description(domain, language, given.persona or found.persona or self._make_persona(domain))

    def _make_persona(self, domain: str) -> str:
        self._refused["persona that is missing or copies the instructions"] += 1
        return f"You are an expert in this subject: {domain}."

    def _check_language(self, named: str) -> str:
        """Return the language that rules detect in most text units; "" if none, whatever the model named."""
        languages = filter(None, (detect_language(unit.text) for unit in self._tuning.units))
        detected = Counter(languages).most_common(1)
        known = LANGUAGE_NAMES.get(detected[0][0], named) if detected else ""
        self._refused["language that no rule detects in the texts"] += not known
        self._refused["language that is not the one of the texts"] += known.casefold() not in named.casefold()
        return known

    def _choose_types(self, description: Description) -> tuple[str, ...]:
        if self._tuning.given.entity_types:
            return tuple(dict.fromkeys(read_type(name, Counter()) for name in self._tuning.given.entity_types))
        prompt, most = self._tuning.prompts["tune_entity_types"], MAX_TYPES
        present = self._root.settings.extraction.entity_types
        ask = partial(ask_types, prompt, description, max_types=most, names=self._tuning.names)
        found = self._ask(ask, ReadTypes(present, {}))
        if isinstance(found, Failure):
            self._remarks.append(f"the entity types stay as they are: {found.reason}")
            return present
        self._refused.update(found.refused)
        return found.types

    def _choose_scale(self, description: Description) -> RatingScale | None:
        guess = RatingScale(*(" ".join(["word"] * n) for n in (25, 12, 12)))
        found = self._ask(partial(ask_rating, self._tuning.prompts["tune_rating"], description), guess)
        if isinstance(found, Failure):
            self._remarks.append(f"the rating scale of reports stays as it is: {found.reason}")
            return None
        return found

    def _write_examples(self, description: Description, types: Sequence[str]) -> list[Example]:
        tuning, language = self._tuning, self._root.settings.extraction.language
        prompt, persona = tuning.prompts["tune_example"], description.persona
        requests = [ask_example(prompt, persona, language, types, passage) for passage in tuning.passages]
        found = self._asker.ask(requests, ReadExample(DraftedExample((), ()), {}))
        pairs = zip(tuning.passages, found, strict=True)
        checked = [example for pair in pairs if (example := self._check_example(*pair, types))]
        wanted = choose_examples(checked, tuning.settings.n_examples)
        chosen = choose_examples(checked, tuning.settings.n_examples, partial(self._fit, description, types))
        if not wanted and tuning.settings.n_examples:
            self._remarks.append(
                f"the example of the extraction prompt stays: none of {len(requests)} drafts was usable"
            )
        elif (room := self._find_extraction_room()) and len(chosen) < len(wanted):
            said = room.explain(self._count_prompt(description, types, wanted))
            stays = "" if chosen else "; the present example stays"
            self._remarks.append(f"{len(chosen)} of {len(wanted)} examples fit{stays}: with all, {said}")
        return chosen

    def _fit(self, description: Description, types: Sequence[str], examples: Sequence[Example]) -> bool:
        """Whether the extraction prompt with some examples leaves room for a text unit and its reply."""
        room = self._find_extraction_room()
        return room is None or room.fits(self._count_prompt(description, types, examples))

    def _find_extraction_room(self) -> ExtractionRoom | None:
        """Return the room for extraction prompts; the window may have been learnt from a refusal since the plan."""
        return self._tuning.extraction or find_extraction_room(self._root)

    def _count_prompt(self, description: Description, types: Sequence[str], examples: Sequence[Example]) -> int:
        base = self._tuning.bases["extract_graph"]
        text = compose_prompts({base.name: base}, description, None, examples)[base.name]
        plan = replace(ModelExtractor(self._root).plan, prompt=replace(base, text=text), entity_types=tuple(types))
        return count_prompt(build_graph_prompt("", plan))

    def _check_example(self, passage: Passage, found: ReadExample | Failure, types: Sequence[str]) -> Example | None:
        if isinstance(found, Failure):
            self._refused["example without a usable reply"] += 1
            return None
        self._refused.update(found.refused)
        return check_example(found.draft, passage, types, self._refused)

    def _note_bases(self) -> None:
        for name, base in self._tuning.bases.items():
            own = load_prompt(self._root.path / PROMPTS_FOLDER, name)
            if base.sha256 != own.sha256:
                self._remarks.append(f"`{own.path}` has no place for tuned text: the default prompt is the base")


def _settings_of(tuning: Tuning, types: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the options that adopting sets; the language only if the user gave one."""
    settings: dict[str, dict[str, Any]] = {"extraction": {"entity_types": list(types)}}
    if tuning.given.language:
        for section in ("extraction", "descriptions", "reports"):
            settings.setdefault(section, {})["language"] = tuning.given.language
    return settings


def _describe_example(example: Example) -> TunedExample:
    return TunedExample(
        example.passage.text_unit_id,
        example.passage.document_id,
        example.passage.text,
        tuple(entity.name for entity in example.entities),
        tuple(f"{relationship.source} -- {relationship.target}" for relationship in example.relationships),
        example.coverage,
    )
