"""What a story of the documentation starts with: roots, model servers and stores, by the names that pages use.

To add a setup, add a function to `SETUPS`. Keep out: running the story's blocks (`doc_runner.py`).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from graphrag_pipeline.pipeline.root import Root, init_root
from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.settings.presets import settings_for_model
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.bench.articles import write_articles
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.object_server import BUCKET, running_object_server
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX, REPOSITORY, SAMPLE_ROOT
from graphrag_pipeline_tests.support.roots import build_tables, make_root

KEY = "sk-docs-0123456789"
ROOT_NAME = "my_root"
NEWS = (
    (
        "2024-03-04",
        "reuters",
        "Nordwerk opens a plant",
        "Nordwerk opened a plant in Brantwick. Mayor Lund cut the tape.",
    ),
    ("2024-05-13", "ap", "Nordwerk and the unions", "In Brantwick the unions met Nordwerk. Piet Maas led the talks."),
    ("2024-11-20", "reuters", "A merger is planned", "Nordwerk plans to merge with Salvatore Mills, said Piet Maas."),
    (
        "2025-06-02",
        "ap",
        "The merger is off",
        "Salvatore Mills left the talks. Piet Maas of Nordwerk was not surprised.",
    ),
    ("2025-09-15", "local", "A library for Brantwick", "Mayor Lund promised Brantwick a library beside the harbour."),
    ("2026-01-12", "reuters", "Nordwerk hires", "Nordwerk hired two hundred people in Brantwick in January."),
    ("2026-02-02", "ap", "Storm over the harbour", "A storm closed the harbour of Brantwick for three days."),
    ("2026-03-09", "reuters", "Mayor Lund speaks", "In March Mayor Lund promised a new bridge over the Eld."),
    (
        "2026-03-23",
        "local",
        "The bridge is paid for",
        "Nordwerk pays half of the bridge over the Eld, said Mayor Lund.",
    ),
    ("2026-05-18", "ap", "Strike at Nordwerk", "Workers of Nordwerk went on strike. Piet Maas asked for talks."),
    ("2026-05-25", "reuters", "The strike ends", "The strike at Nordwerk ended. Piet Maas and Mayor Lund shook hands."),
    ("2026-05-30", "local", "Bridge over the Eld", "Work on the bridge over the Eld began. Mayor Lund watched."),
)
"""(creation date, source, title, text) of made-up articles."""
_numbers = itertools.count()


@dataclass
class StoryStart:
    """What a story finds: its folder, environment variables, and values of `{name}` in replacements.

    Attributes:
        cache: a folder of this test run, for roots that are indexed once and then copied.
        stack: closes servers when the story ends.
        replacements: words that stand for other words in all blocks of the story.
    """

    folder: Path
    cache: Path
    stack: contextlib.ExitStack
    variables: dict[str, str] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    replacements: dict[str, str] = field(default_factory=dict)

    @property
    def root(self) -> Path:
        return self.folder / ROOT_NAME


@contextlib.contextmanager
def started_story(setups: tuple[str, ...], folder: Path, cache: Path) -> Iterator[StoryStart]:
    """Make what the setups name in a new folder.

    Raises:
        KeyError: a setup is unknown.
    """
    folder.mkdir(parents=True)
    with contextlib.ExitStack() as stack:
        start = StoryStart(folder, cache, stack)
        start.values["repository"] = str(REPOSITORY)
        for name in setups:
            SETUPS[name](start)
        if start.root.is_dir():
            start.variables["GRAPHRAG_ROOT"] = str(start.root)
            _name_snapshots(start)
        yield start


def _name_snapshots(start: StoryStart) -> None:
    """`{old}` and `{new}`: the oldest and the published snapshot."""
    snapshots = Root(start.root).snapshots
    if current := snapshots.current():
        start.values |= {"old": snapshots.ids()[0], "new": current}


def _copy_of(start: StoryStart, name: str, make: Callable[[Path], object]) -> None:
    """Copy a root that `make` made once."""
    made = start.cache / name
    if not made.exists():
        unfinished = made.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)  # of a setup that failed
        make(unfinished)
        unfinished.rename(made)
    shutil.copytree(made, start.root)


def _index(root: Root) -> None:
    from graphrag_pipeline.defs.index_runs.index_run import run_index

    run_index(root)


def _sample(start: StoryStart) -> None:
    def make(path: Path) -> None:
        path.mkdir()
        shutil.copytree(SAMPLE_ROOT / "input", path / "input")
        shutil.copy(SAMPLE_ROOT / "settings.yaml", path)
        init_root(path)
        _index(Root(path))

    _copy_of(start, "sample", make)


def _news(start: StoryStart) -> None:
    def make(path: Path) -> None:
        records = (
            {"id": f"news-{number}", "title": title, "text": text, "creation_date": date, "source": source}
            for number, (date, source, title, text) in enumerate(NEWS)
        )
        lines = "".join(json.dumps({**record, "author": {"name": "A. Reporter"}}) + "\n" for record in records)
        _index(make_root(path, {"news.jsonl": lines}))

    _copy_of(start, "news", make)


def _documents(start: StoryStart) -> None:
    make_root(start.root, settings="")


def _two_snapshots(start: StoryStart) -> None:
    def make(path: Path) -> None:
        root = make_root(path)
        build_tables(root, tuple(ALL_STAGES))
        (path / "input" / "three.md").unlink()
        build_tables(Root(path), tuple(ALL_STAGES))

    _copy_of(start, "two_snapshots", make)


def _model_server(start: StoryStart) -> None:
    server = start.stack.enter_context(running_model_server())
    start.values["model"] = server.base_url
    start.variables |= {
        "OPENAI_API_KEY": KEY,
        "GRAPHRAG__CHAT_MODEL__BASE_URL": server.base_url,
        "GRAPHRAG__EMBEDDING_MODEL__BASE_URL": server.base_url,
    }


def _model(start: StoryStart) -> None:
    """Indexed again for each story: replies are stored under the server's address, which differs."""
    _model_server(start)
    url = start.values["model"]
    values = settings_for_model("test-chat", "test-embedding", url, "OPENAI_API_KEY").model_dump(mode="json")
    values["storage"]["n_buckets"] = 2
    values["chat_model"] |= {"prompt_price": 1.0, "completion_price": 2.0}
    init_root(start.root, Settings.model_validate(values))
    write_articles(start.root / "input", 6)
    with patch.dict(os.environ, start.variables):
        _index(Root(start.root))


def _answers_by_model(start: StoryStart) -> None:
    _model_server(start)
    start.variables |= {"GRAPHRAG__ANSWERS__ENGINE": "model", "GRAPHRAG__CHAT_MODEL__MODEL": "test-chat"}


def _s3(start: StoryStart) -> None:
    server = start.stack.enter_context(running_object_server())
    place = f"s3://{BUCKET}/docs-{next(_numbers)}"
    start.values["s3"] = place
    start.variables |= server.environment
    start.replacements["s3://bucket"] = place


def _graphrag_output(start: StoryStart) -> None:
    shutil.copytree(MICROSOFT_INDEX, start.folder / "output")


SETUPS: dict[str, Callable[[StoryStart], None]] = {
    "sample": _sample,
    "news": _news,
    "documents": _documents,
    "two_snapshots": _two_snapshots,
    "model": _model,
    "model_server": _model_server,
    "answers_by_model": _answers_by_model,
    "s3": _s3,
    "graphrag_output": _graphrag_output,
}
