"""Batch of questions to one index: answered in parallel, each with its result or its error.

    with GraphIndex.open("my_root") as index:
        for answered in answer_all(index, ["Who is Jacob Marley?", "What are the main themes?"]):
            print(answered.result.answer if answered.result else answered.error)

All answers come from the index's snapshot. `answer_into_file` writes them as JSON lines. It skips a question that the
file answers for the same settings, prompts and snapshot, and keeps answers to other questions.

Answers are appended to the file as they arrive, and put in order at the end. An answer to a question that is not asked
now stays; one to a question that is asked again is replaced. After a crash only the last line may be incomplete: the
next run drops it. Keep out: reading question files (`question_files.py`), and search methods.
"""

from __future__ import annotations

import fcntl
import json
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.event_loop import CallScope
from graphrag_pipeline.models.prompts import PROMPT_NAMES
from graphrag_pipeline.query.batch.question_files import BatchQuestion
from graphrag_pipeline.query.methods.registry import METHODS
from graphrag_pipeline.query.question import valid_unicode
from graphrag_pipeline.query.token_budget import QueryUsage

if TYPE_CHECKING:
    from graphrag_pipeline.query.index.graph_index import GraphIndex
    from graphrag_pipeline.query.search_result import SearchResult

_OPENING = b'{"key": '


class AnswerFile:
    """Answer file at a path, locked for one process; a new file is created.

    Attributes:
        whole: places of the lines that need no new search, by key: (offset, bytes).

    Raises:
        PipelineError: the file has other content, another process is writing it, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.whole: dict[str, tuple[int, int]] = {}
        self._failed: dict[str, tuple[int, int]] = {}
        self._questions: dict[str, str] = {}
        if not path.parent.is_dir():
            raise PipelineError(f"{path}: folder `{path.parent}` does not exist; create it, or choose another file")
        try:
            self._file = path.open("r+b" if path.exists() else "x+b")
        except OSError as error:
            raise files.write_error(path, error) from error
        try:
            self._lock()
            self._read()
        except PipelineError:
            self._file.close()
            raise

    def __enter__(self) -> AnswerFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, answer: dict[str, Any]) -> None:
        """Append an answer.

        Raises:
            PipelineError: the disk is full.
        """
        line = json.dumps(answer, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
        try:
            start = self._file.seek(0, 2)
            self._file.write(line)
            self._file.flush()
        except OSError as error:
            raise files.write_error(self.path, error) from error
        self._place(answer, (start, len(line)))

    def put_in_order(self, keys: Iterable[str], questions: Iterable[BatchQuestion]) -> int:
        """Rewrite the file: one line for each key, in that order, then the answers to other questions.

        Args:
            questions: those that are asked now; other lines of theirs are dropped, and so are other errors.

        Returns:
            Number of answers to other questions.
        """
        places = {**self._failed, **self.whole}
        asked = {question.key for question in questions}
        others = [key for key, question in self._questions.items() if question not in asked]
        ordered = [places[key] for key in keys] + sorted(places[key] for key in others)

        def write(file: BinaryIO) -> None:
            for start, size in ordered:
                self._file.seek(start)
                file.write(self._file.read(size))

        files.replace_by(self.path, write)
        return len(others)

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PipelineError(
                f"{self.path}: another batch is writing it; wait until that ends, or choose another file"
            ) from None

    def _read(self) -> None:
        end = 0
        for number, line in enumerate(self._file, start=1):
            answer = _parse(line)
            if answer is None and not _is_broken_off(line):
                raise PipelineError(f"{self.path}: line {number} is not an answer of a batch; choose another file")
            if answer is not None:
                self._place(answer, (end, len(line)))
                end += len(line)
        self._file.truncate(end)

    def _place(self, answer: dict[str, Any], place: tuple[int, int]) -> None:
        is_whole = "error" not in answer and not answer.get("answering", {}).get("failure")
        (self.whole if is_whole else self._failed)[answer["key"]] = place
        if "error" not in answer:
            self._questions[answer["key"]] = str(answer.get("question_key"))


def _is_broken_off(line: bytes) -> bool:
    """Return whether a line is the beginning of an answer."""
    return not line.endswith(b"\n") and line[: len(_OPENING)] == _OPENING[: len(line)]


def _parse(line: bytes) -> dict[str, Any] | None:
    """Return the answer of a line; None if the line is something else or incomplete."""
    if not line.endswith(b"\n"):
        return None
    try:
        answer = json.loads(line)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) and isinstance(answer.get("key"), str) else None


CONCURRENCY = 4
MAX_BUFFERED = 4
"""Most searches that run or wait to be yielded, per parallel search; the limit bounds memory."""

_MAX_SHOWN_ERRORS = 10
_SECTIONS = (*(method.section for method in METHODS.values()), "rating", "answers", "chat_model")
_PROMPTS = tuple(name for name in PROMPT_NAMES if name.split("_")[0] in (*METHODS, "rate"))


@dataclass(frozen=True)
class BatchAnswer:
    """A question of a batch with its result or its error.

    Attributes:
        key: hash of all inputs of the answer.
        snapshot: id of the snapshot that was searched.
        result: None if the search failed.
        error: message of the failure for the user; "" if there is a result.
    """

    question: BatchQuestion
    key: str
    snapshot: str
    result: SearchResult | None
    error: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether the question needs no new search: it has an answer, and a requested model did not fail."""
        return self.result is not None and not self.result.answering.get("failure")

    def to_dict(self) -> dict[str, Any]:
        """Return the result as of `SearchResult.to_dict`, or the error; with the keys, and the id if it is set."""
        keys = {"key": self.key, "question_key": self.question.key}
        identity = keys | ({"id": self.question.id} if self.question.id else {})
        if self.result is not None:
            return identity | self.result.to_dict()
        question = {"question": valid_unicode(self.question.question), "method": self.question.method}
        return identity | question | {"snapshot": self.snapshot, "error": self.error}


@dataclass(frozen=True)
class BatchAccount:
    """Counts of a batch: answered, kept and failed questions, and model usage.

    Attributes:
        answered: questions that this run answered.
        kept: questions that an earlier run answered.
        failed: questions without a result; the batch is complete if it is 0.
        replaced: how many of `answered` the embedded engine answered because the model failed.
        errors: distinct errors of the failed questions, in order.
        others: answers to other questions that stay in the file.
    """

    answered: int = 0
    kept: int = 0
    failed: int = 0
    replaced: int = 0
    usage: QueryUsage = field(default_factory=QueryUsage)
    errors: tuple[str, ...] = ()
    others: int = 0

    def add(self, answered: BatchAnswer) -> BatchAccount:
        """Return the account with one more question."""
        result = answered.result
        if result is None:
            return replace(self, failed=self.failed + 1, errors=tuple(dict.fromkeys((*self.errors, answered.error))))
        n_replaced = self.replaced + (not answered.is_whole)
        return replace(self, answered=self.answered + 1, replaced=n_replaced, usage=self.usage + result.usage)

    def to_dict(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("answered", "kept", "failed", "replaced", "others")}
        return {**counts, "errors": list(self.errors), "usage": self.usage.to_dict()}

    def to_text(self) -> str:
        """Return a line of counts, the errors, and a line per model.

        The first line is such as "5 questions: 3 answered, 1 kept from before, 1 failed".
        """
        counts = [f"{self.answered} answered"]
        counts += [f"{self.replaced} of them by the embedded engine in place of the model"] if self.replaced else []
        counts += [f"{self.kept} kept from before"] if self.kept else []
        counts += [f"{self.failed} failed"] if self.failed else []
        n = self.answered + self.kept + self.failed
        lines = [f"{n} question{'s' * (n != 1)}: {', '.join(counts)}{self._describe_others()}"]
        lines += [f"  {error}" for error in self.errors[:_MAX_SHOWN_ERRORS]]
        lines += (
            [f"  and {len(self.errors) - _MAX_SHOWN_ERRORS} other errors"]
            if len(self.errors) > _MAX_SHOWN_ERRORS
            else []
        )
        return "\n".join([*lines, *filter(None, [self.usage.to_line()])])

    def _describe_others(self) -> str:
        if not self.others:
            return ""
        stay = "answer to another question stays" if self.others == 1 else "answers to other questions stay"
        return f"; {self.others} {stay} in the file"


def answer_all(
    index: GraphIndex,
    questions: Iterable[str | BatchQuestion],
    concurrency: int = CONCURRENCY,
    known: Collection[str] = (),
) -> Iterator[BatchAnswer]:
    """Answer questions, `concurrency` at a time; yields in their order.

    Args:
        questions: a str is answered by the method `auto`.
        known: keys of questions to skip.

    Yields:
        One `BatchAnswer` per question; a `PipelineError` becomes its `error` and does not stop the others.
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
        finally:  # a caller that stops early does not wait for models
            scope.cancel()
            pool.shutdown(cancel_futures=True)


def answer_into_file(
    index: GraphIndex,
    questions: list[BatchQuestion],
    path: Path,
    concurrency: int = CONCURRENCY,
    on_answer: Callable[[BatchAnswer], None] = lambda answered: None,
) -> BatchAccount:
    """Answer the questions that have no answer in a file; the file then has one line per question, in their order.

    After them stay the earlier answers to questions that are not asked now.

    Args:
        on_answer: receives each new answer after it is written to the file.

    Raises:
        PipelineError: the file has other content, or cannot be written.
    """
    keys = answer_keys(index, questions)
    with AnswerFile(path) as answers:
        account = BatchAccount(kept=sum(key in answers.whole for key in keys))
        for answered in answer_all(index, questions, concurrency, frozenset(answers.whole)):
            answers.add(answered.to_dict())
            account = account.add(answered)
            on_answer(answered)
        n_others = answers.put_in_order(keys, questions)
    return replace(account, others=n_others)


def answer_keys(index: GraphIndex, questions: Iterable[BatchQuestion]) -> list[str]:
    """Return the hash of all inputs of each answer: question with options, settings, prompts and snapshot."""
    settings = _settings_hash(index)
    return [_key_of(question, index.snapshot.id, settings) for question in questions]


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
        result = index.within(scope).search(
            question.question, question.method, question.strategy, filters=question.filters, **question.options
        )
    except PipelineError as error:
        return replace(failed, error=str(error))
    return replace(failed, result=result)
