"""Readers of file formats: the bytes of a file become text or rows.

Add a format here and in `FORMATS`. A reader raises `UnreadableInput` if nothing in the file can be used, and
`DamagedInput` if its content is not known. A single bad row is returned as a `Row` with a problem. These problems are
stored in the corpus manifest, so do not reword them. Keep out: office files, html and pdf (`conversion.py`), paths,
settings other than column names, ids, titles and tables (`documents.py`), the disk (`files.py`).
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphrag_pipeline.inputs.legacy_encodings import find_escaped_encoding, guess_encoding
from graphrag_pipeline.inputs.lineage import read_lineage

if TYPE_CHECKING:
    import pyarrow as pa

# Extension -> format. Whole-file formats are one document; structured ones hold many records.
FORMATS = {
    "txt": "txt", "text": "txt", "rst": "txt", "log": "txt", "yaml": "txt", "yml": "txt", "toml": "txt", "sql": "txt",
    "eml": "eml", "md": "md", "markdown": "md", "csv": "csv", "json": "json", "jsonl": "jsonl",
    "ndjson": "jsonl", "parquet": "parquet", "html": "html", "htm": "html", "pdf": "pdf", "docx": "docx",
    "pptx": "pptx", "xlsx": "xlsx",
}  # fmt: skip
STRUCTURED = frozenset({"csv", "json", "jsonl", "parquet", "xlsx"})
"""Formats that can hold a document a row."""
CONVERTED = {"html": "HtmlConverter", "pdf": "PdfConverter", "docx": "DocxConverter", "pptx": "PptxConverter",
             "xlsx": "XlsxConverter"}  # fmt: skip

_SEPARATOR = re.compile(r"(\"?sep=(.)(?=\"?\n))", re.IGNORECASE)
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL_BYTES = bytes(set(range(32)) - set(b"\t\n\r\f\v\x1a\x1b"))
_CHARACTERS_PER_NUL = 1_000
_SLICE_ROWS = 1_024
MAX_UNZIPPED_RATIO = 100
"""Most bytes of a file after unzipping, as a multiple of its size.

Texts reach about 20, a zip bomb several hundred.
"""
_MIN_BOMB_BYTES = 10_000_000
"""Files that unzip to less are read whatever their ratio."""
_MAX_CSV_FIELD = 2**31 - 1  # the largest limit that all platforms accept


class UnreadableInput(ValueError):
    """Nothing in a file can be used; the message becomes the file's problem in the manifest."""


class DamagedInput(UnreadableInput):
    """The content of a file is not known: it is damaged, over a limit or not accessible. Its last documents stay."""


@dataclass(frozen=True)
class Row:
    """One record of a structured file: its values, or a problem."""

    number: int  # 1-based; the line in a jsonl file
    where: str  # for people: "row 3 (line 7)"
    values: dict[str, Any] | None
    problem: str | None = None


def decode_text(data: bytes, declared: str | None = None) -> str:
    """Decode a file: by its BOM, as UTF-8, as the `declared` encoding, else by deterministic detection.

    UTF-16 and UTF-32 without BOM are recognized by the places of NUL bytes. Single undecodable bytes in a UTF-8 file
    and stray NUL characters become U+FFFD. Line ends become "\\n".

    Raises:
        UnreadableInput: the file has many NUL or control bytes (a binary file), or no encoding fits.
    """
    text = _decode_unicode(data)
    if text is None and (escaped := find_escaped_encoding(data)):
        text = data.decode(escaped)
    if text is None:
        nul = data.find(0)
        if nul >= 0 and not has_few_nul(data.count(0), len(data)):
            raise DamagedInput(f"binary file (NUL byte at offset {nul}); remove or exclude it")
        sample = data[:65536]
        n_control = len(sample) - len(sample.translate(None, _CONTROL_BYTES))
        if n_control > 1 + len(sample) // 50:
            raise DamagedInput("binary file (control bytes); remove or exclude it")
        data = data.replace(b"\0", b"\xef\xbf\xbd")
        text = _decode_utf8(data) or decode_declared(data, declared) or _decode_detected(data)
    return normalize_text(text)


def replace_stray_nul(text: str) -> str:
    """Replace rare NUL characters, which tables cannot hold, by U+FFFD; leave a text with many of them unchanged."""
    return text.replace("\0", "\ufffd") if has_few_nul(text.count("\0"), len(text)) else text


def has_few_nul(n_nul: int, n_characters: int) -> bool:
    """Whether the number of NULs is low enough for a text file; more NULs mean a binary file."""
    return n_nul <= 1 + n_characters // _CHARACTERS_PER_NUL


def normalize_text(text: str) -> str:
    """Make line ends "\\n", and pair or replace surrogates, which UTF-8 cannot encode."""
    if _SURROGATE.search(text):
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_csv(data: bytes, text_column: str) -> Iterator[Row]:
    """Yield rows by header name with values as text; the delimiter (`,`, `;`, tab or `|`) is the one that fits best."""
    csv.field_size_limit(_MAX_CSV_FIELD)
    text = decode_text(data)
    if named := _SEPARATOR.match(text):  # a line of Excel; a blank one in its place keeps the numbers of the lines
        text = text[named.end(1) :].lstrip('"')
    delimiter = named[2] if named else _csv_delimiter(text, text_column)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    header: list[str] = []
    number = 0
    for where, fields, problem in _csv_records(reader):
        if not header:
            if problem:
                raise UnreadableInput(f"header: {problem}")
            header = _unique_names(fields)
            continue
        number += 1
        where = f"row {number} ({where})"
        if not problem and len(fields) != len(header):
            problem = f"{len(fields)} fields where the header has {len(header)}"
        if problem:
            yield Row(number, where, None, f"{where}: {problem}")
        else:
            yield Row(number, where, dict(zip(header, fields, strict=True)))


def _csv_records(reader: Any) -> Iterator[tuple[str, list[str], str]]:
    """Yield (lines, fields, problem or "") of each record that is not blank."""
    while True:
        first, fields, problem = reader.line_num + 1, [], ""
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            is_open = "end of data" in str(error)
            problem = "a quote is never closed, all that follows it is lost" if is_open else str(error)
        if fields or problem:
            last = reader.line_num
            yield (f"line {last}" if last <= first else f"lines {first}-{last}"), fields, problem


def read_json(data: bytes) -> Iterator[Row]:
    """Yield the rows of a JSON file.

    A list of objects gives one row per object. An object that contains one list of objects gives that list. A lineage
    file gives one row per resource. Any other object is one row.

    Raises:
        UnreadableInput: the file is not JSON, or neither a list nor an object.
    """
    try:
        content = _parse_json(decode_text(data))
    except (ValueError, RecursionError) as error:
        raise DamagedInput(f"not valid JSON: {error}") from None
    if (lineage := read_lineage(content)) is not None:
        content = lineage
    elif isinstance(content, dict):
        lists = [value for value in content.values() if _is_list_of_objects(value)]
        content = lists[0] if len(lists) == 1 else [content]
    if not isinstance(content, list):
        raise UnreadableInput(f"expected a JSON list of objects or an object, found {type(content).__name__}")
    for number, item in enumerate(content, start=1):
        where = f"row {number}"
        if isinstance(item, dict):
            yield Row(number, where, item)
        else:
            yield Row(number, where, None, f"{where}: expected a JSON object, found {type(item).__name__}")


def read_jsonl(data: bytes) -> Iterator[Row]:
    """Yield one row per line with a JSON object; blank lines are skipped."""
    for number, line in enumerate(decode_text(data).split("\n"), start=1):
        if not line.strip():
            continue
        where = f"line {number}"
        try:
            item = _parse_json(line)
        except (ValueError, RecursionError) as error:
            yield Row(number, where, None, f"{where}: not valid JSON: {error}")
            continue
        if isinstance(item, dict):
            yield Row(number, where, item)
        else:
            yield Row(number, where, None, f"{where}: expected a JSON object, found {type(item).__name__}")


def _parse_json(text: str) -> Any:
    """Parse JSON; a number with more digits than Python converts becomes text."""
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        raise
    except ValueError:
        return json.loads(text, parse_int=_integer_or_text)


def _integer_or_text(digits: str) -> int | str:
    try:
        return int(digits)
    except ValueError:
        return digits


def read_parquet(data: bytes, max_ratio: int) -> Iterator[Row]:
    """Yield the rows of a Parquet file, with one row group in memory at a time.

    Raises:
        DamagedInput: the file is damaged, or unzips to more than `max_ratio` times its size (`check_ratio`).
        UnreadableInput: it has no rows.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = n_bytes = 0
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        for group in range(file.num_row_groups):
            rows = file.read_row_group(group, use_threads=False)  # threads fail in their own way without memory
            for start in range(0, rows.num_rows, _SLICE_ROWS):
                found = rows.slice(start, _SLICE_ROWS)
                n_bytes += sum(map(_plain_size, found.columns))
                check_ratio(n_bytes, len(data), max_ratio)
                for values in _plain_rows(found):
                    number += 1
                    is_read = isinstance(values, dict)
                    problem = None if is_read else f"row {number}: a value is outside the range of Python: {values}"
                    yield Row(number, f"row {number}", values if isinstance(values, dict) else None, problem)
    except MemoryError:
        raise
    except UnreadableInput:
        raise
    except (pa.ArrowException, OSError) as error:
        raise DamagedInput(f"not a readable Parquet file: {error}") from None
    if not number:
        raise UnreadableInput("empty: no rows")


def check_ratio(n_bytes: int, n_packed: int, max_ratio: int) -> None:
    """Refuse a file that unzips to many times its size.

    Args:
        n_bytes: size after unzipping; below 10 MB it is not looked at.
        n_packed: size of the file in bytes.

    Raises:
        DamagedInput: the ratio is above `max_ratio`.
    """
    if n_bytes > max_unzipped_bytes(n_packed, max_ratio):
        raise DamagedInput(
            f"unzips to {n_bytes / n_packed:,.0f} times its size ({n_bytes / 1e6:,.0f} MB), over "
            f"{max_ratio} times; exclude the file"
        )


def max_unzipped_bytes(n_packed: int, max_ratio: int) -> int:
    """Return the bytes that a file of `n_packed` bytes may unzip to."""
    return max(_MIN_BOMB_BYTES, max_ratio * n_packed)


def _plain_size(column: pa.ChunkedArray) -> int:
    """Return the bytes of a column without a dictionary, in which a value that is repeated is stored once."""
    import pyarrow as pa

    is_dictionary = pa.types.is_dictionary(column.type)
    return int(column.cast(column.type.value_type).nbytes if is_dictionary else column.nbytes)


def _plain_rows(rows: pa.Table) -> Iterator[dict[str, Any] | str]:
    """Yield the values of each row, or the reason why one cannot be converted, such as a date of the year 10000."""
    try:
        yield from rows.to_pylist()
    except (ValueError, OverflowError) as error:
        if rows.num_rows == 1:
            yield str(error)
            return
        for number in range(rows.num_rows):
            yield from _plain_rows(rows.slice(number, 1))


def _decode_unicode(data: bytes) -> str | None:
    """Decode UTF-32, UTF-16 or UTF-8 by the BOM, or UTF-32 or UTF-16 by NUL bytes; return None for other files."""
    for bom, encoding in (
        (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
        (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
    ):  # fmt: skip
        if data.startswith(bom):
            text = replace_stray_nul(data[len(bom) :].decode(encoding, "replace"))
            if "\x00" in text:
                raise DamagedInput(f"binary file ({encoding} BOM, then NUL characters); remove or exclude it")
            return text
    even, odd = data[0::2].count(0), data[1::2].count(0)
    if even + odd < 4:
        return None
    wide = [("utf-32-le", len(data) // 2), ("utf-32-be", len(data) // 2)] if even and odd else []
    narrow = [("utf-16-le", len(data) // 20)] if not even else [("utf-16-be", len(data) // 20)] if not odd else []
    for encoding, n_expected in wide + narrow:
        decoded = _decode_strictly(data, encoding) if even + odd >= n_expected else None
        if decoded and _is_plain(decoded[:4096]):
            return decoded
    return None


def _decode_strictly(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        return None


def _is_plain(text: str) -> bool:
    return all(c in "\t\n\r\f\v" or unicodedata.category(c) not in ("Cc", "Cn", "Co", "Cs") for c in text)


def _decode_utf8(data: bytes) -> str | None:
    """Decode UTF-8 with at most one damaged multibyte character in ten; return None for other files."""
    text = data.decode("utf-8", "replace")
    n_multibyte = len(data) - len(data.translate(None, bytes(range(0xC2, 0xF5))))
    n_bad = text.count("\ufffd")
    return text if not n_bad or n_multibyte > 10 * n_bad or _decode_strictly(data, "utf-8") else None


def decode_declared(data: bytes, declared: str | None) -> str | None:
    """Decode a file in the encoding of a name; None if there is no such encoding or it does not fit."""
    try:
        return _decode_strictly(data, codecs.lookup(declared).name) if declared else None
    except LookupError:
        return None


def describe_doubt(data: bytes) -> str:
    """Return what `decode_text` guesses or replaces in a file; "" if a BOM, NUL bytes or UTF-8 show the encoding."""
    if guessed := _find_guessed_encoding(data):
        how = "set `input.encoding`, or save the file as UTF-8"
        return f"encoding guessed as {guessed}; if letters are wrong, {how}"
    n_damaged = data.decode("utf-8", "replace").count("\ufffd") - data.decode("utf-8", "ignore").count("\ufffd")
    if not n_damaged or _decode_unicode(data) is not None:
        return ""
    return f"places that are not UTF-8 and are read as \ufffd: {n_damaged:,}; save the file as UTF-8"


def recode(data: bytes, encoding: str) -> bytes:
    """Return a text file that is not Unicode in UTF-8; one that is, or that the encoding does not fit, unchanged."""
    if _decode_unicode(data) is not None or _decode_utf8(data) is not None:
        return data
    text = decode_declared(data, encoding)
    return data if text is None else text.encode()


def _find_guessed_encoding(data: bytes) -> str | None:
    if escaped := find_escaped_encoding(data):
        return escaped
    if _decode_strictly(data, "utf-8") is not None or _decode_unicode(data) is not None:
        return None
    data = data.replace(b"\0", b"\xef\xbf\xbd")
    return None if _decode_utf8(data) is not None else guess_encoding(data)


def _decode_detected(data: bytes) -> str:
    encoding = guess_encoding(data)
    if encoding is None:
        raise DamagedInput("unknown text encoding; save the file as UTF-8")
    return data.decode(encoding, "replace")


def _csv_delimiter(text: str, text_column: str) -> str:
    def fit(delimiter: str) -> tuple[bool, int]:
        header = next(
            (fields for fields in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter) if fields), []
        )
        return text_column in header, len(header)

    return max(",;\t|", key=fit)


def _unique_names(names: list[str]) -> list[str]:
    unique = dict[str, None]()  # a file of commas alone has as many columns as bytes
    for place, name in enumerate(names, start=1):
        name = name.strip() or f"column_{place}"
        while name in unique:
            name = f"{name}_{place}"
        unique[name] = None
    return list(unique)


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)
