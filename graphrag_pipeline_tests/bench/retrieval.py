"""Retrieval: the recall of each ranker of text units, and of options by models of the test server.

- 2WikiMultihopQA: 6,119 passages, each a document of one text unit, and 51 development questions that name the titles
  of all passages that they need (HippoRAG's corpus, MIT / Apache-2.0): recall@5 and all-evidence@5.
- A Christmas Carol, the sample, in text units of 300 and 1,200 tokens: 32 questions of ours in other words than the
  text, each with a phrase of its evidence: mean reciprocal rank among 10. It guards against tuning to the other corpus.
- Corpora made by code, with questions made from their sentences (`support/corpora/retrieval_questions.py`): the
  passages with other questions, 120 and 1,400 generated articles, long dossiers, and the sample.
- A manual: 109 pages of the documentation of PostgreSQL 15, many of them long, and 76 questions of ours in a user's
  words. 46 name the pages that answer them, 30 a phrase of the passage. `REPEAT` of `hybrid_ranking.py` was chosen with
  a look at them.

On the latter two kinds, local search with `balanced` and `graph` must not fall below the better of BM25 and `basic` by
more than `TOLERANCE` or one question.

All are indexed by `graphrag-pipeline index` and live in `data/retrieval`. The bench is called `retrieval`; by itself

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
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from graphrag_pipeline.evaluation.conditions import Ranker, parse_condition, rank_text_units
from graphrag_pipeline.evaluation.questions import Question, find_evidence
from graphrag_pipeline.evaluation.retrieval_figures import recall_each
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.selection.hybrid_ranking import embed_question, find_all_best_windows
from graphrag_pipeline_tests.bench.measuring import Figure, print_table
from graphrag_pipeline_tests.model_server import running_model_server
from graphrag_pipeline_tests.support.corpora.retrieval_questions import (
    Asked,
    ask_for_documents,
    ask_for_passages,
    ask_for_sentences,
    write_articles_apart,
    write_dossiers,
)
from graphrag_pipeline_tests.support.models.model_index import open_with_model
from graphrag_pipeline_tests.support.paths import SAMPLE_ROOT, TEST_DATA

DATA = TEST_DATA / "retrieval"
SAMPLE = SAMPLE_ROOT / "input"
BM25_ANCHOR = (0.652, 0.333)
"""recall@5 and all-evidence@5 that a textbook BM25 reaches on the 51 questions."""
GRAPH_TARGET = (0.90, 0.75)
"""The least recall@5 of PageRank: HippoRAG 2 publishes recall@5 0.904 with a 70B model."""
STORY_SIZES = (300, 1200)
"""Tokens in a text unit."""
FLOORS = {"BM25": "bm25", "basic": "basic"}
LOCAL = {"local, balanced": "local:balanced", "local, graph": "local:graph", "lazy": "lazy"}
N_MADE = 60
"""Questions of each kind of a made corpus."""
N_MANY = 1_400
"""Articles of the largest made corpus, as many as in an archive of news."""
TOLERANCE = 1 / N_MADE
"""How far local search may be below the better of `FLOORS`, in recall@5 and all-evidence@5: one question in 60.

With fewer questions it is one of them.
"""


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
BY_MODEL: dict[str, Ranker] = {
    "basic, reranked": rank_by("basic:rerank=true"),
    "local, balanced, reranked": rank_by("local:balanced:rerank=true"),
    "local, balanced, keywords by model": rank_by("local:balanced:model_keywords=true"),
    "local, balanced, both": rank_by("local:balanced:rerank=true:model_keywords=true"),
}
"""Options that call models. The test server answers by rules: the figures show the shape, not the worth of a model."""
LIMITS = {"basic": BM25_ANCHOR, "local, graph": GRAPH_TARGET, "local, balanced": BM25_ANCHOR}
"""recall@5 and all-evidence@5 that a ranker must reach."""


@contextmanager
def with_models(index: GraphIndex) -> Iterator[GraphIndex]:
    """The index with a chat model and a reranking model of the test server."""
    with running_model_server() as server, tempfile.TemporaryDirectory() as folder:
        reranking = {"model": "test-rerank", "base_url": server.base_url, "n_candidates": 30}
        yield open_with_model(index, Path(folder), server, answers={"engine": "embedded"}, rerank_model=reranking)


# -------------------------------------------------------------------------------------------------------2WikiMultihopQA


def read_passages() -> list[dict[str, str]]:
    """Passages with id, title (unique) and text."""
    return _read_lines("2wiki_corpus.jsonl.gz")


def _read_lines(name: str) -> list[dict[str, str]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as lines:
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
    with with_models(index) as by_model:
        for name, rank in BY_MODEL.items():
            figures = measure_recall(by_model, questions, rank)
            for what, figure in zip(("recall@5", "all-evidence@5"), figures, strict=True):
                rows.append(Figure(f"2wiki: {name} (rule-based test server), {what}", round(figure, 3), ""))
    return rows


# -----------------------------------------------------------------------------------------------------A Christmas Carol


def write_story_root(root: Path, size: int) -> None:
    """A root with the sample in text units of at most `size` tokens."""
    shutil.copytree(SAMPLE, root / "input")
    (root / "settings.yaml").write_text(f"text_units:\n  size: {size}\n  overlap: {size // 12}\n", encoding="utf-8")


def open_stories(folder: Path) -> Iterator[tuple[int, GraphIndex]]:
    """Yield the text unit size and the open index of the sample, for each size; indexes are used again."""
    for size in STORY_SIZES:
        story = folder / f"story_{size}"
        if not story.exists():
            write_story_root(story, size)
        index_root(story)
        with GraphIndex.open(story) as index:
            yield size, index


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
    with with_models(index) as by_model:
        for name, rank in BY_MODEL.items():
            figures[f"{name} (rule-based test server)"] = round(measure_reciprocal_rank(by_model, rank), 3)
    return [
        Figure(
            f"carol, {size} tokens: {name}, reciprocal rank",
            figure,
            "",
            least=figures["BM25"] if name == "basic" else None,
        )
        for name, figure in figures.items()
    ]


# ----------------------------------------------------------------------------------------------------------made corpora


def write_documents_root(root: Path, documents: Iterable[dict[str, str]], size: int) -> None:
    """A root whose one input file holds the documents, in text units of at most `size` tokens."""
    write_passages_root(root, documents)
    (root / "settings.yaml").write_text(f"text_units:\n  size: {size}\n  overlap: {size // 12}\n", encoding="utf-8")


def find_pieces(index: GraphIndex, asked: Sequence[Asked]) -> list[list[frozenset[int]]]:
    """Rows of the text units that hold each piece of evidence: a document's title, or a sentence; `|` joins choices."""
    names = tuple(name for one in asked for piece in one.evidence for name in piece.split("|"))
    by_title = dict(zip(names, find_evidence(index.snapshot, [Question("", names)]).rows[0], strict=True))
    n_units = index.snapshot.n_rows("text_units")
    texts = [
        " ".join(unit["text"].split()) for unit in index.snapshot.take("text_units", list(range(n_units)), ["text"])
    ]

    def rows_of(name: str) -> frozenset[int]:
        return by_title[name] or frozenset(i for i, text in enumerate(texts) if name in text)

    return [[frozenset[int]().union(*map(rows_of, piece.split("|"))) for piece in one.evidence] for one in asked]


def measure_made(index: GraphIndex, asked: Sequence[Asked], rank: Ranker, k: int = 5) -> tuple[float, float]:
    """Mean share of the pieces of evidence in the first k text units, and share of questions with all there."""
    recall = []
    for one, pieces in zip(asked, find_pieces(index, asked), strict=True):
        first = set(index.snapshot.rows_of("text_units", rank(index, one.question, k)[:k]).tolist())
        recall.append(float(np.mean([bool(piece & first) for piece in pieces])))
    return float(np.mean(recall)), float(np.mean(np.array(recall) == 1))


def compare_with_floor(index: GraphIndex, corpus: str, asked: Sequence[Asked]) -> list[Figure]:
    """The figures of BM25, `basic` and local search, these with the better of the former as their limit."""
    figures = {name: measure_made(index, asked, rank_by(of)) for name, of in (FLOORS | LOCAL).items()}
    floor = np.max([figures[name] for name in FLOORS], axis=0) - max(TOLERANCE, 1 / len(asked))
    return [
        Figure(f"{corpus}: {name}, {what}", round(figure, 3), "", least=round(least, 3) if name in LOCAL else None)
        for name, both in figures.items()
        for what, figure, least in zip(("recall@5", "all-evidence@5"), both, floor.tolist(), strict=True)
    ]


def _measure_made(folder: Path) -> list[Figure]:
    rows: list[Figure] = []
    gold = {title for question in read_questions() for title in question["gold"]}
    with GraphIndex.open(folder / "passages") as index:
        rows += compare_with_floor(index, "passages", ask_for_passages(read_passages(), gold, N_MADE))
    for name, documents, size in (
        ("articles", write_articles_apart(120), 1200),
        (f"{N_MANY:,} articles", write_articles_apart(N_MANY), 1200),
        ("dossiers", write_dossiers(40), 300),
    ):
        root = folder / name.replace(" ", "_")
        if not root.exists():
            write_documents_root(root, documents, size)
        index_root(root)
        asked = [one for n_needed in (1, 2, 3) for one in ask_for_documents(documents, N_MADE, n_needed)]
        with GraphIndex.open(root) as index:
            rows += compare_with_floor(index, name, asked)
    text = "\n".join(path.read_text(encoding="utf-8") for path in sorted(SAMPLE.glob("*.txt")))
    for size in STORY_SIZES:
        with GraphIndex.open(folder / f"story_{size}") as index:
            rows += compare_with_floor(
                index, f"sentences of the sample, {size} tokens", ask_for_sentences(text, N_MADE)
            )
    return rows


# ---------------------------------------------------------------------------------------------------------------manual


def read_manual() -> list[dict[str, str]]:
    """Pages with id, title (unique) and text."""
    return _read_lines("manual_corpus.jsonl.gz")


def read_manual_questions() -> dict[str, list[Asked]]:
    """Questions whose evidence are titles of pages (`pages`), or phrases (`passages`)."""
    kinds = json.loads((DATA / "manual_questions.json").read_text(encoding="utf-8"))
    return {kind: [Asked(one["question"], tuple(one["evidence"])) for one in rows] for kind, rows in kinds.items()}


def _measure_manual(root: Path) -> list[Figure]:
    if not root.exists():
        write_documents_root(root, read_manual(), 1200)
    index_root(root)
    with GraphIndex.open(root) as index:
        return [
            figure
            for kind, asked in read_manual_questions().items()
            for figure in compare_with_floor(index, f"manual, {kind}", asked)
        ]


# -----------------------------------------------------------------------------------------------------------------bench


def run(folder: Path | None = None) -> list[Figure]:
    """Index all corpora (in a temporary folder, or in `folder`, whose indexes are used again) and measure them."""
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return run(Path(temporary))
    passages = folder / "passages"
    if not passages.exists():
        write_passages_root(passages, read_passages())
    rows: list[Figure] = [Figure("2wiki: index 6,119 passages", index_root(passages), "s")]
    with GraphIndex.open(passages) as index:
        rows += _measure_passages(index)
    for size, index in open_stories(folder):
        rows += _measure_story(index, size)
    return rows + _measure_made(folder) + _measure_manual(folder / "manual")


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
