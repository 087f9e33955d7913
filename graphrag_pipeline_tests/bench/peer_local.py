"""Local contexts of Microsoft GraphRAG for given entities; runs in its environment (`parity.py`).

    python peer_local.py REQUEST REPLY

The request names a folder of its tables, the ranks of the tokenizer, the matched entities of each question (ids), and
the limits to run with; of some runs also the conversation before each question. A stub vector store returns the given
entities, so both programs surround the same ones. Each question reads fresh objects, as in a new process: the program
keeps state in them.
"""

import base64
import copy
import hashlib
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import tiktoken
from graphrag.query.context_builder.conversation_history import ConversationHistory
from graphrag.query.indexer_adapters import (
    read_indexer_covariates,
    read_indexer_entities,
    read_indexer_relationships,
    read_indexer_reports,
    read_indexer_text_units,
)
from graphrag.query.structured_search.local_search.mixed_context import LocalSearchMixedContext
from graphrag_llm.tokenizer import Tokenizer

PARTS = ("reports", "entities", "relationships", "claims", "sources")


class RanksTokenizer(Tokenizer):
    """o200k_base, its default encoding, from a file of ranks: no download."""

    def __init__(self, path):
        usual = tiktoken.registry.ENCODING_CONSTRUCTORS
        if usual is None:
            tiktoken.registry._find_constructors()
            usual = tiktoken.registry.ENCODING_CONSTRUCTORS
        ranks = {}
        for line in Path(path).read_bytes().splitlines():
            token, rank = line.split()
            ranks[base64.b64decode(token)] = int(rank)
        import tiktoken_ext.openai_public as public

        public.load_tiktoken_bpe = lambda *_, **__: ranks
        self._encoding = tiktoken.Encoding(**usual["o200k_base"]())

    def encode(self, text):
        return self._encoding.encode(text, disallowed_special=())

    def decode(self, tokens):
        return self._encoding.decode(tokens)


class GivenEntities:
    """A vector store that finds the entities it was made with, in order."""

    def __init__(self, ids):
        self._ids = ids

    def similarity_search_by_text(self, text, text_embedder, k=10, **_):
        return [SimpleNamespace(document=SimpleNamespace(id=found)) for found in self._ids]


def read_tables(folder, level):
    """Return the objects that its local search reads, by the argument that takes them."""
    names = ("entities", "communities", "community_reports", "relationships", "text_units", "covariates")
    tables = {name: pd.read_parquet(Path(folder) / f"{name}.parquet") for name in names}
    return {
        "entities": read_indexer_entities(tables["entities"], tables["communities"], level),
        "community_reports": read_indexer_reports(tables["community_reports"], tables["communities"], level),
        "relationships": read_indexer_relationships(tables["relationships"]),
        "text_units": read_indexer_text_units(tables["text_units"]),
        "covariates": {"claims": read_indexer_covariates(tables["covariates"])},
    }


def build(tables, tokenizer, ids, options, talk=None):
    """Return the numbers of the records in each part of a context, and its text."""
    fresh = {**tables, "relationships": copy.deepcopy(tables["relationships"])}
    builder = LocalSearchMixedContext(
        **fresh, entity_text_embeddings=GivenEntities(ids), text_embedder=None, tokenizer=tokenizer
    )
    turns = [{"role": role, "content": content} for role, content in talk or ()]
    history = ConversationHistory.from_list(turns) if turns else None
    result = builder.build_context("a question", conversation_history=history, **options)
    numbers = {part: numbers_of(result.context_records.get(part)) for part in PARTS}
    return {**numbers, "text": digest(without_empty_tables(result.context_chunks))}


def numbers_of(frame):
    """Return the numbers of the rows of a table; [] if the context has no such part."""
    return [] if frame is None or "id" not in frame.columns else [int(number) for number in frame["id"]]


def digest(text):
    """Return a short hash of the lines of a context that are not blank."""
    lines = "\n".join(line for line in text.splitlines() if line.strip())
    return hashlib.sha256(lines.encode()).hexdigest()[:16]


def without_empty_tables(text):
    """Return a text without headings of tables that have no row, and without the [] where no report fits."""
    text = re.sub(r"^-----[^\n]*-----\n[^\n]*\n(?=\s*(?:-----|\Z))", "", text, flags=re.MULTILINE)
    return re.sub(r"^\[\]$", "", text, count=1, flags=re.MULTILINE)


def main(request_path, reply_path):
    request = json.loads(Path(request_path).read_text(encoding="utf-8"))
    tokenizer = RanksTokenizer(request["ranks"])
    reply = {}
    for name, run in request["runs"].items():
        tables = read_tables(run["tables"], run["level"])
        talks = run["talks"] or [None] * len(request["matched"])
        both = zip(request["matched"], talks, strict=True)
        reply[name] = [build(tables, tokenizer, ids, run["options"], talk) for ids, talk in both]
    Path(reply_path).write_text(json.dumps(reply), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
