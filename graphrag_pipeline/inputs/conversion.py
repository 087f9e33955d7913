"""Conversion of html, pdf, docx, pptx and xlsx files to Markdown by markitdown, within limits.

The size after unzipping and the number of pages are checked before anything is parsed. Limits of time and memory
are those of the process that reads the file (`reading_process.py`). Problems are stored in the corpus manifest, so do
not reword them. Keep out: text and structured files (`formats.py`).
"""

from __future__ import annotations

import functools
import importlib
import io
import re
import zipfile
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

from graphrag_pipeline.inputs.formats import (
    CONVERTED,
    MAX_UNZIPPED_RATIO,
    DamagedInput,
    check_ratio,
    decode_text,
    max_unzipped_bytes,
    normalize_text,
)
from graphrag_pipeline.inputs.pdf_limits import DecodedBytes, decode_texts, limited_decoding
from graphrag_pipeline.inputs.sheet_limits import limited_sheets
from graphrag_pipeline.settings.input import InputSettings

_NEEDS_CONVERTER = "files need a converter: run pip install 'graphrag-pipeline[documents]'"
"""Part of the problem of a file that cannot be read only because a package is missing."""
_HTML_CHARSET = re.compile(rb"<meta[^>]{1,200}?charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_OLD_OFFICE = b"\xd0\xcf\x11\xe0"  # also the envelope of an encrypted docx, pptx or xlsx
_PAGES = {
    "pptx": ("slides", re.compile(r"ppt/slides/slide\d+\.xml")),
    "xlsx": ("sheets", re.compile(r"xl/worksheets/sheet\d+\.xml")),
}
"""Parts of an archive that are pages, by format."""
_MEGABYTE = 1_000_000
_LINE_END = re.compile(r"\r?\n")
_GAP = re.compile(r"\n{3,}")


def convert_to_markdown(data: bytes, format: str, settings: InputSettings) -> tuple[str, str]:
    """Convert an html, pdf, docx, pptx or xlsx file with markitdown.

    Returns:
        Title ("" if the file has none) and Markdown text.

    Raises:
        DamagedInput: the extra is not installed, or the file is damaged, has a password or is over a limit.
        MemoryError: the process may not have the memory that the file needs.
    """
    try:
        markitdown, converter = load_converter(format)
    except ImportError:
        raise DamagedInput(f"{format} {_NEEDS_CONVERTER}") from None
    if data.startswith(_OLD_OFFICE):
        raise DamagedInput(f"has a password or is an old Office file; save an unprotected copy as .{format}")
    _check_size(data, format, settings)
    if format == "html":
        declared = _HTML_CHARSET.search(data[:4096])
        data = decode_text(data, declared.group(1).decode("ascii", "replace") if declared else None).encode()
    info = markitdown.StreamInfo(extension=f".{format}", charset="utf-8" if format == "html" else None)
    try:
        with _limited(data, format, settings):
            result = converter.convert(io.BytesIO(data), info)
    except (MemoryError, DamagedInput):
        raise
    except Exception as error:  # the parsers below it raise errors of any kind
        raise DamagedInput(_conversion_problem(error, format)) from None
    return result.title or "", normalize_text(_without_gaps(result.markdown)).replace("\x00", "")


@functools.cache
def load_converter(format: str) -> tuple[ModuleType, Any]:
    """Return markitdown and its converter of a format, with all that it loads.

    A limit of memory should not meet the loading half-way. The converter is asked itself, not by `MarkItDown`, which
    guesses formats with a model and its threads: the format is known, and a damaged file is not to be read as another.

    Raises:
        ImportError: the extra is not installed.
    """
    markitdown = importlib.import_module("markitdown")
    return markitdown, getattr(importlib.import_module("markitdown.converters"), CONVERTED[format])()


def _without_gaps(text: str) -> str:
    """Cut blanks at ends of lines, and of empty lines in a row all but one, as `MarkItDown` does."""
    return _GAP.sub("\n\n", "\n".join(line.rstrip() for line in _LINE_END.split(text)))


def _check_size(data: bytes, format: str, settings: InputSettings) -> None:
    """Refuse an archive that unzips to too much, and a file with too many pages."""
    if format == "html":
        return
    if format == "pdf":
        with _limited_pdf(data, settings) as decoded:
            n_pages = decode_texts(data, settings.max_pages, decoded)
        _check_pages(n_pages, "pages", settings)
        return
    try:
        parts = zipfile.ZipFile(io.BytesIO(data)).infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        return  # the converter says what is damaged
    # No part unzips to more than it declares.
    _check_unzipped(sum(part.file_size for part in parts), data, settings)
    if format in _PAGES:
        name, pattern = _PAGES[format]
        _check_pages(sum(bool(pattern.fullmatch(part.filename)) for part in parts), name, settings)


def _check_unzipped(n_bytes: int, data: bytes, settings: InputSettings) -> None:
    if n_bytes > settings.max_unzipped_mb * _MEGABYTE:
        raise DamagedInput(
            f"unzips to {n_bytes / _MEGABYTE:,.0f} MB, over input.max_unzipped_mb = {settings.max_unzipped_mb:,}; "
            "raise it if you trust the file, or exclude the file"
        )
    check_ratio(n_bytes, len(data), MAX_UNZIPPED_RATIO)


def _check_pages(n_pages: int, name: str, settings: InputSettings) -> None:
    if n_pages > settings.max_pages:
        raise DamagedInput(
            f"has more than input.max_pages = {settings.max_pages:,} {name}; raise it, or split the file"
        )


def _limited(data: bytes, format: str, settings: InputSettings) -> AbstractContextManager[object]:
    """Return the context in which a file is read."""
    if format == "pdf":
        return _limited_pdf(data, settings)
    return limited_sheets(MAX_UNZIPPED_RATIO) if format == "xlsx" else nullcontext()


def _limited_pdf(data: bytes, settings: InputSettings) -> AbstractContextManager[DecodedBytes]:
    """Return the context in which pdfminer decodes no more of a pdf than the settings permit."""
    by_size, by_ratio = settings.max_unzipped_mb * _MEGABYTE, max_unzipped_bytes(len(data), MAX_UNZIPPED_RATIO)
    limit, way_out = (
        (f"input.max_unzipped_mb = {settings.max_unzipped_mb:,}", "raise it if you trust the file, or exclude the file")
        if by_size <= by_ratio
        else (f"{MAX_UNZIPPED_RATIO} times the file", "exclude the file")
    )
    problem = f"unzips to more than {min(by_size, by_ratio) / _MEGABYTE:,.0f} MB, over {limit}; {way_out}"
    return limited_decoding(min(by_size, by_ratio), problem)


def _conversion_problem(error: Exception, format: str) -> str:
    """Return the problem of a file that the converter refused."""
    name = type(error).__name__
    if isinstance(error, RecursionError):
        return f"its elements are nested too deeply to be read as {format}; flatten or exclude it"
    if "Password" in name or "Encrypt" in name:
        return "has a password; save a copy without one"
    if isinstance(error, ImportError) or name == "MissingDependencyException":
        return f"{format} {_NEEDS_CONVERTER}"
    reason = f"{name}: {error}".rstrip(": ")
    return f"damaged or not a {format} file ({reason}); open it and save it again"
