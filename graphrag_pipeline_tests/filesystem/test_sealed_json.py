"""JSON files that hold the hash of their own content."""

from __future__ import annotations

import json

import pytest

from graphrag_pipeline.filesystem import sealed_json
from graphrag_pipeline.filesystem.sealed_json import CHECK, read_sealed, seal

VALUES = {"alpha": 1, "names": ["Zoë", f'"{CHECK}": "'], "nested": {CHECK: "its own", "x": [1.5, None]}, "zeta": {}}
FIRST, LAST = {"zeta": 1}, {"alpha": 1}
"""Values before and behind which the hash stands."""


@pytest.mark.parametrize("values", [VALUES, FIRST, LAST, {}])
def test_what_was_sealed_is_read(values: dict[str, object]) -> None:
    assert read_sealed(seal(values)) == values


@pytest.mark.parametrize("values", [VALUES, FIRST, LAST])
def test_a_file_as_it_was_written_is_read_without_writing_it_again(
    values: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = seal(values)
    monkeypatch.setattr(sealed_json, "_encode", lambda values: pytest.fail("the values are written again"))
    assert read_sealed(data) == values


def test_another_layout_of_the_same_values_is_read() -> None:
    assert read_sealed(json.dumps(json.loads(seal(VALUES))).encode()) == VALUES


def test_every_changed_bit_is_refused() -> None:
    data = seal(VALUES)
    for place in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            try:
                read = read_sealed(bytes(changed), is_required=True)
            except ValueError:
                continue
            assert read == VALUES, f"bit {bit} of byte {place}"


def test_a_file_without_a_hash_is_refused_if_none_was_ever_written_so() -> None:
    assert read_sealed(b'{"a": 1}') == {"a": 1}
    with pytest.raises(ValueError, match="a byte changed"):
        read_sealed(b'{"a": 1}', is_required=True)
    with pytest.raises(ValueError, match="a byte changed"):
        read_sealed(b'{\n "check": "None"\n}', is_required=True)
