"""Extraction of entities, relationships and claims of a text unit by a chat model.

Each text unit has one conversation: the prompt, then up to `max_gleanings` gleaning turns, until a reply adds no
record, or until a reply is cut off while it repeats its own records: a model in such a loop does not leave it. If
claims are enabled, it has a second conversation for them. Each reply is parsed alone (`reply_records.py`).
Records are numbered over all replies, so the position of a mention is its order, and its `request_key` names its reply.
Mentions are not merged: an entity that two replies describe has two mentions. Only exact repeats are left out.

A first reply without a record means "no entities" if it holds only the end mark, or only empty JSON: `[]`, `{}`,
`{"entities": []}`. With other words around it (an apology, a poem), `parse` rejects it: the model gets the reason and
one more request, and the text unit fails if that does not help. A gleaning reply without records ends the conversation.

Records about names that the text unit does not hold are left out and counted (`kept_records.py`). If no record of the
first reply is left, as when a model copies the example of the prompt, the reply is rejected, too. A text unit that is
longer than the model's window is read in parts.

Passages that are too long for the window of a model: they are read in halves, cut between sentences.

Keep out: the choice of text units, caching and retries (`models`), merging (`indexing/graph`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from graphrag_pipeline.engines.model.extraction.kept_records import RecordFilter, refuse_foreign
from graphrag_pipeline.engines.model.extraction.reply_records import (
    REPEATED,
    ExtractedClaim,
    ExtractedEntity,
    ExtractedRelationship,
    ExtractionReply,
    parse_claims_reply,
    parse_graph_reply,
    read_type,
)
from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.models.pool import complete_within_window
from graphrag_pipeline.models.ports import (
    EXCERPT,
    CallFailedError,
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    ReplyFormatError,
)
from graphrag_pipeline.models.prompts import Prompt, open_conversation
from graphrag_pipeline.settings.indexing import GlossaryTerm
from graphrag_pipeline.text.cut_texts import is_loop
from graphrag_pipeline.text.sentences import grapheme_start, split_sentences
from graphrag_pipeline.text.tokens import count_tokens_each

T = TypeVar("T")

OTHER = "OTHER"
"""The type of an entity of none of the types that the prompt lists."""
MAX_HALVED = 3
"""How often a passage is halved: into eight parts at most."""


async def read_in_parts(
    text: str, read: Callable[[str], Awaitable[list[T]]], n_left: int = MAX_HALVED
) -> tuple[list[T], int]:
    """Return what `read` returns of a text, or of its parts in order if the window does not hold it, and their number.

    Raises:
        CallFailedError: of `read`, for another reason, or of a part that is still too long.
    """
    try:
        return await read(text), 1
    except CallFailedError as error:
        halves = halve(text)
        if not error.n_excess or not n_left or not all(map(str.strip, halves)):
            raise
    first, n_first = await read_in_parts(halves[0], read, n_left - 1)
    second, n_second = await read_in_parts(halves[1], read, n_left - 1)
    return first + second, n_first + n_second


def halve(text: str) -> tuple[str, str]:
    """Cut a text at the end of a sentence that is nearest to its middle; a text of one sentence at its middle."""
    middle = len(text) // 2
    starts = [start for start, _ in split_sentences(text)][1:] or [grapheme_start(text, middle)]
    place = min(starts, key=lambda start: abs(start - middle))
    return text[:place], text[place:]


MAX_SPECIFIED = 100  # entities of a text unit that the claims prompt names
_SLACK_TOKENS = 20  # of a history that is cut: places of tokens are guessed from places of characters

Row = dict[str, Any]
_Record = ExtractedEntity | ExtractedRelationship | ExtractedClaim
_Keep = Callable[[ExtractionReply], ExtractionReply]
_Parse = Callable[[str], ExtractionReply]


@dataclass(frozen=True)
class ClaimsPlan:
    """Prompts for claims and the kind of claim to extract."""

    prompt: Prompt
    continue_prompt: Prompt
    claim_description: str


@dataclass(frozen=True)
class ExtractionPlan:
    """Prompts and limits of the conversations about text units.

    Attributes:
        prompt, continue_prompt: `extract_graph` and `extract_graph_continue`.
        entity_types: types to look for; entities of other types are kept and counted.
        max_gleanings: most gleaning turns in a conversation.
        language: `auto` or the name of a language.
        claims: None if claims are disabled.
        only_names_in_text: whether records about names that text and context do not hold are left out.
        glossary: terms of the corpus.
    """

    prompt: Prompt
    continue_prompt: Prompt
    entity_types: tuple[str, ...]
    max_gleanings: int = 1
    language: str = "auto"
    claims: ClaimsPlan | None = None
    only_names_in_text: bool = False
    glossary: Mapping[str, GlossaryTerm] = field(default_factory=dict)


@dataclass(frozen=True)
class UnitMentions:
    """The mentions of one text unit.

    Attributes:
        entities, relationships, claims: rows of `ENTITY_MENTIONS`, `RELATIONSHIP_MENTIONS` and `CLAIM_MENTIONS`.
        outside_types: type outside the list of the plan -> number of mentions.
        problems: reason -> number of records that were left out or changed.
        n_replies: number of replies of the model.
        first_reply: start of the first reply.
        n_characters: length of the text.
    """

    entities: list[Row]
    relationships: list[Row]
    claims: list[Row]
    outside_types: Mapping[str, int]
    problems: Mapping[str, int]
    n_replies: int
    first_reply: str = ""
    n_characters: int = 0


async def extract_text_unit(
    unit_id: str, text: str, plan: ExtractionPlan, model: ChatModel, context: str = ""
) -> UnitMentions:
    """Hold the conversations about one text unit.

    Args:
        context: where the text is from (`indexing.text_units.with_context`); sent by a prompt with `{context}`.

    Raises:
        CallFailedError: a request got no usable reply. Earlier replies are stored, so that a retry continues there.
    """
    problems: Counter[str] = Counter()

    async def converse(
        build: Callable[[str], list[Message]], prompt: Prompt, follow_up: Prompt, parse: _Parse
    ) -> tuple[list[ChatReply[ExtractionReply]], int]:
        shown = f"{context}\n\n{text}" if "context" in prompt.placeholders else text
        keep: _Keep = RecordFilter(shown, prompt.echoes).keep if plan.only_names_in_text else lambda reply: reply
        hold = partial(_converse, unit_id, follow_up.render(), parse, plan.max_gleanings, model, keep, problems)
        return await read_in_parts(text, lambda part: hold(build(part)))

    build = partial(build_graph_prompt, plan=plan, context=context)
    replies, n_parts = await converse(build, plan.prompt, plan.continue_prompt, parse_graph_reply)
    problems["text unit read in parts, which fit the model's window"] += n_parts > 1
    claim_replies: list[ChatReply[ExtractionReply]] = []
    if claims := plan.claims:
        names = [entity.name for reply in replies for entity in reply.value.entities]
        build = partial(build_claims_prompt, names=names, plan=plan, context=context)
        claim_replies, _ = await converse(build, claims.prompt, claims.continue_prompt, parse_claims_reply)
    found = collect_mentions(unit_id, replies, claim_replies, plan.entity_types, problems)
    return replace(found, n_characters=len(text))


def build_graph_prompt(text: str, plan: ExtractionPlan, context: str = "") -> list[Message]:
    """Return the turns that request the entities and relationships of a text."""
    return open_conversation(
        plan.prompt,
        plan.language,
        entity_types=", ".join(plan.entity_types),
        context=_add_terms(context, text, plan),
        input_text=text,
    )


def _add_terms(context: str, text: str, plan: ExtractionPlan) -> str:
    """Return a context with the terms of the glossary that the text holds, so another term changes no request."""
    said = text.casefold()
    terms = [
        f"{term}{f' ({known.type})' if known.type else ''}: {known.meaning}"
        for term, known in plan.glossary.items()
        if term.casefold() in said
    ]
    return "\n".join([context, *terms]).strip()


def build_claims_prompt(text: str, names: Sequence[str], plan: ExtractionPlan, context: str = "") -> list[Message]:
    """Return the turns that request the claims of a text about the named entities, or about the types without names.

    Names are spelled as in the graph replies, so that claims match their entities.
    """
    assert plan.claims is not None
    distinct = {normalize_title(name): name for name in reversed(names)}
    specified = sorted(distinct.values())[:MAX_SPECIFIED] or plan.entity_types
    return open_conversation(
        plan.claims.prompt,
        plan.language,
        entity_specs=", ".join(specified),
        claim_description=plan.claims.claim_description,
        context=_add_terms(context, text, plan),
        input_text=text,
    )


def refuse_empty(reply: ExtractionReply, text: str) -> ExtractionReply:
    """Return `reply` if it holds records, or only an end mark or empty JSON.

    Raises:
        ReplyFormatError: the reply holds neither; the message is also sent to the model.
    """
    if reply.n_records or (reply.is_complete and reply.is_bare and not reply.problems):
        return reply
    reasons = ", ".join(f"{n} x {reason}" for reason, n in reply.problems.items())
    raise ReplyFormatError(
        f"no record could be read{f' ({reasons})' if reasons else ''} and <|COMPLETE|> does not stand alone; "
        f"the reply starts {text[:80]!r}"
    )


async def _converse(
    unit_id: str,
    follow_up: str,
    parse: _Parse,
    max_gleanings: int,
    model: ChatModel,
    keep: _Keep,
    problems: Counter[str],
    opening: list[Message],
) -> list[ChatReply[ExtractionReply]]:
    """Return the replies of one conversation; the last one may add no record."""
    # Each record is parsed alone, and a last record that was cut off is left out: all of a reply may be parsed.
    request = ChatRequest(unit_id, opening, partial(_read_first, parse=parse, keep=keep), keep_whole=str)
    replies = [await model.complete(request)]
    messages = opening
    while len(replies) <= max_gleanings and _adds_something(replies):
        if _is_loop(replies[-1]):
            problems["gleaning left out after a reply that repeats itself"] += 1
            break
        messages = [
            *messages,
            {"role": "assistant", "content": replies[-1].text},
            {"role": "user", "content": follow_up},
        ]
        request = ChatRequest(unit_id, messages, lambda text: keep(parse(text)), keep_whole=str)
        try:
            reply, n_left_out = await complete_within_window(model, request, partial(_forget_history, request))
        except CallFailedError as error:
            if not error.n_excess:
                raise
            problems["gleaning left out, which does not fit the model's window"] += 1
            break
        replies.append(reply)
        problems["history of a gleaning shortened to the model's window"] += n_left_out > 0
    return replies


def _read_first(text: str, parse: _Parse, keep: _Keep) -> ExtractionReply:
    """Return the records of a first reply that are about the text unit.

    Raises:
        ReplyFormatError: it has none, and is not a reply that says so.
    """
    reply = refuse_empty(parse(text), text)
    return refuse_foreign(keep(reply), reply)


def _forget_history(request: ChatRequest[ExtractionReply], n_tokens: int) -> ChatRequest[ExtractionReply] | None:
    """Return the request without the first `n_tokens` tokens of the model's replies in it; None if they have fewer."""
    messages: list[Message] = []
    n_replies = sum(turn["role"] == "assistant" for turn in request.messages)
    left = n_tokens + _SLACK_TOKENS * n_replies
    sizes = count_tokens_each([turn["content"] for turn in request.messages])
    for turn, size in zip(request.messages, sizes, strict=True):
        content = turn["content"]
        if turn["role"] == "assistant" and left > 0:
            n_cut = min(size, left)
            place = grapheme_start(content, len(content) * n_cut // max(1, size))
            content, left = "\u2026" + content[place:].partition("##")[2], left - n_cut
        messages.append({"role": turn["role"], "content": content})
    return replace(request, messages=messages) if left <= 0 else None


def _adds_something(replies: Sequence[ChatReply[ExtractionReply]]) -> bool:
    """Whether the last reply holds a record that no earlier reply holds."""
    *before, last = ({*reply.value.entities, *reply.value.relationships, *reply.value.claims} for reply in replies)
    return not set().union(*before) >= last


def _is_loop(reply: ChatReply[ExtractionReply]) -> bool:
    """Whether a reply was cut off while it repeated its own records: at its end, or as many as it has, or more."""
    n_repeated = reply.value.problems.get(REPEATED, 0)
    return reply.is_cut and (n_repeated >= max(1, reply.value.n_records) or is_loop(reply.text))


# ----------------------------------------------------------------------------------------------------------------- rows


def collect_mentions(
    unit_id: str,
    replies: Sequence[ChatReply[ExtractionReply]],
    claim_replies: Sequence[ChatReply[ExtractionReply]],
    entity_types: Sequence[str],
    noted: Mapping[str, int],
) -> UnitMentions:
    """Return the rows of a text unit, numbered over all its replies; the first of equal records is kept.

    Args:
        noted: problems of the conversations, besides those of single replies.
    """
    problems = Counter(noted)
    for reply in (*replies, *claim_replies):
        problems.update(reply.value.problems)
        problems["reply cut off"] += reply.is_cut
    problems = +problems
    entities = _number_rows(unit_id, [(reply.request_key, reply.value.entities) for reply in replies], problems)
    relationships = [(reply.request_key, reply.value.relationships) for reply in replies]
    claims = [(reply.request_key, reply.value.claims) for reply in claim_replies]
    wanted = {read_type(name, Counter()) for name in (*entity_types, OTHER)}
    outside = Counter(row["type"] for row in entities if row["type"] not in wanted)
    return UnitMentions(
        entities,
        _number_rows(unit_id, relationships, problems),
        _number_rows(unit_id, claims, problems),
        dict(sorted(outside.items())),
        dict(sorted(problems.items())),
        len(replies) + len(claim_replies),
        replies[0].text[:EXCERPT] if replies else "",
    )


def _number_rows(unit_id: str, keyed: Iterable[tuple[str, Sequence[_Record]]], problems: Counter[str]) -> list[Row]:
    """Return the rows of (request key, records) pairs; the fields of a record are the columns of its table."""
    rows: dict[_Record, Row] = {}
    for request_key, records in keyed:
        for record in records:
            if record in rows:
                problems[REPEATED] += 1
                continue
            place = {"text_unit_id": unit_id, "position": len(rows), "request_key": request_key}
            rows[record] = vars(record) | place
    return list(rows.values())
