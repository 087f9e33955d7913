"""Documents that teams of engineers write: identifiers as entities, junk, and right passages.

The corpus is `graphrag_pipeline_tests/data/operations`: incident reports, runbooks, minutes, decisions, catalogues and
a dbt project of a fictional company. A root is made by `init`, indexed from nothing, and asked by `auto`.

- identifiers, people, groups: wanted names that are entities, by title or written form, without case.
- junk: of the 100 entities with most relationships, those in the list of junk, or of its types or its pattern. The
  list is not complete: the 100 are printed for a reader. `?` marks entities that are in neither list.
- first passage: it holds the evidence of the question, or of one part of it. First three: they hold all parts.
- false refusals, right refusals: as in `judged`.

The root keeps `operations.json`: the passages of each question. `--held-back` takes the other company: only to confirm
a result, never to choose a rule. `--model` extracts and embeds by the test server; answers stay passages. The bench is
called `operations`.
"""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline_tests.bench.judged import N_FIRST, REFUSALS, fold, shown_passages
from graphrag_pipeline_tests.bench.measuring import Figure, figures_of, measure_command
from graphrag_pipeline_tests.bench.model_engine import serving
from graphrag_pipeline_tests.support.paths import TEST_DATA

DATA = TEST_DATA / "operations"
N_LISTED = 100
"""Entities that are judged."""
NAMED = {"PERSON": "people", "GROUP": "groups"}
"""Types of wanted entities that are no identifiers, and how they are called."""
LEAST = {"identifiers": 0.95, "first passage": 0.8, "first three": 0.92, "right refusals": 0.9}
MOST = {"junk": 0.03, "false refusals": 0.0}
"""Targets of the corpus, set before the product was run on it."""
_JOINED = " … "
_MARKS = re.compile(r"</?[a-z][^<>]*>|^\s*[#>]+|\|", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Outcome:
    """A question of the corpus with the passages of its answer, in order."""

    question: Mapping[str, Any]
    passages: tuple[str, ...]
    is_refusal: bool
    seconds: float

    def is_right(self, passages: Sequence[str], of_all: Callable[[Iterable[bool]], bool]) -> bool:
        """Return whether passages hold one alternative of all groups of evidence, or of any."""
        return of_all(
            any(holds(passage, one["quote"]) for one in group for passage in passages)
            for group in self.question["evidence"]
        )

    @property
    def is_first_right(self) -> bool:
        return self.is_right(self.passages[:1], any)

    @property
    def is_right_in_three(self) -> bool:
        return self.is_right(self.passages[:N_FIRST], all)


def holds(passage: str, quote: str) -> bool:
    """Return whether a passage holds all pieces of a quote, whatever their white space, case and marks."""
    text = _plain(passage)
    return all(_plain(piece) in text for piece in quote.split(_JOINED))


def _plain(text: str) -> str:
    folded = fold(html.unescape(_MARKS.sub(" ", text))).replace("*", "")
    return " ".join(folded.casefold().split())


def read_half(half: str) -> dict[str, Any]:
    """Return the questions, entities and lists of `dev` or `held_back`."""
    values: dict[str, Any] = json.loads((DATA / f"{half}.json").read_text(encoding="utf-8"))
    return values


def make_root(root: Path, half: str, base_url: str | None) -> None:
    """Make a root of one half whose answers are passages; with a URL, models of the test server read the texts."""
    by_model = ("--engine", "model", "--chat-model", "test-chat", "--embedding-model", "test-embedding", "--base-url")
    measure_command(root, "init", str(root), *((*by_model, base_url) if base_url else ()))
    shutil.copytree(DATA / half, root / "input", dirs_exist_ok=True)
    path = root / "settings.yaml"
    settings = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
    settings.setdefault("answers", {})["engine"] = "embedded"
    path.write_text(yaml.safe_dump(settings, allow_unicode=True), encoding="utf-8")


# ------------------------------------------------------------------------------------------------------------- entities


def find_wanted(entities: Sequence[Mapping[str, Any]], wanted: Iterable[Mapping[str, Any]]) -> dict[str, list[bool]]:
    """Return for each wanted type whether its names are entities.

    Args:
        entities: with `title` and `names`, their written forms.
        wanted: with `name`, `aliases` and `type`.
    """
    known = {name.casefold() for entity in entities for name in (entity["title"], *entity["names"])}
    found: dict[str, list[bool]] = {}
    for one in wanted:
        found.setdefault(one["type"], []).append(any(n.casefold() in known for n in (one["name"], *one["aliases"])))
    return found


def list_first(entities: Sequence[Mapping[str, Any]], half: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return verdict (`junk`, empty, `?` if not judged), type and title of the entities with most relationships."""
    junk, shapes = {name.casefold() for name in half["junk"]}, re.compile(half["junk_pattern"], re.IGNORECASE)
    wanted = {name.casefold() for one in half["entities"] for name in (one["name"], *one["aliases"])}

    def judge(entity: Mapping[str, Any]) -> str:
        names = {name.casefold() for name in (entity["title"], *entity["names"])}
        if names & wanted:
            return ""
        is_junk = names & junk or entity["type"] in half["junk_types"] or shapes.fullmatch(entity["title"])
        return "junk" if is_junk else "?"

    first = sorted(entities, key=lambda entity: (-entity["degree"], entity["title"]))[:N_LISTED]
    return [(judge(entity), entity["type"], entity["title"]) for entity in first]


# ---------------------------------------------------------------------------------------------------------------- bench


def summarize(outcomes: Sequence[Outcome]) -> list[tuple[str, list[bool]]]:
    """Return what is measured of the questions, over all and by kind."""
    asked = [one for one in outcomes if one.question["evidence"]]
    others = [one for one in outcomes if not one.question["evidence"]]
    rows = [
        ("first passage", [one.is_first_right for one in asked]),
        ("first three", [one.is_right_in_three for one in asked]),
        ("false refusals", [one.is_refusal for one in asked]),
        ("right refusals", [one.is_refusal for one in others]),
    ]
    for kind in dict.fromkeys(one.question["kind"] for one in asked):
        of_kind = [one for one in asked if one.question["kind"] == kind]
        rows.append((f"{kind}, first passage", [one.is_first_right for one in of_kind]))
        rows.append((f"{kind}, first three", [one.is_right_in_three for one in of_kind]))
    return rows


def ask_all(index: GraphIndex, questions: Iterable[Mapping[str, Any]]) -> list[Outcome]:
    """Ask each question by `auto`."""
    results = [(question, index.search(question["question"], "auto")) for question in questions]
    return [
        Outcome(question, shown_passages(found.answer), found.answer.startswith(REFUSALS), found.seconds)
        for question, found in results
    ]


def run(folder: Path, held_back: bool = False, by_model: bool = False) -> list[Figure]:
    """Index one half in `folder`, judge its entities and its questions, and print the first entities."""
    name = "held_back" if held_back else "dev"
    half, root = read_half(name), folder / name
    with serving() if by_model else nullcontext() as base_url:
        make_root(root, name, base_url)
        figures = figures_of(f"{name}: index", measure_command(root, "index"), max_wall_s=None, max_gb=None)
        with GraphIndex.open(root) as index:
            columns = ["title", "type", "names", "degree"]
            entities = index.snapshot.take("entities", range(index.snapshot.n_rows("entities")), columns)
            n_documents = index.snapshot.n_rows("documents")
            outcomes = ask_all(index, half["questions"])
    found, first = find_wanted(entities, half["entities"]), list_first(entities, half)
    rows = [("identifiers", [is_found for kind in found if kind not in NAMED for is_found in found[kind]])]
    rows += [(NAMED.get(kind, f"identifiers, {kind}"), of_kind) for kind, of_kind in found.items()]
    rows += [("junk", [verdict == "junk" for verdict, _, _ in first]), *summarize(outcomes)]
    print("".join(f"\n{verdict:5}{kind:15}{title}" for verdict, kind, title in first) + "\n")
    kept = [vars(one) | {"right": one.is_first_right, "right_in_three": one.is_right_in_three} for one in outcomes]
    (root / "operations.json").write_text(json.dumps(kept, ensure_ascii=False, indent=1), encoding="utf-8")
    figures.append(Figure(f"{name}: documents", n_documents, "documents"))
    figures.append(Figure(f"{name}: a question", sum(one.seconds for one in outcomes) / len(outcomes), "s"))
    return figures + [
        Figure(f"{name}: {what}, of {len(of)}", sum(of) / max(len(of), 1), "", MOST.get(what), LEAST.get(what))
        for what, of in rows
    ]
