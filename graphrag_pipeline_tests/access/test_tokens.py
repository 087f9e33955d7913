"""Keys of tokens from a URL: rotation, an issuer that is down, and what one token can make the server fetch."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from graphrag_pipeline.access.access_file import TokenRules
from graphrag_pipeline.access.principals import NotAuthenticatedError
from graphrag_pipeline.access.tokens import SigningKeys, read_claims
from graphrag_pipeline.errors import PipelineError

FIRST, SECOND = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
CLAIMS = {"iss": "https://idp.example", "aud": "graphrag", "exp": 2**33, "sub": "ada"}
HOUR = 3600.0


class Issuer(ThreadingHTTPServer):
    """A server of keys.

    Attributes:
        keys: listed now, by id.
        status: of its answers; 200 unless it is broken.
        may_answer: answers wait for it.
        is_asked: set by a request that waits.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.keys = {"first": FIRST}
        self.status, self.n_asked = 200, 0
        self.may_answer, self.is_asked = threading.Event(), threading.Event()
        self.may_answer.set()


class _Answer(BaseHTTPRequestHandler):
    server: Issuer

    def do_GET(self) -> None:
        self.server.n_asked += 1
        if not self.server.may_answer.is_set():
            self.server.is_asked.set()
            self.server.may_answer.wait(10)
        listed = [
            {**json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())), "kid": name, "use": "sig"}
            for name, key in self.server.keys.items()
        ]
        content = json.dumps({"keys": listed}).encode()
        self.send_response(self.server.status)
        self.send_header("content-length", str(len(content)))
        self.send_header("location", "/elsewhere")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


class Reader:
    """Reads tokens with the keys of an issuer, at a time that the test sets."""

    def __init__(self, issuer: Issuer) -> None:
        self.now = 1_000.0
        place = f"http://127.0.0.1:{issuer.server_address[1]}/jwks"
        self._rules = TokenRules(issuer="https://idp.example", audience="graphrag", keys="https://idp.example/jwks")
        self._keys = SigningKeys(place, Path(), lambda: self.now)

    def read(self, name: str = "first", key: ec.EllipticCurvePrivateKey = FIRST) -> str:
        token = jwt.encode(CLAIMS, key, algorithm="ES256", headers={"kid": name})
        return str(read_claims(token, self._rules, self._keys)["sub"])


def test_keys_are_fetched_once_for_many_tokens(issuer):
    reader = Reader(issuer)
    assert [reader.read() for _ in range(3)] == ["ada"] * 3
    assert issuer.n_asked == 1


def test_a_token_with_a_known_key_does_not_wait_for_a_slow_issuer(issuer):
    reader = Reader(issuer)
    reader.read()
    issuer.may_answer.clear()
    reader.now += 61
    issuer.keys = {"first": FIRST, "second": SECOND}
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(reader.read, "second", SECOND)
        assert issuer.is_asked.wait(10) and reader.read() == "ada" and not waiting.done()
        issuer.may_answer.set()
        assert waiting.result() == "ada"


def test_a_new_key_counts_within_a_minute_and_a_removed_one_within_an_hour(issuer):
    reader = Reader(issuer)
    reader.read()
    issuer.keys = {"second": SECOND}
    with pytest.raises(NotAuthenticatedError, match="does not list"):
        reader.read("second", SECOND)
    assert issuer.n_asked == 1 and reader.read() == "ada"
    reader.now += 61
    assert reader.read("second", SECOND) == "ada" and issuer.n_asked == 2
    with pytest.raises(NotAuthenticatedError, match="does not list"):
        reader.read()


def test_a_removed_key_is_refused_after_an_hour(issuer):
    reader = Reader(issuer)
    reader.read()
    issuer.keys = {"second": SECOND}
    reader.now += HOUR - 1
    assert reader.read() == "ada"
    reader.now += 1
    with pytest.raises(NotAuthenticatedError, match="does not list"):
        reader.read()


@pytest.mark.parametrize("status", [302, 404, 500])
def test_an_issuer_that_is_down_from_the_start_is_asked_once_a_minute_and_no_token_counts(issuer, status):
    issuer.status = status
    reader = Reader(issuer)
    for name in ("first", "second", "third"):
        with pytest.raises(PipelineError, match=f"cannot be read.*{status}"):
            reader.read(name)
    assert issuer.n_asked == 1
    issuer.status = 200
    reader.now += 61
    assert reader.read() == "ada"


def test_known_keys_count_for_a_day_while_the_issuer_is_down(issuer):
    reader = Reader(issuer)
    reader.read()
    issuer.status = 500
    for _ in range(23):
        reader.now += HOUR
        assert reader.read() == reader.read() == "ada"
    assert issuer.n_asked == 24
    reader.now += HOUR
    with pytest.raises(PipelineError, match="cannot be read"):
        reader.read()
    issuer.status = 200
    reader.now += 61
    assert reader.read() == "ada"
