"""Reference pages from the code: a line `<!-- generated: NAME -->` of a page becomes Markdown when Sphinx reads it.

To add a reference, add a function to `GENERATORS` and a page with its marker. Keep out: text that is written by hand,
which belongs into the page itself.
"""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from string import ascii_uppercase
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from sphinx.application import Sphinx

_MARKER = re.compile(r"^<!-- generated: (\w+)(?: of ([\w, ]+))? -->$", re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Replace markers in every page that Sphinx reads."""
    app.connect("source-read", _fill_page)
    return {"parallel_read_safe": True}


def _fill_page(_app: Sphinx, _page: str, source: list[str]) -> None:
    source[0] = fill(source[0])


def fill(text: str) -> str:
    """Return a page's text with its markers replaced; a marker may name what to render after `of`.

    Raises:
        KeyError: no generator has the name of a marker.
    """

    def render(marker: re.Match[str]) -> str:
        names = [name.strip() for name in marker[2].split(",")] if marker[2] else []
        return "\n".join(GENERATORS[marker[1]](*names))

    return _MARKER.sub(render, text)


# ------------------------------------------------------------------------------------------------------------- commands


def render_commands() -> Iterator[str]:
    """Every command with its usage, arguments and options, from the Typer application."""
    from typer.main import get_command

    from graphrag_pipeline.cli import app

    for name, command in get_command(app).commands.items():
        if getattr(command, "invoke_without_command", False):
            yield from _render_command(name, command)
        for subcommand, each in getattr(command, "commands", {"": command}).items():
            yield from _render_command(f"{name} {subcommand}".strip(), each)


def _render_command(name: str, command: Any) -> Iterator[str]:
    arguments = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = [
        word if parameter.required else f"[{word}]" for parameter in arguments for word in [parameter.name.upper()]
    ]
    yield from (f"## {name}", "", _paragraphs(command.help), "")
    yield from (
        "```text",
        " ".join(["graphrag-pipeline", name, *usage, *(["[OPTIONS]"] if options else [])]),
        "```",
        "",
    )
    for parameter in (*arguments, *options):
        names = parameter.opts + parameter.secondary_opts if parameter in options else [parameter.name.upper()]
        yield from _definition(", ".join(f"`{n}`" for n in names), _parameter_facts(parameter), parameter.help or "")


def _parameter_facts(parameter: Any) -> list[str]:
    facts = [] if getattr(parameter, "is_bool_flag", False) else [_type_name(parameter.type_descriptor.annotation)]
    if parameter.multiple:
        facts.append("may be repeated")
    bounds = [f"at least {parameter.min}"] * (parameter.min is not None)
    bounds += [f"at most {parameter.max}"] * (parameter.max is not None)
    default = parameter.default
    if parameter.required:
        facts.append("required")
    elif default not in (None, False, (), [], ""):
        facts.append(f"default `{default}`")
    return facts + bounds


# ------------------------------------------------------------------------------------------------------------- settings


def render_settings() -> Iterator[str]:
    """Every section of the settings and every option: type, bounds, default, meaning, environment variable."""
    from graphrag_pipeline.settings.settings import SEARCH_SETTINGS, Settings

    for section, field in Settings.model_fields.items():
        model = type(field.default)
        yield from (f"## {section}", "", _paragraphs(model.__doc__), "")
        if stages := _stages_using(section):
            yield from (f"A changed option can make these stages stale: {_code_list(stages)}.", "")
        for name, option in model.model_fields.items():
            default = option.get_default(call_default_factory=True)
            facts = [_type_name(option.annotation), *_bounds(option.metadata), f"default `{_plain(default)}`"]
            marks = option.json_schema_extra if isinstance(option.json_schema_extra, dict) else {}
            text = f"{option.description or ''} Environment variable: `GRAPHRAG__{section}__{name}`".replace(
                f"GRAPHRAG__{section}__{name}", f"GRAPHRAG__{section}__{name}".upper()
            )
            if marks.get("is_limit"):
                text += ". A change makes nothing stale"
            yield from _definition(f"`{name}`", facts, text + ".")
        own = model.model_fields
        of_question = SEARCH_SETTINGS.get(section.removesuffix("_search"), model).model_fields
        if further := [name for name in of_question if name not in own]:
            yield from ("Further options of a question, with a question or in `for_questions`:", "")
            for name in further:
                option = of_question[name]
                facts = [_type_name(option.annotation), f"default `{_plain(option.default)}`"]
                yield from _definition(f"`{name}`", facts, option.description or "")


def _stages_using(section: str) -> list[str]:
    from graphrag_pipeline.pipeline.stages import ALL_STAGES

    return [
        name
        for name, stage in ALL_STAGES.items()
        if any(used.partition(".")[0] == section for used in stage.uses) or stage.engine == section
    ]


def _bounds(constraints: Iterable[Any]) -> list[str]:
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    return [
        f"{phrase} {getattr(constraint, name):g}"
        for constraint in constraints
        for name, phrase in words.items()
        if getattr(constraint, name, None) is not None
    ]


# --------------------------------------------------------------------------------------------------------------- tables


def render_contract_tables() -> Iterator[str]:
    """Tables of a snapshot."""
    from graphrag_pipeline.tables import CONTRACT_TABLES

    for name, table in CONTRACT_TABLES.items():
        yield from _render_table(name, table)


def render_stage_tables() -> Iterator[str]:
    """Tables that stages own."""
    from graphrag_pipeline.tables import STAGE_TABLES

    for name, table in STAGE_TABLES.items():
        yield from _render_table(f"stage_{name}", table)


def _render_table(heading: str, table: Any) -> Iterator[str]:
    yield from (f"### {heading}", "", table.description, "")
    yield from (f"Written by the stage `{table.owner}`. Key: {_code_list(table.key)}.", "")
    yield from ("| column | type | meaning |", "|---|---|---|")
    for column in table.columns:
        text = column.description
        if column.name in table.references:
            text += " Refers to `{}.{}`.".format(*table.references[column.name])
        kind = _cell(str(column.type)) + (", may be null" if column.is_nullable else "")
        yield f"| `{column.name}` | {kind} | {_cell(text)} |"
    yield ""


# --------------------------------------------------------------------------------------------- assets, jobs and checks


def render_assets() -> Iterator[str]:
    """Assets of the index, by the order of their stages."""
    from graphrag_pipeline.pipeline.stages import ALL_STAGES

    for stage in ALL_STAGES.values():
        yield from (f"### {stage.name}", "", stage.description, "")
        facts = {
            "Group": [stage.group],
            "Partitions": ["one per bucket" if stage.is_partitioned else "none: the whole corpus"],
            "Reads": [f"`{table}`" for table in stage.reads],
            "Writes": [f"`{table}`" for table in stage.tables],
            "Settings": [f"`{used}`" for used in dict.fromkeys((*stage.uses, *filter(None, [stage.engine])))],
            "Files": [f"`{file}`" for file in stage.files],
            "Prompts": [f"[`{prompt}`](prompts.md#{prompt})" for prompt in stage.prompts],
        }
        yield from (f"- {name}: {', '.join(values)}" for name, values in facts.items() if values)
        yield ""


def render_jobs() -> Iterator[str]:
    """Jobs with their descriptions."""
    for job in sorted(_definitions().jobs or (), key=lambda job: job.name):
        yield from _definition(f"`{job.name}`", [], job.description or "")


def render_automation() -> Iterator[str]:
    """Sensors and schedules with their descriptions."""
    definitions = _definitions()
    for each in sorted((*(definitions.sensors or ()), *(definitions.schedules or ())), key=lambda each: each.name):
        yield from _definition(f"`{each.name}`", [], each.description or "")


def render_checks() -> Iterator[str]:
    """Checks that block a publication."""
    from graphrag_pipeline.publishing.checks import CHECKS, POLICY_CHECKS

    for name, check in {**CHECKS, **POLICY_CHECKS}.items():
        yield from _definition(f"`{name}`", [], inspect.getdoc(check) or "")


def render_state_checks() -> Iterator[str]:
    """Checks of the state of each asset."""
    from graphrag_pipeline.inspection.index_state import list_checks

    stages: dict[tuple[str, str], list[str]] = {}
    for stage, name, description in list_checks():
        stages.setdefault((name, description), []).append(f"`{stage}`")
    for (name, description), of in stages.items():
        yield from _definition(f"`{name}`", [", ".join(of)], description)


def render_quality_checks() -> Iterator[str]:
    """Checks that warn and block nothing."""
    from graphrag_pipeline.evaluation.index_quality.figures import FIGURES

    for kind in FIGURES.values():
        yield from _definition(f"`{kind.name}`", [f"`quality.{kind.option}`"], f"{kind.meaning.capitalize()}.")


def _definitions() -> Any:
    """Dagster's definitions of a root with every sensor and schedule on."""
    from graphrag_pipeline.defs.build import build_definitions
    from graphrag_pipeline.pipeline.root import Root, init_root

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "settings.yaml").write_text(
            "schedule: {watch_input: true, run_cron: true}\nnotifications: {webhook: 'https://example.com'}\n",
            encoding="utf-8",
        )
        init_root(path)
        return build_definitions(Root(path))


# -------------------------------------------------------------------------------------------------------------- prompts


def render_prompts() -> Iterator[str]:
    """Prompts with their placeholders, the stages that use them, and the default text."""
    from graphrag_pipeline.models.prompts import DEFAULTS_FOLDER, PLACEHOLDERS
    from graphrag_pipeline.pipeline.stages import ALL_STAGES

    for name, (required, optional) in PLACEHOLDERS.items():
        stages = [stage.name for stage in ALL_STAGES.values() if name in stage.prompts]
        yield from (f"## {name}", "")
        yield f"- Used by: {_code_list(stages) if stages else 'questions or evaluation, not the index'}"
        yield f"- Required placeholders: {_code_list(sorted(f'{{{p}}}' for p in required)) or 'none'}"
        yield f"- Optional placeholders: {_code_list(sorted(f'{{{p}}}' for p in optional | {'language'}))}"
        text = (DEFAULTS_FOLDER / f"{name}.txt").read_text(encoding="utf-8").rstrip()
        yield from ("", ":::{dropdown} Default text", "`````text", text, "`````", ":::", "")


# ----------------------------------------------------------------------------------------------------------- evaluation


def render_conditions() -> Iterator[str]:
    """The names of ways to answer that an evaluation takes."""
    from graphrag_pipeline.settings.search_names import describe_conditions

    yield from ("| name | answers with |", "|---|---|")
    yield from (f"| `{name}` | {what} |" for name, what in describe_conditions().items())


# ----------------------------------------------------------------------------------------------------------- Python API


def render_python(*names: str) -> Iterator[str]:
    """Directives that document exported names by their docstrings."""
    from pydantic import BaseModel

    import graphrag_pipeline

    for name in names:
        value = getattr(graphrag_pipeline, name)
        yield from (f"### {name}", "", "```{eval-rst}")
        if inspect.isclass(value):
            kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
            yield f".. {kind}:: graphrag_pipeline.{name}"
            if not issubclass(value, BaseModel):  # its fields are on the page of settings
                yield "   :members:"
        else:
            kind = "autofunction" if callable(value) else "autodata"
            yield f".. {kind}:: graphrag_pipeline.{name}"
        yield from ("```", "")


# ---------------------------------------------------------------------------------------------------------------- texts


def _definition(term: str, facts: Iterable[str], text: str) -> Iterator[str]:
    shown = ", ".join(facts)
    yield f"{term} ({shown})" if shown else term
    yield f": {_paragraphs(text, indent='  ')}" if text else ": (no description)"
    yield ""


def _paragraphs(text: str | None, indent: str = "") -> str:
    """Docstring text as Markdown: one line a paragraph, with placeholders and tags kept from being markup."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(text or ""))
    lines = [" ".join(paragraph.split()).replace("<", "&lt;") for paragraph in paragraphs]
    return f"\n\n{indent}".join(line.replace("*", r"\*") for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*")


def _code_list(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _plain(value: Any) -> str:
    """A default as `settings.yaml` writes it."""
    import yaml

    if hasattr(value, "model_dump"):
        value = value.model_dump(mode="json")
    value = list(value) if isinstance(value, tuple) else value
    return str(yaml.safe_dump(value, default_flow_style=True, width=1000).splitlines()[0])


def _type_name(annotation: Any) -> str:
    """A type as people read it: `list of text`, `number or null`."""
    names = {str: "text", int: "whole number", float: "number", bool: "true or false", type(None): "null", Any: "any"}
    if annotation in names:
        return names[annotation]
    origin, arguments = get_origin(annotation), [each for each in get_args(annotation) if each is not Ellipsis]
    if origin is Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin in (Union, UnionType):
        return " or ".join(_type_name(each) for each in arguments)
    if origin in (list, tuple, set, frozenset):
        return "list of " + " and ".join(dict.fromkeys(_type_name(each) for each in arguments))
    if origin is dict:
        return "mapping"
    if hasattr(annotation, "__metadata__"):
        return _type_name(annotation.__origin__)
    if inspect.isclass(annotation) and issubclass(annotation, Path):
        return "path"
    return getattr(annotation, "__name__", str(annotation))


# ---------------------------------------------------------------------------------------------------------------- audit

AUDIT = Path(__file__).parents[1] / "audit.yaml"
_SHORT_OF = ("differs", "partial", "missing")
"""What a row can say instead of "works"."""


def render_audit() -> Iterator[str]:
    """A table of requirements for each source of the audit, and how many of them there are."""
    import yaml

    sources = yaml.safe_load(AUDIT.read_text(encoding="utf-8"))
    yield from (f"| source | requirements | works | {' | '.join(_SHORT_OF)} |", "|---|---|---|---|---|---|")
    for source in sources:
        yield _audit_counts(source["source"], [source])
    yield _audit_counts("together", sources)
    for letter, source in zip(ascii_uppercase, sources, strict=False):
        yield from ("", f"## {source['about']}", "", f"Source: {source['source']}.", "")
        yield from ("| | requirement | where | verified by | status |", "|---|---|---|---|---|")
        for number, (requirement, row) in enumerate(source["requirements"].items(), start=1):
            yield _audit_row(f"{letter}{number}", requirement, row)


def _audit_counts(name: str, sources: list[dict[str, Any]]) -> str:
    rows = [row for source in sources for row in source["requirements"].values()]
    counts = [sum(status in row for row in rows) for status in _SHORT_OF]
    return f"| {name} | {len(rows)} | {len(rows) - sum(counts)} | {' | '.join(map(str, counts))} |"


def _audit_row(number: str, requirement: str, row: dict[str, Any]) -> str:
    texts = [
        number,
        requirement,
        "<br>".join(f"`{place}`" for place in row.get("where", ())),
        "<br>".join(f"`{test}`" for test in row.get("verified", ())),
        next((f"{status}: {row[status]}" for status in _SHORT_OF if status in row), "works"),
    ]
    return f"| {' | '.join(text.replace('|', chr(92) + '|') for text in texts)} |"


GENERATORS: dict[str, Callable[..., Iterator[str]]] = {
    "commands": render_commands,
    "settings": render_settings,
    "contract_tables": render_contract_tables,
    "stage_tables": render_stage_tables,
    "assets": render_assets,
    "jobs": render_jobs,
    "automation": render_automation,
    "checks": render_checks,
    "quality_checks": render_quality_checks,
    "state_checks": render_state_checks,
    "prompts": render_prompts,
    "conditions": render_conditions,
    "python": render_python,
    "audit": render_audit,
}
