"""Access rules: the principal behind a request, by `access.yaml` as it is now.

An edit of the file counts from the next request on. While the file cannot be used, no request has a principal. Keep
out: the form of the file (`access_file.py`), and HTTP but for the header's text.
"""

from __future__ import annotations

import hmac
import json
import logging
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jwt

from graphrag_pipeline.access.access_file import (
    PREFIX,
    AccessFile,
    PrincipalEntry,
    TokenRules,
    hash_key,
    load_access_file,
)
from graphrag_pipeline.errors import PipelineError

ANONYMOUS = "anonymous"


class NotAuthenticatedError(PipelineError):
    """The request has no valid key or token; the message never says which part of it was wrong."""


class NotPermittedError(PipelineError):
    """The principal may not read a root; it is answered like a root that does not exist."""


@dataclass(frozen=True)
class Principal:
    """A principal.

    Attributes:
        name: as in access.yaml.
        roots: served root -> filters that his documents pass; no filters: the whole root. None: all of every root.
        subject: the claim `sub` of his token; "" with a key.
        may_give_feedback: whether he may rate and correct answers.
    """

    name: str
    roots: Mapping[str, tuple[str, ...]] | None
    subject: str = ""
    may_give_feedback: bool = False

    def filters_of(self, root: str) -> tuple[str, ...]:
        """Return the filters that choose his view of a root; none if he reads all of it.

        Raises:
            NotPermittedError: he may not read this root.
        """
        if self.roots is None:
            return ()
        if root not in self.roots:
            raise NotPermittedError(f"`{self.name}` may not read root `{root}`; `access.yaml` lists the roots")
        return self.roots[root]


READER_OF_ALL = Principal("local", None, may_give_feedback=True)
"""Who asks a server on loopback without access rules."""
NOBODY = Principal("", {})
"""Who asks without a key, for a path that needs none."""

_log = logging.getLogger(__name__)
_REQUIRED = ("exp", "iss", "aud")
_MIN_FETCH_S = 60.0
"""Seconds between two reads of the keys: a token with an unknown key must not make the server fetch at will."""
_MAX_AGE_S = 3600.0
"""Seconds after which the keys are read again."""
_LAST_AGE_S = 24 * 3600.0
"""Seconds for which known keys count if they cannot be read again, so that an issuer that is down locks no one out."""
_TIMEOUT_S = 10.0


class SigningKeys:
    """The public keys of an issuer, from a file or URL; read again for an unknown key, and each hour.

    They are read at most once a minute, whether that fails or not. While they cannot be read, known keys count for a
    day. A token with a known key never waits while the keys are read for another one. The cache of `PyJWKClient` does
    none of the three, so it only fetches here.

    Args:
        place: path or URL of a JWKS.
        folder: that a relative path starts from.
        clock: returns seconds that never fall.
    """

    def __init__(self, place: str, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._place = place
        self._path = folder / place
        self._client = jwt.PyJWKClient(place, cache_jwk_set=False, timeout=_TIMEOUT_S) if "://" in place else None
        self._clock = clock
        self._lock = threading.Lock()
        self._keys: dict[str, jwt.PyJWK] = {}
        self._read_at = self._tried_at = -math.inf
        self._problem = ""

    def find(self, key_id: str) -> jwt.PyJWK:
        """Return a key by its id; the only key if the token names none.

        Raises:
            NotAuthenticatedError: there is no such key.
            PipelineError: the keys cannot be read.
        """
        known = self._pick(key_id)
        if known is not None and self._clock() - self._read_at < _MAX_AGE_S:
            return known
        with self._lock:
            is_old = self._clock() - self._read_at >= _MAX_AGE_S
            if (is_old or self._pick(key_id) is None) and self._clock() - self._tried_at >= _MIN_FETCH_S:
                try:
                    self._keys, self._problem = self._read(), ""
                    self._read_at = self._clock()
                except PipelineError as error:
                    self._problem = str(error)
                    _log.warning("%s", error)
                self._tried_at = self._clock()  # after the read, which may take long
            is_usable = self._clock() - self._read_at < _LAST_AGE_S
            found, problem = self._pick(key_id) if is_usable else None, self._problem
        if found is None and problem:
            raise PipelineError(problem)
        if found is None:
            raise NotAuthenticatedError("the token was signed by a key that the issuer does not list")
        return found

    def _pick(self, key_id: str) -> jwt.PyJWK | None:
        if not key_id and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    def _read(self) -> dict[str, jwt.PyJWK]:
        try:
            if self._client:
                keys = self._client.get_jwk_set().keys
            else:
                keys = jwt.PyJWKSet.from_dict(json.loads(self._path.read_bytes())).keys
        except (OSError, ValueError, TypeError, AttributeError, jwt.PyJWTError) as error:
            raise PipelineError(f"the keys of tokens (jwt.keys) at {self._place} cannot be read: {error}") from None
        return {key.key_id or "": key for key in keys if key.public_key_use in (None, "sig")}


def read_claims(token: str, rules: TokenRules, keys: SigningKeys) -> dict[str, Any]:
    """Return the claims of a valid token.

    Raises:
        NotAuthenticatedError: it is not signed by a listed key, has another issuer or audience, or is out of time.
        PipelineError: the keys cannot be read.
    """
    try:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in rules.algorithms:
            raise NotAuthenticatedError("the token is signed in a way that is not accepted")
        key = keys.find(str(header.get("kid") or ""))
        if key.algorithm_name != algorithm:
            raise NotAuthenticatedError("the key of the token is for another signature")
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[str(algorithm)],
            audience=rules.audience,
            issuer=rules.issuer,
            leeway=rules.leeway_s,
            options={"require": list(_REQUIRED)},
        )
        return claims
    except (jwt.PyJWTError, ValueError, TypeError) as error:
        raise NotAuthenticatedError(f"the token is not valid ({type(error).__name__})") from None


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
            presented, found = hash_key(credential), None
            for key, name, entry in self._keys:  # all of them, so that the time tells nothing
                if hmac.compare_digest(presented, key.sha256) and (key.expires is None or self._now() < key.expires):
                    found = Principal(name, entry.filters, may_give_feedback=entry.feedback)
            if found is None:
                raise NotAuthenticatedError("the key is unknown or expired")
            return found
        return self._by_token(credential)

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
        return Principal(name, entry.filters, str(claims.get("sub") or ""), entry.feedback)

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
