"""Changes of `access.yaml` by commands: a principal with a new key, a key less, a principal less.

Keep out: printing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from graphrag_pipeline.access.access_file import ALL, AccessError, AccessFile, load_access_file, save_access_file
from graphrag_pipeline.access.keys import make_key
from graphrag_pipeline.errors import PipelineError


def add_key(
    path: Path, name: str, roots: Sequence[str] = (), filters: Sequence[str] = (), is_whole: bool = False,
    expires: datetime | None = None,
) -> str:  # fmt: skip
    """Give a principal a new key, and the right to read roots; make both if they do not exist.

    Args:
        roots: served roots; none adds only a key to a principal that exists.
        filters: that its documents must pass.
        is_whole: the principal may read the whole root.

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
