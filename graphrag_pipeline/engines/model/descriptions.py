"""Descriptions by a chat model: one description from the distinct ones of an entity or relationship.

Without descriptions the result is "", a single one is copied. A few short ones are joined (`join_short`). Others are
summarized as a sorted distinct list. A list over `max_input_tokens` is summarized in folds. It is halved by the bits of
the descriptions' hashes until each batch fits. Each batch is summarized, then the summaries in groups formed the same
way, until one is left. The content of a batch depends only on the descriptions, not on replies or order. So a new
description repeats only the requests of its own batch and of the folds above it.

Keep out: caching, retries.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.engines.model.extraction.reply_records import MAX_TEXT
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.indexing.ports import Described, Describer, Subject, iterate_subjects
from graphrag_pipeline.models.pool import MAX_SHORTENED, Progress, Work, run_all, split_failures
from graphrag_pipeline.models.ports import CallFailedError, ChatModel, ChatRequest, Failure, Message, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import Prompt, open_conversation
from graphrag_pipeline.models.reply_json import clean_text, strip_fences
from graphrag_pipeline.ports import load_port
from graphrag_pipeline.tables import DESCRIPTIONS
from graphrag_pipeline.text.cut_texts import keep_whole_sentences
from graphrag_pipeline.text.extractive import is_near_repeat, words_of
from graphrag_pipeline.text.sentences import grapheme_start
from graphrag_pipeline.text.tokens import TokenCounter, count_tokens_each

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root

REPLIES = 1
"""Version of what is kept of a reply; raise it when a change of code reads stored replies in another way."""
MAX_JOINED_TOKENS = 200
"""Tokens of descriptions, all together, up to which they are short: as long as a summary of them would be."""
LEAST_LIST_TOKENS = 100
"""Tokens of a list of descriptions below which a summary is not worth a call."""
_ITEM_TOKENS = 3  # tokens of quotes and comma around a description in a list
_WORD_TOKENS = 1.5  # usual upper limit of tokens per word of a summary


@dataclass(frozen=True)
class SummaryPlan:
    """The parameters of summaries.

    Attributes:
        prompt: `summarize_descriptions`.
        max_input_tokens: most tokens of descriptions in one prompt.
        max_words: most words of a summary, as the prompt says.
        language: `auto` or the name of a language.
        max_joined: most short descriptions that are joined instead of summarized.
        count_tokens: counts the tokens of each text of a list.
    """

    prompt: Prompt
    max_input_tokens: int = 4000
    max_words: int = 500
    language: str = "auto"
    max_joined: int = 0
    count_tokens: TokenCounter = count_tokens_each

    @property
    def summary_tokens(self) -> int:
        """Usual upper limit of tokens of a summary; folds are planned with it, without the replies."""
        return int(self.max_words * _WORD_TOKENS)


@dataclass(frozen=True)
class Fold:
    """A step of a summary: a batch of descriptions, or the folds below it. One of the two is empty."""

    descriptions: tuple[str, ...] = ()
    folds: tuple[Fold, ...] = ()


class ModelDescriber:
    """Asks the chat model of `descriptions` for summaries; an `indexing.ports.CallingDescriber`.

    The embedded engine describes a record for which the model fails; it is marked as a fallback.
    """

    def __init__(self, root: Root) -> None:
        self._root = root

    def code(self) -> dict[str, Any]:
        """Return the version of reading replies."""
        return {"reading of replies": REPLIES}

    @cached_property
    def plan(self) -> SummaryPlan:
        """Prompt and limits, read from the root."""
        settings = self._root.settings.descriptions
        return SummaryPlan(
            prompt=self._root.prompt("summarize_descriptions"),
            max_input_tokens=settings.max_input_tokens,
            max_words=self._root.settings.words_for("descriptions"),
            language=settings.language,
            max_joined=settings.max_joined,
            count_tokens=partial(count_tokens_each, encoding=self._root.settings.text_units.encoding),
        )

    def needs_call(self, subject: Subject) -> bool:
        """Whether a description takes a call."""
        return needs_call(subject, self.plan)

    def works(
        self, subjects: Iterable[Subject], model: ChatModel, problems: Counter[str] | None = None
    ) -> list[Work[dict[str, Any]]]:
        """Return one work per subject, in order; `problems` counts the replies that were cut off."""
        plan = self.plan
        return [
            Work(
                subject.name, partial(summarize_subject, subject, plan, model, problems), not needs_call(subject, plan)
            )
            for subject in subjects
        ]

    def describe(
        self,
        entities: pa.Table,
        relationships: pa.Table,
        known: pa.Table | None = None,
        progress: Progress | None = None,
    ) -> Described:
        """Return one description for each entity and relationship; fallbacks among the known ones are requested again.

        Raises:
            PipelineError: the model cannot be called, or the budget is spent.
        """
        model, problems = self._root.models.chat_model("descriptions"), Counter[str]()
        is_known: set[str] = set()
        parts = [DESCRIPTIONS.empty()]
        if known is not None:
            keys = pa.concat_tables([entities.select(["description_key"]), relationships.select(["description_key"])])
            is_used = pc.is_in(known["description_key"], keys["description_key"])
            parts.append(known.filter(pc.and_(is_used, pc.invert(known["is_fallback"]))))
            is_known = set(parts[-1]["description_key"].to_pylist())
        subjects = [s for s in iterate_subjects(entities, relationships) if s.description_key not in is_known]
        results = run_all(model.stage, self.works(subjects, model, problems), model.max_concurrency, progress)
        rows: list[dict[str, Any]]
        rows, failures = split_failures(results)
        parts.append(DESCRIPTIONS.from_rows(rows))
        failed = [s.description_key for s, r in zip(subjects, results, strict=True) if isinstance(r, Failure)]
        if failed:
            records = (entities, relationships)
            chosen = [some.filter(pc.is_in(some["description_key"], pa.array(failed))) for some in records]
            fall_back: Describer = load_port("describer")(self._root)
            parts.append(_flag_fallback(fall_back.describe(*chosen).descriptions))
        return Described(DESCRIPTIONS.sort(*parts), failures, +problems)


def _flag_fallback(rows: pa.Table) -> pa.Table:
    position = rows.schema.get_field_index("is_fallback")
    return rows.set_column(position, rows.schema.field(position), pa.repeat(pa.scalar(True), rows.num_rows))


def distinct_texts(subject: Subject) -> list[str]:
    """Return the distinct descriptions of a subject, sorted."""
    return sorted({text for text in subject.descriptions if text.strip()})


def join_short(texts: Sequence[str], plan: SummaryPlan) -> str | None:
    """Return the description that needs no call, or None if distinct, sorted descriptions are many or long.

    It is "" for none and the text itself for one. Up to `max_joined` short ones follow each other as sentences, in
    their order; one with nearly all words of a longer one is left out.
    """
    if len(texts) < 2:
        return "".join(texts)
    if len(texts) > plan.max_joined or sum(plan.count_tokens(texts)) > MAX_JOINED_TOKENS:
        return None
    kept: dict[str, frozenset[str]] = {}
    for text in sorted(texts, key=lambda text: (-len(text), text)):
        words = words_of(text)
        if not is_near_repeat(words, kept.values()):
            kept[text] = words
    closed = (text.strip() for text in texts if text in kept)
    return " ".join(f"{text}." if text[-1].isalnum() else text for text in closed)


def needs_call(subject: Subject, plan: SummaryPlan) -> bool:
    """Return whether a subject is described by the model."""
    return join_short(distinct_texts(subject), plan) is None


async def summarize_subject(
    subject: Subject, plan: SummaryPlan, model: ChatModel, problems: Counter[str] | None = None
) -> dict[str, Any]:
    """Return a row of `tables.DESCRIPTIONS`; its `request_key` is that of the last fold, null without a request.

    If a list does not fit the model's window, all are planned again in shorter lists.

    Args:
        problems: counts the replies that were cut off; of those, the whole sentences are kept.

    Raises:
        CallFailedError: the model gave no usable summary; replies received so far stay stored.
    """
    distinct = distinct_texts(subject)
    without_call = join_short(distinct, plan)
    if without_call is not None:
        return _row(subject, without_call, len(distinct), None)
    counts: Counter[str] = Counter() if problems is None else problems
    for _ in range(MAX_SHORTENED):
        try:
            text, request_key = await _summarize_fold(plan_folds(distinct, plan), subject.name, plan, model, counts)
            return _row(subject, text, len(distinct), request_key)
        except _TooLongListError as error:
            if error.n_fit < LEAST_LIST_TOKENS:
                raise
            plan = replace(plan, max_input_tokens=error.n_fit)
    text, request_key = await _summarize_fold(plan_folds(distinct, plan), subject.name, plan, model, counts)
    return _row(subject, text, len(distinct), request_key)


class _TooLongListError(CallFailedError):
    """A list of descriptions does not fit the model's window; one of `n_fit` tokens does."""

    def __init__(self, error: CallFailedError, n_fit: int) -> None:
        super().__init__(error.reason, error.request_key, n_excess=error.n_excess)
        self.n_fit = n_fit


async def _summarize_fold(
    fold: Fold, name: str, plan: SummaryPlan, model: ChatModel, problems: Counter[str]
) -> tuple[str, str | None]:
    """Return the text of a fold and the key of its request; a single short description is copied."""
    if fold.folds:
        below = (_summarize_fold(part, name, plan, model, problems) for part in fold.folds)
        results = await asyncio.gather(
            *below, return_exceptions=True
        )  # paid replies are stored before an error is raised
        for result in results:
            if isinstance(result, BaseException):
                raise result
        summaries = [result[0] for result in results if not isinstance(result, BaseException)]
        texts = _clip_each(summaries, plan.max_input_tokens // len(summaries), plan.count_tokens)
    else:
        texts = _clip_each(fold.descriptions, plan.max_input_tokens, plan.count_tokens)
        if len(texts) == 1 and plan.count_tokens(texts)[0] <= plan.summary_tokens:
            return texts[0], None
    parse = partial(parse_reply, echoes=plan.prompt.echoes, data="\n".join(texts))
    request = ChatRequest(name, build_prompt(name, texts, plan), parse, keep_whole=keep_whole_sentences)
    try:
        reply = await model.complete(request)
    except CallFailedError as error:
        if not error.n_excess:
            raise
        n_tokens = sum(plan.count_tokens(texts)) + _ITEM_TOKENS * len(texts)
        raise _TooLongListError(error, n_tokens - error.n_excess) from None
    problems["reply cut off"] += reply.is_cut
    return reply.value, reply.request_key


def build_prompt(name: str, texts: Sequence[str], plan: SummaryPlan) -> list[Message]:
    """Build the messages that request one description for several; they do not depend on the order of `texts`."""
    return open_conversation(
        plan.prompt,
        plan.language,
        entity_name=name,
        description_list=json.dumps(sorted(set(texts)), ensure_ascii=False),
        max_length=str(plan.max_words),
    )


def parse_reply(reply: str, echoes: PromptEchoes | None = None, data: str = "") -> str:
    """Return the description in a reply: all of it, without code fences and quotes around it.

    Args:
        echoes: of the prompt; None accepts any text.
        data: the descriptions; text that they hold is not copied from the prompt.

    Raises:
        ReplyFormatError: the reply has no letter or digit, or repeats the prompt.
    """
    text = clean_text(strip_fences(reply))
    if len(text) > 1 and text[0] == text[-1] == '"':
        text = text[1:-1].strip()
    if not any(character.isalnum() for character in text):
        raise ReplyFormatError(f"no description could be read; the reply starts {reply[:80]!r}")
    own = echoes.keep_own(text, data) if echoes else text
    if not own or (echoes and echoes.holds(own, data)):
        raise ReplyFormatError(f"the description repeats the prompt; the reply starts {reply[:80]!r}")
    return clean_text(own[:MAX_TEXT])


# ---------------------------------------------------------------------------------------------------------------- folds


def plan_folds(descriptions: Sequence[str], plan: SummaryPlan) -> Fold:
    """Assign descriptions to prompts, and summaries to later prompts.

    Args:
        descriptions: distinct, at least one.

    Returns:
        The last fold. Its batches have at most `max_input_tokens`, unless a single description has more.
    """
    tokens = [n + _ITEM_TOKENS for n in plan.count_tokens(descriptions)]
    sizes = {text: min(n, plan.max_input_tokens) for text, n in zip(descriptions, tokens, strict=True)}
    items = sorted((_bits(text), text) for text in descriptions)
    parts = _halve(items, 0, [sizes[text] for _, text in items], plan.max_input_tokens)
    batches = [(part[0][0][:depth], Fold(tuple(sorted(text for _, text in part)))) for part, depth in parts]
    n_together = max(2, plan.max_input_tokens // (plan.summary_tokens + _ITEM_TOKENS))
    while len(batches) > 1:
        groups = _halve(batches, 0, [1] * len(batches), n_together)
        batches = [
            (group[0][0][:depth], group[0][1] if len(group) == 1 else Fold(folds=tuple(fold for _, fold in group)))
            for group, depth in groups
        ]
    return batches[0][1]


def _halve(
    items: Sequence[tuple[str, Any]], depth: int, sizes: Sequence[int], limit: int
) -> list[tuple[Sequence[tuple[str, Any]], int]]:
    """Cut items, sorted by their bits, where bit `depth` becomes 1, until each part is within the limit."""
    if sum(sizes) <= limit or len(items) < 2:
        return [(items, depth)]
    cut = sum(bits[depth : depth + 1] != "1" for bits, _ in items)
    parts = ((items[:cut], sizes[:cut]), (items[cut:], sizes[cut:]))
    return [part for half, its_sizes in parts if half for part in _halve(half, depth + 1, its_sizes, limit)]


def _bits(text: str) -> str:
    return f"{int(stable_hash('description', text), 16):0128b}"


def _clip_each(texts: Sequence[str], limit: int, count_tokens: TokenCounter) -> list[str]:
    return [_clip(text, n, limit, count_tokens) for text, n in zip(texts, count_tokens(texts), strict=True)]


def _clip(text: str, n_tokens: int, limit: int, count_tokens: TokenCounter) -> str:
    """Return the start of a text with at most `limit` tokens."""
    while n_tokens > limit and text:
        text = text[: grapheme_start(text, int(len(text) * limit / n_tokens * 0.95))]
        n_tokens = count_tokens([text])[0]
    return text


def _row(subject: Subject, description: str, n_descriptions: int, request_key: str | None) -> dict[str, Any]:
    return {
        "description_key": subject.description_key,
        "kind": subject.kind,
        "description": description,
        "n_descriptions": n_descriptions,
        "is_fallback": False,
        "request_key": request_key,
    }
