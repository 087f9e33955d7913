"""Community reports by a chat model: a prompt from a context, a report from the reply.

The prompt holds the context's tables with their local numbers and nothing else about the community, so that an
untouched community has an untouched prompt. Communities under `min_report_size` are not asked about: the embedded
writer gives them their descriptions as they are. Keep out: contexts (`report_contexts.py`), how a reply is read
(`report_replies.py`), what replaces a failed report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphrag_pipeline.indexing.reports.community_reports import Report
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.indexing.reports.replies import ReportReply, WrittenReport, parse_reply
from graphrag_pipeline.models.ports import ChatModel, ChatRequest, Message
from graphrag_pipeline.models.prompts import Prompt, open_conversation
from graphrag_pipeline.models.structured import json_schema_format

RESPONSE_FORMAT = json_schema_format(ReportReply, "community_report")


@dataclass(frozen=True)
class ReportPlan:
    """How reports are asked for: `max_words` of a report, `language` `auto` or by name."""

    prompt: Prompt
    max_words: int = 1500
    language: str = "auto"


@dataclass(frozen=True)
class ModelReport:
    """A report, the key of the request that made it and, by reason, what of the reply was left out or mended."""

    report: Report
    request_key: str
    problems: Mapping[str, int]


def build_prompt(context: CommunityContext, plan: ReportPlan) -> list[Message]:
    """The turns that ask for the report on a community."""
    return open_conversation(
        plan.prompt, plan.language, input_text=context.text.rstrip("\n"), max_report_length=str(plan.max_words)
    )


def build_request(context: CommunityContext, plan: ReportPlan) -> ChatRequest[WrittenReport]:
    """The question for the report on a community; its `parse` reads the reply against the context's numbers."""
    return ChatRequest(
        context.community_id,
        build_prompt(context, plan),
        lambda reply: parse_reply(reply, context),
        RESPONSE_FORMAT,
    )


async def write_report(context: CommunityContext, plan: ReportPlan, model: ChatModel) -> ModelReport:
    """Ask for the report on one community.

    Raises:
        CallFailedError: it cannot be had.
    """
    reply = await model.complete(build_request(context, plan))
    return ModelReport(reply.value.report, reply.request_key, reply.value.problems)
