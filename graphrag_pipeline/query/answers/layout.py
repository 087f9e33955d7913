"""Layout of extractive answers: an introduction, then quotations under the titles of their documents, numbered.

If the texts name what is asked for, the introduction gives the name (`introduce_name`), and `read_name` reads it from
an answer. Keep out: the choice of quotations.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from graphrag_pipeline.query.answers.quoting import Quote
from graphrag_pipeline.query.cited_records import CitedRecord
from graphrag_pipeline.query.results import Answer
from graphrag_pipeline.text.late_patterns import late_re

_NAMES = "Extractive answer (no model): {name}, by the first passage [1]."
_NAMED = late_re(re.escape(_NAMES).replace(re.escape("{name}"), "(.+)"))


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


def show_descriptions(descriptions: Sequence[tuple[str, CitedRecord]]) -> Answer:
    """Return sentences of descriptions that no passage supports, marked as such, without citations."""
    lines = ["Perhaps no answer (extractive, no model): no passage answers. A model wrote these descriptions:", ""]
    lines += [
        f"- {text} (description by a model, {record.kind} {record.human_readable_id})" for text, record in descriptions
    ]
    return Answer("\n".join(lines))


def introduce_name(name: str) -> str:
    """Return the first line of an answer whose first quotation supports a name or a number."""
    return _NAMES.format(name=name)


def read_name(answer: str) -> str:
    """Return the name or number that the first line of an extractive answer gives; "" if it gives none."""
    found = _NAMED.match(answer)
    return found.group(1) if found else ""
