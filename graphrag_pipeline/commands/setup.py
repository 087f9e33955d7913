"""Commands that set up a root: `init`, `doctor` and `settings show`."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphrag_pipeline.commands.terminal import (
    JsonOption,
    RootOption,
    echo,
    open_root,
    prefer_own_root,
    print_json,
)
from graphrag_pipeline.models.accounting import paid_run

if TYPE_CHECKING:
    from graphrag_pipeline.settings.settings import Settings

Engine = Literal["embedded", "model", "mixed"]
PresetName = Literal["openai", "azure", "ollama", "llamacpp", "vllm"]


settings = typer.Typer(help="Show the settings of a root.", no_args_is_help=True)


def init(
    directory: Annotated[
        Path | None, typer.Argument(help="Directory that becomes the root; `--root` may name it instead.")
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option(
            help="embedded: no step uses a model, so no key is needed; model: every step does; mixed: a model writes "
            "the answers, and nothing else (for small models)."
        ),
    ] = "embedded",
    chat_model: Annotated[str | None, typer.Option(help="With a model: name of the chat model.")] = None,
    embedding_model: Annotated[
        str | None, typer.Option(help="With a model: name of the embedding model; default: the bundled vectors.")
    ] = None,
    rating_model: Annotated[
        str | None, typer.Option(help="With a model: name of a cheaper chat model that rates reports and text units.")
    ] = None,
    preset: Annotated[
        PresetName | None,
        typer.Option(help="With a model: settings that suit a server; default: by its address, if it is this machine."),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(help="With a model: URL of an OpenAI-compatible endpoint; default: of the preset, else OpenAI."),
    ] = None,
    embedding_base_url: Annotated[
        str | None, typer.Option(help="With an embedding model: its URL; default: that of the chat model.")
    ] = None,
    api_key_env: Annotated[
        str | None, typer.Option(help="With a model: environment variable that holds the key.")
    ] = None,
    root: Annotated[
        Path | None, typer.Option("--root", callback=prefer_own_root, help="The directory, if no argument names it.")
    ] = None,
) -> None:
    """Make a root: settings, prompts and an empty input folder."""
    from graphrag_pipeline.pipeline.root import init_root

    path = directory or root
    if path is None or (root and path != root):
        raise typer.BadParameter("name one directory, as argument or by `--root`", param_hint="directory")
    options = (embedding_model, preset, base_url, embedding_base_url, api_key_env, rating_model)
    if engine == "embedded" and (chat_model or any(options)):
        raise typer.BadParameter("options of a model need `--engine model` or `mixed`", param_hint="--engine")
    if engine != "embedded" and not chat_model:
        raise typer.BadParameter(f"`--engine {engine}` needs the name of a chat model", param_hint="--chat-model")
    if embedding_base_url and not embedding_model:
        raise typer.BadParameter("`--embedding-base-url` needs an embedding model", param_hint="--embedding-model")
    settings = _settings_of(engine, chat_model, *options) if chat_model else None
    created = init_root(path, settings)
    for folder, made in groupby(created, key=lambda name: name.parent):
        names = [*made]
        for shown in names if folder == path or len(names) == 1 else [f"{folder} ({len(names)} files)"]:
            echo(f"created {shown}")
    if settings:
        echo(f"Check the models: graphrag-pipeline --root {path} doctor")
    echo(f"Put documents into {path / 'input'}, then run: graphrag-pipeline --root {path} index")


def doctor(root: RootOption = None, as_json: JsonOption = False) -> None:
    """Check the models of a root by about ten small requests each, and say what to set; exit status 1 if one fails."""
    from graphrag_pipeline.inspection.doctor.diagnosis import diagnose, render_diagnosis

    with paid_run("doctor", "checks of the models"):
        diagnosis = diagnose(open_root(root))
    if as_json:
        print_json(diagnosis.to_json())
    else:
        for line in render_diagnosis(diagnosis):
            echo(line)
    raise typer.Exit(int(diagnosis.has_failed))


@settings.command("show")
def show_settings(
    section: Annotated[str | None, typer.Argument(help="Section of settings.yaml; default: all.")] = None,
    is_whole: Annotated[
        bool, typer.Option("--all", help="Every option; default: the main ones, and those that differ from defaults.")
    ] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show options with value, source, default and meaning."""
    from dataclasses import asdict

    from graphrag_pipeline.settings.file import read_settings
    from graphrag_pipeline.settings.rendering import list_options

    read = read_settings(open_root(root).path)
    options = list(list_options(read, section, is_whole))
    if as_json:
        print_json({"options": [asdict(option) for option in options], "ignored": list(read.ignored)})
        return
    for option in options:
        echo(option.to_line())
    for name in read.ignored:
        echo(f"note: {name} is an option of an earlier release and does nothing now; remove it", err=True)


def _settings_of(
    engine: Engine,
    chat_model: str,
    embedding_model: str | None,
    preset_name: str | None,
    base_url: str | None,
    embedding_base_url: str | None,
    api_key_env: str | None,
    rating_model: str | None,
) -> Settings:
    from graphrag_pipeline.settings.presets import MIXED_SECTIONS, is_loopback, preset_for, settings_for_model

    preset = preset_for(preset_name, base_url)
    for note in preset.notes if preset else ():
        echo(f"note: {note}", err=True)
    settings = settings_for_model(
        chat_model,
        embedding_model,
        base_url,
        api_key_env,
        embedding_base_url=embedding_base_url,
        rating_model=rating_model,
        preset=preset,
        sections=MIXED_SECTIONS if engine == "mixed" else None,
    )
    models = [settings.chat_model, settings.embedding_model] if embedding_model else [settings.chat_model]
    for model in models:
        echo(f"note: {_describe_price(model, is_named=preset_name is not None)}", err=True)
    return _with_window(settings) if is_loopback(settings.chat_model.base_url) else settings


def _describe_price(model: Any, is_named: bool) -> str:
    from graphrag_pipeline.models.spending import describe_price, find_price
    from graphrag_pipeline.settings.presets import is_loopback

    asked = model.model, model.base_url, model.prompt_price, model.completion_price
    price = find_price(*asked)
    is_odd = is_loopback(model.base_url) and not is_named and price is not None and not price.is_free
    way_out = "; if your server charges nothing, name it by --preset or set the prices to 0" if is_odd else ""
    return f"{model.model} costs {describe_price(*asked)}{way_out}"


def _with_window(settings: Settings) -> Settings:
    """Return the settings with the window of the chat model, if its server runs and tells it."""
    from graphrag_pipeline.models.endpoints.probe import find_model, list_models
    from graphrag_pipeline.models.endpoints.problems import Problem

    chat = settings.chat_model
    listed = list_models(chat)
    if isinstance(listed, Problem):
        said = "does not answer yet" if listed.is_unreachable else f"does not list its models ({listed})"
        echo(f"note: {chat.base_url} {said}; `doctor` says what to set", err=True)
        return settings
    model = find_model(chat.model, listed)
    if model is None or model.window is None:
        echo(f"note: {chat.base_url} does not tell the window of {chat.model}; `doctor` says what to set", err=True)
        return settings
    other = "" if model.is_named(chat.model) else f"; it lists only {model.name}"
    echo(f"note: {chat.model} has a window of {model.window:,} tokens, so the server says{other}", err=True)
    return settings.model_copy(update={"chat_model": chat.model_copy(update={"context_window": model.window})})
