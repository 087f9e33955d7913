"""Views: made within the rules of cost, brought up to date, and rid of what is no longer permitted."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest

from graphrag_pipeline.access.access_file import ViewRules
from graphrag_pipeline.access.view_guard import ViewNotReadyError
from graphrag_pipeline.access.view_settings import advise, derive_settings, find_view, view_id, write_view
from graphrag_pipeline.access.views import build_view, check_view, remove_unneeded_views
from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.pipeline.verification import verify_root
from graphrag_pipeline.serve.errors import NotFoundError
from graphrag_pipeline.serve.served_roots import ServedRoots
from graphrag_pipeline.tables import CONTRACT_TABLES
from graphrag_pipeline_tests.support.damage import flip_bit, index_files
from graphrag_pipeline_tests.support.roots import CAROL, build_tables, built_once, make_root, put
from graphrag_pipeline_tests.support.thoroughness import usually

OPEN = ("level=open",)
MODELS = """
extraction: {engine: model}
descriptions: {engine: model}
reports: {engine: model, rewrite_share: 0.3}
resolution: {engine: model, rules: [alias, verdict]}
embeddings: {engine: model}
chat_model: {model: chat}
embedding_model: {model: vectors}
publishing: {golden_questions: gold.jsonl}
storage: {n_buckets: 1}
schedule: {watch_input: true}
"""


def _write(root: Path, levels: dict[str, str]) -> None:
    rows = [{"id": name, "title": name, "text": text, "level": levels[name]} for name, text in CAROL.items()]
    (root / "input").mkdir(parents=True, exist_ok=True)
    (root / "input" / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def _open_root(path: Path) -> Root:
    """A published root of one bucket in which all documents are open, built once in a run of tests."""

    def build(folder: Path) -> None:
        root = make_root(folder, {}, "storage: {n_buckets: 1}\n")
        _write(root.path, dict.fromkeys(CAROL, "open"))
        build_tables(root, tuple(ALL_STAGES))

    return built_once(path, "a root of open documents", build)


def test_a_document_that_is_not_permitted_any_more_leaves_no_trace_in_its_view(tmp_path):
    names = list(CAROL)
    root = _open_root(tmp_path / "all")
    before = build_view("r", root, OPEN, ViewRules())
    assert before.n_documents == 3
    served = ServedRoots({"r": root.path}, find_view)
    served.start()
    with served.lease("r", OPEN) as lease:
        assert lease.snapshot == before.snapshot
        assert not lease.is_whole
    # a link names the snapshot of another reader's index: each reads his own
    first = root.open_snapshot().id
    with served.lease("r", OPEN, first) as lease, served.lease("r", (), before.snapshot) as whole:
        assert (lease.snapshot, whole.snapshot) == (before.snapshot, first)
    for start, is_own in ((first[:8], False), (before.snapshot[:8], True), ("0" * 16, False)):
        with nullcontext() if is_own else pytest.raises(NotFoundError), served.lease("r", OPEN, start):
            pass

    put(root.path, "new.jsonl", json.dumps({"id": "new", "text": "Marley met Belle.", "level": "open"}))
    again = build_view("r", root, OPEN, ViewRules())  # the root has not published the new document
    assert (again.snapshot, again.n_documents) == (before.snapshot, 3)
    build_tables(root, tuple(ALL_STAGES))
    with served.lease("r", OPEN) as lease:  # the view is not made of it yet, and goes on answering
        assert lease.snapshot == before.snapshot

    (root.path / "input" / "new.jsonl").unlink()
    _write(root.path, {names[0]: "open", names[1]: "secret", names[2]: "open"})
    with served.lease("r", OPEN):
        pass
    build_tables(root, tuple(ALL_STAGES))
    with pytest.raises(ViewNotReadyError, match="What you may read of this root changed") as refused:
        served.lease("r", OPEN).__enter__()
    assert 1 <= refused.value.retry_after_s <= before.seconds
    assert check_view("r", root, OPEN, ViewRules()).problems
    after = build_view("r", root, OPEN, ViewRules())
    assert check_view("r", root, OPEN, ViewRules()).problems == ()
    alone = make_root(tmp_path / "alone", {}, "storage: {n_buckets: 1}\n")
    rows = (root.path / "input" / "rows.jsonl").read_text().splitlines(keepends=True)
    (alone.path / "input" / "rows.jsonl").write_text("".join(row for row in rows if "secret" not in row))
    build_tables(alone, tuple(ALL_STAGES))
    view = Root(after.place)
    assert [*view.snapshots.ids()] == [after.snapshot]
    for name in CONTRACT_TABLES:
        assert view.open_snapshot().table(name).equals(alone.open_snapshot().table(name)), name
    served._views[after.place].look()
    with pytest.raises(NotFoundError), served.lease("r", OPEN, before.snapshot):
        pass
    (after.place / "snapshots" / "current.json").unlink()
    served._views[after.place].look()
    with pytest.raises(ViewNotReadyError), served.lease("r", OPEN):
        pass
    served.close()
    assert remove_unneeded_views(root.path, [OPEN]) == []
    assert remove_unneeded_views(root.path, []) == [after.place]
    assert not after.place.exists()


def test_a_view_pays_for_nothing_unless_it_may(tmp_path, monkeypatch):
    root = make_root(tmp_path, {}, MODELS)
    kept = derive_settings(root, OPEN, ViewRules())
    assert (kept.descriptions.engine, kept.reports.engine, kept.resolution.engine) == ("embedded",) * 3
    assert (kept.embeddings.engine, kept.extraction.engine) == ("embedded", "model")
    assert kept.resolution.rules == ("alias",)
    paid = derive_settings(root, OPEN, ViewRules(engine="model", embeddings="model"))
    assert (paid.descriptions.engine, paid.reports.engine, paid.embeddings.engine) == ("model",) * 3
    for settings in (kept, paid):
        assert settings.reports.rewrite_share == 0
        assert settings.publishing.golden_questions == ""
        assert settings.publishing.max_removed_share == 1
        assert not settings.schedule.watch_input
        assert settings.input.filters == OPEN


def test_the_environment_does_not_reach_a_view(tmp_path, monkeypatch):
    root = make_root(tmp_path, {}, "storage: {n_buckets: 1}\n")
    view = write_view(root, OPEN, ViewRules(), "0" * 16)
    monkeypatch.setenv("GRAPHRAG__INPUT__FILTERS", "[]")
    monkeypatch.setenv("GRAPHRAG__STORAGE__URL", "file:///nowhere")
    assert Root(view.path).settings.input.filters == OPEN
    assert Root(view.path).settings.storage.url is None
    assert (view.path / view.settings.input.published_by).resolve() == root.path.resolve()
    assert Root(view.path).cache_folder.resolve() == root.path.resolve() / "cache"


def test_a_view_of_a_shared_root_has_its_own_place_in_the_store(tmp_path):
    root = make_root(tmp_path / "r", {}, f"storage: {{n_buckets: 1, url: 'file://{tmp_path}/store'}}\n")
    settings = derive_settings(root, OPEN, ViewRules())
    assert settings.storage.url == f"file://{tmp_path}/store/views/{view_id(OPEN)}"


def test_tuned_prompts_are_refused_unless_they_are_allowed(tmp_path):
    root = make_root(tmp_path, {}, f"{MODELS}tuning: {{adopted: mine}}\n")
    with pytest.raises(PipelineError, match="may quote any document"):
        derive_settings(root, OPEN, ViewRules())
    assert derive_settings(root, OPEN, ViewRules(tuned_prompts=True)).tuning.adopted == "mine"


def test_the_same_filters_have_one_view(tmp_path):
    assert view_id(["a=1", " b=2"]) == view_id(["b=2", "a=1", "a=1"]) != view_id(["a=1"])
    with pytest.raises(PipelineError, match="at least one filter"):
        find_view(tmp_path, ())


def test_a_filter_on_a_field_that_no_document_has_makes_no_view(tmp_path):
    root = _open_root(tmp_path)
    with pytest.raises(PipelineError, match="no field 'levle'; did you mean 'level'"):
        build_view("r", root, ("levle!=secret",), ViewRules())
    assert not find_view(root.path, ("levle!=secret",)).exists()
    assert advise(root, OPEN) == []
    for wrong in ("level=opne", "level!=opne", "level=open,opne"):
        assert "no document has 'opne' in 'level'; the nearest values: 'open' (3)" in advise(root, (wrong,))
    assert advise(root, ("level=opne",))[-1].startswith("none of the 3 documents passes level=opne")
    assert advise(root, ("level~op", "title!=Ghost"))[0].startswith("no document has 'Ghost' in 'title'")
    assert advise(root, ("creation_date>=2020",))[0].startswith("3 documents have no 'creation_date'")


def test_a_view_pays_a_model_only_if_permitted_and_for_no_document_again(model_index):
    filters = ("path!=article_00000.txt",)
    build_view("r", model_index.root, filters, ViewRules())
    assert model_index.server.count() == 0, "extraction is cached, the rest is made without a model"
    paying = ViewRules(engine="model", embeddings="model")
    build_view("r", model_index.root, filters, paying)
    n_paid = model_index.server.count()
    assert 0 < model_index.server.count("report") <= n_paid
    assert model_index.server.count("extract") == 0
    rows = model_index.root.models.spending.read_ledger()
    booked = [row for row in rows if row["command"] == "access build"]
    assert sum(row["n_calls"] for row in booked) == n_paid
    assert {row["about"] for row in booked} == set(filters)


@pytest.mark.parametrize("is_lost", usually([False, True], True))
def test_a_damaged_view_is_named_by_verify_and_healed_by_the_next_build(tmp_path, is_lost):
    root = _open_root(tmp_path)
    made = build_view("r", root, OPEN, ViewRules())
    damaged = [
        path for path in index_files(made.place, ["snapshots/tables/entities"]) if is_lost or path.suffix == ".arrow"
    ]
    damaged += index_files(made.place, ["snapshots/vectors"]) if is_lost else index_files(made.place, ["tables"])[:1]
    for path in damaged:
        flip_bit(path, 4 * path.stat().st_size)
    found = verify_root(root)
    assert not found.is_whole
    assert {path.relative_to(root.path).as_posix() for path in damaged} >= {one.path for one in found.findings} > set()
    assert "damaged" in check_view("r", root, OPEN, ViewRules()).problems[0]
    again = build_view("r", root, OPEN, ViewRules())
    assert (again.snapshot, again.n_documents) == (made.snapshot, made.n_documents)
    assert verify_root(root).findings == ()
    flip_bit(damaged[0], 8)
    repaired = verify_root(root, is_repairing=True)
    assert repaired.is_whole and not any("`index`" in one.outcome for one in repaired.findings)
