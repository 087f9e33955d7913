"""Views that follow publications: a child process makes them after each one, after a change of the access rules, and if
a view is missing or damaged, as after `forget`.

It is a process of its own, so that requests keep their time. It has the priority of the server: at a load of 24 on two
cores it got 5.6 s of processor time in 110 s, at nice 5 only 1.9 s, and at nice 10 only 0.5 s, with no faster answers
beside. Keep out: making views (`access/`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.access.rules import FollowedRules, NotAuthenticatedError
from graphrag_pipeline.access.view_guard import ViewWatch
from graphrag_pipeline.access.view_settings import find_view
from graphrag_pipeline.serve.served_roots import ServedRoots

_log = logging.getLogger(__name__)
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
