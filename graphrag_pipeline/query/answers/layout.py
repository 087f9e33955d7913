"""Layout of extractive answers: an introduction, then quotations under the titles of their documents, numbered.

Keep out: the choice of quotations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from graphrag_pipeline.query.answers.quoting import Quote
from graphrag_pipeline.query.results import Answer


def compose(introduction: str, quotes: Sequence[Quote]) -> Answer:
    """Return one line per statement under the title of its document, numbered in that order."""
    lines = [introduction]
    document = None
    for number, (text, citation) in enumerate(quotes, start=1):
        if citation.document_id != document:
            lines += ["", f"**{citation.document_title}**", ""]
            document = citation.document_id
        lines.append(f"- {text} [{number}]")
    return Answer("\n".join(lines), tuple(replace(c, number=n) for n, (_, c) in enumerate(quotes, start=1)))
