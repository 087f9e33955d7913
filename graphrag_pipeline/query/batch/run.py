"""Many questions to one index: answered side by side, a failed one stops no other, each told with its account.

    with GraphIndex.open("my_root") as index:
        for answered in answer_all(index, ["Who is Jacob Marley?", "What are the main themes?"]):
            print(answered.result.answer if answered.result else answered.error)

All are answered from the snapshot that the index holds. `answer_into_file` keeps the answers as JSON lines and asks
again only what has no answer there under the same question, settings, prompts and snapshot. Keep out: how a question
file is read (`question_files.py`), and how a method searches.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.event_loop import CallScope
from graphrag_pipeline.models.prompts import PROMPT_NAMES
from graphrag_pipeline.query.batch.answer_file import AnswerFile
from graphrag_pipeline.query.batch.question_files import BatchQuestion
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.question import valid_unicode
from graphrag_pipeline.query.usage import QueryUsage

if TYPE_CHECKING:
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.query.search_result import SearchResult

CONCURRENCY = 4
MAX_BUFFERED = 4
"""Answers that wait for an earlier one, for each question asked at a time; more would only fill memory."""

_MAX_SHOWN_ERRORS = 10
_SECTIONS = (*(method.section for method in METHODS.values()), "rating", "answers", "chat_model")
_PROMPTS = tuple(name for name in PROMPT_NAMES if name.split("_")[0] in (*METHODS, "rate"))


@dataclass(frozen=True)
class BatchAnswer:
    """A question of a batch with its result, or with why there is none.

    Attributes:
        key: hash of all that the answer depends on.
        snapshot: id of the index that was asked.
        result: None if it failed.
        error: what a user is told of the failure; "" if there is a result.
    """

    question: BatchQuestion
    key: str
    snapshot: str
    result: SearchResult | None
    error: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether nothing is gained by asking again: answered, and by the model if one was asked."""
        return self.result is not None and not self.result.answering.get("failure")

    def to_dict(self) -> dict[str, Any]:
        """The result as `SearchResult.to_dict` tells it, or the error; with the key, and the id if it has one."""
        identity = {"key": self.key} | ({"id": self.question.id} if self.question.id else {})
        if self.result is not None:
            return identity | self.result.to_dict()
        question = {"question": valid_unicode(self.question.question), "method": self.question.method}
        return identity | question | {"snapshot": self.snapshot, "error": self.error}


@dataclass(frozen=True)
class BatchAccount:
    """What became of the questions of a batch, and what models were asked for meanwhile.

    Attributes:
        answered: asked now, with a result.
        kept: answered before.
        failed: without a result; the batch is done when there is none.
        replaced: of those answered, how many the embedded engine answered because the model did not.
        errors: the distinct ones of those that failed, in order.
    """

    answered: int = 0
    kept: int = 0
    failed: int = 0
    replaced: int = 0
    usage: QueryUsage = field(default_factory=QueryUsage)
    errors: tuple[str, ...] = ()

    def add(self, answered: BatchAnswer) -> BatchAccount:
        """The account with one more question."""
        result = answered.result
        if result is None:
            return replace(self, failed=self.failed + 1, errors=tuple(dict.fromkeys((*self.errors, answered.error))))
        n_replaced = self.replaced + (not answered.is_whole)
        return replace(self, answered=self.answered + 1, replaced=n_replaced, usage=self.usage + result.usage)

    def to_dict(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("answered", "kept", "failed", "replaced")}
        return {**counts, "errors": list(self.errors), "usage": self.usage.to_dict()}

    def to_text(self) -> str:
        """Such as "5 questions: 3 answered, 1 kept from before, 1 failed", the errors, and a line by model."""
        counts = [f"{self.answered} answered"]
        counts += [f"{self.replaced} of them by the embedded engine in place of the model"] if self.replaced else []
        counts += [f"{self.kept} kept from before"] if self.kept else []
        counts += [f"{self.failed} failed"] if self.failed else []
        n = self.answered + self.kept + self.failed
        lines = [f"{n} question{'s' * (n != 1)}: {', '.join(counts)}"]
        lines += [f"  {error}" for error in self.errors[:_MAX_SHOWN_ERRORS]]
        lines += (
            [f"  and {len(self.errors) - _MAX_SHOWN_ERRORS} other errors"]
            if len(self.errors) > _MAX_SHOWN_ERRORS
            else []
        )
        return "\n".join([*lines, *filter(None, [self.usage.to_line()])])


def answer_all(
    index: GraphIndex,
    questions: Iterable[str | BatchQuestion],
    concurrency: int = CONCURRENCY,
    known: Collection[str] = (),
) -> Iterator[BatchAnswer]:
    """Answer questions, `concurrency` at a time; yields in their order.

    Args:
        questions: those in words alone are asked by `auto`.
        known: keys of questions that are passed over (`answer_key`).

    Yields:
        A `PipelineError` of a question is told in its place; the others go on.
    """
    settings = _settings_hash(index)
    scope = CallScope()
    under_way: deque[Future[BatchAnswer]] = deque()
    with ThreadPoolExecutor(concurrency, thread_name_prefix="batch") as pool:
        try:
            for question in questions:
                batch_question = BatchQuestion(question) if isinstance(question, str) else question
                key = _key_of(batch_question, index.snapshot.id, settings)
                if key in known:
                    continue
                under_way.append(pool.submit(_answer, index, batch_question, key, scope))
                if len(under_way) >= MAX_BUFFERED * concurrency:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        finally:  # who stops early waits for no model
            scope.cancel()
            pool.shutdown(cancel_futures=True)


def answer_into_file(
    index: GraphIndex,
    questions: list[BatchQuestion],
    path: Path,
    concurrency: int = CONCURRENCY,
    on_answer: Callable[[BatchAnswer], None] = lambda answered: None,
) -> BatchAccount:
    """Answer what a file of answers has no answer to; it ends with one line a question, in their order.

    Args:
        tell: gets each new answer once it is in the file.

    Raises:
        PipelineError: the file holds something else, or cannot be written.
    """
    settings = _settings_hash(index)
    keys = [_key_of(question, index.snapshot.id, settings) for question in questions]
    with AnswerFile(path) as answers:
        account = BatchAccount(kept=sum(key in answers.whole for key in keys))
        for answered in answer_all(index, questions, concurrency, frozenset(answers.whole)):
            answers.add(answered.to_dict())
            account = account.add(answered)
            on_answer(answered)
        answers.put_in_order(keys)
    return account


def answer_key(index: GraphIndex, question: BatchQuestion) -> str:
    """Hash of all that an answer depends on: question, how it is asked, settings, prompts and snapshot."""
    return _key_of(question, index.snapshot.id, _settings_hash(index))


def _key_of(question: BatchQuestion, snapshot: str, settings: str) -> str:
    how = [
        question.id,
        question.method,
        question.strategy,
        list(question.filters),
        dict(question.options),
        question.problem,
    ]
    return stable_hash(
        valid_unicode(question.question), json.dumps(how, sort_keys=True, default=str), snapshot, settings
    )


def _settings_hash(index: GraphIndex) -> str:
    sections = {name: getattr(index.settings, name).model_dump(mode="json") for name in _SECTIONS}
    is_model = "model" in (index.settings.answers.engine, index.settings.rating.engine)
    prompts = [index.prompt(name).sha256 for name in _PROMPTS] if is_model else []
    return stable_hash(json.dumps(sections, sort_keys=True), *prompts)


def _answer(index: GraphIndex, question: BatchQuestion, key: str, scope: CallScope) -> BatchAnswer:
    failed = BatchAnswer(question, key, index.snapshot.id, None, question.problem)
    if question.problem:
        return failed
    try:
        with scope.entered():
            result = index.search(
                question.question, question.method, question.strategy, filters=question.filters, **question.options
            )
    except PipelineError as error:
        return replace(failed, error=str(error))
    return replace(failed, result=result)
