"""The benches: each runs commands and returns figures with the limits of the documentation.

The benches of one run share corpora and their indexes. So "nothing changed" needs no extra index, and ratios compare
figures of the same run.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.bench.articles import write_articles
from graphrag_pipeline_tests.bench.measuring import (
    Figure,
    ProcessUsage,
    figures_of,
    measure_command,
    measure_module,
)
from graphrag_pipeline_tests.bench.model_engine import ask_many, index_by_model
from graphrag_pipeline_tests.bench.parity import N_QUESTIONS
from graphrag_pipeline_tests.support.corpora.mention_generator import write_mentions
from graphrag_pipeline_tests.support.paths import SAMPLE_ROOT

SAMPLE = SAMPLE_ROOT
QUESTIONS = (
    ("query", "What is Marley's chain made of?"),
    ("query", "--method", "global", "What are the main themes of the story?"),
)


class Workspace:
    """A folder with a root per corpus; each is made and indexed from nothing once.

    Attributes:
        peer_python: Python of an environment with Microsoft GraphRAG; None: `parity` makes one.
        is_recording: whether `parity` writes the peer's outputs to the data of the tests.
        n_questions: that each part of `parity` compares.
        is_held_back: whether `judged` and `operations` take their held-back half.
        is_by_model: whether `operations` extracts and embeds by the test server.
    """

    def __init__(
        self,
        folder: Path,
        peer_python: Path | None = None,
        is_recording: bool = False,
        n_questions: int = N_QUESTIONS,
        is_held_back: bool = False,
        is_by_model: bool = False,
    ) -> None:
        self._folder = folder
        self.peer_python = peer_python
        self.is_recording = is_recording
        self.n_questions = n_questions
        self.is_held_back = is_held_back
        self.is_by_model = is_by_model
        self.index_articles = cache(self._index_articles)

    def root_of(self, n_articles: int) -> Path:
        return self._folder / f"articles_{n_articles}"

    def empty_folder(self, name: str) -> Path:
        """A fresh folder of a bench that needs no root."""
        folder = self._folder / name
        shutil.rmtree(folder, ignore_errors=True)
        return folder

    def kept_folder(self, name: str) -> Path:
        """A folder whose content is used again where the workspace's folder is kept."""
        folder = self._folder / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _index_articles(self, n_articles: int) -> ProcessUsage:
        root = self.root_of(n_articles)
        shutil.rmtree(root, ignore_errors=True)
        write_articles(root / "input", n_articles)
        measure_command(root, "init", str(root))
        return measure_command(root, "index")

    def large_root(self, n_entities: int = 100_000) -> Path:
        """A root with a published index of this size (`large_index.py`), made once."""
        root = self.kept_folder("large") / str(n_entities)
        if not (root / "snapshots" / "current.json").exists():
            measure_module("graphrag_pipeline_tests.bench.large_index", str(root), str(n_entities))
        return root

    def copy_sample(self) -> Path:
        """A fresh root with the sample corpus."""
        root = self._folder / "sample"
        shutil.rmtree(root, ignore_errors=True)
        shutil.copytree(SAMPLE / "input", root / "input")
        shutil.copy2(SAMPLE / "settings.yaml", root)
        return root


Bench = Callable[[Workspace], Iterable[Figure]]


def index_1400(workspace: Workspace) -> list[Figure]:
    """Index 1,400 articles (6.4 MB) from nothing."""
    return figures_of("index 1,400 articles", workspace.index_articles(1400), max_wall_s=90, max_gb=2)


def index_workers(workspace: Workspace) -> list[Figure]:
    """Index the 1,400 articles by one process and by two, and compare every table and the snapshot."""
    folder = workspace.empty_folder("workers")
    write_articles(folder / "input", 1400)
    used, made = {}, {}
    for n_workers in (1, 2):
        root = folder / str(n_workers)
        measure_command(root, "init", str(root))
        shutil.rmtree(root / "input")
        (root / "input").symlink_to(folder / "input")
        used[n_workers] = measure_command(root, "index", "--workers", str(n_workers))
        published = Root(root).snapshots.current()
        made[n_workers] = {str(published), *(path.name for path in (root / "tables").rglob("*.parquet"))}
    return [
        *figures_of("index 1,400 articles by one process", used[1], max_wall_s=None, max_gb=None),
        *figures_of("index 1,400 articles by two", used[2], max_wall_s=None, max_gb=2),
        Figure("index 1,400 articles: one process to two", used[1].wall_s / used[2].wall_s, "x", least=1.45),
        Figure("index 1,400 articles: files and snapshots that differ", len(made[1] ^ made[2]), "", 0),
    ]


def nothing_changed_1400(workspace: Workspace) -> list[Figure]:
    """Index the same 1,400 articles again."""
    workspace.index_articles(1400)
    usage = measure_command(workspace.root_of(1400), "index")
    return figures_of("index again, nothing changed, 1,400 articles", usage, max_wall_s=3, max_gb=None)


def one_more_1400(workspace: Workspace) -> list[Figure]:
    """Index them again with one article more."""
    workspace.index_articles(1400)
    root = workspace.root_of(1400)
    write_articles(root / "input", 1401)
    usage = measure_command(root, "index")
    return figures_of("index again, 1 article more, 1,400 articles", usage, max_wall_s=20, max_gb=None)


def index_5600(workspace: Workspace) -> list[Figure]:
    """Four times the documents."""
    small, large = workspace.index_articles(1400), workspace.index_articles(5600)
    return [
        *figures_of("index 5,600 articles", large, max_wall_s=None, max_gb=None),
        Figure("5,600 to 1,400 articles: time", large.wall_s / small.wall_s, "x", 5),
        Figure("5,600 to 1,400 articles: processor", large.cpu_s / small.cpu_s, "x"),
    ]


def index_20000(workspace: Workspace) -> list[Figure]:
    """Index 20,000 articles (92 MB) from nothing, and again."""
    figures = figures_of("index 20,000 articles", workspace.index_articles(20_000), max_wall_s=None, max_gb=4)
    again = measure_command(workspace.root_of(20_000), "index")
    return figures + figures_of("index again, nothing changed, 20,000 articles", again, max_wall_s=20, max_gb=4)


def demo(workspace: Workspace) -> list[Figure]:
    """Run the steps of `make demo` after the install, and an index with nothing changed."""
    root = workspace.copy_sample()
    first = measure_command(root, "index")
    queries = [measure_command(root, *question) for question in QUESTIONS]
    again = measure_command(root, "index")
    return [
        Figure("demo: index and two queries", sum(usage.wall_s for usage in (first, *queries)), "s", 30),
        Figure("demo: index", first.wall_s, "s"),
        *(
            Figure(f"demo: {question[-1]}", usage.wall_s, "s")
            for question, usage in zip(QUESTIONS, queries, strict=True)
        ),
        Figure("demo: index again, nothing changed", again.wall_s, "s", 3),
    ]


def ui(workspace: Workspace) -> Iterable[Figure]:
    """Index the sample from an empty root by clicks in Dagster's asset graph, in headless Chromium."""
    from graphrag_pipeline_tests.bench.ui import run

    return run(Root(workspace.copy_sample()))


def retrieval(workspace: Workspace) -> Iterable[Figure]:
    """Measure retrieval without a model."""
    from graphrag_pipeline_tests.bench.retrieval import run

    return run(workspace.kept_folder("retrieval"))


def judged(workspace: Workspace) -> Iterable[Figure]:
    """Judge answers without a model by questions on five kinds of text."""
    from graphrag_pipeline_tests.bench.judged import run

    return run(workspace.kept_folder("judged"), workspace.is_held_back)


def operations(workspace: Workspace) -> Iterable[Figure]:
    """Judge entities and answers on documents of teams of engineers."""
    from graphrag_pipeline_tests.bench.operations import run

    return run(workspace.empty_folder("operations"), workspace.is_held_back, workspace.is_by_model)


def selection(workspace: Workspace) -> Iterable[Figure]:
    """Measure the four aims of text unit selection."""
    from graphrag_pipeline_tests.bench.selection import run

    return run(workspace.kept_folder("retrieval"))


def global_tokens(workspace: Workspace) -> Iterable[Figure]:
    """Compare the tokens of dynamic and static global search."""
    from graphrag_pipeline_tests.bench.global_tokens import run

    return run(workspace.kept_folder("global_tokens"))


def permissions(workspace: Workspace) -> Iterable[Figure]:
    """Measure the cost of a view, and ask for 300 canary documents on every route."""
    from graphrag_pipeline_tests.bench.permissions import run

    return run(workspace.empty_folder("permissions"))


def stability(workspace: Workspace) -> Iterable[Figure]:
    """Count communities that stay when one of 100 articles is removed and restored."""
    from graphrag_pipeline_tests.bench.stability import run

    return run()


def graph_merge(workspace: Workspace) -> Iterable[Figure]:
    """Merge 1,000,000 entity and 5,000,000 relationship mentions into a graph with communities, and a tenth of them."""
    tenth, whole = (_merge_mentions(workspace, n) for n in (100_000, 1_000_000))
    what = "graph and communities of 1M entity and 5M relationship mentions"
    return [
        *figures_of(what, whole, max_wall_s=90, max_gb=6),
        Figure(f"{what}: processor over that of a tenth", whole.cpu_s / tenth.cpu_s, "times", 15),
    ]


def _merge_mentions(workspace: Workspace, n_entity_mentions: int) -> ProcessUsage:
    folder = workspace.empty_folder("mentions")
    write_mentions(folder, n_entity_mentions, 5 * n_entity_mentions, n_entity_mentions * 3 // 10)
    return measure_module("graphrag_pipeline_tests.bench.graph_merge", str(folder))


def model_engine(workspace: Workspace) -> Iterable[Figure]:
    """100 articles through the whole model engine, and again."""
    return index_by_model(workspace.empty_folder("model_engine"))


def model_calls(workspace: Workspace) -> Iterable[Figure]:
    """5,000 calls of extraction at 200 ms, 50 at once."""
    return ask_many(workspace.empty_folder("model_calls"))


def parity(workspace: Workspace) -> Iterable[Figure]:
    """Compare searches with Microsoft GraphRAG itself."""
    from graphrag_pipeline_tests.bench.parity import run

    return run(workspace)


def serve(workspace: Workspace) -> Iterable[Figure]:
    """Measure the server on an index of 100,000 entities."""
    from graphrag_pipeline_tests.bench.serve import measure_server

    return measure_server(workspace.large_root())


def explorer(workspace: Workspace) -> Iterable[Figure]:
    """Open pages of the explorer on an index of 100,000 entities."""
    from graphrag_pipeline_tests.bench.explorer import measure_explorer

    return measure_explorer(workspace.large_root())


def local_context(workspace: Workspace) -> Iterable[Figure]:
    """Select contexts of local search on an index of 100,000 entities, and measure its quality."""
    from graphrag_pipeline_tests.bench.local_context import USUAL, run

    return run(workspace.large_root(), 100_000, USUAL)


def local_context_1m(workspace: Workspace) -> Iterable[Figure]:
    """The same on 1,000,000 entities: 13 GB of disk and, while the index is made, 15 GB of memory."""
    from graphrag_pipeline_tests.bench.local_context import LARGE, run

    return run(workspace.large_root(1_000_000), 1_000_000, LARGE)


_FAST = (
    demo,
    index_1400,
    index_workers,
    nothing_changed_1400,
    index_5600,
    one_more_1400,
    retrieval,
    judged,
    operations,
    selection,
    global_tokens,
    permissions,
    stability,
    model_engine,
    model_calls,
)
BENCHES: dict[str, Bench] = {bench.__name__: bench for bench in _FAST}
"""Run by default, in this order."""
_SLOW = (graph_merge, index_20000, parity, serve, explorer, local_context, local_context_1m, ui)
SLOW: dict[str, Bench] = {bench.__name__: bench for bench in _SLOW}
"""Run by name, or with `--slow`."""
