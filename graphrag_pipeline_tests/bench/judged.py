"""Answers without a model, judged by questions on five kinds of text that no rule was tuned on.

The kinds are upgrade guides, operations guides, minutes, design proposals and a manual in HTML, with 16 questions each
that the texts answer and 3 that they do not (`graphrag_pipeline_tests/data/judged`). Each kind is a root with default
settings, indexed by the embedded engine. Local and basic search answer, and so does a baseline: windows of 110 words,
ranked by BM25. Shares over the questions:

- first passage, first three: of the passages as an answer shows them, one matches the question's regular expressions.
- false refusals, right refusals: answers that begin with "Not in the index", "Not answered" or "Nothing in the index",
  among the questions that the texts answer, and among the others. Passages below a refusal count as shown.
- context: words of the reference answer, without function words, in the context of local search of 2,400 tokens, with
  all records and in its text units alone, and in as many tokens of the best windows.

The development half of the questions is asked. `--held-back` asks the other half: only to confirm a result, never to
choose a rule. The bench is called `judged`.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from graphrag_pipeline.query.answers.notes import NOT_IN_INDEX
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.rendering import render_context
from graphrag_pipeline.text.name_words import words
from graphrag_pipeline.text.tokens import count_tokens_each
from graphrag_pipeline_tests.bench.measuring import Figure
from graphrag_pipeline_tests.bench.retrieval import index_root
from graphrag_pipeline_tests.support.paths import TEST_DATA

DATA = TEST_DATA / "judged"
KINDS = ("upgrades", "operations", "minutes", "proposals", "reference")
METHODS = ("local", "basic")
BASELINE = "BM25"
REFUSALS = (NOT_IN_INDEX, "Not answered", "Nothing in the index")
WINDOW, STRIDE = 110, 55
"""Words of a window of the baseline, and from the start of one to that of the next."""
K1, B = 1.2, 0.75
"""The usual parameters of BM25 (Robertson and Zaragoza 2009)."""
FLOORS = {
    "all: local, first passage": 0.65,
    "all: local, first three": 0.775,
    "all: local, context of 2,400 tokens": 0.939,
}
"""Least shares of the development half: three questions fewer than when passages came in; the baseline's context."""
CONTEXT_TOKENS = 2_400
CONTEXT, TEXT_UNITS = f"context of {CONTEXT_TOKENS:,} tokens", f"text units of {CONTEXT_TOKENS:,} tokens"
N_FIRST = 3
_FUNCTION_WORDS = words("""
a an the this that these those i me my mine myself we us our ours you your yours he him his she her hers it its they
them their theirs who whom whose which what where when why how there here then than thus so such as at by for from in
into of off on onto out over to under up upon with within without about above across after again against ago all almost
alone along already also although always among amongst and another any anybody anyone anything anyway anywhere are
around away back be became because become been before behind being below beneath beside besides between beyond both but
can cannot could despite did do does done down during each either else enough even ever every everybody everyone
everything everywhere except few finally firstly for formerly further furthermore had has have hence therein thereto
thereof hereunder hereto hereof herein hereby however if indeed instead is just lastly let like likely many maybe
meanwhile merely might more moreover most mostly much must namely near nearly neither never nevertheless no nobody none
nonetheless nor not nothing notwithstanding etc now nowhere often once one only or other others otherwise ought own per
perhaps please possibly probably quite rather really said same secondly see seldom several shall should similarly since
some somebody somehow someone something sometimes somewhere soon still surely thank thanks therefore thereafter thereby
though through throughout till together too toward towards truly twice unless until unlike usually various very via was
well were whatever whenever whereat whereupon whereof wherein wherever whether while whilst will would yes yet yesterday
today tomorrow tonight tis twas twill ah aha alas amen aye bah begone bye eh gee goodbye ha halloa hallo hello hey hi
hilli hm hmm ho
hollo humbug hurrah hurray hush lo nay o o'clock oh ok okay ooh ouch pooh ugh wow ma'am
http https www
""")
_STOPWORDS = _FUNCTION_WORDS | words("sir sirs madam chapter stave page")
_SHOWN = re.compile(r"^(?:- |(?=\d+[.)] ))(.+?) \[\d+\]$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)\s]*\)")
_ESCAPE = re.compile(r"\\([^a-zA-Z0-9\s])")
_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"", "`")  # and no marks of code


@dataclass(frozen=True)
class JudgedQuestion:
    """A question with the regular expressions of right passages; none if the texts do not answer it."""

    id: str
    kind: str
    question: str
    answers: tuple[str, ...]
    reference: str
    document: str
    held_back: bool


@dataclass(frozen=True)
class Outcome:
    """What one system gives for one question: its passages in order, and whether it refuses.

    Attributes:
        contexts: what was read -> all its text; empty where it is not measured.
    """

    question: JudgedQuestion
    passages: tuple[str, ...]
    is_refusal: bool = False
    contexts: Mapping[str, str] = field(default_factory=dict)


def read_questions(held_back: bool) -> list[JudgedQuestion]:
    """Return one half of the questions."""
    rows = json.loads((DATA / "questions.json").read_text(encoding="utf-8"))
    questions = [JudgedQuestion(**row | {"answers": tuple(row["answers"])}) for row in rows]
    return [question for question in questions if question.held_back == held_back]


def read_documents(kind: str) -> list[dict[str, str]]:
    """Return the documents of a kind with `path` and `text`."""
    with gzip.open(DATA / f"{kind}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write_root(root: Path, documents: Iterable[dict[str, str]]) -> None:
    """Write a root with default settings whose input files are the documents; reStructuredText is plain text."""
    for document in documents:
        path = root / "input" / document["path"]
        path = path.with_suffix(".rst.txt") if path.suffix == ".rst" else path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document["text"], encoding="utf-8")
    (root / "settings.yaml").write_text("", encoding="utf-8")


# -------------------------------------------------------------------------------------------------------------- scoring


def fold(text: str) -> str:
    """Return a text on one line with plain quotation marks, without Markdown's bold, code, escapes and link targets."""
    return " ".join(_ESCAPE.sub(r"\1", _LINK.sub(r"\1", text.translate(_QUOTES).replace("**", ""))).split())


def answers_question(passage: str, answers: Iterable[str]) -> bool:
    """Return whether one of the regular expressions is found in a passage."""
    folded = fold(passage)
    return any(re.search(answer, folded, re.IGNORECASE) for answer in answers)


def shown_passages(answer: str) -> tuple[str, ...]:
    """Return the quotations of an extractive answer as a user reads them, in order."""
    return tuple(_SHOWN.findall(answer))


def content_words(text: str) -> set[str]:
    """Return the words in lower case that are not function words."""
    return set(_words(text)) - _STOPWORDS


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def summarize(name: str, outcomes: Sequence[Outcome]) -> list[Figure]:
    """Return the shares of one system over the outcomes of one kind, or of all."""
    answerable = [one for one in outcomes if one.question.answers]
    others = [one for one in outcomes if not one.question.answers]

    def right_within(k: int) -> float:
        return _mean(
            any(answers_question(passage, one.question.answers) for passage in one.passages[:k]) for one in answerable
        )

    rows = [("first passage", right_within(1)), ("first three", right_within(N_FIRST))]
    if BASELINE not in name:
        rows.append(("false refusals", _mean(one.is_refusal for one in answerable)))
        rows.append(("right refusals", _mean(one.is_refusal for one in others)))
    for part in dict.fromkeys(part for one in answerable for part in one.contexts):
        read = [(content_words(one.question.reference), one.contexts.get(part)) for one in answerable]
        covered = (len(words & content_words(text)) / len(words) for words, text in read if text is not None)
        rows.append((part, _mean(covered)))
    return [Figure(f"{name}, {what}", share, "", least=FLOORS.get(f"{name}, {what}")) for what, share in rows]


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


# ------------------------------------------------------------------------------------------------------------- baseline


def cut_windows(text: str) -> list[str]:
    """Return the overlapping windows of a document; the last one ends with it."""
    words = text.split()
    starts = range(0, max(len(words) - WINDOW, 0) + STRIDE, STRIDE)
    return [" ".join(words[start : start + WINDOW]) for start in starts]


class WindowRanking:
    """BM25 over the windows of all documents of a kind."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.windows = [window for text in texts for window in cut_windows(text)]
        self.counts = [Counter(_words(window)) for window in self.windows]
        self.n_containing = Counter(word for counts in self.counts for word in counts)
        self.mean_length = _mean(counts.total() for counts in self.counts)

    def rank(self, question: str) -> list[str]:
        """Return the windows that share a word with a question, best first, ties in the order of the texts."""
        words = _words(question)
        scores = [self._score(words, counts) for counts in self.counts]
        rows = sorted(range(len(scores)), key=lambda row: -scores[row])
        return [self.windows[row] for row in rows if scores[row] > 0]

    def _score(self, words: Iterable[str], counts: Counter[str]) -> float:
        norm = K1 * (1 - B + B * counts.total() / self.mean_length)
        return sum(self._weigh(word) * counts[word] * (K1 + 1) / (counts[word] + norm) for word in words)

    def _weigh(self, word: str) -> float:
        n = self.n_containing[word]
        return math.log(1 + (len(self.windows) - n + 0.5) / (n + 0.5))


def pack(passages: Sequence[str], max_tokens: int) -> list[str]:
    """Return the first passages that fit."""
    left = max_tokens
    packed = []
    for passage, n_tokens in zip(passages, count_tokens_each(passages), strict=True):
        if n_tokens > left:
            break
        packed.append(passage)
        left -= n_tokens
    return packed


# ---------------------------------------------------------------------------------------------------------------- bench


def ask(index: GraphIndex, method: str, question: JudgedQuestion) -> Outcome:
    """Ask one question; the context is read for local search alone."""
    answer = index.search(question.question, method).answer
    contexts = {}
    if method == "local":
        read = index.search(question.question, method, context_only=True, max_context_tokens=CONTEXT_TOKENS).context
        contexts = {CONTEXT: render_context(read), TEXT_UNITS: " ".join(unit.text for unit in read.text_units)}
    return Outcome(question, shown_passages(answer), answer.startswith(REFUSALS), contexts)


def ask_all(root: Path, questions: Sequence[JudgedQuestion]) -> dict[str, list[Outcome]]:
    """Return the outcomes of each system for the questions of an indexed root."""
    with GraphIndex.open(root) as index:
        outcomes = {method: [ask(index, method, question) for question in questions] for method in METHODS}
        rows = list(range(index.snapshot.n_rows("documents")))
        ranking = WindowRanking(record["text"] for record in index.snapshot.take("documents", rows, ["text"]))
    ranked = [ranking.rank(question.question) for question in questions]
    outcomes[BASELINE] = [
        Outcome(question, tuple(best[:N_FIRST]), contexts={CONTEXT: " ".join(pack(best[:100], CONTEXT_TOKENS))})
        for question, best in zip(questions, ranked, strict=True)
    ]
    return outcomes


def run(folder: Path, held_back: bool = False) -> list[Figure]:
    """Index every kind in `folder`, whose indexes are used again, and judge one half of the questions."""
    questions = read_questions(held_back)
    figures: list[Figure] = []
    of_all: dict[str, list[Outcome]] = {}
    for kind in KINDS:
        root = folder / kind
        if not root.exists():
            write_root(root, read_documents(kind))
        index_root(root)
        for system, outcomes in ask_all(root, [one for one in questions if one.kind == kind]).items():
            figures += summarize(f"{kind}: {system}", outcomes)
            of_all.setdefault(system, []).extend(outcomes)
    named = "held back" if held_back else "all"
    return figures + [
        figure for system, outcomes in of_all.items() for figure in summarize(f"{named}: {system}", outcomes)
    ]
