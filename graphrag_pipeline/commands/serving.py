"""Commands that serve: `serve`, `mcp`, `access`, `dev` and `demo-model`."""

from __future__ import annotations

import gc
import ipaddress
import os
import re
import sys
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphrag_pipeline.commands.terminal import (
    JsonOption,
    RootOption,
    check_port,
    echo,
    open_root,
    print_json,
)
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.access.access_file import AccessFile, PrincipalEntry
    from graphrag_pipeline.access.rules import FollowedRules
    from graphrag_pipeline.access.views import ViewReport
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline.serve.served_roots import ServedRoots

access = typer.Typer(help="Permit principals to read roots, or parts of them.", no_args_is_help=True)
_FileOption = Annotated[Path | None, typer.Option("--access", help="Access rules; default: `access.yaml` in the root.")]
_ServeOption = Annotated[
    list[str] | None,
    typer.Option("--serve", help="NAME=DIR: a root under the name that `serve` gives it, instead of --root."),
]


@access.command()
def add(
    name: Annotated[str, typer.Argument(help="Principal; a new one, or one that gets another key or root.")],
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help="Only documents that pass all filters; repeatable.")
    ] = None,
    is_whole: Annotated[bool, typer.Option("--all", help="All documents of the root.")] = False,
    expires: Annotated[datetime | None, typer.Option(help="Day or time (UTC) from which the key is not valid.")] = None,
    may_rate: Annotated[
        bool | None, typer.Option("--feedback/--no-feedback", help="Whether it may rate and correct answers.")
    ] = None,
    root: RootOption = None,
    also: _ServeOption = None,
    file: _FileOption = None,
) -> None:
    """Permit a principal to read a root, and print a new key for it, once."""
    from graphrag_pipeline.access.access_file import add_key
    from graphrag_pipeline.access.view_settings import advise
    from graphrag_pipeline.access.views import check_filters

    roots = open_roots(root, also or [])
    path, served = find_access_file(file, roots), [*roots] if filters or is_whole else []
    for opened in roots.values() if filters else ():
        if opened.snapshots.current():
            check_filters(opened, filters or ())
            for line in advise(opened, filters or ()):
                echo(f"warning: {line}", err=True, style="warning")
    key = add_key(path, name, served, filters or (), is_whole, expires, may_rate)
    permitted = f" may now read {', '.join(served)}; it" if served else ""
    echo(f"{name}{permitted} has this new key, which is stored nowhere:", err=True)
    echo(key)


@access.command("list")
def list_principals(
    root: RootOption = None, also: _ServeOption = None, file: _FileOption = None, as_json: JsonOption = False
) -> None:
    """List the principals, the roots and filters that they may read, and the ids of their keys."""
    from graphrag_pipeline.access.access_file import is_readable_by_others, load_access_file

    path = find_access_file(file, open_roots(root, also or []))
    found = load_access_file(path)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    if is_readable_by_others(path):
        echo(f"warning: other users of this machine can read `{path}`; run chmod 600", err=True, style="warning")
    for line in _render(found):
        echo(line)


def _render(found: AccessFile) -> Iterator[str]:
    for name, entry in found.principals.items():
        yield name
        yield from _render_entry(entry)
    if found.anonymous:
        yield "without a key"
        yield from (f"  reads {root}: {_render_filters(filters)}" for root, filters in found.anonymous.filters.items())


def _render_entry(entry: PrincipalEntry) -> Iterator[str]:
    yield from (f"  reads {root}: {_render_filters(filters)}" for root, filters in entry.filters.items())
    for key in entry.keys:
        yield f"  key {key.id}" + (f", expires {key.expires:%Y-%m-%d %H:%M} UTC" if key.expires else "")
    if entry.claims:
        yield f"  tokens with {', '.join(f'{claim} = {value}' for claim, value in entry.claims.items())}"


def _render_filters(filters: tuple[str, ...]) -> str:
    return " and ".join(filters) if filters else "all documents"


@access.command("remove")
def remove_principal(
    name: Annotated[str, typer.Argument(help="Principal.")],
    key: Annotated[str, typer.Option("--key", help="Remove only the key with this id.")] = "",
    root: RootOption = None,
    also: _ServeOption = None,
    file: _FileOption = None,
) -> None:
    """Remove a principal, or one of its keys; a running server refuses it from the next request on."""
    from graphrag_pipeline.access.access_file import remove

    path = find_access_file(file, open_roots(root, also or []))
    remove(path, name, key)
    echo(f"removed key {key} of {name}" if key else f"removed {name}")


@access.command()
def build(
    root: RootOption = None,
    also: _ServeOption = None,
    file: _FileOption = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only compare the views with their root; exit status 1 if one differs.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Make or update the views that principals with filters read, and remove those that none needs."""
    from graphrag_pipeline.access.access_file import load_access_file
    from graphrag_pipeline.access.views import remove_unneeded_views

    roots = open_roots(root, also or [])
    found = load_access_file(find_access_file(file, roots))
    needed = found.all_filters()
    reports, failed = [], []
    if not check:
        _take_down_all(roots, needed)
    for name, opened in roots.items():
        for filters in sorted(needed.get(name, ())):
            try:
                reports.append(_build_one(name, opened, filters, found, check))
            except PipelineError as error:
                failed.append(f"{name}, {_render_filters(filters)}: {error}")
        removed = remove_unneeded_views(opened.path, needed.get(name, ()), is_dry_run=check)
        for place in removed:
            echo(f"{'not needed' if check else 'removed'}: {place}", err=True)
    if as_json:
        print_json([{**vars(report), "place": str(report.place)} for report in reports])
    else:
        for report in reports:
            echo(_render_view(report))
    for text in failed:
        echo(f"error: {text}", err=True, style="error")
    raise typer.Exit(int(bool(failed) or any(report.problems for report in reports)))


def _take_down_all(roots: Mapping[str, Root], needed: Mapping[str, Collection[tuple[str, ...]]]) -> None:
    """Empty the views that hold a document which is not permitted any more, before any view is made."""
    from graphrag_pipeline.access.views import take_down_view

    for name, opened in roots.items():
        for filters in sorted(needed.get(name, ())):
            with suppress(PipelineError):  # making it tells the same error
                take_down_view(opened, filters)


def _build_one(name: str, root: Root, filters: tuple[str, ...], found: AccessFile, is_check: bool) -> ViewReport:
    from graphrag_pipeline.access.views import build_view, check_view

    return (check_view if is_check else build_view)(name, root, filters, found.views)


def _render_view(report: ViewReport) -> str:
    head = f"{report.root}, {_render_filters(report.filters)}"
    if report.problems:
        return f"{head}: {'; '.join(report.problems)}"
    took = f", made in {report.seconds:.1f} s" if report.seconds else ""
    return f"{head}: {counted(report.n_documents, 'documents')}, {report.n_bytes:,} bytes{took}"


_COLLECTED_OBJECTS = 20_000
"""New objects after which Python looks for unreachable ones: a few megabytes. Its default is 700, several times in a
request."""
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,100}")


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
    app = build_app(served, limits=limits, lifespans=lifespans, **options)
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
    from graphrag_pipeline.serve.gate import Audit
    from graphrag_pipeline.serve.served_roots import building_views

    audit = rules.current().access.audit
    return {
        "rules": rules,
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

    from graphrag_pipeline.serve.gate import GuardedConnection

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


def dev(
    root: RootOption = None,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 3000,
    reload: Annotated[
        bool, typer.Option(help="Load the definitions again when settings.yaml or a prompt changes.")
    ] = True,
) -> None:
    """Start Dagster's UI and daemon, with DAGSTER_HOME under the root."""
    from graphrag_pipeline.defs.runs.instance import dagster_home, open_instance
    from graphrag_pipeline.pipeline.root import ROOT_VARIABLE
    from graphrag_pipeline.pipeline.stages import GROUPS

    project = open_root(root)
    project.tables.check_layout(project.settings.storage.n_buckets)
    check_port(host, port)
    with open_instance(project):  # fail early with a clear error
        os.environ["DAGSTER_HOME"] = str(dagster_home(project))
    os.environ[ROOT_VARIABLE] = str(project.path)
    # Dagster advises its project tool `dg` instead of `dagster dev`; the advice does not apply to a root.
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (os.environ.get("PYTHONWARNINGS"), "ignore:Function")))
    shown = f"[{host}]" if ":" in host else host
    echo(f"Dagster's UI of {project.path}: http://{shown}:{port} (in about 10 s; stop it with Ctrl-C)")
    opened = ",".join(f"global@global:{group}" for group in GROUPS)  # ids of groups in the UI
    echo(f"All assets from left to right: http://{shown}:{port}/asset-groups?expanded={opened}")
    arguments = ["--host", host, "--port", str(port), *(["--reload"] if reload else [])]
    os.execv(sys.executable, [sys.executable, "-m", "graphrag_pipeline.defs.dev", *arguments])


def demo_model(port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8089) -> None:
    """Start a stand-in for a model, to try the model engine without a key and without cost.

    It speaks OpenAI's protocol, on this machine only. Its answers are made by rule: good for trying, not for use.
    """
    import uvicorn

    from graphrag_pipeline.demo_model.app import CHAT_MODEL, EMBEDDING_MODEL, build_app

    check_port("127.0.0.1", port, "choose another with --port")
    address = f"http://127.0.0.1:{port}/v1"
    echo(f"demo model on {address} (stop it with Ctrl-C)")
    echo("It answers by rule, for trying things only. To use it, set `engine: model` for a step, and in settings.yaml:")
    echo()
    echo("chat_model:")
    echo(f"  {{model: {CHAT_MODEL}, base_url: {address}, prompt_price: 0, completion_price: 0}}")
    echo("embedding_model:")
    echo(f"  {{model: {EMBEDDING_MODEL}, base_url: {address}, prompt_price: 0}}")
    config = uvicorn.Config(
        build_app(), host="127.0.0.1", port=port, log_level="warning", access_log=False, ws="none",
        timeout_graceful_shutdown=1,
    )  # fmt: skip
    with suppress(KeyboardInterrupt):
        uvicorn.Server(config).run()
