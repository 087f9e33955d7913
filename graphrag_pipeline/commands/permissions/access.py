"""Commands for permissions: `access add|list|remove|build`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphrag_pipeline.commands.serving import find_access_file, open_roots
from graphrag_pipeline.commands.terminal import QUESTION_GROUP, JsonOption, RootOption, echo, print_json
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.text.counted import counted

if TYPE_CHECKING:
    from graphrag_pipeline.access.access_file import AccessFile, PrincipalEntry
    from graphrag_pipeline.access.views import ViewReport
    from graphrag_pipeline.pipeline.root import Root

access = typer.Typer(help="Permit principals to read roots, or parts of them.", no_args_is_help=True)
_FileOption = Annotated[Path | None, typer.Option("--access", help="Access rules; default: `access.yaml` in the root.")]
_ServeOption = Annotated[
    list[str] | None,
    typer.Option("--serve", help="NAME=DIR: a root under the name that `serve` gives it, instead of --root."),
]


def add_access_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.add_typer(access, name="access", rich_help_panel=QUESTION_GROUP)


@access.command()
def add(
    name: Annotated[str, typer.Argument(help="Principal; a new one, or one that gets another key or root.")],
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help="Only documents that pass all filters; repeatable.")
    ] = None,
    is_whole: Annotated[bool, typer.Option("--all", help="All documents of the root.")] = False,
    expires: Annotated[datetime | None, typer.Option(help="Day or time (UTC) from which the key is not valid.")] = None,
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
    key = add_key(path, name, served, filters or (), is_whole, expires)
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
