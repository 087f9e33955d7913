"""Limits of what pdfminer decodes of a pdf, whatever filters its streams have and however they are found.

The filters of pdfminer are replaced by ones that count what they yield and stop at the limit. So no stream can hide
from the count: what is not decoded is not read. Keep out: limits of time and memory (`reading_process.py`), and the
choice of the limits (`conversion.py`).
"""

from __future__ import annotations

import importlib
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from graphrag_pipeline.inputs.formats import DamagedInput, RefusedError

_CHECKSUM_BYTES = 3
"""Last bytes of a zipped stream in which pdfminer forgives an error."""
_MAX_OBJECTS = 1_000_000
"""Objects that are decoded before the pages are read; a table of objects can claim any number."""

_MAX_DRAWN = 100_000
"""Pages and forms that are drawn of a document; forms that show each other twice make many of few."""


@contextmanager
def limited_decoding(most: int, problem: str) -> Iterator[DecodedBytes]:
    """Let pdfminer decode at most `most` bytes of each document that it opens, in this process.

    Fax pictures are not decoded, since they hold no text.

    Args:
        most: bytes that all filters may yield together; a stream without a filter counts with its size.
        problem: of a file that is over this limit.

    Raises:
        DamagedInput: the file is over the limit, shows too many forms, or has an object that refers to itself.
        ImportError: the extra is not installed.
    """
    types, documents, lzw, interpreters = (
        importlib.import_module(f"pdfminer.{name}") for name in ("pdftypes", "pdfdocument", "lzw", "pdfinterp")
    )
    interpreter = interpreters.PDFPageInterpreter
    count = DecodedBytes(most, problem)
    with ExitStack() as stack:
        for owner, name, replacement in (
            (types, "zlib", SimpleNamespace(decompress=count.unzip, error=zlib.error)),
            (types, "decompress_corrupted", count.unzip_damaged),
            (types, "lzwdecode", lambda data: count.join(lzw.LZWDecoder(io.BytesIO(data)).run())),
            (types, "rldecode", lambda data: count.join(_run_lengths(data))),
            (types, "ascii85decode", count.counted(types.ascii85decode)),
            (types, "asciihexdecode", count.counted(types.asciihexdecode)),
            (types, "ccittfaxdecode", lambda data, params: b""),
            (types.PDFStream, "decode", count.counting_plain(types.PDFStream.decode)),
            (types.PDFObjRef, "resolve", _resolve_chains(types.PDFObjRef)),
            (interpreter, "render_contents", count.counting_drawn(interpreter.render_contents)),
            (documents.PDFDocument, "__init__", count.started_again(documents.PDFDocument.__init__)),
        ):
            stack.enter_context(patch.object(owner, name, replacement))
        try:
            yield count
        except RefusedError as refused:
            raise DamagedInput(str(refused)) from None


class DecodedBytes:
    """The number of bytes that were decoded of a document, which has a limit."""

    def __init__(self, most: int, problem: str) -> None:
        self._most, self._problem = most, problem
        self._n_bytes = self._n_drawn = 0

    def add(self, n_bytes: int) -> None:
        """Count some more bytes; above the limit the reading ends."""
        self._n_bytes += n_bytes
        if self._n_bytes > self._most:
            raise RefusedError(self._problem)

    def unzip(self, data: bytes) -> bytes:
        """Do as `zlib.decompress`, which would unzip all before it can be counted."""
        reader = zlib.decompressobj()
        found = self._unzip_with(reader, data)
        if not reader.eof:
            raise zlib.error("incomplete or truncated stream")
        return found

    def unzip_damaged(self, data: bytes) -> bytes:
        """Do as pdfminer for a stream with a wrong checksum or end, in time that grows with its size alone."""
        reader, end = zlib.decompressobj(), max(len(data) - _CHECKSUM_BYTES, 0)
        found = self._unzip_with(reader, data[:end])
        for place in range(end, len(data)):
            try:
                found += self._unzip_with(reader, data[place : place + 1])
            except zlib.error:
                break
        return found

    def _unzip_with(self, reader: Any, data: bytes) -> bytes:
        found = reader.decompress(data, self._most - self._n_bytes + 1)  # 0 would be without limit
        self.add(len(found))
        return bytes(found)

    def join(self, pieces: Iterator[bytes]) -> bytes:
        """Return the output of a filter that yields it in pieces."""
        found = bytearray()
        for piece in pieces:
            self.add(len(piece))
            found += piece
        return bytes(found)

    def counted(self, decode: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
        """Return a filter that yields at most a small multiple of its input, and is counted afterwards."""

        def decode_and_count(data: bytes) -> bytes:
            found = decode(data)
            self.add(len(found))
            return found

        return decode_and_count

    def counting_plain(self, decode: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return `PDFStream.decode`, where a stream without a filter counts, too: streams may overlap in the file."""

        def decode_stream(stream: Any) -> None:
            if not stream.get_filters():
                self.add(len(stream.rawdata or b""))
            decode(stream)

        return decode_stream

    def counting_drawn(self, draw: Callable[..., None]) -> Callable[..., None]:
        """Return `PDFPageInterpreter.render_contents`, which reads a form again each time that a page shows it."""

        def draw_contents(*arguments: Any, **options: Any) -> None:
            self._n_drawn += 1
            if self._n_drawn > _MAX_DRAWN:
                raise RefusedError(
                    f"its pages show forms more than {_MAX_DRAWN:,} times; print it to a new file, or exclude it"
                )
            draw(*arguments, **options)

        return draw_contents

    def started_again(self, initialize: Callable[..., None]) -> Callable[..., None]:
        """Return `PDFDocument.__init__`: a converter may open a file twice, and decodes a stream once each time."""

        def open_document(document: Any, *arguments: Any, **options: Any) -> None:
            self._n_bytes = self._n_drawn = 0
            initialize(document, *arguments, **options)

        return open_document


def decode_texts(data: bytes, max_pages: int, decoded: DecodedBytes) -> int:
    """Decode all of a pdf but its pictures, which are not read, before the converter reads the first page.

    Args:
        decoded: counts what the pages show, too; a stream that many pages share is read for each.

    Returns:
        The number of pages, at most one more than `max_pages`; 0 if the file is damaged or locked, because the
        converter raises that error again and it is described there.
    """
    pages, types = importlib.import_module("pdfminer.pdfpage"), importlib.import_module("pdfminer.pdftypes")
    n_pages = 0
    try:
        document = pages.PDFDocument(pages.PDFParser(io.BytesIO(data)))
        seen = set[int]()
        for page in islice(pages.PDFPage.create_pages(document), max_pages + 1):
            n_pages += 1
            for content in page.contents:  # also one that claims to be a picture
                stream = types.stream_value(content)
                n_bytes = len(stream.get_data())
                decoded.add(n_bytes if id(stream) in seen else 0)
                seen.add(id(stream))
        if n_pages <= max_pages:
            _decode_others(document, types)
    except MemoryError:
        raise
    except Exception:  # of any kind
        return 0
    return n_pages


def _decode_others(document: Any, types: Any) -> None:
    picture = importlib.import_module("pdfminer.psparser").LIT("Image")
    numbers = (number for xref in document.xrefs for number in xref.get_objids())
    for number in islice(numbers, _MAX_OBJECTS):
        try:
            found = document.getobj(number)
            if isinstance(found, types.PDFStream) and found.get("Subtype") is not picture:
                found.get_data()
        except MemoryError:
            raise
        except Exception:  # damaged, or of an unknown filter: the converter meets it if it needs it
            continue


def _run_lengths(data: bytes) -> Iterator[bytes]:
    """Yield the runs of a stream with /RunLengthDecode; a length of 128 ends it."""
    place = 0
    while place < len(data) and (length := data[place]) != 128:
        n_read = length + 1 if length < 128 else 1
        run = data[place + 1 : place + 1 + n_read]
        yield run if length < 128 else run * (257 - length)
        place += 1 + n_read


def _resolve_chains(reference_type: Any) -> Callable[..., Any]:
    """Return `PDFObjRef.resolve`, which follows a chain of references to its end, and refuses one without an end."""
    resolve = reference_type.resolve

    def resolve_chain(reference: Any, default: object = None) -> Any:
        found, seen = resolve(reference, default=default), {reference.objid}
        while isinstance(found, reference_type):
            if found.objid in seen:
                raise RefusedError(
                    f"damaged: its object {found.objid} refers to itself; open the file and save it again, or "
                    "exclude it"
                )
            seen.add(found.objid)
            found = resolve(found, default=default)
        return found

    return resolve_chain
