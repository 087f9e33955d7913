"""Retrieval without a model: the recall of each ranker of text units.

- 2WikiMultihopQA: 6,119 passages, each a document of one text unit, and 51 development questions that name the titles
  of all passages that they need (HippoRAG's corpus, MIT / Apache-2.0): recall@5 and all-evidence@5.
- A Christmas Carol, the sample, in text units of 300 and 1,200 tokens: 32 questions of ours in other words than the
  text, each with a phrase of its evidence: mean reciprocal rank among 10. It guards against tuning to the other corpus.

Both are indexed by `graphrag-pipeline index` and live in `data/retrieval`. The bench is called `retrieval`; by itself

    python -m graphrag_pipeline_tests.bench.retrieval [FOLDER]

keeps the indexes in FOLDER and uses them again; without it they are temporary.
"""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from graphrag_pipeline.evaluation.conditions import Ranker, parse_condition, rank_text_units
from graphrag_pipeline.evaluation.questions import Question, find_evidence
from graphrag_pipeline.evaluation.retrieval_figures import recall_each
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.selection.windows import embed_question, find_all_best_windows
from graphrag_pipeline_tests.bench.measuring import Figure, print_table
from graphrag_pipeline_tests.support.paths import SAMPLE_ROOT, TEST_DATA

DATA = TEST_DATA / "retrieval"
SAMPLE = SAMPLE_ROOT / "input"
BM25_ANCHOR = (0.652, 0.333)
"""recall@5 and all-evidence@5 that a textbook BM25 reaches on the 51 questions."""
GRAPH_TARGET = (0.90, 0.75)
"""The least recall@5 of PageRank: HippoRAG 2 publishes recall@5 0.904 with a 70B model."""
STORY_SIZES = (300, 1200)
"""Tokens in a text unit."""


# --------------------------------------------------------------------------------------------------------------rankers


def rank_by_window(index: GraphIndex, question: str, k: int) -> list[str]:
    windows = find_all_best_windows(index.snapshot.sentences, embed_question(index.snapshot, question))
    rows = np.argsort(-windows.scores, kind="stable")[:k]
    return [record["id"] for record in index.snapshot.take("text_units", rows, ["id"])]


def rank_by(name: str) -> Ranker:
    """The text units of a condition, in its order; local search's are cut off by its token budget, not by k."""
    return partial(rank_text_units, parse_condition(name))


RANKERS: dict[str, Ranker] = {
    "BM25": rank_by("bm25"),
    "text unit vectors": rank_by("SS"),
    "window vectors": rank_by_window,
    "basic": rank_by("basic"),
    "local, graph": rank_by("local:graph"),
    "local, balanced": rank_by("local:balanced"),
    "drift": rank_by("drift"),
    "lazy": rank_by("lazy"),
    "lazy, 10 tests": rank_by("lazy:budget=10"),
    "auto": rank_by("auto"),
}
LIMITS = {"basic": BM25_ANCHOR, "local, graph": GRAPH_TARGET, "local, balanced": BM25_ANCHOR}
"""recall@5 and all-evidence@5 that a ranker must reach."""


# -------------------------------------------------------------------------------------------------------2WikiMultihopQA


def read_passages() -> list[dict[str, str]]:
    """Passages with id, title (unique) and text."""
    with gzip.open(DATA / "2wiki_corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_questions() -> list[dict]:
    """Questions with `question` and `gold`, the titles of the passages needed."""
    return json.loads((DATA / "2wiki_dev.json").read_text(encoding="utf-8"))


def write_passages_root(root: Path, passages: Iterable[dict[str, str]]) -> None:
    """A root whose one input file holds the passages."""
    (root / "input").mkdir(parents=True)
    (root / "settings.yaml").write_text("", encoding="utf-8")
    lines = (json.dumps(passage, ensure_ascii=False) for passage in passages)
    (root / "input" / "passages.jsonl").write_text("\n".join(lines), encoding="utf-8")


def measure_recall(index: GraphIndex, questions: Iterable[dict], rank: Ranker, k: int = 5) -> tuple[float, float]:
    """Mean share of the gold passages in the first k, and share of questions with all of them there."""
    golden = [Question(question["question"], tuple(question["gold"])) for question in questions]
    evidence = find_evidence(index.snapshot, golden).rows
    recall = recall_each(index, [question.question for question in golden], evidence, rank, k)
    return float(np.mean(recall)), float(np.mean(np.array(recall) == 1))


def _measure_passages(index: GraphIndex) -> list[Figure]:
    rows: list[Figure] = []
    questions = read_questions()
    for name, rank in RANKERS.items():
        rank(index, "warm up", 5)
        started = time.monotonic()
        figures = measure_recall(index, questions, rank)
        milliseconds = 1000 * (time.monotonic() - started) / len(questions)
        limits = LIMITS.get(name, (None, None))
        for what, figure, limit in zip(("recall@5", "all-evidence@5"), figures, limits, strict=True):
            rows.append(Figure(f"2wiki: {name}, {what}", round(figure, 3), "", least=limit))
        rows.append(Figure(f"2wiki: {name}, a question", milliseconds, "ms"))
    return rows


# -----------------------------------------------------------------------------------------------------A Christmas Carol


def write_story_root(root: Path, size: int) -> None:
    """A root with the sample in text units of at most `size` tokens."""
    shutil.copytree(SAMPLE, root / "input")
    (root / "settings.yaml").write_text(f"text_units:\n  size: {size}\n  overlap: {size // 12}\n", encoding="utf-8")


def measure_reciprocal_rank(index: GraphIndex, rank: Ranker, k: int = 10) -> float:
    """Mean over questions of 1 / rank of the first text unit that holds the evidence; 0 where none of k does."""
    questions = json.loads((DATA / "carol_questions.json").read_text(encoding="utf-8"))
    reciprocal = []
    for question in questions:
        rows = index.snapshot.rows_of("text_units", rank(index, question["question"], k)[:k])
        texts = [_on_one_line(record["text"]) for record in index.snapshot.take("text_units", rows, ["text"])]
        places = [place for place, text in enumerate(texts, start=1) if question["evidence"] in text]
        reciprocal.append(1 / places[0] if places else 0.0)
    return float(np.mean(reciprocal))


def _on_one_line(text: str) -> str:
    return " ".join(text.replace("\u2019", "'").split())


def _measure_story(index: GraphIndex, size: int) -> list[Figure]:
    figures = {name: round(measure_reciprocal_rank(index, rank), 3) for name, rank in RANKERS.items()}
    return [
        Figure(
            f"carol, {size} tokens: {name}, reciprocal rank",
            figure,
            "",
            least=figures["BM25"] if name == "basic" else None,
        )
        for name, figure in figures.items()
    ]


# -----------------------------------------------------------------------------------------------------------------bench


def run(folder: Path | None = None) -> list[Figure]:
    """Index both corpora (in a temporary folder, or in `folder`, whose indexes are used again) and measure them."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return run(Path(temporary))
    passages = folder / "passages"
    if not passages.exists():
        write_passages_root(passages, read_passages())
    rows: list[Figure] = [Figure("2wiki: index 6,119 passages", index_root(passages), "s")]
    with GraphIndex.open(passages) as index:
        rows += _measure_passages(index)
    for size in STORY_SIZES:
        story = folder / f"story_{size}"
        if not story.exists():
            write_story_root(story, size)
        index_root(story)
        with GraphIndex.open(story) as index:
            rows += _measure_story(index, size)
    return rows


def index_root(root: Path) -> float:
    """Run `index`; returns seconds."""
    started = time.monotonic()
    command = [sys.executable, "-m", "graphrag_pipeline", "--root", str(root), "index"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


def main(arguments: Sequence[str]) -> int:
    """Print every row; 1 if a figure is below its limit."""
    rows = run(Path(arguments[0]) if arguments else None)
    print_table(rows)
    return int(any(row.is_under for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
