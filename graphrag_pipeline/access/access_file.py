"""The file `access.yaml`: its options, and reading and writing it. An unknown option is an error.

    principals:
      reports-bot:
        roots: {news: all}                       # every document of the root `news`
        keys: [{id: 1f0c55d2, sha256: ...}]      # from `graphrag-pipeline access add`
      analyst:
        roots: {news: ["level=open", "year>=2020"]}
        claims: {groups: analysts}               # or tokens with this claim

Keep out: who is behind a request (`rules.py`).
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filters import parse_filter
from graphrag_pipeline.nearest import suggest
from graphrag_pipeline.settings.file import parse_yaml
from graphrag_pipeline.settings.urls import has_password

ACCESS_FILE = "access.yaml"
ALL = "all"
ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures of tokens that are accepted: those with a public key only, so that no server key can make a token."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")


class AccessError(PipelineError):
    """`access.yaml` cannot be used, so no request is answered."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _read_filters(value: Any) -> Any:
    """Check the filters of a root: `all`, or a list with at least one filter."""
    if value == ALL:
        return value
    if not isinstance(value, list | tuple) or not value or not all(isinstance(text, str) for text in value):
        raise ValueError(
            f"write `{ALL}` for the whole root, or a list with at least one filter, such as ['level=open']"
        )
    for text in value:
        try:
            parse_filter(text)
        except PipelineError as error:
            raise ValueError(str(error)) from None
    return tuple(value)


Permitted = Annotated[Literal["all"] | tuple[str, ...], BeforeValidator(_read_filters)]
"""The whole root, or the filters that its documents must pass."""


class KeyEntry(_Part):
    """A key of a principal, without its secret part."""

    id: str = Field(pattern=r"^[0-9a-f]{8}$", description="Second part of the key, by which a person finds it.")
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$", description="SHA-256 of the whole key.")
    expires: datetime | None = Field(None, description="Time or day (UTC) from which it is not valid; null: never.")

    @field_validator("expires", mode="before")
    @classmethod
    def _has_zone(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if isinstance(value, date) and not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        return value.replace(tzinfo=UTC) if isinstance(value, datetime) and value.tzinfo is None else value


class PrincipalEntry(_Part):
    """A principal: roots that it may read, and keys or claims of a token by which it is recognised."""

    roots: dict[str, Permitted] = Field(
        min_length=1, description=f"Name of a served root -> `{ALL}`, or filters that its documents must pass."
    )
    keys: tuple[KeyEntry, ...] = Field((), description="Keys, made by `graphrag-pipeline access add`.")
    claims: dict[str, str] = Field(
        default_factory=dict, description="Claims that a token must have: equal, or an element of a list."
    )
    feedback: bool = Field(False, description="Whether it may rate and correct answers, in `feedback.jsonl` of a root.")

    @property
    def filters(self) -> dict[str, tuple[str, ...]]:
        """Root -> filters; none for the whole root."""
        return {name: () if permitted == ALL else tuple(permitted) for name, permitted in self.roots.items()}


class AnonymousEntry(_Part):
    """Requests without a key or token."""

    roots: dict[str, Permitted] = Field(min_length=1, description="As of a principal.")

    @property
    def filters(self) -> dict[str, tuple[str, ...]]:
        """Root -> filters; none for the whole root."""
        return PrincipalEntry(roots=self.roots).filters


class TokenRules(_Part):
    """JSON Web Tokens that are accepted beside keys."""

    issuer: str = Field(min_length=1, description="The claim `iss` of every token.")
    audience: str = Field(min_length=1, description="The claim `aud`, or one of several.")
    keys: str = Field(
        min_length=1,
        description="JWKS file, relative to access.yaml, or its https URL (http on this machine only).",
    )
    algorithms: tuple[str, ...] = Field(
        ("RS256", "ES256"), min_length=1, description=f"Accepted signatures, of {', '.join(ALGORITHMS)}."
    )
    leeway_s: float = Field(30.0, ge=0, le=300, description="Seconds by which clocks may differ.")

    @field_validator("algorithms")
    @classmethod
    def _are_known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in names if name not in ALGORITHMS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not accepted; use some of {', '.join(ALGORITHMS)}")
        return names

    @field_validator("keys")
    @classmethod
    def _is_safe(cls, place: str) -> str:
        if has_password(place):
            raise ValueError("URL with a password")
        if re.match(r"http://(?!(localhost|127\.0\.0\.1|\[::1\])([:/]|$))", place):
            raise ValueError("write an https URL: over http, anybody on the way can replace the keys")
        return place


class ViewRules(_Part):
    """Views: the indexes that principals with filters read."""

    engine: Literal["embedded", "model"] = Field(
        "embedded",
        description="Descriptions, reports and verdicts on names in views. embedded: nothing is paid; model: as in the "
        "root, paid for each view where its texts differ from the root's.",
    )
    embeddings: Literal["embedded", "model"] = Field(
        "embedded",
        description="Vectors of views, if the root's come from a model. embedded: bundled vectors, nothing is paid; "
        "model: as in the root; vectors of text units are shared, those of changed descriptions and reports are paid.",
    )
    tuned_prompts: bool = Field(
        False,
        description="Whether views may use the tuned prompts of their root, whose examples may quote any document.",
    )


class AuditRules(_Part):
    """The audit log: one line of JSON for each request."""

    file: str = Field("audit.jsonl", min_length=1, description="Path, relative to access.yaml.")
    texts: bool = Field(False, description="Whether the bodies of requests, with their questions, are logged, too.")
    max_mb: float = Field(100.0, ge=0, description="Size at which the file is renamed and a new one begins; 0: never.")
    n_kept: int = Field(10, ge=1, le=1000, description="Renamed files that are kept.")


class AccessFile(_Part):
    """All of `access.yaml`."""

    principals: dict[str, PrincipalEntry] = Field(default_factory=dict, description="Name -> principal.")
    anonymous: AnonymousEntry | None = Field(None, description="What requests without a key may read; null: nothing.")
    jwt: TokenRules | None = Field(None, description="Tokens; null: keys only.")
    views: ViewRules = ViewRules()
    audit: AuditRules | None = Field(AuditRules(), description="Audit log; null: none.")

    @field_validator("principals")
    @classmethod
    def _have_names(cls, principals: dict[str, PrincipalEntry]) -> dict[str, PrincipalEntry]:
        for name in principals:
            if not _NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not a name: up to 100 letters, digits, `.`, `_`, `@` and `-`")
        return principals

    @model_validator(mode="after")
    def _is_unambiguous(self) -> AccessFile:
        owners: dict[str, str] = {}
        for name, entry in self.principals.items():
            for key in entry.keys:
                if owners.setdefault(key.sha256, name) != name or [k.id for k in entry.keys].count(key.id) > 1:
                    raise ValueError(f"key {key.id} of {name!r} is there twice; remove one")
            if entry.claims and self.jwt is None:
                raise ValueError(f"{name!r} has claims, but there is no section `jwt`; add it, or remove the claims")
        return self

    def all_filters(self) -> dict[str, set[tuple[str, ...]]]:
        """Return the sets of filters in use by root, without the whole root."""
        found: dict[str, set[tuple[str, ...]]] = {}
        entries: list[PrincipalEntry | AnonymousEntry] = [*self.principals.values()]
        for entry in [*entries, *([self.anonymous] if self.anonymous else [])]:
            for root, filters in entry.filters.items():
                found.setdefault(root, set()).update([filters] if filters else [])
        return found


def load_access_file(path: Path) -> AccessFile:
    """Read `access.yaml`.

    Raises:
        AccessError: it is missing, cannot be read, is not YAML, or does not validate.
    """
    import yaml

    try:
        values = parse_yaml(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise AccessError(f"`{path}` not found; make it with `graphrag-pipeline access add NAME`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(f"`{path}` cannot be read as UTF-8 text ({error}); repair it") from None
    except yaml.YAMLError as error:
        raise AccessError(f"`{path}` is not valid YAML: {error}") from None
    if not isinstance(values, dict):
        raise AccessError(f"`{path}` must hold sections such as `principals:`, found {type(values).__name__}")
    try:
        return AccessFile.model_validate(values)
    except ValidationError as error:
        raise AccessError(f"{path}: {'; '.join(map(_explain, error.errors()))}") from None


def _explain(problem: Any) -> str:
    where = ".".join(str(part) for part in problem["loc"])
    if problem["type"] != "extra_forbidden":
        return f"{where or 'access'}: {problem['msg']}"  # never the value: it may be a key
    known = sorted({name for part in _Part.__subclasses__() for name in part.model_fields})
    return f"unknown option {where!r}{suggest(problem['loc'][-1], known)}"


def save_access_file(path: Path, access: AccessFile) -> None:
    """Write `access.yaml` in one step, readable by its owner only; comments at its top stay.

    Raises:
        PipelineError: the file cannot be written.
    """
    import yaml

    values = _without_defaults(access.model_dump(mode="json"), AccessFile())
    text = yaml.safe_dump(values, sort_keys=False, width=120, allow_unicode=True)
    files.replace_private(path, (_top_comment(path) + text).encode())


def _without_defaults(values: Mapping[str, Any], defaults: AccessFile) -> dict[str, Any]:
    plain = defaults.model_dump(mode="json")
    shown = {name: value for name, value in values.items() if name == "principals" or value != plain[name]}
    for entry in shown["principals"].values():
        for name in ("keys", "claims"):
            if not entry[name]:
                del entry[name]
    return shown


def _top_comment(path: Path) -> str:
    if not path.exists():
        return f"# Who may read what. Keys begin with `{PREFIX}_`; only their hashes are here.\n"
    lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    n = next((n for n, line in enumerate(lines) if line.strip() and not line.startswith("#")), len(lines))
    return "".join(lines[:n])


def is_readable_by_others(path: Path) -> bool:
    """Return whether other users of the machine can read the file."""
    return bool(os.stat(path).st_mode & 0o077)


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
    """Return the SHA-256 of a key; a random key cannot be guessed from it, so a slow hash would add nothing."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def add_key(
    path: Path, name: str, roots: Sequence[str] = (), filters: Sequence[str] = (), is_whole: bool = False,
    expires: datetime | None = None, may_rate: bool | None = None,
) -> str:  # fmt: skip
    """Give a principal a new key, and the right to read roots; make both if they do not exist.

    Args:
        roots: served roots; none adds only a key to a principal that exists.
        filters: that its documents must pass.
        is_whole: the principal may read the whole root.
        may_rate: whether it may give feedback; None: as before, and a new principal may not.

    Returns:
        The key, which is stored nowhere.

    Raises:
        PipelineError: neither or both of `filters` and `is_whole` are given, or the result does not validate.
    """
    if roots and bool(filters) == is_whole:
        raise PipelineError("say which documents the principal may read: filters, or all of the root; not both")
    key = make_key()
    with _editing(path) as values:
        entry = values["principals"].get(name)
        if entry is None and not roots:
            raise PipelineError(
                f"`{path}` has no principal `{name}`; say what it may read, by `--filter` or `--all`, to add it"
            )
        entry = values["principals"].setdefault(name, {"roots": {}, "keys": [], "claims": {}})
        entry["roots"] |= {root: ALL if is_whole else list(filters) for root in roots}
        entry |= {} if may_rate is None else {"feedback": may_rate}
        entry["keys"] = [*entry["keys"], {"id": key.id, "sha256": key.sha256, "expires": expires}]
    return key.text


def remove(path: Path, name: str, key_id: str = "") -> None:
    """Remove a principal, or one key of it.

    Raises:
        PipelineError: there is no such principal or key.
    """
    with _editing(path) as values:
        entry = values["principals"].get(name)
        if entry is None:
            known = ", ".join(values["principals"]) or "none"
            raise PipelineError(f"`{path}` has no principal `{name}`; there are {known}")
        if not key_id:
            del values["principals"][name]
            return
        left = [key for key in entry["keys"] if key["id"] != key_id]
        if len(left) == len(entry["keys"]):
            known = ", ".join(key["id"] for key in left) or "none"
            raise PipelineError(f"`{name}` has no key {key_id}; there are {known}")
        entry["keys"] = left


@contextmanager
def _editing(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the content of the file as plain values, and save them; two commands never edit at once."""
    from filelock import FileLock
    from pydantic import ValidationError

    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.with_name(f".{path.name}.lock"), mode=0o600):
        access = load_access_file(path) if path.exists() else AccessFile()
        values = access.model_dump(mode="json")
        yield values
        try:
            save_access_file(path, AccessFile.model_validate(values))
        except ValidationError as error:
            raise AccessError(f"{path}: {'; '.join(problem['msg'] for problem in error.errors())}") from None
