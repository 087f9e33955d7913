"""Settings of the input: which files are read, which fields of a record, and the limits of reading.

Keep out: how a document is cut into text units (`indexing.py`).
"""

from __future__ import annotations

import codecs
import fnmatch
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filters import each_value, parse_filter
from graphrag_pipeline.settings.section import Section, limit
from graphrag_pipeline.settings.urls import has_password

TEXT_COLUMN = "text"
DateSource = Literal["front_matter", "labels", "title", "file_name"]


SHEET = "sheet"
"""The column that says the sheet of a row, if a file has several."""
Direction = Literal["", "upstream", "downstream"]
UPSTREAM = "depends_on"
"""The column that says what a row's entity is downstream of, also without `lineage`."""


class RelatedColumn(Section):
    """A column of a table whose values are entities, too."""

    type: str = Field("", description="Type of these entities; empty: the one that they have elsewhere.")
    split: str = Field("", description="What divides several names in one value, such as a comma; a list needs none.")
    lineage: Direction = Field(
        "",
        description="upstream: the row's entity depends on these entities, as in depends_on; downstream: they on it.",
    )

    def names_in(self, value: object) -> list[str]:
        """Return the names in a value, each once and in one line."""
        texts = [str(one) for one in each_value(value) if not isinstance(one, dict | list)]
        parts = [part for text in texts for part in (text.split(self.split) if self.split else [text])]
        return list(dict.fromkeys(" ".join(part.split()) for part in parts if part.strip()))


class TableMapping(Section):
    """The entities and relationships that the rows of some structured files are, exactly."""

    files: str = Field(
        description="Glob pattern of the paths of the files, such as catalog*.csv, or of a sheet: *.xlsx#topics."
    )
    entity: str = Field(description="Column with the name of the row's entity.")
    type: str = Field("", description="Type of this entity, such as SERVICE.")
    type_column: str = Field("", description="Column with the type of the row's entity, in place of `type`.")
    description: str = Field("", description="Column with the description of the row's entity.")
    aliases: str = Field("", description="Column with other names of the row's entity, one or a list.")
    relationships: dict[str, RelatedColumn] = Field(
        {},
        description="Column -> the entities that it names; the row's entity has a relationship with each, named as the "
        "column: {depends_on: {type: SERVICE, split: ','}}.",
    )

    @model_validator(mode="after")
    def _has_one_type(self) -> TableMapping:
        if bool(self.type.strip()) == bool(self.type_column):
            raise ValueError("needs either `type` or `type_column`")
        return self

    @property
    def lineage(self) -> dict[str, Direction]:
        """Column -> direction of what it names; `UPSTREAM` in any spelling, such as "Depends on", needs no setting."""
        found: dict[str, Direction] = {
            column: related.lineage or ("upstream" if "_".join(column.casefold().split()) == UPSTREAM else "")
            for column, related in self.relationships.items()
        }
        return {column: direction for column, direction in found.items() if direction}

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that a file must have."""
        return (*filter(None, (self.entity, self.type_column, self.description, self.aliases)), *self.relationships)


LINEAGE = TableMapping(
    files="*",
    entity="name",
    type_column="resource_type",
    description="description",
    aliases="full_name",
    relationships={UPSTREAM: RelatedColumn(), "owner": RelatedColumn()},
)
"""Mapping of the rows of lineage files (`inputs/lineage.py`)."""


class InputSettings(Section):
    """Input folder, and columns of structured files."""

    folder: str = Field(
        "input",
        description="Folder with the documents, relative to the root, or an fsspec URL such as s3://bucket/docs; "
        "read recursively.",
    )
    exclude: tuple[str, ...] = Field((), description="Glob patterns of paths in the folder to leave out.")
    filters: tuple[str, ...] = Field(
        (),
        description="Filters that a document must pass to be read, such as ['status=final', 'year>=2020']. Each "
        "document is looked at alone; without a value in a filter's field, it does not pass.",
    )
    published_by: str = limit(
        default="",
        description="Root whose published documents are read instead of a folder, relative to this root, as in the "
        "view of a principal. Empty: the folder is read.",
    )
    snapshot: str = limit(default="", description="With published_by: id of the snapshot whose documents are read.")
    id_column: str = Field(
        "id", description="Structured files: dotted path of a record's id; without it, the row number."
    )
    title_column: str = Field("title", description="Structured files: dotted path of a record's title.")
    text_column: str = Field(
        TEXT_COLUMN,
        description="Structured files: dotted path of a record's text. Rows of a file without the default column are "
        "read as their values.",
    )
    creation_date_column: str = Field(
        "creation_date", description="Structured files: dotted path of a record's date (ISO 8601)."
    )
    dates: tuple[DateSource, ...] = Field(
        ("front_matter", "labels", "title", "file_name"),
        description="Where the date of a text or office document is looked for, the first that has one: front_matter, "
        "labels (lines such as **Date:** 2025-03-04), title, file_name. [] for no dates.",
    )
    tables: tuple[TableMapping, ...] = Field(
        (),
        description="What the rows of structured files are, such as [{files: 'catalog*.csv', entity: service, type: "
        "SERVICE, relationships: {depends_on: {type: SERVICE, split: ','}}}]; `doctor` proposes it. The first that "
        "matches counts.",
    )
    document_id_column: str = Field(
        "document_id",
        description="Chunk files (files with this column, type_column and page_column): id of the row's document; "
        "rows with one id become one document. Empty: no chunk files.",
    )
    type_column: str = Field(
        "type",
        description="Chunk files: column with title, paragraph, table, list, figure, caption or code. "
        "Empty: not required.",
    )
    page_column: str = Field(
        "page", description="Chunk files: column with the page, a whole number. Empty: not required."
    )
    encoding: str = Field(
        "",
        description="Encoding of the text files that are not Unicode and do not say theirs, such as koi8-r. Empty: it "
        "is guessed, and `index` and `status` say so.",
    )
    max_file_mb: int = limit("Maximum size of a file, in MB; a larger one is listed as a problem.", default=1000, ge=1)
    max_read_s: float = limit(
        "Seconds that reading one html, pdf, office, Parquet or large structured file may take.", default=300.0, gt=0
    )
    max_memory_mb: int = limit(
        "Memory that reading one such file may take, in MB; it is read in a process of its own. Held on Linux.",
        default=4096,
        ge=64,
    )
    max_unzipped_mb: int = limit("Maximum size of a docx, pptx or xlsx file after unzipping, in MB.", default=200, ge=1)
    max_pages: int = limit("Maximum pages of a pdf, slides of a pptx and sheets of an xlsx.", default=2000, ge=1)

    @field_validator("folder")
    @classmethod
    def _holds_no_password(cls, folder: str) -> str:
        if has_password(folder):
            raise ValueError("URL with a password; set the password in the environment, such as FSSPEC_FTP_PASSWORD")
        return folder

    @field_validator("encoding")
    @classmethod
    def _is_known(cls, encoding: str) -> str:
        try:
            return codecs.lookup(encoding).name if encoding else ""
        except LookupError:
            raise ValueError("not an encoding that Python knows, such as koi8-r, cp1251 or shift_jis") from None

    @field_validator("filters")
    @classmethod
    def _can_be_parsed(cls, filters: tuple[str, ...]) -> tuple[str, ...]:
        for text in filters:
            try:
                parse_filter(text)
            except PipelineError as error:
                raise ValueError(str(error)) from None
        return filters

    def result_options(self) -> dict[str, Any]:
        """Return the options that change a result; a root without these three keeps its earlier version."""
        unset = {name for name in ("filters", "tables", "encoding") if not getattr(self, name)}
        return {name: value for name, value in super().result_options().items() if name not in unset}

    def mapping_of(self, path: str, record: str, values: Mapping[str, Any]) -> TableMapping | None:
        """Return what a row of a structured file is; None if nothing says so, and for a whole file.

        Args:
            record: name of the row; "" for a whole file.
            values: of the row.
        """
        if record.startswith(f"{values.get('resource_type')}.") and "name" in values:
            return LINEAGE
        places = (path, f"{path}#{values.get(SHEET)}") if record else ()
        return next(
            (table for table in self.tables if any(fnmatch.fnmatchcase(one, table.files) for one in places)), None
        )

    def place(self, root: Path) -> Path | str:
        """Return the input folder: a path on this machine, or a URL as text."""
        protocol, is_url, rest = self.folder.partition("://")
        if is_url and protocol not in ("file", "local"):
            return self.folder
        return root / (rest if is_url else self.folder)
