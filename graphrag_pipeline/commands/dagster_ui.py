"""Command `dev`: Dagster's UI and daemon on a root."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from graphrag_pipeline.commands.terminal import DAGSTER_GROUP, RootOption, check_port, echo, open_root


def add_ui_commands(app: typer.Typer) -> None:
    """Mount the commands of this module."""
    app.command(rich_help_panel=DAGSTER_GROUP)(dev)


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
    arguments = ["--host", host, "--port", str(port), *(["--reload"] if reload else [])]
    os.execv(sys.executable, [sys.executable, "-m", "graphrag_pipeline.defs.dev", *arguments])
