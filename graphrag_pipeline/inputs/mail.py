"""A mail as text: its subject, its headers as labels, its body. Keep out: folders of mails, attachments' contents."""

from __future__ import annotations

from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime
from typing import cast

from graphrag_pipeline.inputs.formats import DamagedInput, UnreadableInput, normalize_text

_HEADERS = ("From", "To", "Cc", "Subject")


def read_mail(data: bytes) -> tuple[str, str, str]:
    """Return subject, text and media type of a mail's body; the text of an HTML body is HTML.

    The headers stand above the body as labels, so that they become metadata, and the date is that of the document.

    Raises:
        UnreadableInput: the mail has no body of text.
        DamagedInput: it has no headers of a mail.
    """
    message = message_from_bytes(data, policy=policy.default)
    if not any(message[name] for name in _HEADERS):
        raise DamagedInput("not a mail: it has no From, To or Subject; save it again as .eml")
    body = message.get_body(preferencelist=("plain", "html"))
    text = normalize_text(cast(EmailMessage, body).get_content()).strip() if body else ""
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


def _date_of(message: EmailMessage) -> str:
    """Return the day of a mail, ISO 8601; "" if it says none that can be read."""
    try:
        return parsedate_to_datetime(str(message["Date"])).date().isoformat()
    except (TypeError, ValueError):
        return ""
