"""Access rules: the principal behind a request, by `access.yaml` as it is now.

An edit of the file counts from the next request on. While the file cannot be used, no request has a principal. Keep
out: the form of the file (`access_file.py`), and HTTP but for the header's text.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from graphrag_pipeline.access.access_file import AccessFile, PrincipalEntry, TokenRules, load_access_file
from graphrag_pipeline.access.keys import PREFIX, hash_key, is_equal, is_expired
from graphrag_pipeline.access.principals import ANONYMOUS, NotAuthenticatedError, Principal
from graphrag_pipeline.access.tokens import SigningKeys, read_claims
from graphrag_pipeline.errors import PipelineError

_log = logging.getLogger(__name__)
_SCHEME = "bearer"


class AccessRules:
    """The rules of one state of `access.yaml`.

    Args:
        access: the file's content.
        folder: that relative paths in it start from.
        now: for tests of expiry.
    """

    def __init__(
        self, access: AccessFile, folder: Path, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self.access = access
        self._now = now
        self._keys = [(key, name, entry) for name, entry in access.principals.items() for key in entry.keys]
        self._signing = SigningKeys(access.jwt.keys, folder) if access.jwt else None

    @classmethod
    def load(cls, path: Path) -> AccessRules:
        """Return the rules of a file.

        Raises:
            AccessError: the file cannot be used.
        """
        return cls(load_access_file(path), path.parent)

    def authenticate(self, authorization: str | None) -> Principal:
        """Return the principal of an `Authorization` header; a header that is not valid is never anonymous.

        Raises:
            NotAuthenticatedError: there is no valid key or token, or the keys of tokens cannot be read.
        """
        if authorization is None:
            if self.access.anonymous is None:
                raise NotAuthenticatedError("no key was given")
            return Principal(ANONYMOUS, self.access.anonymous.filters)
        scheme, _, credential = authorization.strip().partition(" ")
        if scheme.lower() != _SCHEME or not credential.strip():
            raise NotAuthenticatedError("the header Authorization is not `Bearer KEY`")
        credential = credential.strip()
        if credential.startswith(f"{PREFIX}_"):
            return self._by_key(credential)
        return self._by_token(credential)

    def _by_key(self, text: str) -> Principal:
        presented, found = hash_key(text), None
        for key, name, entry in self._keys:  # all of them, so that the time tells nothing
            if is_equal(presented, key.sha256) and not is_expired(key.expires, self._now()):
                found = Principal(name, entry.filters)
        if found is None:
            raise NotAuthenticatedError("the key is unknown or expired")
        return found

    def _by_token(self, token: str) -> Principal:
        rules = self.access.jwt
        if rules is None or self._signing is None:
            raise NotAuthenticatedError("the key is unknown or expired")
        claims = self._read_claims(token, rules, self._signing)
        matching = [(name, e) for name, e in self.access.principals.items() if e.claims and _matches(e, claims)]
        if len(matching) != 1:
            names = ", ".join(name for name, _ in matching) or "none"
            _log.warning("a token of %s has the claims of %s; it must match one principal", claims.get("sub"), names)
            raise NotAuthenticatedError("the token belongs to no principal")
        [(name, entry)] = matching
        return Principal(name, entry.filters, str(claims.get("sub") or ""))

    def _read_claims(self, token: str, rules: TokenRules, signing: SigningKeys) -> dict[str, Any]:
        try:
            return read_claims(token, rules, signing)
        except NotAuthenticatedError:
            raise
        except PipelineError as error:
            _log.error("%s", error)
            raise NotAuthenticatedError("tokens cannot be checked now") from None


def _matches(entry: PrincipalEntry, claims: dict[str, Any]) -> bool:
    return all(_holds(claims.get(name), wanted) for name, wanted in entry.claims.items())


def _holds(value: Any, wanted: str) -> bool:
    return wanted in [one for one in value if isinstance(one, str)] if isinstance(value, list) else value == wanted


class FollowedRules:
    """The rules of a file that may change while the server runs."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            AccessError: it cannot be used.
        """
        self.path = path
        self._lock = threading.Lock()
        self._state = _state_of(path)
        self._rules: AccessRules | None = AccessRules.load(path)

    def current(self) -> AccessRules:
        """Return the rules of the file as it is now.

        Raises:
            NotAuthenticatedError: it cannot be used; the log has the reason.
        """
        state = _state_of(self.path)
        with self._lock:
            if state != self._state:
                self._state = state
                self._rules = self._load()
            rules = self._rules if state else None
        if rules is None:
            raise NotAuthenticatedError("the access rules cannot be read now")
        return rules

    def _load(self) -> AccessRules | None:
        try:
            return AccessRules.load(self.path)
        except PipelineError as error:
            _log.error("no request is answered: %s", error)
            return None

    def authenticate(self, authorization: str | None) -> Principal:
        """Return the principal of an `Authorization` header, by the rules as they are now.

        Raises:
            NotAuthenticatedError: no valid key or token, or the rules cannot be read.
        """
        return self.current().authenticate(authorization)


def _state_of(path: Path) -> tuple[int, int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino
