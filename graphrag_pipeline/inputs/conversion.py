"""Conversion of html, pdf, docx, pptx and xlsx files to Markdown by markitdown, within limits.

The size of an archive after unzipping and the number of pages are checked before anything is parsed. Limits of time
and memory are those of the process that reads the file (`reading_process.py`); no others bound a pdf, or a sheet whose
cells are far apart. Problems are stored in the corpus manifest, so do not reword them. Keep out: text and structured
files (`formats.py`).
"""

from __future__ import annotations

import functools
import html
import importlib
import io
import re
import zipfile
from datetime import datetime, time
from itertools import islice
from types import ModuleType
from typing import Any

from graphrag_pipeline.inputs.formats import (
    CONVERTED,
    MAX_UNZIPPED_RATIO,
    DamagedInput,
    Row,
    check_ratio,
    decode_declared,
    decode_text,
    normalize_text,
)
from graphrag_pipeline.settings.input import SHEET, InputSettings

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
_EMPTY_CELL = re.compile(r"(?<=\| )(?:NaN|Unnamed: \d{1,5})(?= \|)")
"""What the converter of sheets writes for an empty cell, and for a column without a name."""
_HIDDEN_STYLE = re.compile(r"(?:display\s{0,9}:\s{0,9}none|visibility\s{0,9}:\s{0,9}hidden)", re.IGNORECASE)
_HIDDEN_SHEET = re.compile(r"<(?:\w+:)?sheet\s[^<>]*>")
_ARRANGED = re.compile(rb"<(?:nav|header|footer|aside|caption)[\s>]", re.IGNORECASE)
_CONTENT = ("article", "main", "section")
"""Elements of HTML whose own header, footer and asides belong to the text."""
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
        data = decode_text(data, find_html_encoding(data)).encode()
    info = markitdown.StreamInfo(extension=f".{format}", charset="utf-8" if format == "html" else None)
    try:
        if format == "html" and _ARRANGED.search(data):
            data = _remove_furniture(data)
        result = converter.convert(io.BytesIO(data), info)
    except (MemoryError, DamagedInput):
        raise
    except Exception as error:  # the parsers below it raise errors of any kind
        raise DamagedInput(_conversion_problem(error, format)) from None
    lines = "\n".join(line.rstrip() for line in _LINE_END.split(result.markdown))
    if format == "xlsx":
        lines = _EMPTY_CELL.sub(" ", lines)
    return result.title or "", normalize_text(_GAP.sub("\n\n", lines)).replace("\x00", "")


def find_html_encoding(data: bytes) -> str | None:
    """Return the encoding that a page declares and that fits it; None without one."""
    declared = _HTML_CHARSET.search(data[:4096])
    name = declared.group(1).decode("ascii", "replace") if declared else ""
    return name if decode_declared(data, name) is not None else None


def _remove_furniture(data: bytes) -> bytes:
    """Return a page in UTF-8 without its navigation, header, footer and asides, and with captions above their tables.

    A page that says nothing else keeps them. The only top heading stays if it is in the header. The converter takes
    the row below a caption for no header, and the kept elements for parts of a line.
    """
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(data, "html.parser", from_encoding="utf-8")
    for caption in soup.find_all("caption"):
        table = caption.find_parent("table")
        if table is not None:
            caption.name = "p"
            table.insert_before(caption.extract())
    whole = soup.encode()
    for element in soup.find_all(["nav", "header", "footer", "aside"]):
        if element.decomposed:
            continue
        if element.name != "nav" and element.find_parent(_CONTENT):
            element.name = "div"
            continue
        title = element.find("h1") if element.name == "header" and len(soup.find_all("h1", limit=2)) == 1 else None
        if title is not None:
            element.insert_before(title.extract())
        element.clear(decompose=True)  # to take out the element itself would search for it among all its neighbours
        element.name = "span"
        element.append("\n")
    body = soup.body or soup
    return soup.encode() if body.get_text(strip=True) else whole


def describe_hidden(data: bytes, format: str) -> str:
    """Return what a file hides from its readers although it is indexed; "" for nothing."""
    if format == "xlsx":
        names = _hidden_sheets(data)
        return f"hidden sheets are read, too: {', '.join(names)}" if names else ""
    if format != "html" or not (b"hidden" in data or b"none" in data):
        return ""
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(data, "html.parser")
    tags = soup.find_all(lambda tag: tag.has_attr("hidden") or bool(_HIDDEN_STYLE.search(str(tag.get("style") or ""))))
    words = {id(text): len(text.split()) for tag in tags for text in tag.find_all(string=True)}
    n_words = sum(words.values())
    return f"{n_words:,} words that a browser hides are read, too; exclude or edit the file" if n_words else ""


def _hidden_sheets(data: bytes) -> list[str]:
    try:
        book = zipfile.ZipFile(io.BytesIO(data)).read("xl/workbook.xml").decode("utf-8", "replace")
    except (zipfile.BadZipFile, KeyError, ValueError, NotImplementedError, OSError):
        return []
    sheets = [
        match[0] for match in _HIDDEN_SHEET.finditer(book) if re.search(r"state=\"(?:very)?[hH]idden\"", match[0])
    ]
    return [html.unescape(name[1]) for sheet in sheets if (name := re.search(r"\bname=\"([^\"]*)\"", sheet))]


def read_sheets(data: bytes, settings: InputSettings) -> list[Row] | None:
    """Return the rows of an xlsx file; None unless each sheet with values is a table, so that it is one document.

    A table has different names in its first row, two or more, a row of values, and no value beside them. With several
    sheets, each row says its sheet last.

    Raises:
        DamagedInput: the file is over a limit.
    """
    _check_size(data, "xlsx", settings)
    try:
        pandas = importlib.import_module("pandas")
        sheets = pandas.read_excel(io.BytesIO(data), sheet_name=None, header=None, dtype=object, engine="openpyxl")
    except MemoryError:
        raise
    except Exception:  # the converter says what is damaged or missing
        return None
    cells = {name: [_cells_of(row) for row in sheet.itertuples(index=False)] for name, sheet in sheets.items()}
    cells = {name: rows for name, rows in cells.items() if any(map(_has_value, rows))}
    if not cells or not all(map(_is_table, cells.values())):
        return None
    found = [
        (
            f"row {number} of sheet {name!r}",
            dict(zip(header, row, strict=True)) | ({SHEET: name} if len(cells) > 1 else {}),
        )
        for name, (header, *rows) in cells.items()
        for number, row in enumerate(rows, start=2)
        if _has_value(row)
    ]
    return [Row(number, where, values) for number, (where, values) in enumerate(found, start=1)]


def _cells_of(row: tuple[Any, ...]) -> list[Any]:
    """Return the values of a row: None for an empty cell, a day for a time at midnight."""
    values = [None if value is None or value != value else value for value in row]  # NaN differs from itself
    return [value.date() if isinstance(value, datetime) and value.time() == time() else value for value in values]


def _has_value(row: list[Any]) -> bool:
    return any(value is not None for value in row)


def _is_table(rows: list[list[Any]]) -> bool:
    header, *others = rows
    names = [name.strip() if isinstance(name, str) else "" for name in header]
    return len(names) > 1 and all(names) and len(set(names)) == len(names) and any(map(_has_value, others))


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


def _check_size(data: bytes, format: str, settings: InputSettings) -> None:
    """Refuse an archive that unzips to too much, and a file with too many pages."""
    if format == "html":
        return
    if format == "pdf":
        _check_pages(_count_pages(data, settings.max_pages), "pages", settings)
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


def _count_pages(data: bytes, most: int) -> int:
    """Return the number of pages of a pdf, at most one more than `most`.

    A damaged or locked file has 0: the converter raises its error again, and it is described there.
    """
    pages = importlib.import_module("pdfminer.pdfpage").PDFPage
    try:
        return sum(1 for _ in islice(pages.get_pages(io.BytesIO(data)), most + 1))
    except MemoryError:
        raise
    except Exception:  # of any kind
        return 0


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
