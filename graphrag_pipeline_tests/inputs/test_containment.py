"""Files that are hostile or too large: each is the problem of one file, within limits, and stops no other."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import time
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphrag_pipeline.inputs import reading_process
from graphrag_pipeline.inputs.documents import read_records
from graphrag_pipeline.inputs.files import read_input
from graphrag_pipeline.inputs.source_records import SourceRecord
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline_tests.support.corpora.word_file import docx, paragraph

PLAIN = InputSettings()
NEXT_TO_IT = "They say that Scrooge met Marley."


def _parquet(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _year_10000() -> bytes:
    """Two rows; the date of the second is in the year 10000, which Python has no value for."""
    texts = pa.array([NEXT_TO_IT, "Belle met Fezziwig."])
    dates = pa.array([0, 253_402_300_800_000_000], pa.timestamp("us"))
    return _parquet(pa.table({"id": ["a", "b"], "text": texts, "creation_date": dates}))


def _nested_json(depth: int) -> bytes:
    return f'[{{"text": "{NEXT_TO_IT}"}}, {{"text": "x", "deep": {"[" * depth}{"]" * depth}}}]'.encode()


def _read(folder: Path, files: dict[str, bytes], settings: InputSettings = PLAIN) -> list[SourceRecord]:
    """Read an input folder with these files, and a good one beside them."""
    (folder / "input").mkdir()
    for name, data in {"zz_good.txt": NEXT_TO_IT.encode(), **files}.items():
        (folder / "input" / name).write_bytes(data)
    *records, good = read_input(folder / "input", settings, 4, None, folder / "cache")
    assert (good.path, good.text, good.problem) == ("zz_good.txt", NEXT_TO_IT, None)
    return records


def test_a_date_of_the_year_10000_is_the_problem_of_its_row(tmp_path: Path) -> None:
    first, second = _read(tmp_path, {"rows.parquet": _year_10000()})
    assert (first.text, first.problem) == (NEXT_TO_IT, None)
    assert second.problem and second.problem.startswith("row 2: a value is outside the range of Python: ")


@pytest.mark.parametrize("depth", [520, 900])
def test_deeply_nested_json_is_the_problem_of_its_row(tmp_path: Path, depth: int) -> None:
    lines = b"\n".join(json.dumps(row).encode() for row in json.loads(_nested_json(depth)))
    for records in (_read(tmp_path, {"rows.json": _nested_json(depth)}), read_records("rows.jsonl", lines, PLAIN)):
        first, second = records
        assert (first.text, first.problem) == (NEXT_TO_IT, None)
        assert second.problem and second.problem.endswith(" nested more than 100 deep")


def test_json_nested_100_000_deep_is_the_problem_of_its_file(tmp_path: Path) -> None:
    (record,) = _read(tmp_path, {"rows.json": _nested_json(100_000)})
    assert record.problem and record.problem.startswith("not valid JSON: maximum recursion depth") and record.is_unknown


def test_a_number_of_many_digits_is_text_and_refuses_no_file() -> None:
    """Python converts at most 4,300 digits, and named a function of its own as the way out."""
    digits = "7" * 5_000
    rows = [f'{{"text": "{NEXT_TO_IT}", "n": 1}}', f'{{"text": "Belle.", "n": {digits}}}']
    for name, data in {"a.json": f"[{','.join(rows)}]", "a.jsonl": "\n".join(rows)}.items():
        first, second = read_records(name, data.encode(), PLAIN)
        assert (first.problem, first.metadata) == (None, '{"n":1}')
        assert (second.problem, second.metadata) == (None, f'{{"n":"{digits}"}}')
    (broken,) = read_records("a.json", f"[{rows[1]}, ]".encode(), PLAIN)
    assert broken.problem and broken.problem.startswith("not valid JSON: ") and "sys." not in broken.problem


def test_a_header_of_many_columns_is_read_in_a_moment() -> None:
    """Each name was compared with all before it: 60 kB took minutes, in the process of the index."""
    started = time.process_time()
    (record,) = read_records("wide.csv", b"," * 200_000 + b"\n", PLAIN)
    assert record.problem == "empty: no rows" and time.process_time() - started < 10


@pytest.mark.parametrize("is_dictionary", [False, True])
def test_a_parquet_file_that_unzips_to_many_times_its_size_is_refused(is_dictionary: bool) -> None:
    texts = pa.array(["Marley was dead. " * 4_000] * 200)
    bomb = _parquet(pa.table({"text": texts.dictionary_encode() if is_dictionary else texts}))
    assert len(bomb) < 20_000
    (record,) = read_records("bomb.parquet", bomb, PLAIN)
    assert record.is_unknown and record.problem and " MB), over 100 times; " in record.problem


def test_nesting_up_to_the_limit_is_read() -> None:
    rows = [{"text": "x", "a": json.loads("[" * depth + "]" * depth)} for depth in (99, 100)]
    kept, refused = read_records("a.jsonl", "\n".join(map(json.dumps, rows)).encode(), PLAIN)
    assert kept.problem is None
    assert refused.problem == "line 2: its values are nested more than 100 deep"


def test_whatever_a_reader_raises_is_the_problem_of_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("of a library")

    monkeypatch.setattr("graphrag_pipeline.inputs.documents.decode_text", fail)
    (record,) = read_records("a.txt", b"text", PLAIN)
    assert record.problem is not None and record.is_unknown
    assert record.problem.startswith("cannot be read as txt (ZeroDivisionError: of a library); open it and save it")


def _laughing_forms() -> bytes:
    """30 forms in 4 kB that show each other twice, so that they are drawn a thousand million times."""
    keys = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]"
    forms = [b"<<%s/Resources<</XObject<</A %d 0 R>>>>>>stream\n/A Do /A Do" % (keys, 6 + n) for n in range(1, 31)]
    page = b"<<%s/Resources<</XObject<</A 6 0 R>>>>>>stream\n/A Do" % keys
    data = _pdf_of(page, others=[*forms, b"<<%s>>stream\n" % keys])
    return data.replace(b"<</Font<<", b"<</XObject<</A 6 0 R>>/Font<<")


def _twice_zipped(data: bytes) -> bytes:
    packed = zlib.compress(zlib.compress(data, 9), 9)
    return _pdf_of(b"<</Filter[/FlateDecode/FlateDecode]>>stream\n%s" % packed)


def _sheet(*cells: tuple[str, int, str]) -> bytes:
    """An xlsx file of one sheet with these cells: column, row, and the rest of the element `c`."""
    openpyxl = pytest.importorskip("openpyxl")
    plain, made = io.BytesIO(), io.BytesIO()
    openpyxl.Workbook().save(plain)
    rows = "".join(f'<row r="{row}"><c r="{column}{row}" {cell}</c></row>' for column, row, cell in cells)
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            data = source.read(name)
            if name == "xl/worksheets/sheet1.xml":
                data = re.sub(
                    rb"<sheetData ?/>|<sheetData>.*</sheetData>", b"<sheetData>%s</sheetData>" % rows.encode(), data
                )
            target.writestr(name, data)
    return made.getvalue()


_MARLEY = 't="inlineStr"><is><t>Marley</t></is>'


def thorough(*case: object) -> object:
    """Return a case that meets the same limit as another one."""
    return pytest.param(*case, marks=pytest.mark.thorough)


class TestLimits:
    """Limits of files that are read in a process of their own."""

    def test_a_zip_bomb_of_60_megabytes_is_refused_at_once(self, tmp_path: Path) -> None:
        pytest.importorskip("markitdown")
        bomb = docx(paragraph("Marley was dead.") * 1_224_500)
        assert len(bomb) < 300_000
        started = time.monotonic()
        (record,) = _read(tmp_path, {"bomb.docx": bomb})
        assert time.monotonic() - started < 60  # it took 240 s and 6.9 GB
        assert record.problem and " times its size (60 MB), over 100 times; " in record.problem

    @pytest.mark.parametrize(
        ("name", "make"),
        [
            thorough("text.pdf", lambda: _pdf(b"BT /F1 12 Tf 72 720 Td (Marley was dead.) Tj ET\n" * 1_276_600)),
            ("blanks.pdf", lambda: _twice_zipped(b" " * 600_000_000)),
            thorough("forms.pdf", _laughing_forms),
            ("loop.pdf", lambda: _pdf_of_objects([b"<</Type/Catalog/Pages 2 0 R>>", b"3 0 R", b"2 0 R"])),
            ("corners.xlsx", lambda: _sheet(("A", 1, _MARLEY), ("XFD", 1_048_576, _MARLEY))),
            thorough("far_row.xlsx", lambda: _sheet(("A", 1, _MARLEY), ("A", 10**12, _MARLEY))),
            thorough("far_empty_row.xlsx", lambda: _sheet(("A", 1, _MARLEY), ("A", 10**12, ">"))),
            thorough("empty_cells.xlsx", lambda: _sheet(*(("XFD", row, 's="0">') for row in range(1, 2_000)))),
        ],
    )
    def test_a_hostile_file_meets_the_limits_of_its_process(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, make: Callable[[], bytes]
    ) -> None:
        pytest.importorskip("markitdown")
        monkeypatch.setattr(reading_process, "_START_S", 6)
        settings = InputSettings(max_read_s=2, max_memory_mb=400)
        started = time.monotonic()
        (record,) = _read(tmp_path, {name: make()}, settings)
        assert record.is_unknown and record.problem
        assert record.problem.startswith(("needs more memory than ", "reading takes longer than "))
        assert time.monotonic() - started < 60

    def test_a_large_picture_of_a_pdf_does_no_harm(self, tmp_path: Path) -> None:
        pytest.importorskip("markitdown")
        page, keys = b"BT /F1 12 Tf 72 720 Td (Marley was dead.) Tj ET\n", b"/Type/XObject/Subtype /Image"
        (record,) = _read(tmp_path, {"scan.pdf": _pdf(page, (keys, bytes(30_000_000)))})
        assert (record.problem, record.text.strip()) == (None, "Marley was dead.")

    @pytest.mark.parametrize(
        ("name", "option", "value", "problem"),
        [
            ("a.docx", "max_unzipped_mb", 1, "unzips to 2 MB, over input.max_unzipped_mb = 1; "),
            ("a.docx", "max_read_s", 0.001, "reading takes longer than input.max_read_s = 0.001 seconds; "),
            ("a.docx", "max_memory_mb", 64, "needs more memory than input.max_memory_mb = 64; "),
            ("a.docx", "max_file_mb", 1, "has 2 MB, over input.max_file_mb = 1; "),
            ("a.parquet", "max_memory_mb", 64, "needs more memory than input.max_memory_mb = 64; "),
            ("a.pdf", "max_pages", 2, "has more than input.max_pages = 2 pages; "),
            ("a.pptx", "max_pages", 2, "has more than input.max_pages = 2 slides; "),
            ("a.xlsx", "max_pages", 2, "has more than input.max_pages = 2 sheets; "),
        ],
    )
    def test_a_file_over_a_limit_is_listed_with_the_setting(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, option: str, value: float, problem: str
    ) -> None:
        pytest.importorskip("markitdown")
        monkeypatch.setattr(reading_process, "_START_S", 0 if option == "max_read_s" else 60)
        data = _large(name, is_stored=option == "max_file_mb")
        settings = PLAIN.model_copy(update={option: value})
        (record,) = _read(tmp_path, {name: data}, settings)
        assert record.problem and record.problem.startswith(problem)
        assert record.is_unknown
        again = list(read_input(tmp_path / "input", settings, 4, None, tmp_path / "cache"))
        assert again[0] == record

    def test_deeply_nested_html_is_the_problem_of_its_file(self, tmp_path: Path) -> None:
        pytest.importorskip("markitdown")
        (record,) = _read(tmp_path, {"deep.html": b"<div>" * 20_000 + b"text" + b"</div>" * 20_000})
        assert record.problem is None or "nested too deeply" in record.problem

    def test_one_process_reads_many_files_and_is_started_again_after_it_died(self, tmp_path: Path) -> None:
        pytest.importorskip("markitdown")
        _read(tmp_path, {"one.docx": docx(paragraph("One.")), "two.docx": docx(paragraph("Two."))})
        (running,) = reading_process._running
        os.kill(running._process.pid, signal.SIGKILL)
        running._process.wait()
        (tmp_path / "input" / "three.docx").write_bytes(docx(paragraph("Three.")))
        records = list(read_input(tmp_path / "input", PLAIN, 4, None, tmp_path / "cache"))
        assert [record.text.strip() for record in records[:3]] == ["One.", "Three.", "Two."]
        assert reading_process._running[0] is not running

    def test_a_process_that_dies_while_it_reads_is_the_problem_of_the_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading_process, "_WORKER", "graphrag_pipeline_tests.inputs.no_such_worker")
        monkeypatch.setattr(reading_process, "_running", [])
        (record,) = _read(tmp_path, {"one.parquet": _year_10000()})
        assert record.problem == "its reader ended with status 1; open the file and save it again, or exclude it"

    def test_a_process_without_memory_that_does_not_end_is_ended(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """CPython can try without end to leave a `with` block if there is no memory; the file waited for its time."""
        monkeypatch.setattr(reading_process, "_WORKER", "graphrag_pipeline_tests.inputs.full_worker")
        monkeypatch.setattr(reading_process, "_running", [])
        (record,) = _read(tmp_path, {"one.parquet": _year_10000()}, InputSettings(max_memory_mb=64))
        assert record.problem and record.problem.startswith("needs more memory than input.max_memory_mb = 64; ")


def _pdf(page: bytes, *others: tuple[bytes, bytes]) -> bytes:
    """A pdf of one page with zipped streams: that of the page, and others with their keys."""
    streams = [(keys, zlib.compress(data)) for keys, data in ((b"", page), *others)]
    first, *rest = (
        b"<<%s/Filter/FlateDecode/Length %d>>stream\n%s" % (k, len(packed), packed) for k, packed in streams
    )
    return _pdf_of(first, others=rest)


def _pdf_of(page: bytes, contents: bytes = b"5 0 R", others: Sequence[bytes] = ()) -> bytes:
    """A pdf of one page with streams, each from its keys on, without its end."""
    return _pdf_of_objects(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents %s/Resources<</Font<</F1 4 0 R>>>>>>" % contents,
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            *(b"%s\nendstream" % stream for stream in (page, *others)),
        ]
    )


def _pdf_of_objects(objects: Sequence[bytes]) -> bytes:
    body = b"".join(b"%d 0 obj\n%s\nendobj\n" % (number, content) for number, content in enumerate(objects, start=1))
    return b"%PDF-1.4\n" + body + b"trailer<</Size %d/Root 1 0 R>>\n%%%%EOF" % (len(objects) + 1)


def _large(name: str, is_stored: bool) -> bytes:
    if name.endswith("docx"):
        import random

        random.seed(0)
        body = "".join(paragraph(f"{random.getrandbits(64):x} met {random.getrandbits(64):x}") for _ in range(30_000))
        data = docx(body)
        return data + bytes(2_000_000 - len(data)) if is_stored else data
    if name.endswith("parquet"):
        text = pa.array([f"{number:08d} was dead. " * 1_400 for number in range(4_000)])  # no bomb: a tenth when zipped
        return _parquet(pa.table({"id": pa.array(range(4_000)), "text": text}))
    buffer = io.BytesIO()
    if name.endswith("xlsx"):
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        for _ in range(2):
            book.create_sheet()
        book.save(buffer)
    elif name.endswith("pptx"):
        pptx = pytest.importorskip("pptx")
        deck = pptx.Presentation()
        for _ in range(3):
            deck.slides.add_slide(deck.slide_layouts[0])
        deck.save(buffer)
    else:
        pdfium = pytest.importorskip("pypdfium2")
        document = pdfium.PdfDocument.new()
        for _ in range(3):
            document.new_page(612, 792)
        document.save(buffer)
    return buffer.getvalue()
