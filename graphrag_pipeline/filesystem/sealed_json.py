"""Small JSON files with a hash of their own content, so that a changed byte is seen.

The hash is under the key `check`. A file without it, of an older release, is read as it is. Keep out: the meaning of
the values.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from graphrag_pipeline.filesystem.files import content_hash

CHECK = "check"
"""Key of the hash of all other keys and values."""


def seal(values: Mapping[str, Any]) -> bytes:
    """Return JSON of an object with its hash."""
    return _encode({**values, CHECK: _check_of(values)})


def read_sealed(data: bytes, is_required: bool = False) -> dict[str, Any]:
    """Return the object of a JSON file without its hash.

    Args:
        is_required: no release wrote this file without a hash.

    Raises:
        ValueError: the file is not JSON of an object, or its content does not have the hash that it holds.
    """
    values = json.loads(data)
    if not isinstance(values, dict):
        raise ValueError("not a JSON object")
    check = values.pop(CHECK, None)
    if (check is not None or is_required) and not _is_sealed_by(data, check) and check != _check_of(values):
        raise ValueError("a byte changed since it was written")
    return values


def _is_sealed_by(data: bytes, check: object) -> bool:
    """Return whether a file as `seal` writes it, without the line of its hash, has that hash.

    To write the values again takes ten times as long; that is left for a file that another program laid out.
    """
    line = f'\n "{CHECK}": "{check}"'.encode()
    before, found, after = data.partition(line)
    if not found:
        return False
    rest = before + after[1:] if after.startswith(b",") else before.removesuffix(b",") + after
    return content_hash(rest) == check


def _check_of(values: Mapping[str, Any]) -> str:
    return content_hash(_encode(values))


def _encode(values: Mapping[str, Any]) -> bytes:
    return json.dumps(values, indent=1, sort_keys=True, ensure_ascii=False).encode()
