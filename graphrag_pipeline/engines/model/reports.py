"""Community reports by a chat model: a prompt from a context, a report from the reply.

The prompt contains the tables of the context with local numbers and nothing else about the community, so an unchanged
community has an unchanged prompt. Communities below `min_report_size` are not requested of the model: the embedded
engine copies their descriptions. Keep out: contexts (`contexts.py`), parsing replies (`report_replies.py`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.engines.model.report_replies import ReportReply, WrittenReport, parse_reply
from graphrag_pipeline.indexing.ports import Reporter
from graphrag_pipeline.indexing.reports.community_reports import Report
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.models.pool import Progress, Work, run_all
from graphrag_pipeline.models.ports import ChatModel, ChatRequest, Failure, Message
from graphrag_pipeline.models.prompts import Prompt, open_conversation
from graphrag_pipeline.models.shortening import complete_within_window
from graphrag_pipeline.models.structured import json_schema_format, text_limit
from graphrag_pipeline.ports import load_port

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root

REPLIES = 1
"""Version of what is kept of a reply; raise it when a change of code reads stored replies in another way."""
RESPONSE_FORMAT = json_schema_format(ReportReply, "community_report")


@dataclass(frozen=True)
class ReportPlan:
    """The parameters of report requests: `max_words` limits a report, `language` is `auto` or a name."""

    prompt: Prompt
    max_words: int = 1500
    language: str = "auto"


@dataclass(frozen=True)
class ModelReport:
    """A report, the key of its request and, by reason, the number of parts of the reply left out or repaired."""

    report: Report
    request_key: str
    problems: Mapping[str, int]


def build_prompt(context: CommunityContext, plan: ReportPlan) -> list[Message]:
    """Build the messages that request the report on a community."""
    return open_conversation(
        plan.prompt, plan.language, input_text=context.text.rstrip("\n"), max_report_length=str(plan.max_words)
    )


def build_request(context: CommunityContext, plan: ReportPlan) -> ChatRequest[WrittenReport]:
    """Build the request for the report on a community; its `parse` maps the context's numbers to stable ids."""
    return ChatRequest(
        context.community_id,
        build_prompt(context, plan),
        lambda reply: parse_reply(reply, context, plan.prompt.echoes),
        RESPONSE_FORMAT,
        limits=reply_limits(plan.max_words),
    )


def reply_limits(max_words: int) -> dict[str, dict[str, int]]:
    """Return the limits of a report's parts; a model that repeats itself is stopped soon.

    Args:
        max_words: of the report. A reply may have twice as many tokens, and no text of it more than half of them.
    """
    text = text_limit(max_words)
    return {
        "title": {"maxLength": 250},
        "summary": text,
        "rating_explanation": {"maxLength": min(600, text["maxLength"])},
        "findings": {"maxItems": 12},
        "explanation": text,
    }


async def write_report(context: CommunityContext, plan: ReportPlan, model: ChatModel) -> ModelReport:
    """Request the report on one community, from a shorter context if this one does not fit the model's window.

    Raises:
        CallFailedError: the model gave no usable reply.
    """

    def shorten(n_tokens: int) -> ChatRequest[WrittenReport] | None:
        shorter = context.shorten(n_tokens)
        return build_request(shorter, plan) if shorter else None

    reply, n_left_out = await complete_within_window(model, build_request(context, plan), shorten)
    counts = {"reply cut off": reply.is_cut, "context shortened to the model's window": n_left_out > 0}
    problems = {**reply.value.problems, **{name: 1 for name, is_so in counts.items() if is_so}}
    return ModelReport(reply.value.report, reply.request_key, problems)


class ModelReporter:
    """Asks the chat model of `reports` for reports; an `indexing.ports.CallingReporter`.

    The embedded engine reports on communities below `least_size`, and on those for which the model fails: these are
    marked as fallbacks.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self.least_size = root.settings.reports.min_report_size
        self.failures: list[Failure] = []
        self.problems: Counter[str] = Counter()

    def code(self) -> dict[str, Any]:
        """Return the version of reading replies."""
        return {"reading of replies": REPLIES}

    @cached_property
    def plan(self) -> ReportPlan:
        """Prompt and limits, read from the root."""
        settings = self._root.settings
        return ReportPlan(
            self._root.prompt("community_report"), settings.words_for("reports"), settings.reports.language
        )

    def works(self, contexts: Sequence[CommunityContext], model: ChatModel) -> list[Work[ModelReport]]:
        """Return one work per context, in order."""
        return [Work(context.community_id, partial(write_report, context, self.plan, model)) for context in contexts]

    def write(self, contexts: Sequence[CommunityContext], progress: Progress | None = None) -> list[Report]:
        """Return one report per context, in order.

        Raises:
            PipelineError: the model cannot be called, or the budget is spent.
        """
        model = self._root.models.chat_model("reports")
        requested = [context for context in contexts if context.n_entities >= self.least_size]
        answers = run_all(model.stage, self.works(requested, model), model.max_concurrency, progress)
        results = {context.community_id: answer for context, answer in zip(requested, answers, strict=True)}
        self.failures += [result for result in results.values() if isinstance(result, Failure)]
        others = [context for context in contexts if not isinstance(results.get(context.community_id), ModelReport)]
        fall_back: Reporter = load_port("reporter")(self._root)
        written = iter(fall_back.write(others))
        return [self._choose(results.get(context.community_id), written) for context in contexts]

    def _choose(self, result: ModelReport | Failure | None, written: Iterator[Report]) -> Report:
        """Return the model's report, else the next one of the embedded engine."""
        if isinstance(result, ModelReport):
            self.problems.update(result.problems)
            return replace(result.report, request_key=result.request_key)
        report = next(written)
        return report if result is None else replace(report, is_fallback=True)
