"""Settings of the input: which files are read, which fields of a record, and the limits of reading.

Keep out: how a document is cut into text units (`indexing.py`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, field_validator

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filters import parse_filter
from graphrag_pipeline.settings.section import Section, limit
from graphrag_pipeline.settings.urls import has_password

TEXT_COLUMN = "text"
DateSource = Literal["front_matter", "labels", "title", "file_name"]


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
        """Return the options that change a result; a root without filters keeps the version that it had before them."""
        options = super().result_options()
        return options if self.filters else {name: value for name, value in options.items() if name != "filters"}

    def place(self, root: Path) -> Path | str:
        """Return the input folder: a path on this machine, or a URL as text."""
        protocol, is_url, rest = self.folder.partition("://")
        if is_url and protocol not in ("file", "local"):
            return self.folder
        return root / (rest if is_url else self.folder)
