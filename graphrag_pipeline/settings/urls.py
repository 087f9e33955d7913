"""URLs of stores and input folders in messages: without user, password, query string and fragment.

These may hold secrets. Where it is not clear which part is secret, more is hidden than needed. Keep out: opening a URL.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

_IN_TEXT = re.compile(r"([A-Za-z][\w+.-]*)://(\S+)")
_WHOLE = re.compile(r"([A-Za-z][\w+.-]*)://(.+)", re.DOTALL)
_PASSWORD = re.compile(r"(?<=://)[^/@:\[]*:(?!\d*/)[^@]*@")
_END = re.compile(r"\?")
_END_OF_WEB = re.compile(r"[?#]")
"""Where the path of a URL ends; in the names of stores of objects `#` is a letter like any other."""
_OF_WEB = ("http", "https", "webdav", "webdavs", "dav", "davs")
_OF_FOLDERS = ("file", "local", "memory")
"""Protocols whose URLs hold a path alone."""
_OF_CONTAINERS = ("abfs", "abfss", "wasb", "wasbs")
"""Protocols that have the name of a container before `@`."""
_MIN_SECRET = 4  # characters: a shorter part of the URL is also in harmless words


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
    end = _end_of(protocol)
    if is_user and end.search(user):  # a password with `?`, or a query with `@`
        return f"{protocol}://***"
    shown = rest if is_user else address
    if found := end.search(shown):
        shown = f"{shown[: found.end()]}***"
    return f"{protocol}://{'***@' if is_user else ''}{shown}"


def _end_of(protocol: str) -> re.Pattern[str]:
    return _END_OF_WEB if protocol.lower() in _OF_WEB else _END


def holds_secret(text: str, url: str) -> bool:
    """Return whether a text shows a secret of a URL, or a user, password, query string or fragment of any URL."""
    return mask_urls(text, url) != text or any(secret in text for secret in secrets_of(url))


def secrets_of(url: str) -> set[str]:
    """Return the parts of a URL that may be secret: password, query string and its values, fragment, also decoded."""
    protocol, _, address = url.partition("://")
    end = _end_of(protocol)
    user, at, rest = address.rpartition("@")
    place, *queries = end.split(rest if at else address)
    pairs = (pair.partition("=")[2] for query in queries for pair in query.split("&"))
    parts = {user.partition(":")[2], "?".join(queries), *queries, *pairs}
    if end.search(user):  # a password with `?`, or a query with `@`
        parts |= {user, place}
    return {part for found in parts for part in (found, unquote(found)) if part}


def hide_secrets(problem: str, secrets: Iterable[str]) -> str:
    """Return the message of a driver without parts of the URL that may be secret, such as the value of an option."""
    for secret in sorted((part for part in secrets if len(part) >= _MIN_SECRET), key=len, reverse=True):
        problem = problem.replace(secret, "***")
    return mask_urls(problem)
