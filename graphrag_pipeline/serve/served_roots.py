"""The served roots, each with the index that its requests read, and the process that builds views of new snapshots.

A root follows what the indexing publishes; a request keeps the index that it began with.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphrag_pipeline.access.principals import NotAuthenticatedError
from graphrag_pipeline.access.rules import FollowedRules
from graphrag_pipeline.access.view_guard import ViewGuard, ViewWatch
from graphrag_pipeline.access.view_settings import find_view
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.serve.errors import NotFoundError, NotReadyError
from graphrag_pipeline.storage.history import find_snapshot
from graphrag_pipeline.text.tokens import load_encoding

_log = logging.getLogger(__name__)

LOOK_S = 1.0
"""Seconds between two looks at the pointers."""
LOOK_AT_STORE_S = 10.0
"""Seconds between two looks at a shared store."""
MAX_EARLIER = 2
"""Earlier snapshots of a root that stay open beside the published one."""

_ONLY_PUBLISHED = "Leave `snapshot` out: a key with filters reads the published snapshot only, and no earlier one."
"""The same for every id that is not found, so that it tells nothing about the snapshots of the root."""

FindView = Callable[[Path, tuple[str, ...]], Path]
"""Returns the root that a reader with these filters reads instead of a served root."""


@dataclass(frozen=True)
class IndexLease:
    """An index that stays open until the lease ends.

    Attributes:
        name: of the served root.
        index: of one snapshot.
        root: that the index belongs to: the served root, or a view of it.
        is_whole: the index was not made for a reader's filters.
    """

    name: str
    index: GraphIndex
    root: Root
    is_whole: bool

    @property
    def snapshot(self) -> str:
        """Id of the snapshot."""
        return self.index.snapshot.id

    def answer(self, **values: Any) -> dict[str, Any]:
        """Return an answer that names the root and the snapshot."""
        return {"root": self.name, "snapshot": self.snapshot, **values}


class _OpenedIndex:
    """An index with the number of its leases; it closes with the last one after it was retired."""

    def __init__(self, project: Root, snapshot: str | None) -> None:
        self.project = project
        self.index = GraphIndex.of_root(project, snapshot)
        self.n_leases = 0
        self.is_retired = False


class FollowedRoot:
    """One root and its opened indexes; safe to use from several threads.

    Args:
        is_view: it has only the documents that a reader may read. Then an earlier snapshot is never read, since it may
            have others; and if the published one goes, it is closed, since it may go for the same reason.

    Attributes:
        n_followed: publications that were followed since the first.
        problem: the reason why the last look failed; "" if it did not.
    """

    def __init__(self, path: Path, is_view: bool = False) -> None:
        self.path = path
        self._is_view = is_view
        self.n_followed = 0
        self.problem = ""
        self._current: _OpenedIndex | None = None
        self._earlier: dict[str, _OpenedIndex] = {}
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._looks = 0

    @property
    def snapshot(self) -> str | None:
        """Id of the snapshot that new requests read; None if none is open."""
        current = self._current
        return current.index.snapshot.id if current else None

    @property
    def project(self) -> Root:
        """The root, with the settings of the open index."""
        current = self._current
        return current.project if current else Root(self.path)

    @property
    def n_leases(self) -> int:
        """Leases of all its indexes."""
        with self._lock:
            opened = [*self._earlier.values(), *filter(None, [self._current])]
            return sum(one.n_leases for one in opened)

    def look(self) -> None:
        """Open the published snapshot if it is not the one that is open; a problem is logged once and kept."""
        with self._looking:
            try:
                self._follow()
                self.problem = ""
            except (PipelineError, OSError) as error:
                if str(error) != self.problem:
                    _log.warning("`%s`: the published index cannot be opened: %s", self.path, error)
                self.problem = str(error)

    def _follow(self) -> None:
        current = self._current
        if current is not None:
            self._looks += 1
            if current.project.shared and self._looks % round(LOOK_AT_STORE_S / LOOK_S) == 0:
                current.project.follow()
            published = current.project.snapshots.current()
            if published is None and self._is_view:
                with self._lock:
                    self._current = None
                self._retire(current)
                return
            if published in (None, current.index.snapshot.id):
                return
        # The root with the settings of now; the models stay open where the settings are the same.
        fresh = Root(self.path)
        known = self._current.project if self._current else None
        opened = _OpenedIndex(known if known is not None and known.settings == fresh.settings else fresh, None)
        try:
            warm(opened.index)
        except BaseException:
            opened.index.close()
            raise
        with self._lock:
            self._current = opened
            self.n_followed += current is not None
        if current is not None:
            _log.info("`%s`: follows the publication of snapshot %s", self.path, opened.index.snapshot.id)
            self._retire(current)

    @contextmanager
    def lease(self, snapshot: str | None = None) -> Iterator[_OpenedIndex]:
        """Lease the published index, or that of an earlier snapshot.

        Args:
            snapshot: an id or its beginning.

        Raises:
            NotReadyError: no index is published.
            NotFoundError: no such snapshot was ever published here, or its files were removed.
        """
        opened = self._take(snapshot)
        try:
            yield opened
        finally:
            with self._lock:
                opened.n_leases -= 1
                is_free = opened.is_retired and not opened.n_leases
            if is_free:
                opened.index.close()

    def _take(self, snapshot: str | None) -> _OpenedIndex:
        with self._lock:
            current = self._current
            if current is None:
                raise NotReadyError("This root has no published index that can be read.")
            own = current.index.snapshot.id
            if snapshot is None or own == snapshot or (self._is_view and own.startswith(snapshot)):
                current.n_leases += 1
                return current
        if self._is_view:
            raise _no_such_snapshot(snapshot, _ONLY_PUBLISHED)
        return self._take_earlier(snapshot, current.project)

    def _take_earlier(self, start: str, project: Root) -> _OpenedIndex:
        try:
            snapshot = find_snapshot(project.snapshots, start)
            if not project.snapshots.is_checked(snapshot):
                raise PipelineError("it was never published")
            with self._looking:
                current = self._current
                if current is not None and current.index.snapshot.id == snapshot:
                    opened = current
                else:
                    opened = self._earlier.get(snapshot) or _OpenedIndex(project, snapshot)
                with self._lock:
                    opened.n_leases += 1
                    if opened is not current:
                        self._earlier.pop(snapshot, None)
                        self._earlier[snapshot] = opened
                self._close_oldest()
        except PipelineError:
            raise _no_such_snapshot(start) from None
        return opened

    def _close_oldest(self) -> None:
        with self._lock:
            oldest = [self._earlier.pop(name) for name in list(self._earlier)[:-MAX_EARLIER]]
        for opened in oldest:
            self._retire(opened)

    def _retire(self, opened: _OpenedIndex) -> None:
        with self._lock:
            opened.is_retired = True
            is_free = not opened.n_leases
        if is_free:
            opened.index.close()

    def close(self) -> None:
        """Close every index after its last lease."""
        with self._lock:
            opened = [*self._earlier.values(), *filter(None, [self._current])]
            self._earlier, self._current = {}, None
        for one in opened:
            self._retire(one)


class ServedRoots:
    """The roots of one server, by name.

    Args:
        roots: name -> folder.
        find_view: the root that a reader with filters reads; without it such a reader reads nothing.
    """

    def __init__(self, roots: Mapping[str, Path], find_view: FindView | None = None) -> None:
        self._roots = {name: FollowedRoot(path) for name, path in roots.items()}
        self._views: dict[Path, FollowedRoot] = {}
        self._guards = {name: ViewGuard(path) for name, path in roots.items()}
        self._find_view = find_view
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._follower: threading.Thread | None = None

    @property
    def names(self) -> list[str]:
        """Names of the served roots."""
        return list(self._roots)

    def root(self, name: str) -> FollowedRoot:
        """Return a served root by its name."""
        return self._roots[name]

    @property
    def is_ready(self) -> bool:
        """Whether every root has an open index."""
        return all(root.snapshot for root in self._roots.values())

    def start(self) -> None:
        """Open every published index, and follow publications from now on."""
        for root in self._roots.values():
            root.look()
        self._follower = threading.Thread(target=self._follow, name="follow-publications", daemon=True)
        self._follower.start()

    def _follow(self) -> None:
        while not self._stopped.wait(LOOK_S):
            with self._lock:
                views = list(self._views.values())
            for root in [*self._roots.values(), *views]:
                try:
                    root.look()
                except Exception:  # of any kind, as of a library that closes files: the thread must follow on
                    _log.exception("`%s`: an unexpected error while publications are followed", root.path)

    def close(self) -> None:
        """Stop following, and close every index after its last lease."""
        self._stopped.set()
        if self._follower:
            self._follower.join()
        for root in [*self._roots.values(), *self._views.values()]:
            root.close()

    @contextmanager
    def lease(self, name: str, filters: Sequence[str] = (), snapshot: str | None = None) -> Iterator[IndexLease]:
        """Lease an index.

        Args:
            name: of a served root.
            filters: of the reader, which choose the view of the root; not those of a request.
            snapshot: an id or its beginning; None is the published one.

        Raises:
            NotFoundError: there is no such root or snapshot.
            NotReadyError: it has no published index yet.
            ViewNotReadyError: the view is not made, or holds a document that may not be read any more.
        """
        if name not in self._roots:
            raise no_such_root(name)
        guard, permitted = self._guards[name], tuple(filters)
        followed = self._view(name, permitted) if filters else self._roots[name]
        wanted = guard.resolve(permitted, snapshot, followed.snapshot) if snapshot else None
        with followed.lease(wanted) as opened:
            if filters:
                guard.check(self._roots[name].project, permitted, opened.index.snapshot)
            yield IndexLease(name, opened.index, opened.project, not filters)

    def reopen(self, places: Iterable[Path]) -> None:
        """Close views whose files were replaced, after their last lease; the next request opens them again."""
        with self._lock:
            known = [self._views.pop(place) for place in places if place in self._views]
        for view in known:
            view.close()

    def _view(self, name: str, filters: tuple[str, ...]) -> FollowedRoot:
        if self._find_view is None:
            raise NotReadyError("The view of this root is not made yet.")
        path = self._find_view(self._roots[name].path, filters)
        with self._lock:
            known = self._views.get(path)
            followed = known or self._views.setdefault(path, FollowedRoot(path, is_view=True))
        if followed.snapshot is None:
            followed.look()
        if followed.snapshot is None:
            raise self._guards[name].missing(filters)
        return followed


def _no_such_snapshot(start: str, what_to_do: str = "GET /snapshots lists all.") -> NotFoundError:
    return NotFoundError(f"There is no published snapshot `{start[:80]}` here.", what_to_do)


def no_such_root(name: str) -> NotFoundError:
    """Return the error of a root that is not served, or not for this client."""
    return NotFoundError(f"There is no root `{name[:80]}` here.", "GET /roots lists those that you may read.")


def warm(index: GraphIndex) -> None:
    """Read what every search reads, so that the first question is as fast as the others; no model is called."""
    if index.nothing_to_read:
        return
    load_encoding()  # holds Python's lock for 0.2 s; the first conversation would need it
    if index.settings.embeddings.engine == "model":
        index.names, index.document_fields, index.snapshot.mentions  # noqa: B018 - each loads at first use
        return
    index.search(_a_name_in(index) or "warm", context_only=True)


def _a_name_in(index: GraphIndex) -> str:
    if not index.snapshot.n_rows("entities"):
        return ""
    [record] = index.snapshot.take("entities", [0], ["title"])
    return str(record["title"])


_LOOK_S = 1.0
_RETRY_S = 60.0
"""Seconds after which a build that failed, or left a view that cannot be read, is tried again."""

Command = Callable[[FollowedRules, ServedRoots], list[str]]
"""Returns the command line of a child that makes all views."""


def access_build(rules: FollowedRules, served: ServedRoots) -> list[str]:
    """Return the command line of `access build` for the served roots."""
    roots = [option for name in served.names for option in ("--serve", f"{name}={served.root(name).path}")]
    return [sys.executable, "-m", "graphrag_pipeline", "access", "build", "--access", str(rules.path), *roots]


@asynccontextmanager
async def building_views(
    rules: FollowedRules, served: ServedRoots, command: Command = access_build
) -> AsyncIterator[None]:
    """Keep the views of all principals up to date until the block ends; then stop a build under way."""
    task = asyncio.create_task(_follow(rules, served, command))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def _follow(rules: FollowedRules, served: ServedRoots, command: Command) -> None:
    done: _Wanted | None = None
    watch, wait_s = ViewWatch(), 0.0
    while True:
        await asyncio.sleep(max(_LOOK_S, wait_s))
        wait_s = 0.0
        wanted = await asyncio.to_thread(_find_wanted, rules, served)
        if not wanted.places:
            continue
        broken = await asyncio.to_thread(watch.find_broken, wanted.places)
        if wanted == done and not broken:
            continue
        is_built = await _run(command(rules, served))
        served.reopen(broken)
        done = wanted if is_built else None
        is_whole = is_built and not await asyncio.to_thread(watch.find_broken, wanted.places)
        wait_s = 0.0 if is_whole else _RETRY_S


@dataclass(frozen=True)
class _Wanted:
    """The views that the principals need, and what they are made of: snapshots of the roots, and the rules."""

    places: tuple[Path, ...] = ()
    made_of: tuple[object, ...] = ()


def _find_wanted(rules: FollowedRules, served: ServedRoots) -> _Wanted:
    try:
        access = rules.current().access
    except NotAuthenticatedError:
        return _Wanted()
    sets = {name: sorted(found) for name, found in access.all_filters().items() if name in served.names}
    snapshots = {name: served.root(name).snapshot for name in sets}
    places = (find_view(served.root(name).path, filters) for name in sets if snapshots[name] for filters in sets[name])
    return _Wanted(tuple(places), (sets, access.views, snapshots))


async def _run(command: list[str]) -> bool:
    """Run the child; return whether it ended well."""
    # Not by the event loop: uvloop runs the hooks of a fork in the child, and LanceDB's starts a thread and warns.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output, _ = await asyncio.to_thread(child.communicate)
    except asyncio.CancelledError:
        child.terminate()
        await asyncio.to_thread(child.wait)
        raise
    if child.returncode:
        _log.error("views are not up to date: %s", output.decode("utf-8", "replace").strip()[-2000:])
    return child.returncode == 0
