"""Figures of the model engine: whole commands against the test model server in a separate process.

`python -m graphrag_pipeline_tests.bench.model_engine ROOT` extracts all text units of a root in one pool, as `index`
does before it materializes buckets. Its memory is that of the replies and mentions held at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphrag_pipeline.cli import collect_rarely
from graphrag_pipeline.pipeline.root import Root, init_root
from graphrag_pipeline.settings.presets import settings_for_model
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.bench.articles import write_articles
from graphrag_pipeline_tests.bench.measuring import Figure, figures_of, measure_command, measure_module
from graphrag_pipeline_tests.support.roots import build_tables

_TO_TEXT_UNITS = ("corpus_manifest", "documents", "text_units")


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """The base URL of a model server in a separate process."""
    command = [sys.executable, "-m", "graphrag_pipeline_tests.model_server", "--port", "0", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[3]
        finally:
            process.terminate()
            process.communicate()


def read_stats(base_url: str) -> dict[str, Any]:
    """Return the counts of the server's requests so far."""
    with urllib.request.urlopen(base_url.removesuffix("/v1") + "/stats") as answer:
        return json.load(answer)


def count_completions(stats: dict[str, Any]) -> int:
    """Return the number of chat calls in the counts."""
    return stats["n_calls"] - stats["kinds"]["embedding"]


def make_root(folder: Path, base_url: str, n_articles: int) -> Root:
    """Make a root of articles whose stages all use the model at an address."""
    values = settings_for_model("test-chat", "test-embedding", base_url).model_dump(mode="json")
    values["chat_model"] |= {"prompt_price": 0.0}
    values["embedding_model"] |= {"prompt_price": 0.0}
    init_root(folder, Settings.model_validate(values))
    write_articles(folder / "input", n_articles)
    return Root(folder)


def index_by_model(folder: Path) -> list[Figure]:
    """100 articles through the whole model engine, with one gleaning and no latency; again; and with one more."""
    with serving() as base_url:
        root = make_root(folder, base_url, 100)
        usage = measure_command(root.path, "index")
        stats = read_stats(base_url)
        again = measure_command(root.path, "index")
        stats_again = read_stats(base_url)
        write_articles(root.input_folder, 101)
        added = measure_command(root.path, "index")
        stats_added = read_stats(base_url)
    n_again = stats_again["n_calls"] - stats["n_calls"]
    n_calls = stats["n_calls"]
    tokens = stats["prompt_tokens"] + stats["completion_tokens"]
    completions = count_completions(stats_added) / count_completions(stats) - 1
    embedded = stats_added["n_inputs"] / stats["n_inputs"] - 1
    return [
        *figures_of("model engine, 100 articles", usage, max_wall_s=25, max_gb=None),
        Figure(
            "model engine, 100 articles: processor beside 10 s + 4 ms a call", usage.cpu_s - n_calls * 0.004, "s", 10
        ),
        Figure("model engine, 100 articles: calls", n_calls, "calls"),
        Figure("model engine, 100 articles: tokens", tokens / 1e6, "million"),
        Figure("model engine, 100 articles again: time", again.wall_s, "s", 3),
        Figure("model engine, 100 articles again: calls", n_again, "calls", 0),
        Figure("model engine, 1 article more: time", added.wall_s, "s", 15),
        Figure("model engine, 1 article more: completions, share of the first 100", completions, "", 0.06),
        Figure("model engine, 1 article more: embedded texts, share of the first 100", embedded, "", 0.03),
    ]


def ask_many(folder: Path) -> list[Figure]:
    """5,000 calls of extraction at 200 ms, 50 at once: at best 20 s."""
    with serving("--latency-ms", "200") as base_url:
        root = make_root(folder, base_url, 2500)
        build_tables(root, _TO_TEXT_UNITS)
        usage = measure_module(__name__, str(root.path))
        n_calls = read_stats(base_url)["n_calls"]
    seconds = json.loads((root.path / "pool.json").read_text(encoding="utf-8"))
    return [
        Figure(
            f"extraction, {n_calls:,} calls at 200 ms, 50 at once: time", seconds["seconds"] * 5000 / n_calls, "s", 30
        ),
        Figure("extraction, calls at 200 ms: processor", usage.cpu_s, "s"),
        Figure(f"extraction, {seconds['n_mentions']:,} mentions: peak memory", usage.peak_bytes / 1e9, "GB", 1),
    ]


def _ask(root: Root) -> None:
    from graphrag_pipeline.defs.runs.call_pool import call_ahead
    from graphrag_pipeline.defs.runs.session import IndexSession
    from graphrag_pipeline.identity import bucket_keys
    from graphrag_pipeline.models.ports import Failure

    collect_rarely()  # as every command does
    buckets = bucket_keys(root.settings.storage.n_buckets)
    session = IndexSession()
    started = time.monotonic()
    call_ahead(root, buckets, session)
    seconds = time.monotonic() - started
    n_mentions = 0
    for bucket in buckets:
        unit_ids = root.tables.read("text_units", bucket)["id"].to_pylist()
        for result in session.pooled.take_mentions(bucket, unit_ids) or []:
            if not isinstance(result, Failure):
                n_mentions += len(result.entities) + len(result.relationships)
    (root.path / "pool.json").write_text(json.dumps({"seconds": seconds, "n_mentions": n_mentions}), encoding="utf-8")


if __name__ == "__main__":
    _ask(Root(Path(sys.argv[1])))
