"""Roots for the explorer: one with two snapshots and figures, one in which every text attacks its page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from graphrag_pipeline.pipeline.stages import ALL_STAGES
from graphrag_pipeline.settings.rendering import render_settings
from graphrag_pipeline_tests.support.corpora import small_index
from graphrag_pipeline_tests.support.roots import CAROL, TWO_BUCKETS, build_tables, built_root, put

ATTACK = (
    "<script>window.pwned=1</script><img src=x onerror=window.pwned=2>"
    "[link](javascript:window.pwned=3) \x1b[31mred\u202e"
)
"""HTML, a script, a script's address in markdown, and control characters of terminals and of writing direction."""
MENU = f"""---
guests: 12
---

# The *feast*

| Guest | Dish |
|---|---|
| Bob Cratchit | **goose** |

![a plan](http://elsewhere.example/plan.png) of [a site](https://elsewhere.example/) {ATTACK}

- Bob Cratchit carried **Tiny Tim** to the feast, see [the list](../lists/guests.md "Guests").

Bob Cratchit ate the whole `goose`,
down to the bones.

```
if dish == "*goose*":
```
"""
"""A document in Markdown with front matter and a soft break that loads a picture and links to another server."""
_ATTACKED = {
    "documents": ("title", "text"), "entities": ("title", "type", "description"), "text_units": ("text",),
    "relationships": ("source", "target", "description"),
    "community_reports": ("title", "summary", "full_content", "rating_explanation"),
}  # fmt: skip


def make_explored_root(path: Path) -> Path:
    """Return a root with hostile documents beside plain ones, two snapshots and stored figures."""
    root = built_root(
        path,
        {
            **CAROL,
            "hostile.txt": f"Marley said {ATTACK} to Scrooge. Bob Cratchit heard {ATTACK} at noon.",
            "menu.md": MENU,
        },
        settings=f"{TWO_BUCKETS}\nquality:\n  thresholds: {{min_type_entropy: 3}}\n",
        stages=ALL_STAGES,
    )
    put(root.path, "four.txt", "Later Belle met Fezziwig. Belle told Fezziwig that Scrooge had loved Belle.")
    build_tables(root, tuple(ALL_STAGES))
    current = root.snapshots.current()
    folder = root.path / "evaluations" / str(current)
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"method": "local", "k": 5, "recalls": [1.0, 1.0, 1.0, 0.5], "question_ms": [2.0, 2.0, 2.0, 2.0]}
    (folder / "retrieval-test.json").write_text(json.dumps({"figures": [figures]}), encoding="utf-8")
    return root.path


def make_hostile_root(path: Path) -> Path:
    """Return a root whose snapshot has an attack in every title, type, description and report."""
    path.mkdir(parents=True)
    (path / "settings.yaml").write_text(render_settings(), encoding="utf-8")
    tables = {name: _attack(name, rows) for name, rows in small_index.contract_tables().items()}
    snapshot = small_index.freeze(path, tables)
    small_index.SnapshotStore(path).point_at(snapshot.id)
    return path


def _attack(name: str, rows: pa.Table) -> pa.Table:
    for column in _ATTACKED.get(name, ()):
        place = rows.schema.get_field_index(column)
        values: list[Any] = [f"{value}{ATTACK}" for value in rows[column].to_pylist()]
        rows = rows.set_column(place, rows.schema.field(column), pa.array(values, rows.schema.field(column).type))
    return rows
