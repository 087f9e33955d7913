"""Requests at half price: they are collected, sent as batches of OpenAI's Batch API, and answered within a day.

While `sending_batches` is on, the calls of the sections in `BATCHED` wait here instead of going to the endpoint. Once
no further one has arrived for `QUIET_S`, all are sent as one batch, or as several by the limits of the API. Each call
then gets its result as if the endpoint had answered it. So prompts, corrections, the cache and the stages are
those of any run. A conversation of several turns takes as many rounds of batches.

The table `batch_items` puts each request into one batch. It is written before the batch is made, and the batch has its
name as metadata. So a later run finds the batch of a killed one, at the latest in the list of batches, and waits for
its results instead of paying again.

A request that a batch leaves without an answer, because it expired, is sent directly. If a batch answers nothing, or is
cancelled, the run stops: what it answered is stored, and the rest is free for another batch.

A run that may not wait for a day stops with `BatchesUnderWayError` once all is sent, and is run again later.

Keep out: what is sent, and how an answer is read, booked and stored (`endpoint.py` and the clients).
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlalchemy import Connection, delete, select, update

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.identity import stable_hash
from graphrag_pipeline.models.database import BATCH_ITEMS, CHUNK, SharedDatabase
from graphrag_pipeline.models.endpoints.places import ModelPlace, ModelSettings, make_client
from graphrag_pipeline.models.endpoints.problems import (
    Problem,
    attempt_errors,
    describe_problem,
    read_status_error,
    secrets_of,
)
from graphrag_pipeline.models.event_loop import start_in_loop
from graphrag_pipeline.models.ports import canonical_json

if TYPE_CHECKING:
    import openai
    from openai.types import Batch

BATCHED = ("extraction", "descriptions", "embeddings")
"""Sections whose calls are many and do not wait for each other; reports are few, and follow each other by levels."""
PRICE_SHARE = 0.5
"""Share of the usual price that a request in a batch costs."""
MAX_REQUESTS, MAX_INPUTS, MAX_BYTES = 50_000, 50_000, 200_000_000
"""Limits of the API for one batch: requests, texts to embed in all of them, and bytes of its file."""
QUIET_S = 2.0
"""Seconds without a further request after which those that wait are sent; a trial of a form of JSON lasts one."""
POLL_S = 30.0
"""Seconds between two looks at a batch."""
CLAIM_S = 900.0
"""Seconds within which a process that claimed requests makes their batch; after them, a killed one is assumed."""
TIMEOUT_S = 600.0
"""Seconds for the transfer of a file."""
WINDOW_S = 26 * 3600.0
"""Seconds after which a batch is over for certain."""
_SETTLE_S = 0.1
_RETRIES = 5
_NAME = "graphrag_pipeline"  # key of the metadata that holds the name of a batch
_TOO_MUCH = "token_limit_exceeded"  # an account may have so many tokens in its batches at once
_OVER = ("completed", "failed", "expired", "cancelled")
_WITHOUT = "run `index --batch` again to send the others in a new batch, or `index` to send them at the usual price"


class BatchesUnderWayError(PipelineError):
    """Requests are in batches that are not over, and the run does not wait for them."""


@dataclass
class _Item:
    """A request that waits for its result: the body of the response, a problem, or None if there is no answer.

    Attributes:
        digest: of the conversation or the texts; a corrective request has the key of the first one.
        is_again: whether the result of its key was handed out before, so that it needs a batch of its own.
    """

    key: str
    digest: str
    line: bytes
    n_inputs: int
    is_again: bool
    result: asyncio.Future[object]


class BatchDesk:
    """Takes requests and hands each its result. For one event loop.

    Args:
        database: that of the cache.
        report: receives a line on each batch that is sent, found again, or over.
        is_waiting: whether to wait for batches that are under way.

    Attributes:
        rounds: section -> how often its requests were sent as batches.
        under_way: ids of batches that were not waited for.
    """

    def __init__(self, database: SharedDatabase, report: Callable[[str], object], is_waiting: bool = True) -> None:
        self.database = database
        self.report = report
        self.is_waiting = is_waiting
        self.under_way: set[str] = set()
        self.rounds: Counter[str] = Counter()
        self._lanes: dict[tuple[str, ...], _Lane] = {}

    def is_sent(self, key: str) -> bool:
        """Whether a request is in a batch, perhaps one of an earlier run."""
        return bool(self.database.read(select(BATCH_ITEMS.c.request_key).where(BATCH_ITEMS.c.request_key == key)))

    async def ask(self, place: ModelPlace, section: str, path: str, body: Mapping[str, Any], key: str) -> object:
        """Return the body of the response to a request, a `Problem`, or None if its batch leaves it without an answer.

        Raises:
            PipelineError: its batch cannot be made, fails, or is cancelled.
        """
        if place.settings.api_version:
            raise SettingsError(f"{section}: --batch does not know Azure (`api_version`); run `index` without it")
        name = (place.settings.base_url, place.settings.api_key_env, path, section)
        if name not in self._lanes:
            self._lanes[name] = _Lane(self, place, section, path)
        return await self._lanes[name].ask(body, key)

    async def settle(self) -> None:
        """Wait until each request that was taken is in a batch."""
        while any(lane.is_sending for lane in self._lanes.values()):
            await asyncio.sleep(_SETTLE_S)

    def close(self) -> None:
        """Stop waiting for batches; a later run finds them again. Requests of an interrupted run may still wait."""
        for lane in self._lanes.values():
            lane.loop.call_soon_threadsafe(lane.stop)


@dataclass
class _Lane:
    """The requests of one section to one path of one endpoint; a batch holds nothing else."""

    desk: BatchDesk
    place: ModelPlace
    section: str
    path: str
    _pending: list[_Item] = field(default_factory=list)
    _n_bytes: int = 0
    _n_inputs: int = 0
    _last_at: float = 0.0
    _handed_out: set[str] = field(default_factory=set)
    _waiting: dict[str, list[_Item]] = field(default_factory=dict)  # name of a batch -> requests in it
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _sending: set[asyncio.Task[None]] = field(default_factory=set)
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    _is_timing: bool = False

    async def ask(self, body: Mapping[str, Any], key: str) -> object:
        said = body.get("messages") or body.get("input")
        line = {"custom_id": key, "method": "POST", "url": f"/v1{self.path}", "body": body}
        item = _Item(
            key,
            stable_hash("batched", canonical_json(said)),
            json.dumps(line, ensure_ascii=False).encode() + b"\n",
            len(body.get("input", ())),
            key in self._handed_out,
            asyncio.get_running_loop().create_future(),
        )
        columns = BATCH_ITEMS.c.digest, BATCH_ITEMS.c.batch
        rows = self.desk.database.read(select(*columns).where(BATCH_ITEMS.c.request_key == key))
        if rows and rows[0].digest == item.digest and not item.is_again:
            self._wait_for(rows[0].batch, [item])
        else:
            item.is_again = item.is_again or bool(rows)
            self._add(item)
        try:
            return await item.result
        finally:
            self._handed_out.add(key)

    @property
    def is_sending(self) -> bool:
        return bool(self._pending or self._sending)

    def stop(self) -> None:
        """End all tasks; to be called in the event loop."""
        for task in self._tasks:
            task.cancel()

    def _add(self, item: _Item) -> None:
        is_full = (
            len(self._pending) >= MAX_REQUESTS
            or self._n_bytes + len(item.line) > MAX_BYTES
            or self._n_inputs + item.n_inputs > MAX_INPUTS
        )
        if is_full and self._pending:
            self._flush()
        self._pending.append(item)
        self._n_bytes += len(item.line)
        self._n_inputs += item.n_inputs
        self._last_at = asyncio.get_running_loop().time()
        if not self._is_timing:
            self._is_timing = True
            self._start(self._flush_when_quiet(), self._pending)

    async def _flush_when_quiet(self) -> None:
        loop = asyncio.get_running_loop()
        while (left := self._last_at + QUIET_S - loop.time()) > 0:
            await asyncio.sleep(left)
        self._is_timing = False
        self.desk.rounds[self.section] += 1
        self._flush()

    def _flush(self) -> None:
        items, self._pending, self._n_bytes, self._n_inputs = self._pending, [], 0, 0
        sending = self._start(self._send(items), items)
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    def _start(self, work: Any, items: Sequence[_Item]) -> asyncio.Task[None]:
        """Run a task; its error is that of all items that still wait."""

        async def run() -> None:
            try:
                await work
            except _failures() as error:
                problem = error if isinstance(error, PipelineError) else PipelineError(self._describe(error))
                for item in items:
                    if not item.result.done():
                        item.result.set_exception(problem)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _describe(self, error: Exception) -> str:
        problem = describe_problem(error, secrets_of(self._client), TIMEOUT_S)
        if problem.status in (404, 405):
            return f"{self.place.label} has no Batch API ({problem}); run `index` without --batch"
        return f"{self.place.label}: the Batch API failed ({problem}); {_WITHOUT}"

    @property
    def _client(self) -> openai.AsyncOpenAI:
        return self.place.connect()

    @property
    def _patient(self) -> openai.AsyncOpenAI:
        return self._client.with_options(max_retries=_RETRIES, timeout=TIMEOUT_S)

    # ------------------------------------------------------------------------------------------------------- sending

    async def _send(self, items: Sequence[_Item]) -> None:
        """Claim requests, and make a batch of those that no other process has in one."""
        items = [item for item in items if not item.result.done()]  # others were abandoned
        name = uuid.uuid4().hex
        claimed = await asyncio.wrap_future(self.desk.database.submit(lambda to: self._claim(to, name, items)))
        mine = [item for item in items if claimed[item.key] == name]
        for other in set(claimed.values()) - {name}:
            self._wait_for(other, [item for item in items if claimed[item.key] == other])
        if not mine:
            return
        try:
            content = b"".join(item.line for item in mine)
            file = await self._patient.files.create(file=(f"{name}.jsonl", content), purpose="batch")
            batch_id = await self._create(file.id, name)
        except _failures():
            await self._release(name)
            raise
        if batch_id:
            await self._note(name, batch_id)
            n_round = self.desk.rounds[self.section]
            self.desk.report(f"{self.section}: sent {len(mine):,} requests as {batch_id} (round {n_round})")
        self._wait_for(name, mine)

    async def _create(self, file_id: str, name: str) -> str:
        """Make a batch; return its id, or "" if the connection was lost, so that it may exist."""
        try:
            made = await self._client.batches.create(
                input_file_id=file_id,
                endpoint=f"/v1{self.path}",  # type: ignore[arg-type]
                completion_window="24h",
                metadata={_NAME: name},
            )
        except attempt_errors() as error:
            if describe_problem(error, secrets_of(self._client), TIMEOUT_S).status is not None:
                raise
            return ""
        return made.id

    def _claim(self, connection: Connection, name: str, items: Sequence[_Item]) -> dict[str, str]:
        """Return the name of the batch of each key; a key that no batch has gets this one."""
        now = self.desk.database.now(connection)
        again = [item.key for item in items if item.is_again]
        for keys in _chunks(again):
            connection.execute(delete(BATCH_ITEMS).where(BATCH_ITEMS.c.request_key.in_(keys)))
        rows = [{"request_key": one.key, "digest": one.digest, "batch": name, "claimed_at": now} for one in items]
        if rows:
            connection.execute(self.desk.database.insert(BATCH_ITEMS).on_conflict_do_nothing(), rows)
        claimed: dict[str, str] = {}
        for keys in _chunks([item.key for item in items]):
            found = select(BATCH_ITEMS.c.request_key, BATCH_ITEMS.c.batch).where(BATCH_ITEMS.c.request_key.in_(keys))
            claimed |= {row.request_key: row.batch for row in connection.execute(found)}
        return claimed

    async def _note(self, name: str, batch_id: str) -> None:
        statement = update(BATCH_ITEMS).where(BATCH_ITEMS.c.batch == name).values(batch_id=batch_id)
        await asyncio.wrap_future(self.desk.database.submit(lambda to: to.execute(statement)))

    async def _release(self, name: str, keys: Sequence[str] | None = None) -> None:
        """Let the requests of a batch, all or some of them, be sent in another one."""

        def change(connection: Connection) -> None:
            is_in = BATCH_ITEMS.c.batch == name
            for some in [None] if keys is None else _chunks(keys):
                chosen = is_in if some is None else is_in & BATCH_ITEMS.c.request_key.in_(some)
                connection.execute(delete(BATCH_ITEMS).where(chosen))

        await asyncio.wrap_future(self.desk.database.submit(change))

    # ------------------------------------------------------------------------------------------------------- waiting

    def _wait_for(self, name: str, items: list[_Item]) -> None:
        if name in self._waiting:
            self._waiting[name] += items
            return
        self._waiting[name] = waiting = items
        self._start(self._watch(name, waiting), waiting)

    async def _watch(self, name: str, waiting: list[_Item]) -> None:
        """Wait until a batch is over, and hand out its results."""
        try:
            await asyncio.sleep(min(QUIET_S, POLL_S))  # others of an earlier run's batch may arrive
            batch, said = await self._find(name), ""
            news = batch and _describe_state(batch)
            while batch is not None and batch.status not in _OVER:
                if not self.desk.is_waiting:
                    self.desk.under_way.add(batch.id)
                    await self.desk.settle()
                    raise BatchesUnderWayError(f"{self.section}: {news}; run `index --batch` again once it is over")
                if news and news != said:
                    self.desk.report(f"{self.section}: {news}")
                    said = news
                await asyncio.sleep(POLL_S)
                found = await self._look(batch)
                if isinstance(found, Problem):
                    news = f"the state of {batch.id} is not known now ({found})"
                else:
                    batch, news = found, _describe_state(found)
        finally:
            self._waiting.pop(name, None)
        if batch is None:  # its process ended before it was made, or it is deleted
            await self._release(name)
            for item in waiting:
                item.is_again = False
                self._add(item)
            return
        await self._hand_out(name, batch, waiting)

    async def _look(self, batch: Batch) -> Batch | Problem:
        """Return the state of a batch, or why it is not known now: a day is too long to fail for a lost network."""
        try:
            return await self._patient.batches.retrieve(batch.id)
        except attempt_errors() as error:
            problem = describe_problem(error, secrets_of(self._client), TIMEOUT_S)
            if not problem.is_worth_retrying:
                raise
            return problem

    async def _find(self, name: str) -> Batch | None:
        """Return the batch of a name, in the list of batches if its id was not noted; None if no batch has it."""
        import openai

        while True:
            columns = BATCH_ITEMS.c.batch_id, BATCH_ITEMS.c.claimed_at
            rows = self.desk.database.read(select(*columns).where(BATCH_ITEMS.c.batch == name).limit(1))
            if not rows:
                return None
            if rows[0].batch_id:
                try:
                    return await self._patient.batches.retrieve(rows[0].batch_id)
                except openai.NotFoundError:
                    return None
            async for batch in self._patient.batches.list(limit=100):
                if (batch.metadata or {}).get(_NAME) == name:
                    await self._note(name, batch.id)
                    self.desk.report(f"{self.section}: found {batch.id}, which an interrupted run had made")
                    return await self._patient.batches.retrieve(batch.id)
            now = await asyncio.wrap_future(self.desk.database.submit(self.desk.database.now))
            if now - rows[0].claimed_at > CLAIM_S:
                return None
            await asyncio.sleep(POLL_S)

    async def _hand_out(self, name: str, batch: Batch, waiting: Sequence[_Item]) -> None:
        """Give each waiting request its result, and free those without an answer for another batch.

        Raises:
            PipelineError: the batch answered none of them, or was cancelled; for those without an answer.
        """
        secrets = secrets_of(self._client)
        results: dict[str, object] = {}
        for file_id in filter(None, (batch.output_file_id, batch.error_file_id)):
            content = await self._patient.files.content(file_id)
            results |= await asyncio.to_thread(_read_results, content.content, secrets)
        self.desk.report(f"{self.section}: {batch.id} is {batch.status}")
        missing = [item for item in waiting if results.get(item.key) is None]
        for item in waiting:
            if (result := results.get(item.key)) is not None and not item.result.done():
                item.result.set_result(result)
        refused = [item.key for item in waiting if isinstance(results.get(item.key), Problem)]
        await self._release(name, [*refused, *(item.key for item in missing)])
        errors = (batch.errors and batch.errors.data) or ()
        if len(missing) > 1 and any(error.code == _TOO_MUCH for error in errors):
            self.desk.report(f"{self.section}: {batch.id} is over the limit of tokens in batches; it is sent in halves")
            half = len(missing) // 2
            for some in (missing[:half], missing[half:]):
                await self._send(some)
                await asyncio.wait([item.result for item in some])
            return
        is_answered = any(result is not None for result in results.values())
        if missing and (batch.status in ("failed", "cancelled") or not is_answered):
            why = "; ".join(f"{error.message} ({error.code})" for error in errors)
            raise PipelineError(
                f"{self.section}: {batch.id} is {batch.status}{f': {why}' if why else ''}, and {len(missing):,} of its "
                f"requests have no answer; {_WITHOUT}"
            )
        for item in missing:
            if not item.result.done():
                item.result.set_result(None)


def _describe_state(batch: Batch) -> str:
    counts = batch.request_counts
    answered = f", {counts.completed:,} of {counts.total:,} answered" if counts else ""
    return f"{batch.id} is {batch.status}{answered}"


def _read_results(content: bytes, secrets: Sequence[str]) -> dict[str, object]:
    """Return the body or the problem by key; None for a request that was not executed."""
    results: dict[str, object] = {}
    for line in content.splitlines():
        if line.strip():
            row = json.loads(line)
            response = row.get("response") or {}
            status, body = response.get("status_code"), response.get("body")
            if status is None:
                results[row["custom_id"]] = None
            else:
                results[row["custom_id"]] = body if status == 200 else read_status_error(status, body, secrets)
    return results


def _failures() -> tuple[type[Exception], ...]:
    return (PipelineError, *attempt_errors())


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), CHUNK):
        yield keys[start : start + CHUNK]


# -------------------------------------------------------------------------------------------------------------- switch

_desks: list[BatchDesk] = []


@contextmanager
def sending_batches(
    database: SharedDatabase, report: Callable[[str], object], is_waiting: bool = True
) -> Iterator[BatchDesk]:
    """Let the calls of this process for the sections in `BATCHED` go in batches, until the block ends."""
    desk = BatchDesk(database, report, is_waiting)
    _desks.append(desk)
    try:
        yield desk
    finally:
        _desks.remove(desk)
        desk.close()


def find_under_way(models: Sequence[ModelSettings], batch_ids: Sequence[str]) -> dict[str, str]:
    """Return the state of each batch that is not over, by id; one that no endpoint of the models knows is over.

    Raises:
        PipelineError: an endpoint cannot be asked now.
    """
    return start_in_loop(_find_under_way(models, batch_ids)).result()


async def _find_under_way(models: Sequence[ModelSettings], batch_ids: Sequence[str]) -> dict[str, str]:
    import openai

    places = {(one.base_url, one.api_key_env): one for model in models for one in model.places}
    found = {}
    for one in places.values():
        client = make_client(one, urlsplit(one.base_url).hostname or "")
        for batch_id in batch_ids:
            try:
                batch = await client.batches.retrieve(batch_id)
            except openai.NotFoundError:
                continue
            except attempt_errors() as error:
                problem = describe_problem(error, secrets_of(client), TIMEOUT_S)
                raise PipelineError(f"{one.base_url}: the state of {batch_id} is not known now ({problem})") from None
            if batch.status not in _OVER:
                found[batch_id] = _describe_state(batch)
    return found


def desk_for(section: str) -> BatchDesk | None:
    """Return where the calls of a section wait for a batch; None if they go to the endpoint."""
    return _desks[-1] if _desks and section in BATCHED else None


def is_batching() -> bool:
    """Return whether calls of this process may go in batches."""
    return bool(_desks)


def most_at_once(section: str, settings: ModelSettings) -> int:
    """Return the largest useful number of concurrent requests of a section."""
    return settings.most_at_once if desk_for(section) is None else MAX_REQUESTS
