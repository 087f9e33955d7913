"""Community reports by a chat model: a prompt from a context, a report from the reply.

The prompt contains the tables of the context with local numbers and nothing else about the community, so an unchanged
community has an unchanged prompt. Communities below `min_report_size` are not requested of the model: the embedded
engine copies their descriptions. Keep out: contexts (`contexts.py`), parsing replies (`replies.py`), the replacement of
a failed report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphrag_pipeline.indexing.reports.community_reports import Report
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.indexing.reports.replies import ReportReply, WrittenReport, parse_reply
from graphrag_pipeline.models.ports import ChatModel, ChatRequest, Message
from graphrag_pipeline.models.prompts import Prompt, open_conversation
from graphrag_pipeline.models.shortening import complete_within_window
from graphrag_pipeline.models.structured import json_schema_format, text_limit

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
