"""Documents from each kind of file, and the problems of files and rows that give none."""

from __future__ import annotations

import codecs
import dataclasses
import io
import json
import re
from datetime import datetime
from importlib.util import find_spec

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import InputChangedError
from graphrag_pipeline.indexing.text_units import split_documents
from graphrag_pipeline.inputs import conversion
from graphrag_pipeline.inputs.documents import (
    build_corpus_manifest,
    build_documents,
    match_manifest,
    read_records,
    read_title,
)
from graphrag_pipeline.inputs.formats import CONVERTED
from graphrag_pipeline.inputs.labels import read_front_matter
from graphrag_pipeline.inputs.source_records import document_id_of, problem_record
from graphrag_pipeline.settings.indexing import TextUnitsSettings
from graphrag_pipeline.settings.input import InputSettings
from graphrag_pipeline.tables import CORPUS_MANIFEST, DOCUMENTS
from graphrag_pipeline.text.structure import read_structure
from graphrag_pipeline_tests.support.corpora.word_file import docx, paragraph
from graphrag_pipeline_tests.support.thoroughness import repetitions

PLAIN = InputSettings()


def _read(path: str, content: str | bytes, settings: InputSettings = PLAIN):
    return read_records(path, content.encode() if isinstance(content, str) else content, settings)


def _only(path: str, content: str | bytes, settings: InputSettings = PLAIN):
    (record,) = _read(path, content, settings)
    return record


def _title(text: str) -> str:
    structure = read_structure(text)
    return read_title(structure, read_front_matter(text, structure))


def _parquet(rows: list[dict], **options) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), buffer, **options)
    return buffer.getvalue()


def test_a_text_file_is_one_document_titled_by_its_name():
    record = _only("books/a carol.txt", "Marley was dead.\r\nTo begin\rwith.\n")
    assert (record.title, record.text) == ("a carol", "Marley was dead.\nTo begin\nwith.\n")
    assert (record.record, record.format, record.metadata, record.problem) == ("", "txt", "{}", None)
    assert record.document_id == document_id_of("books/a carol.txt")


@pytest.mark.parametrize(
    ("content", "title"),
    [("## The *End* ##\ntext", "The End"), ("no heading, #hash", "notes"), ("intro\n# One\n# Two", "One")],
)
def test_a_markdown_file_is_titled_by_its_heading_or_its_name(content, title):
    assert _only("x/notes.md", content).title == title


def test_a_touched_file_keeps_its_hash_and_an_edited_one_its_id():
    before = _only("a.txt", "one\ntwo")
    touched = _only("a.txt", codecs.BOM_UTF8 + b"one\r\ntwo")
    edited = _only("a.txt", "one\nthree")
    assert touched.content_hash == before.content_hash != edited.content_hash
    assert edited.document_id == before.document_id != _only("b/a.txt", "one\ntwo").document_id


TEXT = "Scrooge's café, naïve, in the Straße: “Bah!” – said one thousand times before the ghost left.\n"
LITHUANIAN = "Vilniaus meras aplankė mokyklą ir kalbėjosi su žmonėmis apie šį rudenį. Jų buvo daug, ir visi džiaugėsi."
LATIN = "Le garçon a mangé une pêche à l'été. Où êtes-vous né, cher élève ?\n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (TEXT.encode("utf-8-sig"), TEXT),
        (codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"), TEXT),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), TEXT),
        (codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"), TEXT),
        (codecs.BOM_UTF32_BE + TEXT.encode("utf-32-be"), TEXT),
        (TEXT.encode("utf-16-le"), TEXT),
        (TEXT.encode("utf-16-be"), TEXT),
        (TEXT.encode("utf-32-le"), TEXT),
        (TEXT.encode("cp1252"), TEXT),
        (LATIN.encode("latin-1"), LATIN),
        ("café".encode("latin-1"), "café"),
        ("été élue".encode("latin-1"), "été élue"),
        ("Brûlé a été".encode("latin-1"), "Brûlé a été"),
        ("Äiti söi hyvää jäätelöä.".encode("latin-1"), "Äiti söi hyvää jäätelöä."),
        ("C'è Åsa – “naïve”.".encode("cp1252"), "C'è Åsa – “naïve”."),
        ("Prezydent Łodzi spotkał się z mieszkańcami w środę po południu. Rozmawiano o książkach.".encode("cp1250"),
         "Prezydent Łodzi spotkał się z mieszkańcami w środę po południu. Rozmawiano o książkach."),
        (LITHUANIAN.encode("cp1257"), LITHUANIAN),
        (("The ghost of Marley. " * 50 + "Müller").encode("latin-1"), "The ghost of Marley. " * 50 + "Müller"),
        ("Это русский текст, который написан кириллицей. Привет!".encode("cp1251"),
         "Это русский текст, который написан кириллицей. Привет!"),
        ("これは日本語の文章です。東京は大きい。今日はとても良い天気ですね。".encode("shift_jis"),
         "これは日本語の文章です。東京は大きい。今日はとても良い天気ですね。"),
        ("é" * 100 + "\n", "é" * 100 + "\n"),
        ("é".encode() * 100 + b"\xff", "é" * 100 + "\ufffd"),
    ],
)  # fmt: skip
def test_text_is_decoded_from_any_encoding(data, text):
    assert _only("a.txt", data).text == text


@pytest.mark.parametrize(
    ("path", "data", "problem"),
    [
        ("a.txt", b"", "empty"),
        ("a.txt", b" \n\t\r\n", "empty"),
        ("a.txt", codecs.BOM_UTF8 + b"\n", "empty"),
        ("a.txt", codecs.BOM_UTF16_LE, "empty"),
        ("a.txt", b"hello\x00world\x00\x00", "binary file (NUL byte at offset 5); remove or exclude it"),
        ("a.md", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(range(256)), "binary file"),
        ("a.txt", bytes(range(1, 32)) * 9, "binary file (control bytes)"),
        ("a.csv", b"\x00\x01\x02\x03" * 40, "binary file"),
        ("a.xyz", b"text", "unsupported file type .xyz; supported: .txt, .text, .rst"),
        ("README", b"text", "unsupported file type without an extension"),
        ("a.json", b"{'text': 1}", "not valid JSON"),
        ("a.json", b"[" * 100_000, "not valid JSON"),
        ("a.json", b"3", "expected a JSON list of objects or an object, found int"),
        ("a.json", b"[]", "empty"),
        ("a.json", b"[1, 2]", "no valid row; row 1: expected a JSON object, found int"),
        ("a.jsonl", b"not json\nat all\n", "no valid row; line 1: not valid JSON"),
        ("a.csv", b"id,text\n", "empty"),
        ("a.parquet", b"PAR1 junk", "not a readable Parquet file"),
        ("a.parquet", _parquet([{"id": "1", "text": "one"}])[:-6], "not a readable Parquet file"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_problem(path, data, problem):
    record = _only(path, data)
    assert record.problem.startswith(problem)
    assert (record.path, record.record, record.content_hash, record.text) == (path, "", "", "")
    assert record.n_bytes == len(data)


ROWS = [
    {"id": "a", "title": "First", "text": "One.", "creation_date": "2024-03-01", "topic": "x"},
    {"id": "007", "title": "Second", "text": "Two.", "creation_date": "2024-03-02T10:00:00+01:00", "topic": "y"},
]
AS_CSV = "id,title,text,creation_date,topic\n" + "".join(",".join(row.values()) + "\n" for row in ROWS)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("n.csv", AS_CSV),
        ("n.csv", AS_CSV.replace(",", ";")),
        ("n.CSV", codecs.BOM_UTF8 + AS_CSV.replace("\n", "\r\n\r\n").encode()),
        ("n.json", json.dumps(ROWS)),
        ("n.json", json.dumps({"count": 2, "articles": ROWS})),
        ("n.jsonl", "\n\n".join(map(json.dumps, ROWS))),
        ("n.parquet", _parquet(ROWS)),
        ("n.parquet", _parquet(ROWS, row_group_size=1)),
    ],
)
def test_structured_files_have_a_document_per_row(path, data):
    records = _read(path, data)
    assert [(r.record, r.title, r.text, r.creation_date, r.metadata) for r in records] == [
        ("a", "First", "One.", "2024-03-01", '{"topic":"x"}'),
        ("007", "Second", "Two.", "2024-03-02T10:00:00+01:00", '{"topic":"y"}'),
    ]
    assert [r.document_id for r in records] == [document_id_of(path, "a"), document_id_of(path, "007")]
    assert [r.n_bytes for r in records] == [4, 4]


def test_dotted_paths_reach_into_objects_and_the_rest_is_metadata():
    settings = InputSettings(id_column="doc.id", title_column="doc.title", text_column="doc.body.text",
                             creation_date_column="doc.date")  # fmt: skip
    row = {"doc": {"id": 7, "title": "T", "date": "2024", "body": {"text": "One."}, "lang": "en"}, "n": 1.5, "b": None}
    for path, data in (("a.jsonl", json.dumps(row)), ("a.parquet", _parquet([row]))):
        record = _only(path, data, settings)
        assert (record.record, record.title, record.text, record.creation_date) == ("7", "T", "One.", "2024")
        assert record.metadata == '{"b":null,"doc":{"lang":"en"},"n":1.5}'
    literal = _only("a.csv", "doc.body.text,doc.id\nOne.,9\n", settings)
    assert (literal.record, literal.text) == ("9", "One.")


def test_rows_without_id_or_title_go_by_their_number():
    records = _read("news/n.csv", 'text,id\nOne.,\n"Two,\n2.",b\n')
    assert [(r.record, r.title, r.text) for r in records] == [("#1", "n #1", "One."), ("b", "n b", "Two,\n2.")]


@pytest.mark.parametrize(
    ("value", "creation_date", "metadata"),
    [
        ("2024-03", "2024-03", "{}"),
        ("last week", None, '{"creation_date":"last week"}'),
        ("", None, '{"creation_date":""}'),
    ],
)
def test_only_an_iso_date_is_a_creation_date(value, creation_date, metadata):
    record = _only("a.jsonl", json.dumps({"text": "x", "creation_date": value}))
    assert (record.creation_date, record.metadata) == (creation_date, metadata)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("a.txt", b"hello\0world"),
        ("a.txt", b"hello\0world" + b" Scrooge met Marley." * 200),
        ("a.txt", codecs.BOM_UTF8 + b"hello\0world"),
        ("a.txt", codecs.BOM_UTF16_LE + "hello\0world".encode("utf-16-le")),
        ("a.csv", b"id,text\n1,hello\0world\n"),
        ("a.json", rb'[{"id": "1", "text": "hello\u0000world"}]'),
    ],
)
def test_a_stray_nul_in_a_text_is_replaced(path, data):
    [record] = _read(path, data)
    assert record.problem is None
    assert record.text.startswith("hello\ufffdworld")


@pytest.mark.parametrize(
    ("path", "data", "problems"),
    [
        ("a.jsonl", '{"id":1,"text":"x"}\n\n{broken\n[1]\n{"id":2}\n{"id":3,"text":" "}\n{"id":4,"text":{"a":1}}\n',
         [None, "line 3: not valid JSON", "line 4: expected a JSON object, found list",
          "line 5: empty, no text in 'text'", "line 6: empty, no text in 'text'",
          "line 7: 'text' holds no text but a dict"]),
        ("a.jsonl", '{"id":"x","text":"1"}\n{"id":"x","text":"2"}\n{"id":"x","text":"3"}\n',
         [None, "line 2: id 'x' is already that of line 1", "line 3: id 'x' is already that of line 1"]),
        ("a.csv", "id,text\n1,one\n2\n3,x,y\n4,four\n",
         [None, "row 2 (line 3): 1 fields where the header has 2", "row 3 (line 4): 3 fields", None]),
        ("a.csv", 'id,text\n1,one\n2,"open\n3,three\n',
         [None, "row 2 (lines 3-4): a quote is never closed, all that follows it is lost"]),
        ("a.csv", 'id,text\n1,"a"b\n2,two\n', ["row 1 (line 2): ", None]),
        ("a.json", '[{"text":"x"}, 3, {"text":"a\\u0000b\\u0000c\\u0000"}]',
         [None, "row 2: expected a JSON object, found int", "row 3: binary data (NUL character)"]),
    ],
)  # fmt: skip
def test_a_bad_row_is_one_problem(path, data, problems):
    records = _read(path, data)
    assert len({record.document_id for record in records}) == len(records) == len(problems)
    for record, problem in zip(records, problems, strict=True):
        assert record.problem is None if problem is None else record.problem.startswith(problem)


def test_csv_takes_huge_fields_and_columns_without_or_with_the_same_name():
    record = _only("a.csv", f'text,a,a,\n"{"x" * 1_000_000}",1,2,3\n')
    assert len(record.text) == 1_000_000
    assert record.metadata == '{"a":"1","a_3":"2","column_4":"3"}'


def test_lone_surrogates_and_nan_do_not_reach_a_table():
    records = _read("a.jsonl", '{"id": "\\ud800", "text": "a\\ud83d\\ude00\\udc00", "title": "\\udc00", "n": NaN}')
    assert records[0].text == "a😀\ufffd"
    assert records[0].metadata == '{"n":null}'
    assert build_documents(records).num_rows == build_corpus_manifest(records).num_rows == 1


def test_tables_hold_every_record_in_order_of_id():
    records = _read("a.jsonl", '{"id":1,"text":"x"}\n{broken\n{"id":2,"text":"y"}\n')
    manifest, documents = build_corpus_manifest(records), build_documents(reversed(records))
    assert manifest.schema == CORPUS_MANIFEST.schema and documents.schema == DOCUMENTS.schema
    assert manifest["document_id"].to_pylist() == sorted(record.document_id for record in records)
    assert sorted(documents["record"].to_pylist()) == ["1", "2"]
    assert documents.equals(build_documents(records))


def test_a_reason_with_line_breaks_is_one_line_of_the_manifest():
    record = dataclasses.replace(problem_record("a.txt", "odd\nname:\u2028a"), note="two\r\nlines")
    [row] = build_corpus_manifest([record]).to_pylist()
    assert (row["problem"], row["note"]) == ("odd name: a", "two lines")


def test_records_that_are_not_those_of_the_manifest_are_refused():
    records = _read("a.jsonl", '{"id":1,"text":"x"}\n{"id":2,"text":"y"}\n')
    manifest = build_corpus_manifest(records)
    assert match_manifest(iter(records), manifest) == records
    for changed in (records[:1], [*records, *_read("b.txt", "z")], _read("a.jsonl", '{"id":1,"text":"X"}')):
        with pytest.raises(InputChangedError, match=r"changed while the index was being built"):
            match_manifest(changed, manifest)


@given(st.binary(max_size=200), st.sampled_from(["a.txt", "a.md", "a.csv", "a.json", "a.jsonl", "a.parquet"]))
def test_any_bytes_become_records_that_fit_the_tables(data, path):
    records = _read(path, data)
    assert records
    assert records == _read(path, data)
    assert build_corpus_manifest(records).num_rows == len({record.document_id for record in records}) == len(records)
    build_documents(records)


@given(st.lists(st.fixed_dictionaries({"text": st.text(), "id": st.none() | st.integers() | st.text()}), min_size=1))
def test_any_rows_become_records_with_ids_of_their_own(rows):
    records = _read("a.jsonl", "\n".join(map(json.dumps, rows)))
    assert len({record.document_id for record in records}) == len(records)
    build_documents(records)


@pytest.mark.parametrize("format", CONVERTED)
def test_a_missing_extra_is_a_problem_that_names_the_package_to_install(format, monkeypatch):
    def refuse(name):
        raise ImportError(name)

    conversion.load_converter.cache_clear()
    monkeypatch.setattr(conversion.importlib, "import_module", refuse)
    assert "pip install 'graphrag-pipeline[documents]'" in _only(f"a.{format}", b"%PDF").problem


needs_extra = pytest.mark.skipif(find_spec("markitdown") is None, reason="the documents extra is not installed")


@needs_extra
def test_a_missing_part_of_the_extra_is_a_problem_that_names_the_package_to_install(monkeypatch):
    missing = (ImportError, ImportError("no openpyxl"), None)
    monkeypatch.setattr("markitdown.converters._xlsx_converter._xlsx_dependency_exc_info", missing)
    assert "pip install 'graphrag-pipeline[documents]'" in _only("a.xlsx", b"junk").problem


@needs_extra
def test_html_is_read_in_its_declared_encoding_without_scripts():
    page = "<meta charset='iso8859-2'><title>Tytuł</title><script>x</script><body><h1>H</h1><p>żółć</p>"
    record = _only("a.html", page.encode("iso8859-2"))
    assert (record.title, record.text.split()) == ("Tytuł", ["#", "H", "żółć"])


PAGE = """<html><head><title>Ferries</title></head><body>
<header><a href="/">Harbour site</a><h1>Timetable</h1></header><nav><ul><li><a href="/b">Buses</a></li></ul></nav>
<main><article><header><h2>Winter</h2></header><p>The Aurora leaves Kest at noon.</p>
<table><caption>Ships of 2024</caption><tr><th>Ship</th><th>Port</th></tr><tr><td>Brill</td><td>Tarn</td></tr></table>
<p>On Sundays she stays.</p><aside>Mind the tide.</aside><footer>By Ana Ruiz.</footer></article></main>
<aside><h3>Related</h3><p>Trams</p></aside><footer>Imprint. Cookies.</footer></body></html>"""


def test_the_furniture_of_a_page_is_not_read_and_a_table_keeps_its_place_and_its_header():
    record = _only("a.html", PAGE)
    blocks = read_structure(record.text).blocks
    assert [(block.kind, block.text) for block in blocks] == [
        ("title", "Timetable"), ("title", "Winter"), ("paragraph", "The Aurora leaves Kest at noon."),
        ("paragraph", "Ships of 2024"), ("table", "Ship: Brill; Port: Tarn."), ("paragraph", "On Sundays she stays."),
        ("paragraph", "Mind the tide."), ("paragraph", "By Ana Ruiz."),
    ]  # fmt: skip
    assert record.title == "Ferries" and blocks[4].headings == ((1, "Timetable"), (2, "Winter"))
    units = split_documents(build_documents([record]), TextUnitsSettings(size=20, overlap=0)).to_pylist()
    assert len(units) > 1 and all(record.text[unit["start"] : unit["end"]] == unit["text"] for unit in units)


def test_a_page_that_is_furniture_alone_is_read():
    assert _only("a.html", "<body><header><p>Only this.</p></header></body>").text == "Only this."
    assert _only("a.html", "<header><h1>A</h1></header><h1>B</h1><p>C</p>").text.split() == ["#", "B", "C"]


@pytest.mark.parametrize("is_docx", [True, False])
def test_the_text_is_that_of_the_whole_markitdown(is_docx):
    markitdown = pytest.importorskip("markitdown")
    data = docx("".join(map(paragraph, ("Marley was dead.  ", " ", "", "\u00a0", "Scrooge knew it. "))))
    if not is_docx:
        data = b"<h1>Stave 1</h1><pre>a  \n\n\n\n b </pre><ul><li>x<ul><li>z</ul></ul><table><tr><td>1<td></table>"
    name = "a.docx" if is_docx else "a.html"
    whole = markitdown.MarkItDown().convert_stream(io.BytesIO(data), file_extension=name[1:]).markdown
    assert _only(name, data).text == whole


@needs_extra
def test_a_docx_is_read():
    record = _only("a.docx", docx(paragraph("Marley was dead.")))
    assert (record.title, record.text.strip(), record.format) == ("a", "Marley was dead.", "docx")


@needs_extra
@pytest.mark.parametrize(
    ("first", "texts"),
    [
        (["name", "since"], ["name: Scrooge; since: 1843-12-19; sheet: Sheet.", "name: Fan; since: 0; sheet: Sheet.",
                             "x: 1; sheet: more."]),
        (["name", None], ["## Sheet"]),
        (["name", "name"], ["## Sheet"]),
    ],
)  # fmt: skip
def test_an_xlsx_of_tables_is_read_by_row_and_another_as_one_document(first: list[str | None], texts: list[str]):
    openpyxl = pytest.importorskip("openpyxl")
    book, buffer = openpyxl.Workbook(), io.BytesIO()
    for row in (first, ["Scrooge", datetime(1843, 12, 19)], [None, None], ["Fan", 0]):
        book.active.append(row)
    more = book.create_sheet("more")
    more.append(["id", "x"])
    more.append([7, 1])
    book.create_sheet("empty")
    book.save(buffer)
    records = read_records("a.xlsx", buffer.getvalue(), InputSettings())
    assert [record.text[: len(text)] for record, text in zip(records, texts, strict=True)] == texts


@needs_extra
def test_a_pptx_is_read_and_titled_by_its_first_slide():
    pptx = pytest.importorskip("pptx")
    deck, buffer = pptx.Presentation(), io.BytesIO()
    deck.slides.add_slide(deck.slide_layouts[0]).shapes.title.text = "A deck"
    deck.save(buffer)
    assert _only("x.pptx", buffer.getvalue()).title == "A deck"


@needs_extra
def test_a_pdf_is_read():
    assert _only("a.pdf", _pdf("Marley was dead.")).text.strip() == "Marley was dead."


@needs_extra
@pytest.mark.parametrize("markdown_blocks", [True, False])
def test_a_text_unit_of_a_pdf_knows_its_pages(markdown_blocks):
    words = " ".join(f"word{number}" for number in range(9))
    read = _only("a.pdf", _pdf(*(f"Page {number} says {words}." for number in (1, 2, 3))))
    settings = TextUnitsSettings(size=40, overlap=0, markdown_blocks=markdown_blocks)
    units = split_documents(pa.table({"id": ["d"], "text": [read.text]}), settings).to_pylist()
    for unit in units:
        numbers = [int(number) for number in re.findall(r"Page (\d)", unit["text"])]
        assert (unit["first_page"], unit["last_page"]) == (min(numbers), max(numbers)), unit["text"]
    assert {unit["first_page"] for unit in units} == {1, 2, 3}


def test_a_pdf_with_a_password_is_a_problem():
    assert _only("a.pdf", _pdf("x", with_password=True)).problem == "has a password; save a copy without one"


@needs_extra
def test_a_page_without_text_is_a_problem():
    assert _only("a.pdf", _pdf("")).problem.startswith("empty: no text in it (a scanned page needs OCR")


@needs_extra
@pytest.mark.parametrize(
    ("path", "data", "problem"),
    [
        ("a.pdf", b"not a pdf", "damaged or not a pdf file"),
        ("a.docx", b"PK\x03\x04junk", "damaged or not a docx file"),
        ("a.xlsx", b"junk", "damaged or not a xlsx file"),
        ("a.pptx", b"junk", "damaged or not a pptx file"),
        ("a.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "has a password or is an old Office file"),
    ],
)
def test_a_damaged_file_is_a_problem(path, data, problem):
    assert _only(path, data).problem.startswith(problem)


def _pdf(*texts: str, with_password: bool = False) -> bytes:
    """Return a PDF with one line of text on each page."""
    first, pages = 4, [f"BT /F1 24 Tf 72 700 Td ({text}) Tj ET" for text in texts]
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Kids[{kids}]/Count {len(pages)}>>",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, page in enumerate(pages):
        content = f"/Contents {first + 2 * number + 1} 0 R/Resources<</Font<</F1 3 0 R>>>>"
        objects.append(f"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]{content}>>")
        objects.append(f"<</Length {len(page)}>>stream\n{page}\nendstream")
    file, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(file))
        file += f"{number} 0 obj\n{content}\nendobj\n"
    start = len(file)
    file += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n"
    file += "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    keys = f"/ID[<00><00>]/Encrypt<</Filter/Standard/V 1/R 2/Length 40/P -4/O({'a' * 32})/U({'b' * 32})>>"
    file += f"trailer<</Size {len(objects) + 1}/Root 1 0 R{keys if with_password else ''}>>\nstartxref\n{start}\n%%EOF"
    return file.encode()


def test_a_guessed_encoding_is_noted_and_a_certain_one_is_not():
    text = "Le caf\u00e9 \u00e9tait ferm\u00e9, et l'\u00e9l\u00e8ve s'en alla t\u00f4t vers la for\u00eat."
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        [record] = read_records("a.txt", text.encode(encoding), InputSettings())
        assert (record.text, record.note) == (text, None)
    [record] = read_records("a.txt", text.encode("cp1252"), InputSettings())
    assert record.problem is None and "encoding guessed as" in record.note and "UTF-8" in record.note


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("iso2022_jp", "田中さんは東京の会社で働いています。"),
        ("iso2022_kr", "김민수는 서울의 회사에서 일한다."),
        ("hz", "张伟在北京的公司工作。"),
        ("euc_jp", "田中さんは東京の会社で働いています。"),
        ("cp932", "佐藤さんは彼の上司です。"),
    ],
)
def test_a_sentence_in_an_encoding_of_east_asia_is_read_and_noted(encoding, text):
    [record] = read_records("a.txt", text.encode(encoding), InputSettings())
    assert record.text == text and "encoding guessed as" in record.note


RUSSIAN = (
    "Паром вышел из Кеста в полдень. Капитан Инес подписала договор с портом в марте. Город принял судно через день."
)
MAIL = "From: a@b.c\nSubject: Port\n{}\n{}"


@pytest.mark.parametrize(
    ("path", "content"), [("a.txt", "{}"), ("a.csv", "text\n{}\n"), ("a.html", "<p>{}</p>"), ("a.html", "<meta "
     "charset=utf-8><p>{}</p>"), ("a.eml", MAIL.format("", "{}"))])  # fmt: skip
@pytest.mark.parametrize("encoding", ["koi8-r", "cp1251"])
def test_a_guessed_encoding_is_said_in_every_format_and_can_be_set(path, content, encoding):
    record = _only(path, content.format(RUSSIAN).encode(encoding))
    assert RUSSIAN in record.text
    assert f"guessed as {codecs.lookup(encoding).name.replace('-', '_')}; " in record.note
    assert "set `input.encoding`" in record.note
    short = content.format("Паром вышел.").encode(encoding)  # too short to be guessed for certain
    record = _only(path, short, InputSettings(encoding=encoding))
    assert "Паром вышел." in record.text and record.note is None


@pytest.mark.parametrize(("path", "content"), [("a.html", "<meta charset='koi8-r'><p>{}</p>"),
                         ("a.eml", MAIL.format("Content-Type: text/plain; charset=koi8-r\n", "{}"))])  # fmt: skip
def test_a_declared_encoding_is_neither_guessed_nor_replaced(path, content):
    record = _only(path, content.format(RUSSIAN).encode("koi8-r"), InputSettings(encoding="cp1251"))
    assert RUSSIAN in record.text and record.note is None


def test_damaged_bytes_of_utf_8_are_said():
    record = _only("a.txt", RUSSIAN.encode() + b"\xff\xfe")
    assert record.text.count("\ufffd") == 2 and "not UTF-8 and are read as \ufffd: 2; " in record.note
    assert _only("a.txt", RUSSIAN + "\ufffd").note is None, "the file itself has this character"


def test_an_unknown_encoding_is_refused():
    with pytest.raises(ValueError, match="not an encoding that Python knows"):
        InputSettings(encoding="koi9")


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "SEP=|\n", "sep=\t\n"])
def test_the_line_of_excel_that_names_the_separator_is_no_header(first):
    sign = first.strip('"\r\n').partition("=")[2]
    records = _read(
        "a.csv", first + sign.join(["id", "title", "text"]) + "\n" + sign.join(["7", "A, b", "One."]) + "\nx\n"
    )
    assert (records[0].title, records[0].text) == ("A, b", "One.") and "row 2 (line 4)" in records[1].problem


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# One\n\ntext\n\n# Two", "One"),
        ("\n\n## Begins with a part\n\n# Later", "Begins with a part"),
        ("A badge.\n\n## Installing\n\ntext", ""),
        ("A badge.\n\n## Installing\n\n# The Name", "The Name"),
        ("The Name\n========\n\n## Installing", "The Name"),
        ("========\nThe Name\n========\n", "The Name"),
        ("Text above.\n\n---\n\n## Part", ""),
        ('<h1 align="center">\n  <img src="x.png"> The <b>Name</b> &amp; Co\n</h1>\n\n## Installing', "The Name & Co"),
        ('<h1 align="center">\n\n![logo](a/b.svg)\n\n</h1>\n\ntext\n\n# The Name', "The Name"),
        ("---\nauthor: A\ntitle: 'The Name'\n---\n\n# Another", "The Name"),
        ("---\ntitle: >\n  folded\n---\n\n# The Name", "folded"),
        ("---\nno end of it\n\n# The Name", "The Name"),
        ("```bash\n# install\npip install x\n```\n\n## Part", ""),
        ("~~~~\n# install\n~~~~\n\n# The Name", "The Name"),
        ("```\n# never closed", ""),
        ("<!-- # hidden -->\n## Begins with a part", "Begins with a part"),
        ("# [The *Name*](https://a.example/b_c): `fast` and **small** #", "The Name: fast and small"),
        ("# About C#", "About C#"),
        ("# ![logo](x.png)\n\n# The Name", "The Name"),
        ("#hash\n\ntext # no heading", ""),
        ("", ""),
        ("Use `<!--` to open.\n\n# The Name", "The Name"),
        ("```not a fence``` text\n\n# The Name", "The Name"),
        ("Use `<h1>x</h1>` for it.\n\n# The Name", "The Name"),
        ('<div align="center"><h1>The Name</h1></div>', "The Name"),
        ("<<<<<<< HEAD\n# One\n=======\n# Two", "One"),
        ("# [The Name](https://a.example/The_(name)) is here", "The Name is here"),
        ("---\ntitle: null\n---\n# The Name", "The Name"),
        ("---\ntitle: C# guide # a comment\n---", "C# guide"),
        ("---\ntitle: 'Ida''s bridge'\n---", "Ida's bridge"),
        ('---\ntitle: "The \\"old\\" bridge"\n---', 'The "old" bridge'),
        ("# a" + " " * 20_000 + "b\n\n# The Name", "The Name"),
    ],
)
def test_the_title_is_that_of_the_whole_text(text: str, title: str) -> None:
    assert _title(text) == title


@pytest.mark.parametrize("piece", ["<h1>a", "# [", "![", "`a ", "*a ", "<!--", "<!--\n", "| a" + " " * 99 + "|\n"])
def test_a_hostile_text_of_many_characters_is_read(piece: str) -> None:
    assert isinstance(_title("# " + piece * repetitions(8_000, thorough=20_000)), str)


@given(st.text("#=-`~<h1>/![]()*& \nab", max_size=60))
def test_a_title_is_one_line_without_blanks_around(text: str) -> None:
    title = _title(text)
    assert title == " ".join(title.split())


def test_what_a_file_hides_is_noted_and_an_empty_cell_is_empty():
    pytest.importorskip("markitdown")
    openpyxl = pytest.importorskip("openpyxl")
    html = b"<p>Seen.</p><p hidden>Hidden one.</p><div style='color:red; display: none'>Two.</div>"
    [record] = read_records("a.html", html, InputSettings())
    assert "3 words that a browser hides" in (record.note or "")
    assert read_records("a.html", b"<p>Seen.</p>", InputSettings())[0].note is None
    book = openpyxl.Workbook()
    book.active.append(["Notes", None])
    book.active.append([None, "Lund met Maas"])
    book.active.append(["Maas", None])
    hidden = book.create_sheet("Costs & more")
    hidden.append(["Only a note"])
    hidden.sheet_state = "hidden"
    content = io.BytesIO()
    book.save(content)
    [record] = read_records("a.xlsx", content.getvalue(), InputSettings())
    assert "hidden sheets are read, too: Costs & more" in (record.note or "")
    assert "NaN" not in record.text and "Unnamed" not in record.text and "Lund met Maas" in record.text
