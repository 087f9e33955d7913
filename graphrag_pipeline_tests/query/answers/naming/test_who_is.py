"""The passage that says who a person is, if no sentence does: a speech to the person."""

from pathlib import Path

from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.support.roots import build_tables, make_root

VISIT = (
    "The rain had not stopped for three days, and Oskar sat by the fire of the old mill.\n\n"
    "Someone knocked. Oskar rose and took the lamp. Oskar was slow.\n\n"
    "'It is only me. Your sister Ada. The road is gone. Will you open, Oskar?'\n\n"
    "Oskar opened. 'You are wet, Ada,' he said, and Oskar put more wood on the fire of the mill.\n"
)


def test_a_speech_that_relates_the_person_is_quoted_first(tmp_path: Path) -> None:
    root = make_root(tmp_path / "root", {"visit.txt": VISIT})
    build_tables(root, tuple(ALL_STAGES))
    with GraphIndex.open(root.path) as index:
        quotes = [line for line in index.search("Who is Oskar?").answer.splitlines() if line.startswith("- ")]
    assert quotes[0].startswith("- Your sister Ada. The road is gone. Will you open, Oskar?")
