"""Files of earlier releases stay valid; options that are gone say so if they had another value."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.pipeline.stage_code import code_of
from graphrag_pipeline.pipeline.stages import STAGES
from graphrag_pipeline.settings.file import REMOVED_OPTIONS, load_settings, parse_yaml, read_settings
from graphrag_pipeline.settings.settings import Settings

EARLIER = Path(__file__).with_name("all_options.yaml").read_text(encoding="utf-8")

EARLIER_DEFAULTS = {"reports": {"min_report_size": 3}, "embedding_model": {"batch_size": 64}}
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


NEW = {"extraction.spacy_model", "descriptions.max_joined"}
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
