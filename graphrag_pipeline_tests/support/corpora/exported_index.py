"""The small index with names and texts that are hard to export."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from graphrag_pipeline.identity import normalize_title
from graphrag_pipeline.storage.snapshots import Snapshot
from graphrag_pipeline.tables import CONTRACT_TABLES
from graphrag_pipeline_tests.support.corpora import small_index

HARD_TITLES = {
    "BOB CRATCHIT": 'BOB "TINY" O\'CRATCHIT, <ESQ.> & SON]]>',
    "FOG": "../../ETC/PASSWD",
    "MARLEY": "=CMD|'/C CALC'!A1;{\"A\": [1]}",
    "SCROOGE": "萧炎 👨‍👩‍👧 \x01\x08\ufffe",
    "TINY TIM": '["TIM"]',
}
HARD_TEXT = 'Two\r\nlines,\ta "quote", a \x1f, a \x00, <b>&amp;</b>, 🎄, C:\\x, \u2028 and a comma,'


def hard_tables() -> dict[str, pa.Table]:
    """Contract tables of the small index with these titles, and descriptions and a report that hold `HARD_TEXT`."""
    tables = small_index.contract_tables()
    rows = {name: table.to_pylist() for name, table in tables.items()}
    for entity in rows["entities"]:
        title = HARD_TITLES[entity["title"]]
        entity |= {"title": title, "names": sorted({title, f"{title};\x1f"}), "description": HARD_TEXT}
    for relationship in rows["relationships"]:
        ends = sorted((HARD_TITLES[relationship[end]], relationship[f"{end}_id"]) for end in ("source", "target"))
        for end, (title, entity_id) in zip(("source", "target"), ends, strict=True):
            relationship |= {end: title, f"{end}_id": entity_id}
        relationship["description"] = HARD_TEXT
    for claim in rows["covariates"]:
        claim |= {"subject_id": HARD_TITLES[claim["subject_id"]], "source_text": ""}
    rows["community_reports"][0] |= {"title": HARD_TEXT, "summary": HARD_TEXT, "full_content": HARD_TEXT}
    rows["documents"][0]["metadata"] = '{"author": "O\'Brien"}'
    return {name: CONTRACT_TABLES[name].from_rows(table) for name, table in rows.items()}


def freeze_hard_index(root: Path) -> Snapshot:
    """The hard index as a snapshot in a root, not published."""
    assert all(normalize_title(title) == title for title in HARD_TITLES.values())
    return small_index.freeze(root, hard_tables())
