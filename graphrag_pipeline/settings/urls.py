"""URLs of stores and input folders in messages: without user, password and query string, which may hold secrets.

Where it is not clear which part is secret, more is hidden than needed. Keep out: opening a URL.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

_IN_TEXT = re.compile(r"([A-Za-z][\w+.-]*)://(\S+)")
_WHOLE = re.compile(r"([A-Za-z][\w+.-]*)://(.+)", re.DOTALL)
_PASSWORD = re.compile(r"(?<=://)[^/@:\[]*:(?!\d*/)[^@]*@")
_OF_FOLDERS = ("file", "local", "memory")
"""Protocols whose URLs hold a path alone."""
_OF_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")
"""Protocols that have the name of a container before `@`."""


def has_password(url: str) -> bool:
    """Return whether a URL holds a password, which may have a `/`; a port does not count as one."""
    return _PASSWORD.search(url) is not None


def mask_url(url: str) -> str:
    """Return a URL for a message, such as `sftp://***@host/x` and `https://host/x?***`; other text stays."""
    return _WHOLE.sub(_mask, url)


def mask_urls(text: str, known: str = "") -> str:
    """Return a text with all URLs in it as of `mask_url`; a URL ends at a blank.

    Args:
        known: a URL that may be in the text and may have blanks.
    """
    return _IN_TEXT.sub(_mask, text.replace(known, mask_url(known)) if known else text)


def _mask(url: re.Match[str]) -> str:
    protocol, address = url.groups()
    if protocol in _OF_FOLDERS:
        return url[0]
    user, at, rest = address.rpartition("@")
    is_user = at and (":" in user or not ("/" in user or protocol in _OF_CONTAINERS))
    if is_user and "?" in user:  # a password with `?`, or a query with `@`
        return f"{protocol}://***"
    place, query, _ = (rest if is_user else address).partition("?")
    return f"{protocol}://{'***@' if is_user else ''}{place}{'?***' if query else ''}"


def holds_secret(text: str, url: str) -> bool:
    """Return whether a text shows a secret of a URL, or a user, password or query string of any URL."""
    return mask_urls(text, url) != text or any(secret in text for secret in secrets_of(url))


def secrets_of(url: str) -> set[str]:
    """Return the parts of a URL that may be secret: password, query string and its values, also decoded."""
    address = url.partition("://")[2]
    user, at, rest = address.rpartition("@")
    place, _, query = (rest if at else address).partition("?")
    parts = {user.partition(":")[2], query, *(pair.partition("=")[2] for pair in query.split("&"))}
    if "?" in user:  # a password with `?`, or a query with `@`
        parts |= {user, place}
    return {part for found in parts for part in (found, unquote(found)) if part}
