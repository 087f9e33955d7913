"""The Dagster component `GraphRagIndex`: the index of a root, put into a Dagster project by a few lines of YAML."""

import functools
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import dagster as dg
from dagster.components import Scaffolder, ScaffoldRequest
from pydantic import BaseModel, ValidationError, create_model, model_validator
from pydantic_core import PydanticCustomError

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.nearest import nearest_name
from graphrag_pipeline.pipeline.root import Root, init_root
from graphrag_pipeline.settings.settings import SETTINGS_FILE

_YAML = """type: {type}
attributes:
  root: "{{{{ context.project_root }}}}/{root}"
  key_prefix: [{name}]
"""


class GraphRagIndexScaffolder(Scaffolder):
    """Makes a root in `indexes/` of the project, and the YAML that names it."""

    def scaffold(self, request: ScaffoldRequest) -> None:
        name = request.target_path.name
        place = Path("indexes") / name
        if request.project_root:
            init_root(request.project_root / place)
        request.target_path.mkdir(parents=True, exist_ok=True)
        text = _YAML.format(type=request.type_name, root=place.as_posix(), name=name)
        (request.target_path / "defs.yaml").write_text(text, encoding="utf-8")


@dg.scaffold_with(GraphRagIndexScaffolder)
class GraphRagIndex(dg.Component, dg.Resolvable, dg.Model):
    """Assets, checks, jobs, schedules and sensors of one GraphRAG index.

    Several indexes in one project have different key prefixes. Jobs, schedules and sensors begin with the prefix, too.
    """

    root: Annotated[
        str,
        dg.Resolver.default(
            description="Folder with settings.yaml of the index; a relative path starts at the folder of this file."
        ),
    ]
    key_prefix: Annotated[
        str | list[str],
        dg.Resolver.default(
            description="Beginning of all asset keys, and of the names of jobs, schedules and sensors.",
            examples=[["news"]],
        ),
    ] = []  # noqa: RUF012
    group_name: Annotated[
        str | None,
        dg.Resolver.default(
            description="Group of all assets; default: groups by kind, each beginning with the key prefix."
        ),
    ] = None

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """Return the model of the attributes in YAML, which names the nearest key for one that it does not know."""
        return _naming_unknown_keys(cls.model())

    @property
    def prefix(self) -> list[str]:
        """The parts of the key prefix; a text is one part, or several that `/` parts."""
        return self.key_prefix.split("/") if isinstance(self.key_prefix, str) else self.key_prefix

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the index.

        Raises:
            SettingsError: `root` is no root, its settings are wrong, the key prefix cannot begin a name, or another
                index of the project has the same.
        """
        _check_prefix(self, _find_indexes(context))
        path = (context.path / Path(self.root).expanduser()).resolve()
        if not (path / SETTINGS_FILE).is_file():
            raise SettingsError(
                f"root: {path} has no {SETTINGS_FILE}; name the folder of an index, or make one with "
                f"`graphrag-pipeline init {path}`"
            )
        return build_definitions(Root(path, self.prefix, self.group_name), is_alone=False)


@functools.cache
def _naming_unknown_keys(attributes: type[BaseModel]) -> type[BaseModel]:
    """Return a model of attributes with errors that name the nearest known key."""

    def refuse_unknown_keys(values: Any) -> Any:
        known = list(attributes.model_fields)
        unknown = [name for name in values if name not in known] if isinstance(values, dict) else []
        if unknown:
            errors = [{"type": _unknown_key(str(name), known), "loc": (name,), "input": name} for name in unknown]
            raise ValidationError.from_exception_data(GraphRagIndex.__name__, errors)  # type: ignore[arg-type]
        return values

    check: Any = model_validator(mode="before")(refuse_unknown_keys)
    return create_model(attributes.__name__, __base__=attributes, __validators__={"refuse_unknown_keys": check})


def _unknown_key(name: str, known: list[str]) -> PydanticCustomError:
    near = nearest_name(name, known)
    advice = f"did you mean `{near}`?" if near else f"known keys are {', '.join(known)}"
    shown = {"name": name, "advice": advice}
    return PydanticCustomError("unknown_key", "`{name}` is not a key of GraphRagIndex; {advice}", shown)


def _find_indexes(context: dg.ComponentLoadContext) -> list[GraphRagIndex]:
    """Return the indexes of a project; none for a component that Python code makes outside of a project."""
    is_of_project = context.path != context.defs_module_path
    return context.component_tree.get_all_components(GraphRagIndex) if is_of_project else []


def _check_prefix(index: GraphRagIndex, all_indexes: Iterable[GraphRagIndex]) -> None:
    """Refuse a key prefix that Dagster would refuse in the names that begin with it, or that another index has.

    Raises:
        SettingsError: with the parts that cannot be in a name, or with the roots that share the prefix.
    """
    wrong = [part for part in index.prefix if not re.fullmatch(r"[A-Za-z0-9_]+", part)]
    if wrong:
        raise SettingsError(
            f"key_prefix {index.prefix} of the index {index.root}: {wrong[0]!r} cannot begin the name of a job; use "
            "letters, digits and _"
        )
    roots = [other.root for other in all_indexes if "_".join(other.prefix) == "_".join(index.prefix)]
    if len(roots) > 1:
        raise SettingsError(
            f"key_prefix {index.prefix} is that of {len(roots)} indexes: {' and '.join(roots)}. Their assets, jobs, "
            "schedules and sensors would have the same names; give each index another key_prefix in its defs.yaml"
        )
