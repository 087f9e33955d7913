"""Keywords of a question by a chat model: names for entities, themes for relationships and reports.

The method of LightRAG (Guo et al. 2024, arXiv 2410.05779): a model extracts low-level keywords (specific entities and
details) and high-level keywords (themes). There, low-level keywords are matched to entities by vector, high-level
keywords to relationships. Here they are also matched to entities by name, and to community reports by vector. The call
goes to the model of answers, and its reply is stored. Keep out: what is read around the records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel

from graphrag_pipeline.models.ports import ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.reply_json import clean_text, json_schema_format, list_limit, read_json
from graphrag_pipeline.query.index_reader import IndexReader
from graphrag_pipeline.query.model_requests import open_question, request_all
from graphrag_pipeline.query.token_budget import answer_cost
from graphrag_pipeline.text.late_patterns import late_re

MAX_KEYWORDS = 12
"""Keywords of a kind that are used, the first in the reply."""
MAX_KEYWORD_CHARACTERS = 100
_SEPARATORS = late_re(r"[,;\n\u3001\uff0c]")
"""Between keywords that a small model writes as one string."""
_PROMPT = "local_search_keywords"
_RELATIONSHIP_VECTORS = "default-relationship-description"
_REPORT_VECTORS = "default-community-full_content"


class KeywordsReply(BaseModel):
    """The schema that the model is asked for."""

    high_level_keywords: list[str]
    low_level_keywords: list[str]


KEYWORDS_FORMAT = json_schema_format(KeywordsReply, "keywords")
LIMITS = {f"{kind}_level_keywords": list_limit(MAX_KEYWORDS, MAX_KEYWORD_CHARACTERS) for kind in ("high", "low")}


@dataclass(frozen=True)
class Keywords:
    """The keywords of a question; `selection.keywords` of a result.

    Attributes:
        high: themes.
        low: names and details.
        failure: why the model gave none; "" if it did.
    """

    high: tuple[str, ...] = ()
    low: tuple[str, ...] = ()
    failure: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {"high_level": list(self.high), "low_level": list(self.low), "failure": self.failure}


def extract_keywords(index: IndexReader, question: str) -> Keywords:
    """Return the keywords that the model of answers finds in a question; none, with the reason, if it gives none.

    Raises:
        PipelineError: no call can be answered, or the budget of the root is spent.
    """
    messages = open_question(index.prompt(_PROMPT), index.settings.answers.language, question)
    request = ChatRequest("keywords", messages, read_keywords, KEYWORDS_FORMAT, limits=LIMITS)
    reserve = answer_cost(index.settings, 0) if index.settings.answers.engine == "model" else 0
    [reply] = request_all(index, "answers", [request], reserve)
    return Keywords(failure=reply.reason) if isinstance(reply, Failure) else reply.value


def read_keywords(reply: str) -> Keywords:
    """Return the keywords in a reply, each once and on one line; a keyword may be high or low, not both.

    Raises:
        ReplyFormatError: the reply has no object with one of the two lists.
    """
    for value in read_json(reply):
        lists = [value.get(f"{kind}_level_keywords") for kind in ("high", "low")] if isinstance(value, dict) else []
        if any(isinstance(listed, list | str) for listed in lists):
            high, low = (_read_list(listed) for listed in lists)
            named = {keyword.casefold() for keyword in low}
            return Keywords(tuple(keyword for keyword in high if keyword.casefold() not in named), low)
    raise ReplyFormatError(f"no JSON object with lists of keywords; the reply starts {reply[:80]!r}")


def _read_list(listed: object) -> tuple[str, ...]:
    items = listed if isinstance(listed, list) else _SEPARATORS.split(listed) if isinstance(listed, str) else []
    texts = [" ".join(clean_text(item).split()) for item in items if isinstance(item, str)]
    distinct = {text.casefold(): text for text in reversed(texts) if 0 < len(text) <= MAX_KEYWORD_CHARACTERS}
    return tuple(reversed(distinct.values()))[:MAX_KEYWORDS]


def find_relationships(index: IndexReader, keywords: Sequence[str], k: int) -> np.ndarray:
    """Return the rows of the k relationships nearest to keywords by vector, nearest first: int64."""
    return _find_near(index, keywords, k, _RELATIONSHIP_VECTORS, "relationships")


def find_reports(index: IndexReader, keywords: Sequence[str], k: int) -> np.ndarray:
    """Return the rows of the k community reports nearest to keywords by vector, nearest first: int64."""
    return _find_near(index, keywords, k, _REPORT_VECTORS, "community_reports")


def _find_near(index: IndexReader, keywords: Sequence[str], k: int, vectors: str, table: str) -> np.ndarray:
    if not keywords or not k:
        return np.zeros(0, dtype=np.int64)
    near = index.snapshot.vectors(vectors).search(index.embed_question(", ".join(keywords)), k)
    rows = index.snapshot.rows_of(table, [record_id for record_id, _ in near])
    return rows[(rows >= 0) & index.row_mask(table)[rows]]
