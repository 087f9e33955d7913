"""Global searches of Microsoft GraphRAG with a scripted model; runs in its environment (`parity.py`).

    python peer_global.py REQUEST REPLY

The request names a folder of its tables, the ranks of the tokenizer, and the cases: options, the rating of each
community, and the score of the point that a map call gives for each report. The scripted model replies from these.
Each case reads fresh objects, as in a new process: the program keeps state in them.

The program collects relevant reports in a set of texts, whose order differs from one process to the next. Here they are
put into the order of the reports table before they are shuffled. Nothing else is changed.
"""

import asyncio
import io
import json
import re
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
from graphrag.query.indexer_adapters import (
    read_indexer_communities,
    read_indexer_entities,
    read_indexer_reports,
)
from graphrag.query.structured_search.global_search.community_context import GlobalCommunityContext
from graphrag.query.structured_search.global_search.search import GlobalSearch
from peer_local import RanksTokenizer

INFORMATION = re.compile(r"---Information---\n(.*)\n---Question---", re.DOTALL)


class ScriptedModel:
    """Replies to the three kinds of prompts of a global search.

    Attributes:
        asked: number of ratings of each community.
    """

    def __init__(self, case, communities):
        self.asked = Counter()
        self._case, self._communities = case, communities

    async def completion_async(self, messages, stream=False, **_):
        if stream:
            return self._pieces("The answer.")
        prompt = messages[0]["content"] if isinstance(messages, list) else messages
        prompt = prompt if isinstance(prompt, str) else str(prompt)
        found = INFORMATION.search(prompt)
        text = self._rate(self._communities[found[1]]) if found else self._map(prompt)
        return SimpleNamespace(choices=[SimpleNamespace(message=SimpleNamespace(content=text))])

    def _rate(self, community):
        ratings = self._case["ratings"][community]
        rating = ratings[self.asked[community]]
        self.asked[community] += 1
        return "I cannot say." if rating is None else json.dumps({"reason": "scripted", "rating": rating})

    def _map(self, prompt):
        points = self._case["points"]
        found = batch_of(prompt[prompt.index("id|title|") :])
        return json.dumps({"points": [points[community] for community in found if community in points]})

    async def _pieces(self, text):
        delta = SimpleNamespace(content=text)
        yield SimpleNamespace(choices=[SimpleNamespace(delta=delta)])


def batch_of(table):
    """Return the communities of the reports in a batch, in order; the table may have text behind it."""
    rows = pd.read_csv(io.StringIO(table), sep="|", dtype=str, on_bad_lines="skip")
    return [str(number) for number in rows["id"] if str(number).isdigit()]


def read_tables(folder):
    return {
        name: pd.read_parquet(Path(folder) / f"{name}.parquet")
        for name in ("entities", "communities", "community_reports")
    }


def search(tables, case, tokenizer):
    """Return what a case rates, keeps, maps and reduces."""
    options, level = case["options"], case["options"]["level"]
    is_dynamic = options["is_dynamic"]
    frames = {name: frame.copy() for name, frame in tables.items()}
    reports = read_indexer_reports(frames["community_reports"], frames["communities"], level, is_dynamic)
    communities = read_indexer_communities(frames["communities"], frames["community_reports"])
    texts = {text: report.community_id for report in reports for text in (report.full_content, report.summary)}
    model = ScriptedModel(case, texts)
    selecting = {
        "model": model,
        "tokenizer": tokenizer,
        **{name: options[name] for name in ("threshold", "keep_parent", "num_repeats", "use_summary", "max_level")},
    }
    context = GlobalCommunityContext(
        community_reports=reports,
        communities=communities,
        entities=read_indexer_entities(frames["entities"], frames["communities"], level),
        tokenizer=tokenizer,
        dynamic_community_selection=is_dynamic,
        dynamic_community_selection_kwargs=selecting,
    )
    selected = {}
    if is_dynamic:
        keep_order(context.dynamic_community_selection, reports, selected)
    engine = GlobalSearch(
        model=model,
        context_builder=context,
        tokenizer=tokenizer,
        max_data_tokens=options["max_data_tokens"],
        json_mode=False,
        context_builder_params={
            "use_community_summary": False,
            "shuffle_data": True,
            "include_community_rank": True,
            "min_community_rank": 0,
            "community_rank_name": "rank",
            "include_community_weight": True,
            "community_weight_name": "occurrence weight",
            "normalize_community_weight": True,
            "max_context_tokens": options["max_context_tokens"],
            "context_name": "Reports",
        },
    )
    result = asyncio.run(engine.search(case["question"]))
    return {
        "ratings": selected.get("ratings", {}),
        "asked": dict(model.asked),
        "kept": selected.get("kept", sorted((report.community_id for report in reports), key=int)),
        "batches": [batch_of(chunk) for chunk in result.context_text],
        "reduced": result.reduce_context_text,
    }


def keep_order(selection, reports, selected):
    """Put selected reports into the order of the table, and note them."""
    place = {report.community_id: i for i, report in enumerate(reports)}
    select = selection.select

    async def select_in_order(query):
        found, info = await select(query)
        selected["ratings"] = info["ratings"]
        selected["kept"] = sorted((report.community_id for report in found), key=int)
        return sorted(found, key=lambda report: place[report.community_id]), info

    selection.select = select_in_order


def main(request_path, reply_path):
    request = json.loads(Path(request_path).read_text(encoding="utf-8"))
    tokenizer = RanksTokenizer(request["ranks"])
    tables = read_tables(request["tables"])
    reply = [search(tables, case, tokenizer) for case in request["cases"]]
    Path(reply_path).write_text(json.dumps(reply), encoding="utf-8")


main(*sys.argv[1:])
