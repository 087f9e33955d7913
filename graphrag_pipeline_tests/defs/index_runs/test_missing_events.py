"""Test of the report of the state after an index run."""

import pytest

from graphrag_pipeline.defs.assets.state_checks import report_state
from graphrag_pipeline.defs.index_runs import missing_events as state_reports
from graphrag_pipeline.defs.index_runs.missing_events import report_changed_state
from graphrag_pipeline.defs.runs.instance import open_instance
from graphrag_pipeline.pipeline.detected_input import detect_input
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.support.roots import put


def test_dagster_is_opened_only_if_the_state_or_what_is_shown_changed(
    indexed_root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = detect_input(indexed_root)
    report_changed_state(indexed_root, before)
    opened: list[Root] = []
    monkeypatch.setattr(state_reports, "open_instance", lambda root: opened.append(root) or open_instance(root))
    report_changed_state(indexed_root, before)
    assert opened == []
    put(indexed_root.path, "new.txt", "They say that Scrooge slept.")
    with open_instance(indexed_root) as instance:
        assert report_state(instance, indexed_root, detect_input(indexed_root)) > 0
    (indexed_root.path / "input" / "new.txt").unlink()
    report_changed_state(indexed_root, before)
    assert len(opened) == 1, "the observation showed another state since"
