"""Views that follow publications: a child process makes them after each one, and after a change of the access rules.

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

from graphrag_pipeline.access.principals import NotAuthenticatedError
from graphrag_pipeline.access.rules import FollowedRules
from graphrag_pipeline.serve.served_roots import ServedRoots

_log = logging.getLogger(__name__)
_LOOK_S = 1.0
_RETRY_S = 60.0
"""Seconds after which a build that failed is tried again."""

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
    done: object = None
    wait_s = 0.0
    while True:
        await asyncio.sleep(max(_LOOK_S, wait_s))
        wanted = await asyncio.to_thread(_find_wanted, rules, served)
        if not wanted or wanted == done:
            wait_s = 0.0
            continue
        is_built = await _run(command(rules, served))
        done, wait_s = (wanted, 0.0) if is_built else (None, _RETRY_S)


def _find_wanted(rules: FollowedRules, served: ServedRoots) -> object:
    """Return what the views depend on: snapshots of the roots, and filters; None if there is nothing to make."""
    try:
        access = rules.current().access
    except NotAuthenticatedError:
        return None
    filters = {name: sorted(sets) for name, sets in access.all_filters().items() if name in served.names}
    snapshots = {name: served.root(name).snapshot for name in filters}
    return (filters, access.views, snapshots) if any(snapshots.values()) and any(filters.values()) else None


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
