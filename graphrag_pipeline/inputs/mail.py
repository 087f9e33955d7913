"""A mail as text: its subject, its headers as labels, its body. Keep out: folders of mails, attachments' contents."""

from __future__ import annotations

from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from typing import cast

from graphrag_pipeline.inputs.formats import DamagedInput, UnreadableInput, decode_text, normalize_text

_HEADERS = ("From", "To", "Cc", "Subject")


def read_mail(data: bytes, encoding: str = "") -> tuple[str, str, str]:
    """Return subject, text and media type of a mail's body; the text of an HTML body is HTML.

    A body that does not say its encoding is in `encoding`, if it is not Unicode; "" guesses it. The headers stand above
    the body as labels, so that they become metadata, and the date is that of the document.

    Raises:
        UnreadableInput: the mail has no body of text.
        DamagedInput: it has no headers of a mail.
    """
    message, body = _parse(data)
    if not any(message[name] for name in _HEADERS):
        raise DamagedInput("not a mail: it has no From, To or Subject; save it again as .eml")
    if undeclared := _undeclared_content(body):
        text = decode_text(undeclared, encoding).strip()
    else:
        text = normalize_text(body.get_content()).strip() if body else ""
    if body is None or not text:
        raise UnreadableInput("empty: no text in the mail")
    labels = [f"{name}: {' '.join(str(message[name]).split())}" for name in _HEADERS if message[name]]
    if date := _date_of(message):
        labels.append(f"Date: {date}")
    n_attached = sum(1 for _ in message.iter_attachments())
    if n_attached:
        labels.append(f"Attachments: {n_attached}, not read")
    subject = " ".join(str(message["Subject"] or "").split())
    return subject, "\n".join(labels) + "\n\n" + text + "\n", body.get_content_type()


def find_undeclared_body(data: bytes) -> bytes:
    """Return the bytes of a body above ASCII that does not say its encoding; empty for another one."""
    return _undeclared_content(_parse(data)[1])


def _undeclared_content(body: EmailMessage | None) -> bytes:
    content = body.get_payload(decode=True) if body and not body.get_content_charset() else b""
    return content if isinstance(content, bytes) and not content.isascii() else b""


def _parse(data: bytes) -> tuple[EmailMessage, EmailMessage | None]:
    message = message_from_bytes(data, policy=policy.default)
    return message, cast(EmailMessage | None, message.get_body(preferencelist=("plain", "html")))


def _date_of(message: EmailMessage) -> str:
    """Return the day of a mail, ISO 8601; "" if it says none that can be read."""
    try:
        return parsedate_to_datetime(str(message["Date"])).date().isoformat()
    except (TypeError, ValueError):
        return ""
