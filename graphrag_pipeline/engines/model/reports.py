"""Community reports by a chat model: a prompt from a context, a report from the reply.

The prompt contains the tables of the context with local numbers and nothing else about the community, so an unchanged
community has an unchanged prompt. Communities below `min_report_size` are not requested of the model: the embedded
engine copies their descriptions.

Parser of the reports that models write: lenient JSON, local record numbers mapped back to stable ids.

A report needs a summary and a finding. Other defects are repaired. A rating outside 0 to 10 is clipped. A rating that
is not a number becomes `MIDDLE_RATING`. A finding without text is left out. A missing title is replaced by the names of
the central entities. A citation of a number that is not in the prompt is invented: it is removed and counted.

A value that repeats the prompt (`models/prompt_echoes.py`) counts as missing, and so does a rating so explained. Of a
longer text, the sentences that repeat the prompt are left out, and those that it holds before. A title without a
word of the data, such as "Community Overview", and a repeated finding count as missing. A report without a summary or
finding of its own is rejected.

Keep out: contexts (`indexing/reports/contexts.py`), parsing replies.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from graphrag_pipeline.citations import Cited, render_citation, replace_written, strip_citations
from graphrag_pipeline.indexing.ports import Reporter
from graphrag_pipeline.indexing.reports.community_reports import Report
from graphrag_pipeline.indexing.reports.contexts import CommunityContext
from graphrag_pipeline.models.pool import Progress, Work, complete_within_window, run_all
from graphrag_pipeline.models.ports import ChatModel, ChatRequest, Failure, Message, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes, shows_context
from graphrag_pipeline.models.prompts import Prompt, open_conversation
from graphrag_pipeline.models.reply_json import clean_text, json_schema_format, read_json, read_number, text_limit
from graphrag_pipeline.ports import load_port
from graphrag_pipeline.text.cut_texts import drop_repeated_sentences
from graphrag_pipeline.text.extractive import sentences_of
from graphrag_pipeline.text.sentence_forms import find_words, fold

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root

MAX_FINDINGS = 10
MAX_TITLE = 300  # characters
MAX_TEXT = 20_000
MIDDLE_RATING = 5.0
ECHO = "text of the prompt"
"""Problem: a value repeats the prompt."""
REPEATED = "repeated sentence or finding"

_BLANKS = re.compile(r"[ \t]{2,}+")


# The docstrings of these two models are descriptions in the schema that is sent; request keys cover them.


class ReportFinding(BaseModel):
    """One finding of the schema that the model is asked for."""

    summary: str
    explanation: str


class ReportReply(BaseModel):
    """The schema that the model is asked for; what comes is read more leniently."""

    title: str
    summary: str
    rating: float
    rating_explanation: str
    findings: list[ReportFinding]


@dataclass(frozen=True)
class WrittenReport:
    """A report and, by reason, the number of parts of the reply left out or repaired."""

    report: Report
    problems: Mapping[str, int]


@dataclass(frozen=True)
class _FieldReader:
    """Reads the texts of a reply: cleans them, maps citations to stable ids, and leaves out echoes of the prompt."""

    ids: Mapping[str, Mapping[str, str]]
    echoes: PromptEchoes
    data: str
    problems: Counter[str]

    def read_cited(self, value: Any) -> str:
        return cite_ids(self.keep_own(_text(value)), self.ids, self.problems)

    def read_line(self, value: Any) -> str:
        return self.keep_own(_one_line(value))

    def keep_own(self, text: str) -> str:
        """Return a text without sentences that repeat the prompt or that it holds before, counted; "" for an echo."""
        own = "" if shows_context(text) else self.echoes.keep_own(text, self.data)
        self.problems[ECHO] += own != text
        once = drop_repeated_sentences(own)
        self.problems[REPEATED] += once != own
        return once

    def read_title(self, value: Any, central: Sequence[str]) -> str:
        """Return a title, or the names of the central entities if it has no word of the data."""
        title = self.read_line(value)
        names = ", ".join(central)
        is_named = not set(find_words(fold(names))).isdisjoint(find_words(fold(title)))
        if title and not is_named and not self.echoes.has_own_word(title, self.data):
            self.problems["title that names nothing"] += 1
            title = ""
        return title or names


def parse_reply(reply: str, context: CommunityContext, echoes: PromptEchoes | None = None) -> WrittenReport:
    """Parse the report on a community.

    Args:
        echoes: of the prompt; None accepts any value.

    Raises:
        ReplyFormatError: the reply has no JSON object with a summary and a finding of the model's own.
    """
    fields = next(_find_reports(read_json(reply)), None)
    if fields is None:
        raise ReplyFormatError(
            f"no JSON object with summary and findings could be read; the reply starts {reply[:80]!r}"
        )
    problems: Counter[str] = Counter()
    ids = {kind: {str(n): record for record, n in numbers.items()} for kind, numbers in context.numbers.items()}
    reader = _FieldReader(ids, echoes or PromptEchoes(), context.text, problems)
    summary = reader.read_cited(fields.get("summary"))
    findings = tuple(_read_findings(fields.get("findings"), reader))
    if not summary or not findings:
        missing = "finding that can be read" if summary else "summary"
        copied = "; it repeats the text of the prompt: write about the data" if problems[ECHO] else ""
        raise ReplyFormatError(f"the report has no {missing}{copied}")
    n_copied = problems[ECHO]
    explanation = reader.keep_own(
        strip_citations(_text(fields.get("rating_explanation", fields.get("rank_explanation"))))
    )
    is_rated = problems[ECHO] == n_copied
    rating = _read_rating(fields.get("rating", fields.get("rank")) if is_rated else None, problems)
    title = reader.read_title(fields.get("title"), context.central)
    report = Report(title, summary, findings[:MAX_FINDINGS], rating, explanation)
    if len(findings) > MAX_FINDINGS:
        problems["findings over 10"] += len(findings) - MAX_FINDINGS
    return WrittenReport(report, dict(sorted((+problems).items())))


def _find_reports(values: list[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the objects with a summary and findings, outermost first."""
    level: list[Any] = values
    while level:
        for value in level:
            if isinstance(value, dict) and value.keys() >= {"summary", "findings"}:
                yield value
        inner = [value.values() if isinstance(value, dict) else value for value in level]
        level = [item for items in inner for item in items if isinstance(item, dict | list)]


def _read_findings(value: Any, reader: _FieldReader) -> Iterator[tuple[str, str]]:
    seen: set[tuple[str, str]] = set()
    items = list(value.values()) if isinstance(value, dict) and "explanation" not in value else value
    for item in items if isinstance(items, list) else [items]:
        fields = item if isinstance(item, dict) else {"explanation": item}
        heading = reader.read_line(fields.get("summary", fields.get("title")))
        explanation = reader.read_cited(fields.get("explanation", fields.get("description")))
        finding = heading or _first_sentence(explanation), explanation or heading
        if not heading and not explanation:
            reader.problems["finding without text"] += 1
        elif finding in seen:
            reader.problems[REPEATED] += 1
        else:
            seen.add(finding)
            yield finding


def cite_ids(text: str, ids: Mapping[str, Mapping[str, str]], problems: Counter[str]) -> str:
    """Replace local numbers in the citations of a text by stable ids.

    Args:
        ids: kind -> number -> id.
        problems: counts unknown numbers, which are removed.
    """

    def replace(parts: Cited) -> str:
        cited: dict[str, dict[str, None]] = {}
        for kind, number in ((kind, number) for kind, numbers in parts for number in numbers):
            if number in ids.get(kind, ()):
                cited.setdefault(kind, {})[ids[kind][number]] = None
            else:
                problems["invented citation"] += 1
        return render_citation(cited.items())

    return replace_written(text, replace).strip()


def _read_rating(value: Any, problems: Counter[str]) -> float:
    """Read a rating from 0 to 10; clip others, use `MIDDLE_RATING` for what is no number, such as "0 to 10"."""
    number = read_number(value, 10)
    if number is None:
        problems["rating not a number"] += 1
        return MIDDLE_RATING
    if not 0 <= number <= 10:
        problems["rating out of range"] += 1
    return min(max(number, 0.0), 10.0)


def _text(value: Any) -> str:
    return _BLANKS.sub(" ", clean_text(value[:MAX_TEXT])) if isinstance(value, str) else ""


def _one_line(value: Any) -> str:
    return " ".join(strip_citations(_text(value)).split())[:MAX_TITLE].strip(" #*")


def _first_sentence(text: str) -> str:
    return _one_line((sentences_of(strip_citations(text)) or [""])[0])


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
