"""Roots of earlier releases open, answer, index and verify; each release keeps one (`support/kept_root.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline.errors import NewerFormatError
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.pipeline.verification import verify_root
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.storage.formats import installed_release
from graphrag_pipeline_tests.support.kept_root import ENDING, KEPT, MAX_BYTES, pack_root, unpack_root
from graphrag_pipeline_tests.support.roots import build_tables, put

ARCHIVES = sorted(KEPT.glob(f"*{ENDING}"))


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.name)
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A root of a release, unpacked."""
    unpack_root(request.param, tmp_path / "root")
    return tmp_path / "root"


def ask(folder: Path, question: str) -> str:
    with GraphIndex.open(folder) as index:
        return index.search(question, method="local").answer


def test_this_release_has_a_kept_root() -> None:
    assert f"{installed_release()}{ENDING}" in [archive.name for archive in ARCHIVES]


def test_a_kept_root_is_small_and_packs_to_the_same_bytes(kept: Path, tmp_path: Path) -> None:
    pack_root(kept, tmp_path / "again")
    archive = next(archive for archive in ARCHIVES if archive.read_bytes() == (tmp_path / "again").read_bytes())
    assert archive.stat().st_size < MAX_BYTES


def test_a_kept_root_opens_answers_indexes_again_and_verifies(kept: Path) -> None:
    assert "Scrooge" in ask(kept, "Who was a partner of Marley?")
    assert verify_root(Root(kept), is_repairing=False).is_whole
    first = Root(kept).snapshots.current()
    put(kept, "fezziwig.txt", "At the ball old Fezziwig danced with Mrs. Fezziwig.")
    build_tables(Root(kept), tuple(ALL_STAGES))
    assert Root(kept).snapshots.current() != first
    assert "Fezziwig" in ask(kept, "Who danced with Mrs. Fezziwig?")
    assert "Scrooge" in ask(kept, "Who was a partner of Marley?")
    assert verify_root(Root(kept), is_repairing=False).is_whole


def test_a_kept_root_whose_manifest_is_newer_is_refused(kept: Path) -> None:
    for path in (kept / "snapshots").glob("*.*"):
        if path.suffix in (".json", ".manifest"):
            path.write_text('{"format": 99, "needs_release": "9.0"}', encoding="utf-8")
    with pytest.raises(NewerFormatError, match=r"needs release 9\.0 or later"):
        ask(kept, "Who was a partner of Marley?")
