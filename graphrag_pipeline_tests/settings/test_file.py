"""Settings files: options of earlier releases, and edits that keep the rest of the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.errors import SettingsError
from graphrag_pipeline.pipeline.stage_code import code_of
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.settings.file import (
    REMOVED_OPTIONS,
    load_settings,
    parse_yaml,
    read_options,
    read_settings,
    set_options,
)
from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline.settings.settings import Settings

EARLIER = Path(__file__).with_name("all_options.yaml").read_text(encoding="utf-8")

EARLIER_DEFAULTS = {
    "text_units": {"markdown_blocks": False},
    "reports": {"min_report_size": 3},
    "embedding_model": {"batch_size": 64},
    "global_search": {"small_reports_per_call": 1},
}
"""Options of that file whose default is another one now."""


def write(folder: Path, text: str) -> Path:
    (folder / "settings.yaml").write_text(text, encoding="utf-8")
    return folder


def test_a_file_that_spells_out_all_options_means_the_defaults(tmp_path: Path) -> None:
    read = read_settings(write(tmp_path, EARLIER), {})
    assert read.settings == Settings.model_validate(EARLIER_DEFAULTS) and read.ignored == ()


def test_options_that_do_nothing_now_are_no_options_of_their_section(tmp_path: Path) -> None:
    for section, options in REMOVED_OPTIONS.items():
        assert options.keys().isdisjoint(type(Settings.model_fields[section].default).model_fields)


def test_values_of_options_that_are_gone_are_told(tmp_path: Path) -> None:
    text = EARLIER.replace("min_fill: 0.6", "min_fill: 0.5").replace("webhook: '', timeout_s: 10.0", "timeout_s: 3")
    variable = {"GRAPHRAG__TUNING__MAX_TYPES": "5"}
    assert read_settings(write(tmp_path, text), variable).ignored == (
        "text_units.min_fill", "notifications.timeout_s", "tuning.max_types",
    )  # fmt: skip


def test_options_that_have_another_place_keep_their_values(tmp_path: Path) -> None:
    text = """\
local_search: {column_delimiter: tab, strategy: graph}
lazy_search: {max_tokens: 900, for_questions: {now: 2025-01-31}}
quality: {max_singletons: null}
reports: {max_reply_tokens: 600}
"""
    settings = load_settings(write(tmp_path, text), {"GRAPHRAG__GLOBAL_SEARCH__SEED": "3"})
    assert settings.search("local").column_delimiter == "\t" and settings.search("local").strategy == "graph"
    assert (settings.search("lazy").max_tokens, str(settings.search("lazy").now)) == (900, "2025-01-31")
    assert settings.search("global").seed == 3
    assert settings.quality.threshold("max_singletons") is None and settings.quality.threshold("max_placeholders") == 0
    assert settings.reply_tokens_for("reports") == 600 and settings.reply_tokens_for("extraction") == 4000


NEW = {
    "extraction.spacy_model", "extraction.document_entities", "descriptions.max_joined", "input.dates",
    "text_units.aggregation",
}  # fmt: skip
"""Options that came later: their stages are made again."""


@pytest.mark.parametrize("engine", ["embedded", "model"])
def test_stages_have_the_versions_of_the_release_before(engine: str, tmp_path: Path) -> None:
    """The options that the versions of its stages named, with their values then."""
    text = f"{EARLIER.replace('engine: embedded', f'engine: {engine}')}".replace("{model: ''", "{model: m", 3)
    settings, written = load_settings(write(tmp_path, text), {}), parse_yaml(EARLIER)
    for stage in STAGES.values():
        for name, value in code_of(stage, settings).items():
            section, _, option = name.partition(".")
            if option and option != "engine" and section in written and name not in NEW:
                assert written[section][option] == value, name
    for name, option, stage in (
        ("text_units", "min_fill", "text_units"),
        ("reports", "max_findings", "community_reports"),
        *([("reports", "max_reply_tokens", "community_reports")] if engine == "model" else []),
    ):
        assert code_of(STAGES[stage], settings)[f"{name}.{option}"] == written[name][option]


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


def test_a_layout_that_shares_a_section_is_refused() -> None:
    with pytest.raises(SettingsError, match="edit the file by hand"):
        set_options(
            "descriptions: &same\n  language: auto\nextraction: *same\n", {("extraction", "language"): "German"}
        )


@given(st.one_of(st.text(max_size=20), st.lists(st.text(max_size=8), min_size=1, max_size=4), st.integers()))
def test_any_plain_value_is_read_as_it_was_set(value: object) -> None:
    assert read_options(set_options(LAYOUTS["comments"], {TYPES: value}), [TYPES]) == {TYPES: value}
