"""Tuned sets: the request for one, what the model writes for it, and its prompt files.

A request names sample, passages and prompts, and the name of the set follows from them. The steps run with two ways to
ask. `ModelAsker` sends requests. `CostCounter` sends nothing: it takes stored replies, counts the others and goes on
with a guess, so that the cost is known before. An interrupted run continues where it stopped, because each reply is
stored when it arrives and the files are written at the end.

A prompt file of a set is its base with persona, subject, rating scale and examples in their places. The base is the
user's file if it has the places, else the default. Braces of inserted text are doubled, so that a prompt renders what
was inserted.

Keep out: prompts and replies (`requests.py`), the comparison with the present prompts (`comparison.py`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, TypeVar

from graphrag_pipeline.engines.model.extraction.conversations import build_graph_prompt
from graphrag_pipeline.engines.model.extraction.extractor import ModelExtractor
from graphrag_pipeline.engines.model.extraction.reply_records import ExtractionReply, read_type
from graphrag_pipeline.engines.model.tuning.requests import (
    MAX_TYPES,
    Description,
    Example,
    RatingScale,
    ReadTypes,
    ask_corpus,
    ask_example,
    ask_rating,
    ask_types,
    check_example,
    choose_examples,
)
from graphrag_pipeline.engines.model.tuning.sampling import (
    Corpus,
    Passage,
    SampledUnit,
    SampleRequest,
    choose_passages,
    choose_units,
)
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import normalize_title, stable_hash
from graphrag_pipeline.inspection.costs import StageEstimate, with_price
from graphrag_pipeline.inspection.extraction_room import ExtractionRoom, find_extraction_room, find_window
from graphrag_pipeline.models.endpoints.windows import count_prompt, prompt_room
from graphrag_pipeline.models.pool import Work, complete_all, complete_within_window, run_all
from graphrag_pipeline.models.ports import ChatModel, ChatReply, ChatRequest, Failure
from graphrag_pipeline.models.prompts import Prompt, load_prompt
from graphrag_pipeline.pipeline.root import PROMPTS_FOLDER, Root
from graphrag_pipeline.pipeline.tuned_sets import TunedExample, TunedSet, find_set, write_set
from graphrag_pipeline.settings.section import SET_NAME, TuningSample
from graphrag_pipeline.text.languages import LANGUAGE_NAMES, detect_language
from graphrag_pipeline.text.name_words import CONCEPT
from graphrag_pipeline.text.tokens import count_tokens_each

T = TypeVar("T")

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
        names: titles of entities in the sample, which are not entity types.
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
    names: frozenset[str]
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
    window, extraction = find_window(root, SECTION), find_extraction_room(root)
    room = None if window is None else prompt_room(window, root.settings.reply_tokens_for(SECTION))
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
    n_prompt = _count_prompt(root, bases["extract_graph"]) + INTRODUCTION_TOKENS
    if extraction and not extraction.fits(n_prompt):
        raise PipelineError(
            f"no tuned prompt would fit: with persona and subject, {extraction.explain(n_prompt)}. Nothing was sent; "
            f"{extraction.advise(n_prompt)}"
        )
    prompts = {prompt: root.prompt(prompt) for prompt in PROMPTS}
    rooms = [room, extraction.n_room - extraction.n_unit if extraction else None]
    model = root.settings.chat_model_for(SECTION)
    decisive: list[Any] = [
        [model.model, model.parameters],
        [settings.model_dump(mode="json"), MAX_CONTEXT_TOKENS, MAX_TYPES, MAX_EXAMPLE_TOKENS],
        asdict(given),
        [[unit.id, unit.text] for unit in units],
        [[passage.text_unit_id, passage.text] for passage in passages],
        [[prompt.name, prompt.sha256] for prompt in (*prompts.values(), *bases.values())],
        [root.settings.extraction.language, list(root.settings.extraction.entity_types)],
        *([["rooms", *rooms]] if rooms != [None, None] else []),
    ]
    fingerprint = stable_hash("tuned set", json.dumps(decisive, sort_keys=True))
    return Tuning(
        name or f"tuned-{fingerprint[:8]}",
        fingerprint,
        settings,
        given,
        tuple(units),
        tuple(passages),
        prompts,
        bases,
        frozenset(normalize_title(row["name"]) for rows in mentions.values() for row in rows if row["type"] != CONCEPT),
        room,
        extraction,
    )


def _count_prompt(root: Root, prompt: Prompt, types: Sequence[str] = ()) -> int:
    """Return the tokens of an extraction prompt without a text unit; the entity types are those of the settings."""
    plan = replace(ModelExtractor(root).plan, prompt=prompt)
    plan = replace(plan, entity_types=tuple(types)) if types else plan
    return count_prompt(build_graph_prompt("", plan))


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


# --------------------------------------------------------------------------------------------------------- prompt files

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
    language = f", mostly in {description.language}" if description.language else ""
    lead = f"{description.persona}\nThe texts are from a collection about {description.domain}{language}."
    texts = {name: f"{_double(lead)}\n\n{base.text}" for name, base in bases.items()}
    if examples:
        shown = "".join(_render_example(example, number) for number, example in enumerate(examples, 1))
        texts["extract_graph"] = _EXAMPLES.sub(lambda _: f"{_double(shown)}\n", texts["extract_graph"], count=1)
    if scale:
        line = f"- rating: {scale.criterion}, from 0 ({scale.low}) to 10 ({scale.high})."
        texts["community_report"] = _RATING.sub(lambda _: _double(line), texts["community_report"], count=1)
    return texts


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


# -------------------------------------------------------------------------------------------------------------- writing

REPLY_TOKENS = {"corpus": 80, "entity types": 60, "rating scale": 90}
"""Guessed tokens of a reply, by the record of its request; for an example `EXAMPLE_TOKENS`."""
EXAMPLE_TOKENS = 600


class ModelAsker:
    """Sends requests to a chat model."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    def ask(self, requests: Sequence[ChatRequest[T]], guess: T) -> list[T | Failure]:
        """Return what the replies say, in order.

        Args:
            guess: what a reply might say.

        Raises:
            PipelineError: the endpoint gave no answer to a request; the next try asks for that one only.
        """
        return self._read(complete_all(self._model, requests))

    def ask_about_sample(self, request: SampleRequest[T], room: int | None, guess: T) -> T | Failure:
        """Return what the reply to a request about the sample says; the sample is cut to what the window holds.

        Args:
            room: most tokens of a prompt; None if the window is not known, until the endpoint tells it by a refusal.

        Raises:
            PipelineError: the window has no room for a sample, or the endpoint gave no answer.
        """
        first = request.fit(room)
        work = Work(first.record, partial(complete_within_window, self._model, first, request.shorten))
        [found] = run_all(self._model.stage, [work], 1)
        return self._read([found if isinstance(found, Failure) else found[0]])[0]

    def _read(self, replies: Sequence[ChatReply[T] | Failure]) -> list[T | Failure]:
        unanswered = [reply for reply in replies if isinstance(reply, Failure) and reply.is_unanswered]
        if unanswered:
            raise PipelineError(
                f"{unanswered[0].record}: {unanswered[0].reason}; {len(unanswered)} of {len(replies)} calls were not "
                "answered. Nothing was written; replies so far are stored, so run the same command again"
            )
        return [reply if isinstance(reply, Failure) else reply.value for reply in replies]


class CostCounter(ModelAsker):
    """Counts what requests would cost without sending them."""

    n_calls = n_cached = prompt_tokens = completion_tokens = 0

    def ask(self, requests: Sequence[ChatRequest[T]], guess: T) -> list[T | Failure]:
        """Return what the stored replies say, and the guess for the others."""
        replies = self._model.recall(requests)
        for request, reply in zip(requests, replies, strict=True):
            self.n_cached += reply is not None
            if reply is None:
                self.n_calls += 1
                self.prompt_tokens += sum(count_tokens_each([turn["content"] for turn in request.messages]))
                self.completion_tokens += REPLY_TOKENS.get(request.record, EXAMPLE_TOKENS)
        return [guess if reply is None else reply.value for reply in replies]

    def ask_about_sample(self, request: SampleRequest[T], room: int | None, guess: T) -> T | Failure:
        """Return what the stored reply to a request about the sample says, or the guess."""
        return self.ask([request.fit(room)], guess)[0]


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

    def __init__(self, root: Root, tuning: Tuning, asker: ModelAsker) -> None:
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
        for name, base in tuning.bases.items():
            own = load_prompt(self._root.path / PROMPTS_FOLDER, name)
            if base.sha256 != own.sha256:
                self._remarks.append(f"`{own.path}` has no place for tuned text: the default prompt is the base")
        texts = compose_prompts(tuning.bases, description, scale, examples)
        model = self._root.settings.chat_model_for(SECTION)
        changed: dict[str, dict[str, Any]] = {"extraction": {"entity_types": list(types)}}
        if tuning.given.language:  # adopting sets the language only if the user gave one
            for section in ("extraction", "descriptions", "reports"):
                changed.setdefault(section, {})["language"] = tuning.given.language
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
            examples=tuple(map(_describe_example, examples)),
            refused=dict(sorted((+self._refused).items())),
            remarks=tuple(self._remarks),
            bases={name: prompt.sha256 for name, prompt in tuning.bases.items()},
            prompts={name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()},
            settings=changed,
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
        domain, persona = given.domain or found.domain, given.persona or found.persona
        if not persona:
            self._refused["persona that is missing or copies the instructions"] += 1
            persona = f"You are an expert in this subject: {domain}."
        return Description(domain, given.language or self._check_language(found.language), persona)

    def _check_language(self, named: str) -> str:
        """Return the language that rules detect in most text units; "" if none, whatever the model named."""
        languages = filter(None, (detect_language(unit.text) for unit in self._tuning.units))
        detected = Counter(languages).most_common(1)
        known = LANGUAGE_NAMES.get(detected[0][0], named) if detected else ""
        self._refused["language that no rule detects in the texts"] += not known
        self._refused["language that is not the one of the texts"] += known.casefold() not in named.casefold()
        return known

    def _choose_types(self, description: Description) -> tuple[str, ...]:
        if given := self._tuning.given.entity_types:
            return tuple(dict.fromkeys(read_type(name, Counter()) for name in given))
        prompt, names = self._tuning.prompts["tune_entity_types"], self._tuning.names
        present = self._root.settings.extraction.entity_types
        ask = partial(ask_types, prompt, description, max_types=MAX_TYPES, names=names)
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
        """Return the best examples of which the extraction prompt leaves room for a text unit and its reply."""
        tuning, n_wanted = self._tuning, self._tuning.settings.n_examples
        ask = partial(ask_example, tuning.prompts["tune_example"], description.persona)
        requests = [ask(self._root.settings.extraction.language, types, passage) for passage in tuning.passages]
        checked = []
        drafts = self._asker.ask(requests, ExtractionReply((), (), (), True, True, {}))
        for passage, draft in zip(tuning.passages, drafts, strict=True):
            if isinstance(draft, Failure):
                self._refused["example without a usable reply"] += 1
            else:
                self._refused.update(draft.problems)
                checked.append(check_example(draft, passage, types, self._refused))
        # The window may have been learnt from a refusal since the plan.
        room, base = tuning.extraction or find_extraction_room(self._root), tuning.bases["extract_graph"]

        def count(examples: Sequence[Example]) -> int:
            text = compose_prompts({base.name: base}, description, None, examples)[base.name]
            return _count_prompt(self._root, replace(base, text=text), types)

        found = list(filter(None, checked))
        wanted = choose_examples(found, n_wanted)
        chosen = choose_examples(found, n_wanted, lambda some: room is None or room.fits(count(some)))
        if not wanted and n_wanted:
            self._remarks.append(
                f"the example of the extraction prompt stays: none of {len(requests)} drafts was usable"
            )
        elif room and len(chosen) < len(wanted):
            stays = "" if chosen else "; the present example stays"
            said = room.explain(count(wanted))
            self._remarks.append(f"{len(chosen)} of {len(wanted)} examples fit{stays}: with all, {said}")
        return chosen


def _describe_example(example: Example) -> TunedExample:
    return TunedExample(
        example.passage.text_unit_id,
        example.passage.document_id,
        example.passage.text,
        tuple(entity.name for entity in example.entities),
        tuple(f"{relationship.source} -- {relationship.target}" for relationship in example.relationships),
        example.coverage,
    )
