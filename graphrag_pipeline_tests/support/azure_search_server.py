"""A server on loopback that answers those requests of Azure AI Search that our store sends, and refuses others.

It refuses what the service documents as errors: unknown fields, filters on fields that are not filterable, wrong keys,
vectors of another length, too many rows. Fields have the attributes of the service where a request leaves them out.
Written rows are found after a while.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

KEY = "the-admin-key"
DELAY_S = 0.03
"""Seconds after which a written row is found."""
_INDEX = re.compile(r"/indexes(?:\('([^']*)'\))?(?:/docs/search\.(index|post\.search))?")
_TERM = re.compile(r"(\w+) (eq|gt) '((?:[^']|'')*)'|search\.in\((\w+), '((?:[^']|'')*)', ','\)")
_OPERATOR = re.compile(r'[+|"*()~-]')
_DEFAULTS = {"searchable": True, "filterable": True, "sortable": True, "facetable": True, "retrievable": True}
_MAX_BYTES = 32_766


class Refused(Exception):
    """An answer with a status of 400 or more."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Index:
    """The definition of an index, and its rows with the time from which on they are found."""

    def __init__(self, definition: dict[str, Any]) -> None:
        self.fields = {}
        for field in definition["fields"]:
            defaults = _DEFAULTS if field["type"] == "Edm.String" else {**_DEFAULTS, "filterable": False}
            self.fields[field["name"]] = defaults | {name: value for name, value in field.items() if value is not None}
        self.rows: dict[str, tuple[float, dict[str, Any] | None]] = {}
        self.found: dict[str, dict[str, Any]] = {}
        _require([name for name, field in self.fields.items() if field.get("key")] == ["key"], "one key")
        for field in self.fields.values():
            if field["type"] == "Collection(Edm.Single)":
                _require(2 <= field["dimensions"] <= 4096, "dimensions must be between 2 and 4096")
                profiles = {profile["name"]: profile["algorithm"] for profile in definition["vectorSearch"]["profiles"]}
                kinds = {item["name"] for item in definition["vectorSearch"]["algorithms"]}
                _require(profiles[field["vectorSearchProfile"]] in kinds, "an algorithm of the profile")

    def write(self, row: dict[str, Any]) -> None:
        action = row.pop("@search.action")
        _require(action in ("upload", "delete") and set(row) <= set(self.fields), f"unknown field in {sorted(row)}")
        _require(bool(re.fullmatch(r"[\w=-]{1,1024}", row["key"], re.ASCII)), f"invalid key {row['key']!r}")
        for name, value in row.items():
            field = self.fields[name]
            if field["type"] == "Edm.String" and field["filterable"] and value is not None:
                _require(len(value.encode()) <= _MAX_BYTES, f"{name} is filterable and has over {_MAX_BYTES} bytes")
            if "dimensions" in field and value is not None:
                _require(len(value) == field["dimensions"] and all(map(math.isfinite, value)), "length of the vector")
        self.rows[row["key"]] = (time.monotonic() + DELAY_S, row if action == "upload" else None)

    def settle(self) -> None:
        for key, (due, row) in list(self.rows.items()):
            if due <= time.monotonic():
                del self.rows[key]
                self.found.pop(key, None)
                if row is not None:
                    self.found[key] = dict.fromkeys(self.fields) | row

    def search(self, request: dict[str, Any]) -> dict[str, Any]:
        self.settle()
        known = {"count", "filter", "orderby", "search", "searchFields", "select", "top", "vectorQueries",
                 "vectorFilterMode"}  # fmt: skip
        _require(set(request) <= known, f"unknown part of a request in {sorted(request)}")
        top = request.get("top", 50)
        _require(top >= 0, "top")
        rows = self._choose(request.get("filter", ""))
        scores = {row["key"]: 1.0 for row in rows}
        if text := request.get("search"):
            _require(not _OPERATOR.search(text), "an operator in the text")
            scores = self._rank(text, request["searchFields"].split(","), rows)
        for query in request.get("vectorQueries", ()):
            _require(query["kind"] == "vector" and request["vectorFilterMode"] == "preFilter", "kind and mode")
            scores = self._compare(query, rows)
        rows = sorted((row for row in rows if row["key"] in scores), key=lambda row: -scores[row["key"]])
        if order := request.get("orderby"):
            field, direction = order.split()
            _require(self.fields[field]["sortable"] and direction == "asc", f"{field} is not sortable")
            rows.sort(key=lambda row: row[field])
        shown = [name for name, field in self.fields.items() if field["retrievable"]]
        select = request["select"].split(",") if request.get("select") else shown
        _require(set(select) <= set(shown), f"{select} are not retrievable")
        value = [{"@search.score": scores[row["key"]]} | {name: row[name] for name in select} for row in rows[:top]]
        return {"value": value} | ({"@odata.count": len(rows)} if request.get("count") else {})

    def _choose(self, chosen: str) -> list[dict[str, Any]]:
        """Return the rows that a filter matches."""
        rows = list(self.found.values())
        for term in chosen.split(" and ") if chosen else ():
            found = _TERM.fullmatch(term)
            _require(found is not None, f"invalid filter {term[:80]}")
            assert found is not None
            field, operator, value, among, values = found.groups()
            _require(self.fields[field or among]["filterable"], f"{field or among} is not filterable")
            if among:
                listed = set(values.split(","))
                rows = [row for row in rows if row[among] in listed]
            elif operator == "eq":
                rows = [row for row in rows if row[field] == value]
            else:
                rows = [row for row in rows if (row[field] or "") > value]
        return rows

    def _rank(self, text: str, fields: list[str], rows: list[dict[str, Any]]) -> dict[str, float]:
        _require(all(self.fields[name]["searchable"] for name in fields), "a field is not searchable")
        [field] = fields
        _require(self.fields[field].get("analyzer") == "whitespace", "the analyzer")
        counts = {row["key"]: Counter((row[field] or "").split()) for row in self.found.values()}
        mean = np.mean([sum(count.values()) for count in counts.values()] or [1]) or 1
        scores: dict[str, float] = {}
        for word in set(text.split()):
            n_rows = sum(word in count for count in counts.values())
            idf = math.log(1 + (len(counts) - n_rows + 0.5) / (n_rows + 0.5))
            for row in rows:
                if n := counts[row["key"]][word]:
                    length = 0.25 + 0.75 * sum(counts[row["key"]].values()) / mean
                    scores[row["key"]] = scores.get(row["key"], 0.0) + idf * n * 2.2 / (n + 1.2 * length)
        return scores

    def _compare(self, query: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, float]:
        vector = np.array(query["vector"])
        _require(len(vector) == self.fields[query["fields"]]["dimensions"], "length of the vector")
        scores = {}
        for row in rows:
            if row[query["fields"]] is not None:
                other = np.array(row[query["fields"]])
                cosine = float(vector @ other / np.linalg.norm(vector) / np.linalg.norm(other))
                scores[row["key"]] = float(np.float32(1 / (2 - cosine)))
        return dict(sorted(scores.items(), key=lambda item: -item[1])[: query["k"]])


def _require(is_met: bool, message: str) -> None:
    if not is_met:
        raise Refused(400, message)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes
    server: AzureSearchServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        url = urlsplit(self.path)
        status, answer = 200, {}
        try:
            if self.headers["api-key"] != KEY:
                raise Refused(403, f"access denied for {self.headers['api-key']}")
            _require(bool(parse_qs(url.query).get("api-version")), "api-version")
            found = _INDEX.fullmatch(url.path)
            _require(found is not None, url.path)
            assert found is not None
            name, action = found.groups()
            if name is None:
                status, answer = 201, self._create(body)
            elif name not in self.server.indexes:
                raise Refused(404, f"index {name} was not found")
            elif action == "index":
                _require(1 <= len(body["value"]) <= 1000, "1 to 1,000 rows")
                for row in body["value"]:
                    self.server.indexes[name].write(row)
                done = {"status": True, "errorMessage": None, "statusCode": 200}
                answer = {"value": [{"key": row["key"], **done} for row in body["value"]]}
            else:
                answer = self.server.indexes[name].search(body)
        except Refused as refused:
            status, answer = refused.status, {"error": {"code": "", "message": str(refused)}}
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _create(self, definition: dict[str, Any]) -> dict[str, Any]:
        name = definition["name"]
        _require(bool(re.fullmatch(r"[a-z0-9](-?[a-z0-9])*", name)) and len(name) <= 128, f"invalid name {name!r}")
        if name in self.server.indexes:
            raise Refused(409, f"index {name} exists")
        self.server.indexes[name] = Index(definition)
        return definition

    def log_message(self, *arguments: object) -> None:
        pass


class AzureSearchServer(ThreadingHTTPServer):
    """The server, on a free port of loopback."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.indexes: dict[str, Index] = {}

    def __enter__(self) -> AzureSearchServer:
        Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"
