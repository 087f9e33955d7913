"""Access rules: keys, tokens and anonymous requests lead to the right principal, and everything else to none."""

from __future__ import annotations

import json
import os
import stat
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from graphrag_pipeline.access.access_file import (
    AccessError,
    TokenRules,
    add_key,
    hash_key,
    load_access_file,
    make_key,
    remove,
)
from graphrag_pipeline.access.rules import (
    AccessRules,
    FollowedRules,
    NotAuthenticatedError,
    NotPermittedError,
    SigningKeys,
    read_claims,
)
from graphrag_pipeline.errors import PipelineError

OPEN = ("level=open",)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "access.yaml"


def test_a_key_leads_to_its_principal_and_is_stored_only_as_a_hash(path):
    key = add_key(path, "analyst", ["news"], OPEN)
    whole = add_key(path, "editor", ["news"], is_whole=True)
    second = add_key(path, "analyst", may_rate=True)
    rules = AccessRules.load(path)
    assert [rules.authenticate(f"Bearer {one}").may_give_feedback for one in (key, whole)] == [True, False]
    assert rules.authenticate(f"Bearer {key}").filters_of("news") == OPEN
    assert rules.authenticate(f"bearer  {second} ").name == "analyst"
    assert rules.authenticate(f"Bearer {whole}").filters_of("news") == ()
    with pytest.raises(NotPermittedError):
        rules.authenticate(f"Bearer {key}").filters_of("other")
    text = path.read_text()
    assert all(one not in text and one.split("_", 2)[2] not in text for one in (key, whole, second))
    assert len(key.split("_", 2)[2]) == 43  # 32 bytes
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert [entry.name for entry in path.parent.iterdir() if entry.name.startswith(".tmp")] == []


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Basic YTpi", "Bearer x", "Bearer a.b.c", "\udc80 x"]
)
def test_a_request_without_a_valid_key_has_no_principal(path, header):
    key = add_key(path, "analyst", ["news"], OPEN)
    for wrong in (
        header,
        f"Bearer {key[:-1]}",
        f"Bearer {key}x",
        f"Bearer {make_key().text}",
        f"Bearer {hash_key(key)}",
    ):
        with pytest.raises(NotAuthenticatedError):
            AccessRules.load(path).authenticate(wrong)


def test_a_key_expires_and_a_removed_one_counts_no_more(path):
    old = add_key(path, "analyst", ["news"], OPEN, expires=datetime(2026, 5, 1))
    new = add_key(path, "analyst")
    access = load_access_file(path)
    early, late = (
        AccessRules(access, path.parent, lambda day=day: datetime(2026, *day, tzinfo=UTC)) for day in ((4, 30), (5, 1))
    )
    assert early.authenticate(f"Bearer {old}").name == "analyst"
    assert late.authenticate(f"Bearer {new}").name == "analyst"
    with pytest.raises(NotAuthenticatedError):
        late.authenticate(f"Bearer {old}")
    remove(path, "analyst", new.split("_")[1])
    with pytest.raises(NotAuthenticatedError):
        AccessRules.load(path).authenticate(f"Bearer {new}")
    remove(path, "analyst")
    assert load_access_file(path).principals == {}
    with pytest.raises(PipelineError, match="no principal `analyst`; there are none"):
        remove(path, "analyst")


def test_anonymous_requests_read_only_if_that_is_set(path):
    add_key(path, "analyst", ["news"], OPEN)
    path.write_text(path.read_text() + "anonymous:\n  roots: {news: [level=public]}\n")
    rules = AccessRules.load(path)
    assert rules.authenticate(None).filters_of("news") == ("level=public",)
    with pytest.raises(NotAuthenticatedError):
        rules.authenticate("Bearer wrong")
    assert rules.access.all_filters() == {"news": {OPEN, ("level=public",)}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must hold sections"), ("- a", "must hold sections"), ("principals: [", "not valid YAML"),
        ("principal: {}", "did you mean 'principals'"), ("principals: {a: {}}", "roots: Field required"),
        ("principals: {a: {roots: {}}}", "at least 1 item"), ("principals: {a: {roots: {n: []}}}", "write `all`"),
        ("principals: {a: {roots: {n: null}}}", "write `all`"), ("principals: {a: {roots: {n: any}}}", "write `all`"),
        ("principals: {a: {roots: {n: [level]}}}", "FIELD OPERATOR VALUE"),
        ("principals: {a: {roots: {n: all}, filter: x}}", "unknown option"),
        ("principals: {'a b': {roots: {n: all}}}", "is not a name"),
        ("principals: {a: {roots: {n: all}, claims: {sub: x}}}", "no section `jwt`"),
        ("principals: {a: {roots: {n: all}, keys: [{id: '12345678', sha256: secret}]}}", "String should match"),
        ("jwt: {issuer: i, audience: a, keys: k, algorithms: [HS256]}", "'HS256' is not accepted"),
        ("jwt: {issuer: i, audience: a, keys: k, algorithms: [none]}", "not accepted"),
        ("jwt: {issuer: i, audience: a, keys: 'http://idp.example/jwks'}", "https"),
        ("principals: {a: {roots: {n: all}}}\nprincipals: {}", "is there already"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_right_is_refused_as_a_whole(path, text, problem):
    path.write_text(text)
    with pytest.raises(AccessError, match=problem) as raised:
        AccessRules.load(path)
    assert "secret" not in str(raised.value)


def test_edits_count_at_once_and_a_broken_file_permits_nothing(path, caplog):
    key = f"Bearer {add_key(path, 'analyst', ['news'], OPEN)}"
    rules = FollowedRules(path)
    assert rules.authenticate(key).filters_of("news") == OPEN
    kept = path.read_bytes()
    path.write_text("principals: [")
    with pytest.raises(NotAuthenticatedError, match="cannot be read now"):
        rules.authenticate(key)
    path.write_bytes(kept)
    assert rules.authenticate(key).name == "analyst"
    path.unlink()
    caplog.clear()
    for _ in range(3):
        with pytest.raises(NotAuthenticatedError):
            rules.authenticate(key)
    assert len(caplog.records) == 1, "the log says once why no request is answered"
    path.write_bytes(kept)
    assert rules.authenticate(key).name == "analyst"


# --------------------------------------------------------------------------------------------------------------- tokens

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
CLAIMS = {"iss": "https://idp.example", "aud": "graphrag", "sub": "u1", "groups": ["staff", "analysts"]}
RULES = """principals:
  analyst: {roots: {news: [level=open]}, claims: {groups: analysts}}
  boss: {roots: {news: all}, claims: {groups: bosses}}
jwt: {issuer: "https://idp.example", audience: graphrag, keys: keys.json}
"""


@pytest.fixture
def token_rules(path) -> AccessRules:
    rsa_key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key()))
    ec_key = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(EC.public_key()))
    keys = [rsa_key | {"kid": "r", "alg": "RS256", "use": "sig"}, ec_key | {"kid": "e", "alg": "ES256"}]
    (path.parent / "keys.json").write_text(json.dumps({"keys": keys}))
    path.write_text(RULES)
    return AccessRules.load(path)


def _token(key=RSA, algorithm="RS256", kid="r", **changed) -> str:
    claims = {**CLAIMS, "exp": int(time.time()) + 300, **changed}
    return "Bearer " + jwt.encode(
        {k: v for k, v in claims.items() if v is not None}, key, algorithm, headers={"kid": kid}
    )


def test_a_token_leads_to_the_principal_whose_claims_it_has(token_rules):
    for token in (_token(), _token(EC, "ES256", "e"), _token(aud=["x", "graphrag"]), _token(groups="analysts")):
        principal = token_rules.authenticate(token)
        assert (principal.name, principal.subject, principal.filters_of("news")) == ("analyst", "u1", OPEN)


@pytest.mark.parametrize(
    "changed",
    [{"iss": "https://other"}, {"aud": "other"}, {"exp": 1}, {"exp": None}, {"iss": None}, {"aud": None},
     {"nbf": 4_000_000_000}, {"groups": []}, {"groups": ["analysts", "bosses"]}, {"groups": {"analysts": 1}},
     {"kid": "x"}, {"kid": "e"}, {"key": rsa.generate_private_key(public_exponent=65537, key_size=2048)},
     {"algorithm": "RS512"}, {"key": "secret" * 10, "algorithm": "HS256"}, {"key": None, "algorithm": "none"}],
)  # fmt: skip
def test_any_other_token_is_refused(token_rules, changed):
    with pytest.raises(NotAuthenticatedError):
        token_rules.authenticate(_token(**changed))


def test_a_token_that_is_signed_with_the_public_key_as_a_secret_is_refused(token_rules):
    import hashlib
    import hmac
    from base64 import urlsafe_b64encode as encode

    public = jwt.algorithms.RSAAlgorithm.to_jwk(RSA.public_key()).encode()
    claims = {**CLAIMS, "exp": int((datetime.now(UTC) + timedelta(hours=1)).timestamp())}
    parts = [encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "HS256", "kid": "r"}, claims)]
    signed = b".".join(parts)
    signature = encode(hmac.new(public, signed, hashlib.sha256).digest()).rstrip(b"=")
    with pytest.raises(NotAuthenticatedError):
        token_rules.authenticate(f"Bearer {(signed + b'.' + signature).decode()}")


def test_without_readable_keys_no_token_counts(token_rules, path):
    (path.parent / "keys.json").write_text("{}")
    with pytest.raises(NotAuthenticatedError, match="cannot be checked now"):
        AccessRules.load(path).authenticate(_token())


FIRST, SECOND = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
SHORT_CLAIMS = {"iss": "https://idp.example", "aud": "graphrag", "exp": 2**33, "sub": "ada"}
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
        token = jwt.encode(SHORT_CLAIMS, key, algorithm="ES256", headers={"kid": name})
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
