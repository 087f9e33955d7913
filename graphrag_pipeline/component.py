"""The Dagster component `GraphRagIndex`: the index of a root, put into a Dagster project by a few lines of YAML."""

from pathlib import Path
from typing import Annotated

import dagster as dg
from dagster.components import Scaffolder, ScaffoldRequest
from pydantic import Field

from graphrag_pipeline.defs.build import build_definitions
from graphrag_pipeline.errors import SettingsError
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
        Field(description="Folder with settings.yaml of the index; a relative path starts at the folder of this file."),
    ]
    key_prefix: Annotated[
        list[str], Field(description="Beginning of all asset keys, and of the names of jobs, schedules and sensors.")
    ] = []  # noqa: RUF012
    group_name: Annotated[
        str | None,
        Field(description="Group of all assets; default: groups by kind, each beginning with the key prefix."),
    ] = None

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the definitions of the index.

        Raises:
            SettingsError: `root` is no root, or its settings are wrong.
        """
        path = (context.path / Path(self.root).expanduser()).resolve()
        if not (path / SETTINGS_FILE).is_file():
            raise SettingsError(
                f"root: {path} has no {SETTINGS_FILE}; name the folder of an index, or make one with "
                f"`graphrag-pipeline init {path}`"
            )
        return build_definitions(Root(path, self.key_prefix, self.group_name), is_alone=False)
