"""Keys of principals: 32 random bytes, of which only the SHA-256 is stored.

A random key cannot be guessed from its hash, so a slow hash would add nothing. Keep out: files.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime
from typing import NamedTuple

PREFIX = "graphrag"
_ID_BYTES = 4
_SECRET_BYTES = 32


class NewKey(NamedTuple):
    """A key that was just made: `text` is shown once, `id` and `sha256` are stored."""

    id: str
    text: str
    sha256: str


def make_key() -> NewKey:
    """Return a new key, such as `graphrag_1f0c55d2_...`; its id is a part of the text."""
    key_id = secrets.token_hex(_ID_BYTES)
    text = f"{PREFIX}_{key_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    return NewKey(key_id, text, hash_key(text))


def hash_key(text: str) -> str:
    """Return the SHA-256 of a key in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def is_equal(presented: str, stored: str) -> bool:
    """Compare two hashes in constant time."""
    return hmac.compare_digest(presented, stored)


def is_expired(expires: datetime | None, now: datetime) -> bool:
    """Return whether a key has expired; None never does."""
    return expires is not None and now >= expires
