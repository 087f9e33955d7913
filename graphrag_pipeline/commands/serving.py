"""Commands `serve`, the HTTP server of one or several roots, and `mcp`, their tools for one agent over stdio.

Keep out: the application (`serve/`).
"""

from __future__ import annotations

import gc
import ipaddress
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.terminal import QUESTION_GROUP, RootOption, check_port, echo, open_root
from graphrag_pipeline.errors import PipelineError

if TYPE_CHECKING:
    from graphrag_pipeline.access.rules import FollowedRules
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.serve.served_roots import ServedRoots

_COLLECTED_OBJECTS = 20_000
"""New objects after which Python looks for unreachable ones: a few megabytes. Its default is 700, several times in a
request."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


def add_serving_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command(rich_help_panel=QUESTION_GROUP)(serve)
    app.command(rich_help_panel=QUESTION_GROUP)(mcp)


ServedOption = Annotated[
    list[str] | None,
    typer.Option("--serve", help="NAME=DIR: serve this root under this name, instead of --root; repeatable."),
]


def serve(
    root: RootOption = None,
    also: ServedOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8000,
    max_running: Annotated[
        int | None,
        typer.Option(min=1, max=1000, help="Requests that compute at once; default: by processors and models."),
    ] = None,
    max_waiting: Annotated[int, typer.Option(min=0, help="Requests that wait; a further one gets 429.")] = 256,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one request.")] = 120.0,
    max_body: Annotated[int, typer.Option(min=1000, help="Bytes of one request's body.")] = 256_000,
    access: Annotated[
        Path | None, typer.Option(help="Access rules; default: `access.yaml` in the root, if it is there.")
    ] = None,
    build: Annotated[
        bool, typer.Option("--build/--no-build", help="Make the views of principals with filters after a publication.")
    ] = True,
    compress: Annotated[
        bool, typer.Option("--compress/--no-compress", help="Compress answers for clients that ask for it.")
    ] = True,
    drain: Annotated[float, typer.Option(min=0, help="Seconds for requests under way when the server stops.")] = 30.0,
) -> None:
    """Serve searches and records of published indexes over HTTP, read only.

    The server follows publications and rollbacks without dropping a request. It listens on this machine only, unless
    access rules exist.
    """
    from graphrag_pipeline.access.view_settings import find_view
    from graphrag_pipeline.models.accounting import paid_run
    from graphrag_pipeline.serve.app import LOOPBACK, build_app
    from graphrag_pipeline.serve.limits import ServerLimits, running_by_default
    from graphrag_pipeline.serve.served_roots import ServedRoots

    roots = open_roots(root, also or [])
    rules = _load_rules(access, roots)
    if rules is None:
        _check_address(host)
    check_port(host, port)
    waits = any(map(_waits_for_models, roots.values()))
    limits = ServerLimits(
        max_body_bytes=max_body,
        timeout_s=timeout,
        max_running=max_running or running_by_default(waits),
        max_waiting=max_waiting,
        drain_s=drain,
        takes_turns=not waits,
    )
    served = ServedRoots({name: opened.path for name, opened in roots.items()}, find_view)
    options = _guard(rules, served, build) if rules else {"hosts": (*LOOPBACK, host)}
    lifespans = [_without_long_collections, *options.pop("lifespans", ())]
    app = build_app(served, limits=limits, lifespans=lifespans, compresses=compress, **options)
    echo(f"serving {', '.join(roots)} on http://{f'[{host}]' if ':' in host else host}:{port}", err=True)
    with paid_run("serve"), suppress(KeyboardInterrupt):
        _listen(app, host, port, drain)


def mcp(
    root: RootOption = None,
    also: ServedOption = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one tool.")] = 120.0,
) -> None:
    """Give an agent read-only tools over published indexes, by the Model Context Protocol on standard input and output.

    An agent's program starts this command. `serve` offers the same tools over HTTP at `/mcp`.
    """
    import anyio

    from graphrag_pipeline.models.accounting import paid_run
    from graphrag_pipeline.serve.app import run_agent_over_stdio
    from graphrag_pipeline.serve.limits import ServerLimits, running_by_default
    from graphrag_pipeline.serve.served_roots import ServedRoots

    roots = open_roots(root, also or [])
    most = running_by_default(any(map(_waits_for_models, roots.values())))
    served = ServedRoots({name: opened.path for name, opened in roots.items()})
    with paid_run("mcp"), suppress(KeyboardInterrupt):
        anyio.run(run_agent_over_stdio, served, ServerLimits(timeout_s=timeout, max_running=most))


def _load_rules(access: Path | None, roots: Mapping[str, Root]) -> FollowedRules | None:
    """Return the access rules; None without any.

    Raises:
        AccessError: the file cannot be used.
    """
    from graphrag_pipeline.access.rules import FollowedRules

    path = find_access_file(access, roots)
    return FollowedRules(path) if access or path.exists() else None


def _guard(rules: FollowedRules, served: ServedRoots, builds: bool) -> dict[str, Any]:
    """Return the options of a server with access rules."""
    from graphrag_pipeline.access.audit import AuditLog
    from graphrag_pipeline.serve.audit import Audit
    from graphrag_pipeline.serve.view_builder import building_views

    audit = rules.current().access.audit
    return {
        "authenticator": rules,
        "audit": Audit(AuditLog(audit, rules.path.parent)) if audit else None,
        "lifespans": [lambda: building_views(rules, served)] if builds else [],
    }


@asynccontextmanager
async def _without_long_collections() -> AsyncIterator[None]:
    """Leave what was loaded before the first request out of garbage collections, and collect less often.

    A collection interrupts every request.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTED_OBJECTS, 10, 10)
    yield


def _listen(app: object, host: str, port: int, drain_s: float) -> None:
    import uvicorn
    from sse_starlette.sse import AppStatus

    from graphrag_pipeline.serve.connections import GuardedConnection

    AppStatus.disable_automatic_graceful_drain()  # a streamed answer may end, too
    uvicorn.Server(
        uvicorn.Config(
            app,  # type: ignore[arg-type]
            host=host,
            port=port,
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            ws="none",
            http=GuardedConnection,
            timeout_graceful_shutdown=max(1, round(drain_s)),
        )
    ).run()


def open_roots(root: Path | None, also: list[str]) -> dict[str, Root]:
    """Return the roots to serve by name; that of `--root` has the name of its folder."""
    if not also:
        opened = open_root(root)
        name = re.sub(r"[^A-Za-z0-9_.-]+", "_", opened.path.name) or "root"
        return {name: opened}
    found: dict[str, Root] = {}
    for text in also:
        name, equals, folder = text.partition("=")
        if not equals or not _NAME.fullmatch(name) or name in found:
            raise typer.BadParameter(
                f"{text!r} is not NAME=DIR with a new name of letters, digits, `_`, `.` and `-`", param_hint="--serve"
            )
        found[name] = open_root(Path(folder))
    return found


def find_access_file(access: Path | None, roots: Mapping[str, Root]) -> Path:
    """Return the path of the access rules: the given one, else `access.yaml` of the only root that has it.

    Raises:
        PipelineError: several roots have one.
    """
    from graphrag_pipeline.access.access_file import ACCESS_FILE

    places = [opened.path / ACCESS_FILE for opened in roots.values()]
    found = [path for path in places if path.exists()]
    if access is None and len(found) > 1:
        raise PipelineError(f"several roots have access rules ({', '.join(map(str, found))}); name one by --access")
    return access or (found or places)[0]


def _waits_for_models(root: Root) -> bool:
    return "model" in (root.settings.answers.engine, root.settings.embeddings.engine)


def _check_address(host: str) -> None:
    """Refuse an address that other machines reach.

    Raises:
        PipelineError: it is not a loopback address.
    """
    try:
        is_local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_local = False
    if not is_local:
        raise PipelineError(
            f"`{host}` is reached by other machines, and there are no access rules; add some with `graphrag-pipeline "
            "access add`, or listen on 127.0.0.1"
        )
