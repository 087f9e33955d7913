from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.settings.file import MISSING, parse_yaml, read_options, set_options
from graphrag_pipeline.settings.rendering import render_settings

TYPES, NAME = ("extraction", "entity_types"), ("tuning", "adopted")
WANTED = {NAME: "first", TYPES: ["SHIP", "SEA PORT: a, b", "\u00c4"]}
LAYOUTS = {
    "rendered": render_settings(),
    "empty": "",
    "empty section": "extraction:\ntuning:\nstorage: {n_buckets: 2}\n",
    "no newline": "storage:\n  n_buckets: 2",
    "flow": "extraction: {engine: model, entity_types: [A, B]}\ntuning: {}\n",
    "block list": "extraction:\n  entity_types:\n    - A  # first\n    - B\n  engine: model\n",
    "block list at the end": "extraction:\n  engine: model\n  entity_types:\n  - A\n  - B\n\n# end\n",
    "comments": "# top\nextraction:   # here\n    # why\n    engine: model   # e\n    language: auto\n# end\n",
    "null": "extraction: null\n",
}


@pytest.mark.parametrize("text", LAYOUTS.values(), ids=LAYOUTS)
def test_only_the_options_change_in_any_layout_and_can_be_put_back(text: str) -> None:
    before = parse_yaml(text) or {}
    edited = set_options(text, WANTED)
    assert read_options(edited, list(WANTED)) == WANTED
    after = parse_yaml(edited)
    for section, key in WANTED:
        after[section].pop(key)
    rest = {name: {k: v for k, v in (value or {}).items() if (name, k) not in WANTED} for name, value in before.items()}
    assert {n: v for n, v in after.items() if v} == {n: v for n, v in rest.items() if v}
    assert all(line in edited for line in text.splitlines() if line.lstrip().startswith("#"))
    former = read_options(text, list(WANTED))
    back = parse_yaml(set_options(edited, former)) or {}
    assert {n: v for n, v in back.items() if v} == {n: v for n, v in before.items() if v}


def test_a_missing_option_is_told_from_an_empty_one() -> None:
    found = read_options("tuning: {adopted: ''}\nextraction: {engine: model}\n", [NAME, TYPES])
    assert found == {NAME: "", TYPES: MISSING}
    assert set_options("a: {b: 1}\n", {NAME: MISSING}) == "a: {b: 1}\n"


def test_a_layout_that_shares_a_section_is_refused() -> None:
    with pytest.raises(SettingsError, match="edit the file by hand"):
        set_options(
            "descriptions: &same\n  language: auto\nextraction: *same\n", {("extraction", "language"): "German"}
        )


@given(st.one_of(st.text(max_size=20), st.lists(st.text(max_size=8), min_size=1, max_size=4), st.integers()))
def test_any_plain_value_is_read_as_it_was_set(value: object) -> None:
    assert read_options(set_options(LAYOUTS["comments"], {TYPES: value}), [TYPES]) == {TYPES: value}
