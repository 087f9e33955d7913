"""Mails: headers are labels, the body is text, attachments are counted."""

from __future__ import annotations

import json
from email.message import EmailMessage

import pytest

from graphrag_pipeline.inputs.documents import read_records
from graphrag_pipeline.inputs.source_records import SourceRecord
from graphrag_pipeline.settings.input import InputSettings


def mail(text: str = "", html: str = "", is_attached: bool = False) -> bytes:
    message = EmailMessage()
    message["From"], message["To"] = "Siobhán Kerrigan <siobhan@pellworth.example>", "all@pellworth.example"
    message["Subject"], message["Date"] = "Easter freeze", "Fri, 04 Apr 2025 16:02:00 +0200"
    if text:
        message.set_content(text)
    if html:
        (message.add_alternative if text else message.set_content)(html, subtype="html")
    if is_attached:
        message.add_attachment(b"\0\1", maintype="application", subtype="octet-stream", filename="a.bin")
    return message.as_bytes()


def read(data: bytes) -> SourceRecord:
    [record] = read_records("mail/freeze.eml", data, InputSettings())
    return record


def test_headers_of_a_mail_are_its_title_date_and_metadata() -> None:
    record = read(mail("Hello all,\n\nno releases.\n", is_attached=True))
    assert (record.title, record.creation_date, record.problem) == ("Easter freeze", "2025-04-04", None)
    assert record.text.endswith("\n\nHello all,\n\nno releases.\n")
    values = json.loads(record.metadata)
    assert values["from"].startswith("Siobhán Kerrigan") and values["attachments"] == "1, not read"


@pytest.mark.parametrize("text", ["", "Plain."])
def test_html_is_read_where_there_is_no_plain_text(text: str) -> None:
    record = read(mail(text, "<p>No <b>releases</b></p>"))
    assert record.text.endswith("Plain.\n") if text else "No **releases**" in record.text


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"nothing of a mail", "not a mail"), (mail(), "no text"), (mail("x").replace(b"Fri, 04 Apr", b"someday"), "")],
)
def test_what_is_no_mail_is_a_problem(data: bytes, problem: str) -> None:
    found = read(data)
    assert problem in (found.problem or "") and bool(found.problem) == bool(problem)
