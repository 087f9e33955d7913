"""Roots with canary documents, and every request of the API that could show one.

A canary document states random facts about entities that open documents name, too: a name, an alias, a place, a
number, and metadata. Keep out: assertions.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

FILTER = "level=open"
PEOPLE = ("Bob Cratchit", "Ebenezer Scrooge", "Jacob Marley", "Belle Fezziwig", "Tiny Tim")
PLACES = ("Camden Town", "Cornhill", "Scrooge & Marley Ltd")
METHODS = ("local", "global", "basic", "drift", "lazy", "auto")
STRATEGIES = (
    "balanced", "graph", "depth_first", "per_entity_cap", "round_robin", "weighted_quota", "minimum_guarantee"
)  # fmt: skip
_OPEN = (
    "{a} met {b} in {place}. {a} signed the register of {place}. The clerk of {b} kept the ledger in {place}.",
    "{b} visited {a} at {place}. {a} and {b} founded the school of {place} in 1843.",
    "{a} works for {b}. {b} owns a house in {place}, and {a} rents a room there.",
)
N_WORDS = 6
"""Words of a canary."""
MAX_CANARIES = 1_000
_SYLLABLES = ("zor", "vex", "qua", "lim", "tarn", "obb", "ury", "kesh", "wix", "pol", "drun", "yth")


@dataclass(frozen=True)
class Canary:
    """The facts of one restricted document; none of its words is in an open one."""

    person: str
    alias: str
    place: str
    number: str
    project: str

    @property
    def words(self) -> tuple[str, ...]:
        return (*self.person.split(), *self.alias.split(), self.place, self.number, self.project)


def make_canaries(n: int, seed: int = 7) -> list[Canary]:
    """Return canaries with random words; each word and number is distinct, and none is a part of another one.

    Args:
        n: at most `MAX_CANARIES`.
    """
    if n > MAX_CANARIES:
        raise ValueError(f"{n:,} canaries need more words than there are; ask for at most {MAX_CANARIES:,}")
    draw = random.Random(seed)
    words = _draw_words(draw, N_WORDS * n)
    numbers = draw.sample(range(10**8, 10**9), n)  # of equal length, so none is a part of another one
    return [
        Canary(f"{a} {b}", f"{c} {d}", place, str(number), f"PX-{project}")
        for (a, b, c, d, place, project), number in zip(_groups(words), numbers, strict=True)
    ]


def _groups(words: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield the words of each canary."""
    return (words[start : start + N_WORDS] for start in range(0, len(words), N_WORDS))


def _draw_words(draw: random.Random, n: int) -> list[str]:
    """Return words of four different syllables in random order, none of them a part of another one."""
    every = ["".join(parts) for parts in itertools.permutations(_SYLLABLES, 4)]
    draw.shuffle(every)
    kept: list[str] = []
    for word in every:
        if len(kept) == n:
            break
        if not any(word in other or other in word for other in kept):
            kept.append(word)
    return [word.capitalize() for word in kept]


def restricted_row(canary: Canary, number: int) -> dict[str, Any]:
    """Return a row whose text names entities of open documents."""
    person, place = PEOPLE[number % len(PEOPLE)], PLACES[number % len(PLACES)]
    text = (
        f"{person} met {canary.person} in {canary.place}. {canary.person}, also known as {canary.alias}, paid {person} "
        f"{canary.number} pounds in {place}. {canary.person} works for {person}, and {canary.place} belongs to {place}."
    )
    return {"title": f"Memo on {canary.person}", "text": text, "level": "secret", "project": canary.project,
            f"code_{canary.place.lower()}": canary.number, "date": f"20{number % 30 + 30}-01-01"}  # fmt: skip


def open_rows(n: int) -> list[dict[str, Any]]:
    """Return rows without canaries."""
    rows = []
    for number in range(n):
        a, b = PEOPLE[number % len(PEOPLE)], PEOPLE[(number * 2 + 1) % len(PEOPLE)]
        text = _OPEN[number % len(_OPEN)].format(a=a, b=b, place=PLACES[number % len(PLACES)])
        row = {"title": f"Note {number}", "level": "open", "date": f"184{number % 10}-05-01"}
        rows.append(row | {"text": f"{text} It was day {number}."})
    return rows


def write_rows(root: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write mixed files: rows with ids and without, as records of their own and as tables with columns for all rows.

    An open row gets into the same file, whatever is between the open rows.
    """
    (root / "input").mkdir(parents=True, exist_ok=True)
    n_open, parts, n_seen = sum(row["level"] == "open" for row in rows), [[], [], [], []], 0
    for row in rows:
        n_seen += row["level"] == "open"
        parts[max(0, n_seen - 1) * len(parts) // n_open].append(row)
    plain, named, table, columns = parts
    for name, of in (("plain.jsonl", plain), ("named.jsonl", with_ids(named))):
        (root / "input" / name).write_text("".join(f"{json.dumps(row)}\n" for row in of))
    csv.write_csv(as_table(with_ids(table)), root / "input" / "table.csv")
    pq.write_table(as_table(columns), root / "input" / "columns.parquet")


def with_ids(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with ids that depend on their titles only."""
    return [{"id": f"r-{row['title']}", **row} for row in rows]


def as_table(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as a table with the columns of all of them."""
    names = dict.fromkeys(name for row in rows for name in row)
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def mix(open_ones: Sequence[Any], restricted: Sequence[Any], seed: int = 3) -> list[Any]:
    """Return the rows in one order in which the open ones keep theirs."""
    draw, waiting, mixed = random.Random(seed), list(restricted), list(open_ones)
    for one in waiting:
        mixed.insert(draw.randrange(len(mixed) + 1), one)
    return mixed


# ------------------------------------------------------------------------------------------------------------- requests


@dataclass(frozen=True)
class Asked:
    """A request of the API.

    Attributes:
        names_canary: whether the request itself holds words of a canary.
    """

    method: str
    path: str
    params: tuple[tuple[str, str], ...] = ()
    body: str = ""
    names_canary: bool = False


def list_requests(openapi: Mapping[str, Any], words: Sequence[str], keys: Sequence[str], root: str) -> Iterator[Asked]:
    """Yield requests for every route of an OpenAPI document.

    Args:
        root: name of the only served root.
        words: of a canary, tried as the value of every text.
        keys: of records, tried as the parameter of every path.
    """
    for path, operations in openapi["paths"].items():
        for method, operation in operations.items():
            places = [path] if "{" not in path else [_fill(path, key) for key in (*keys, words[0])]
            for place in places:
                is_named = any(word in place for word in words)
                if method == "post":
                    yield from (
                        Asked("POST", place, (), body, is_named or has) for body, has in _bodies(path, words, root)
                    )
                    continue
                yield Asked("GET", place, (), "", is_named)
                for parameter in operation.get("parameters", ()):
                    if parameter["in"] == "query" and parameter["name"] not in ("root", "snapshot"):
                        for value in _values(parameter["schema"], words):
                            has = is_named or value in words or any(word in value for word in words)
                            yield Asked("GET", place, ((parameter["name"], value),), "", has)


def _fill(path: str, key: str) -> str:
    start, _, rest = path.partition("{")
    return f"{start}{key.replace(' ', '%20')}{rest.partition('}')[2]}"


def _values(schema: Mapping[str, Any], words: Sequence[str]) -> list[str]:
    options = [schema, *schema.get("anyOf", ()), schema.get("items", {})]
    if enum := next((option["enum"] for option in options if "enum" in option), None):
        return [str(value) for value in enum]
    if any(option.get("type") in ("integer", "number") for option in options):
        return ["0", "1", "3"]
    if any(option.get("type") == "boolean" for option in options):
        return ["true", "false"]
    return [words[0], f"project={words[-1]}", "Bob Cratchit", "PERSON", "level=secret"]


def _bodies(path: str, words: Sequence[str], root: str) -> Iterator[tuple[str, bool]]:
    if path == "/feedback":  # it answers with the id of what was given, to those who may give it
        return
    if path not in ("/search", "/search/stream", "/explain", "/follow-ups", "/v1/chat/completions"):
        raise ValueError(f"no body is known for POST {path}: add bodies here that could show a canary")
    for question, has in (("Who met Bob Cratchit?", False), (f"Who is {words[0]} {words[1]}?", True)):
        if path == "/v1/chat/completions":
            said = {"messages": [{"role": "user", "content": question}]}
            yield from ((json.dumps({"model": f"{root}:{name}", **said}), has) for name in METHODS)
            yield json.dumps({"model": f"{root}:basic", "stream": True, **said}), has
            continue
        if path == "/follow-ups":
            yield json.dumps({"question": question}), has
            continue
        yield from ((json.dumps({"question": question, "strategy": name}), has) for name in STRATEGIES)
        if path == "/explain":
            continue
        for method in METHODS:
            yield json.dumps({"question": question, "method": method}), has
            yield json.dumps({"question": question, "method": method, "context_only": True}), has
        for text in (f"project={words[-1]}", "project~PX", "level=secret", "level!=open", "nothing=1", "date>=2030"):
            yield json.dumps({"question": question, "filters": [text]}), has or words[-1] in text


def list_tool_calls(words: Sequence[str], keys: Sequence[str]) -> Iterator[Asked]:
    """Yield calls of every tool for agents, as MCP's requests over HTTP."""
    questions = ("Who met Bob Cratchit?", f"Who is {words[0]} {words[1]}?")
    calls: list[tuple[str, dict[str, Any]]] = [("filters", {}), ("roots", {})]
    calls += [(tool, {"question": one}) for tool in ("search", "context") for one in questions]
    calls += [("context", {"question": questions[0], "method": method}) for method in METHODS]
    calls += [("search", {"question": questions[0], "filters": [f"project={words[-1]}"]})]
    calls += [(tool, {"name": one}) for tool in ("entity", "neighbours", "report") for one in (*keys, words[0])]
    calls += [("document_passage", {"document": one}) for one in (*keys, words[0])]
    for number, (tool, arguments) in enumerate(calls):
        call = {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        text = json.dumps(arguments)
        yield Asked(
            "POST", "/mcp", (), json.dumps({"jsonrpc": "2.0", "id": number, **call}), any(w in text for w in words)
        )


WITHHELD = ("/metrics", "/costs", "/evaluations", "/snapshots", "/unread-documents")
"""Routes that show less, or nothing, to principals with filters: facts of the server, money, history and files."""
_VARYING = re.compile(r'\\?"(seconds|created)\\?": ?[0-9.e-]+|\bchatcmpl-[0-9a-f]+|127\.0\.0\.1:\d+|\b[0-9a-f]{16}\b')


def is_same(answer: tuple[int, str], other: tuple[int, str]) -> bool:
    """Return whether two answers are equal, apart from ids of snapshots and times."""
    return answer[0] == other[0] and _VARYING.sub("", answer[1]) == _VARYING.sub("", other[1])


def send(client: Any, asked: Asked, key: str = "") -> tuple[int, str]:
    """Return the status and the body of the answer."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    headers |= {"content-type": "application/json"} if asked.body else {}
    headers |= {"accept": "application/json, text/event-stream"} if asked.path == "/mcp" else {}
    answer = client.request(
        asked.method, asked.path, params=list(asked.params), content=asked.body or None, headers=headers
    )
    return answer.status_code, answer.text
