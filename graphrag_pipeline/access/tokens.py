"""JSON Web Tokens: their signature, issuer, audience and times, and the keys that signed them.

Only signatures of `TokenRules.algorithms` count, whatever the token says of itself. Keep out: whose token it is
(`rules.py`).
"""

from __future__ import annotations

import json
import logging
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt

from graphrag_pipeline.access.access_file import TokenRules
from graphrag_pipeline.access.principals import NotAuthenticatedError
from graphrag_pipeline.errors import PipelineError

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
                self._refresh()
            is_usable = self._clock() - self._read_at < _LAST_AGE_S
            found, problem = self._pick(key_id) if is_usable else None, self._problem
        if found is None and problem:
            raise PipelineError(problem)
        if found is None:
            raise NotAuthenticatedError("the token was signed by a key that the issuer does not list")
        return found

    def _refresh(self) -> None:
        """Read the keys; if that fails, keep those that are known, and the reason."""
        try:
            self._keys, self._problem = self._read(), ""
            self._read_at = self._clock()
        except PipelineError as error:
            self._problem = str(error)
            _log.warning("%s", error)
        self._tried_at = self._clock()  # after the read, which may take long

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
