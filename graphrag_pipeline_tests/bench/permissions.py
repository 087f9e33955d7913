"""Permissions on a larger corpus: what a view costs, and 300 canary documents on every route.

A root has 200 articles and 60 notes that a principal may read, and 300 canary documents that he may not. A second root
was made without the canaries. Their answers must be equal byte for byte, apart from ids of snapshots and times.
"""

from __future__ import annotations

import json
from pathlib import Path

from graphrag_pipeline.access.access_file import ViewRules, add_key
from graphrag_pipeline.access.rules import FollowedRules
from graphrag_pipeline.access.view_settings import find_view
from graphrag_pipeline.access.views import check_view
from graphrag_pipeline.pipeline.root import Root, init_root
from graphrag_pipeline_tests.bench.articles import write_articles
from graphrag_pipeline_tests.bench.measuring import Figure, measure_command
from graphrag_pipeline_tests.support import canaries
from graphrag_pipeline_tests.support.serving import RunningServer, running_server

N_ARTICLES = 200
N_NOTES = 60
N_CANARIES = 300
FILTER = "path~open/"


def run(folder: Path) -> list[Figure]:
    """Return the cost of a view, and the answers that differ or show a canary."""
    found = canaries.make_canaries(N_CANARIES)
    secret = [canaries.restricted_row(one, number) for number, one in enumerate(found)]
    whole, alone = _make_root(folder / "whole", secret), _make_root(folder / "alone", [])
    path = folder / "access.yaml"
    reader, editor = add_key(path, "reader", ["whole"], [FILTER]), add_key(path, "editor", ["whole"], is_whole=True)
    served = ("--access", str(path), "--serve", f"whole={whole}")
    indexed = measure_command(whole, "index")
    measure_command(alone, "index")
    first, again = (measure_command(whole, "access", "build", *served) for _ in range(2))
    problems = check_view("whole", Root(whole), (FILTER,), ViewRules()).problems
    with (
        running_server({"whole": whole}, find_view, rules=FollowedRules(path)) as server,
        running_server({"whole": alone}) as reference,
    ):
        n_asked, n_wrong, n_missing = _compare(server, reference, found, reader, editor)
    place = find_view(whole, (FILTER,))
    return [
        Figure("index of the root", indexed.wall_s, "s"),
        Figure("its first view", first.wall_s, "s"),
        Figure("the view again, nothing changed", again.wall_s, "s"),
        Figure("bytes of the root without its view", (_measure(whole) - _measure(place)) / 1e6, "MB"),
        Figure("bytes of the view", _measure(place) / 1e6, "MB"),
        Figure("problems of the view", len(problems), "", 0),
        Figure("requests of a principal without the right", n_asked, ""),
        Figure("of these, answers that differ from a root without the canaries", n_wrong, "", 0),
        Figure("canaries that a principal with the right does not find", n_missing, "", 0),
    ]


def _make_root(path: Path, secret: list[dict]) -> Path:
    init_root(path)
    write_articles(path / "input" / "open", N_ARTICLES)
    for name, rows in (("open/notes.jsonl", canaries.open_rows(N_NOTES)), ("memos.jsonl", secret)):
        if rows:
            (path / "input" / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def _measure(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _compare(
    server: RunningServer, reference: RunningServer, found: list[canaries.Canary], reader: str, editor: str
) -> tuple[int, int, int]:
    """Return the number of requests, of answers that differ or show a canary, and of canaries that are not found."""
    openapi = server.client.get("/openapi.json").json()
    words, keys = found[0].words, ["0", "1", "Bob Cratchit"]
    asked = [
        one
        for one in (*canaries.list_requests(openapi, words, keys, "whole"), *canaries.list_tool_calls(words, keys))
        if not one.path.startswith(canaries.WITHHELD)
    ]
    n_missing = 0
    for canary in found:
        body = json.dumps({"question": f"Who is {canary.person}?", "method": "basic", "context_only": True})
        question = canaries.Asked("POST", "/search", (), body, names_canary=True)
        text = canaries.send(server.client, question, editor)[1]
        n_missing += not all(word in text for word in (canary.alias, canary.place, canary.number))
        asked.append(question)
    secret = [word.lower() for canary in found for word in canary.words]
    n_wrong = 0
    for one in asked:
        answer = canaries.send(server.client, one, reader)
        shows = not one.names_canary and any(word in answer[1].lower() for word in secret)
        n_wrong += shows or not canaries.is_same(answer, canaries.send(reference.client, one))
    return len(asked), n_wrong, n_missing
