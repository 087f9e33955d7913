"""A typed, paged document: rows as a converter makes them, some fifty words each, sections of a few pages."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

TOPICS = ("harbour", "bridge", "railway", "cathedral", "market", "library", "theatre", "observatory")
_VERBS = ("was built", "was repaired", "was described", "was measured", "was sold", "was opened")


def make_rows(document_id: str = "report", n_pages: int = 24, seed: int = 1) -> list[dict[str, Any]]:
    """Return rows in reading order: a title every third page, then paragraphs, a list and sometimes a table."""
    chance = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for page in range(1, n_pages + 1):
        topic = TOPICS[(page // 3) % len(TOPICS)]
        kinds = ["title"] * (page % 3 == 1) + ["paragraph"] * 4 + ["list", "paragraph"] + ["table"] * (page % 4 == 0)
        rows += [
            {"document_id": document_id, "type": kind, "page": page, "text": _text(chance, kind, topic, page)}
            for kind in kinds
        ]
    return rows


def _text(chance: random.Random, kind: str, topic: str, page: int) -> str:
    if kind == "title":
        return f"{page // 3 + 1}. The {topic}"
    if kind == "list":
        return "\n".join(f"- the {chance.choice(_VERBS)} part {number} of the {topic}" for number in range(4))
    if kind == "table":
        return "\n".join(f"| {topic} {number} | {chance.randint(1, 999)} | {page} |" for number in range(12))
    return " ".join(_sentences(chance, topic, 4))


def _sentences(chance: random.Random, topic: str, n: int) -> Iterator[str]:
    for _ in range(n):
        year, cost = chance.randint(1800, 1999), chance.randint(1000, 99999)
        yield f"In {year} the {topic} {chance.choice(_VERBS)} for {cost} crowns, as the council of that year tells."


def make_manual(document_id: str = "manual", n_pages: int = 24, seed: int = 1) -> list[dict[str, Any]]:
    """Return the rows of `make_rows` with figures and their captions, code, and some tables longer than a text unit."""
    chance = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for row in make_rows(document_id, n_pages, seed):
        page = row["page"]
        rows.append(row | {"text": _long_table(chance, page)} if row["type"] == "table" and page % 8 == 0 else row)
        if row["type"] == "list":
            extra = {"figure": f"[drawing {page}]", "caption": f"Figure {page}: {next(_sentences(chance, 'pump', 1))}"}
            if page % 5 == 0:
                extra["code"] = "\n".join(f"set_valve({n}, open={n % 2 == 0})" for n in range(12))
            rows += [{"document_id": document_id, "type": kind, "page": page, "text": extra[kind]} for kind in extra]
    return rows


def _long_table(chance: random.Random, page: int) -> str:
    lines = [f"| Part {page}-{n} | {chance.choice(TOPICS)} | {chance.randint(1, 9999)} |" for n in range(150)]
    return "\n".join(["| Part | Used in | Price |", "|---|---|---|", *lines])
