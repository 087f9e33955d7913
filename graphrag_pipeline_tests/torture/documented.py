"""The errors that the documentation promises: the reference page of errors, with a cause and a way out for each.

Keep out: what else counts as a violation (`oracle.py`).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

from graphrag_pipeline_tests.support.documentation.doc_pages import DOCS

PAGE = DOCS / "reference" / "errors.md"
ANY_TIME, DAMAGED_FILE, STORE_FAULT, DAMAGED_OBJECT = "any time", "damaged file", "fault of the store", "damaged object"
FULL_DISK = "full disk"
CUT_FILE = "a file was cut while the command ran"


@dataclass(frozen=True)
class DocumentedError:
    """A row of the table.

    Attributes:
        part: a part of the message.
        causes: faults without which it must not come; `ANY_TIME` if it needs none.
    """

    part: str
    causes: frozenset[str]


def read_documented_errors() -> list[DocumentedError]:
    """Return the rows of the table."""
    rows = re.findall(r"^\| `([^`]+)` \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [DocumentedError(part, frozenset(cause.strip() for cause in causes.split(","))) for part, causes in rows]


def is_documented(message: str, causes: Collection[str], known: Collection[DocumentedError]) -> bool:
    """Return whether the table has an error for one of these causes."""
    present = {ANY_TIME, *causes}
    return any(error.part in message and present & error.causes for error in known)
