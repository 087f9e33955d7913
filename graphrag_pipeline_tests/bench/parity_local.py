"""Local contexts of ours and of Microsoft GraphRAG for the same entities: the `local` part of `parity.py`.

Both read one index: `graphrag_pipeline_tests/data/microsoft_christmas_carol`, imported, and exported again in
Microsoft's layout (`exported`). So both have one graph, and every difference is one of the search. The peer also reads
Microsoft's own tables (`source`), and copies of them with one or both repairs of the import, written a second time with
pandas (`source_repairs.py`). A difference on the source has a reason only if it is gone on such a copy.

The questions name one entity, two entities, or the subject of a report. Our index matches each to entities; both
programs surround the same entities, in the same order. In the runs `talk`, each question comes after a conversation of
one to eight turns (`make_talk`), which both take off the budget first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from graphrag_pipeline.engines.embedded.static_embeddings import load_static_embeddings
from graphrag_pipeline.interchange.graphrag_import import import_graphrag
from graphrag_pipeline.interchange.index_export import export_snapshot
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.query.rendering import ContextStyle, render_context
from graphrag_pipeline.query.results import Context
from graphrag_pipeline.query.search.local import select_around
from graphrag_pipeline.query.understanding.conversation import read_history
from graphrag_pipeline.query.understanding.entity_matching import Match, begin_matching
from graphrag_pipeline.settings.settings import LocalSearchSettings, Settings
from graphrag_pipeline.text import tokens
from graphrag_pipeline_tests.bench.parity import Comparison, Peer, compare
from graphrag_pipeline_tests.bench.source_repairs import fold_pairs, place_entities, write_repaired
from graphrag_pipeline_tests.support.paths import MICROSOFT_INDEX

LIMITS = {"whole": 10**7, "usual": 12_000, "small": 4_000}
TALK_LIMITS = ("usual", "small")
"""Tokens of a context; the first holds all candidates, so that the whole order is compared."""
PARTS = {
    "reports": "community reports",
    "entities": "entities",
    "relationships": "relationships",
    "claims": "claims",
    "sources": "text units",
    "text": "text of the tables",
}
STYLES: dict[str, dict[str, Any]] = {
    "commas": {"column_delimiter": ",", "include_community_rank": True},
    "summaries": {"column_delimiter": "\t", "use_community_summary": True},
}
"""Options of both programs that change how the tables are written, by name of the run."""
RECORDING = "local"
REASONS = {
    "placed": "the import places endpoints and entities without a community, which Microsoft GraphRAG leaves out",
    "folded": "the import makes relationships that repeat a pair one",
    "repaired": "of both repairs together",
}
"""Copy of the source -> why a question differs on the source, if the peer's context on the copy is ours."""


def make_questions(index: GraphIndex, n: int) -> list[str]:
    """Return questions on single entities, pairs and themes, spread evenly over the index."""
    titles = [name.title() for name in index.snapshot.table("entities")["title"].to_pylist()]
    pairs = index.snapshot.table("relationships").select(["source", "target"]).to_pylist()
    themes = index.snapshot.table("community_reports")["title"].to_pylist()
    single = [f"Who or what is {title}?" for title in _spread(titles, 2 * n // 5)]
    double = [
        f"What have {pair['source'].title()} and {pair['target'].title()} to do with each other?"
        for pair in _spread(pairs, 2 * n // 5)
    ]
    broad = [f"What does the story say about {title}?" for title in _spread(themes, n - len(single) - len(double))]
    return [*single, *double, *broad]


def _spread(values: Sequence[Any], n: int) -> list[Any]:
    return [values[place * len(values) // n] for place in range(n)]


def match_ids(index: GraphIndex, questions: Sequence[str]) -> list[list[str]]:
    """Return the ids of the entities of each question, best first."""
    ids = index.snapshot.table("entities")["id"].to_pylist()
    found = (begin_matching(index, question, LocalSearchSettings().top_k_entities)() for question in questions)
    return [[ids[m.row] for m in sorted(matches, key=lambda match: -match.score)] for matches in found]


# ----------------------------------------------------------------------------------------------------------------- ours


def reference_settings(max_context_tokens: int, **options: Any) -> LocalSearchSettings:
    """Return the settings of the reference strategy; the command line of the peer calls claims `claims`."""
    return LocalSearchSettings(
        strategy="depth_first", max_context_tokens=max_context_tokens, claim_context_name="claims", **options
    )


def make_talk(place: int, titles: Sequence[str]) -> list[tuple[str, str]]:
    """Return the conversation before a question: one to eight questions, some long or on two lines, with answers."""
    turns: list[tuple[str, str]] = []
    for turn in range(1 + place * 7 % 8):
        title = titles[(place * 13 + turn * 5) % len(titles)].title()
        more = ' I ask for "him", a|b,\nand at length.' * ((place + turn) % 4 * (5 if place % 3 else 60))
        turns.append(("user", f"Who is {title}?{more}"))
        turns += [("assistant", f"{title} is in the book. " * (3 + place * 11 % 150))] * ((place + turn) % 3)
    return turns


def make_talks(index: GraphIndex, n: int) -> list[list[tuple[str, str]]]:
    """Return the conversation before each of n questions."""
    titles = index.snapshot.table("entities")["title"].to_pylist()
    return [make_talk(place, titles) for place in range(n)]


def select_ours(index: GraphIndex, ids: Sequence[str], settings: LocalSearchSettings) -> Context:
    """Return our context around given entities, best first."""
    rows = index.snapshot.rows_of("entities", list(ids)).tolist()
    return select_around(index, "", [Match(row, 1 - place / 100, False) for place, row in enumerate(rows)], settings)


def run_talks(index: GraphIndex, matched: Sequence[Sequence[str]], limit: str) -> list[dict[str, Any]]:
    """Return the description of our context for each list of ids, after its conversation."""
    found = []
    for ids, talk in zip(matched, make_talks(index, len(matched)), strict=True):
        settings = reference_settings(LIMITS[limit]).model_copy(update={"conversation_history": tuple(talk)})
        found.append(describe_context(select_ours(index, ids, settings), settings))
    return found


def run_styled(index: GraphIndex, matched: Sequence[Sequence[str]], style: str) -> list[dict[str, Any]]:
    """Return the description of our context for each list of ids, with the options of one of `STYLES`."""
    settings = reference_settings(LIMITS["usual"], **STYLES[style])
    return [describe_context(select_ours(index, ids, settings), settings) for ids in matched]


def describe_context(context: Context, settings: LocalSearchSettings) -> dict[str, Any]:
    """Return the numbers of the records in each part of a context, and a short hash of its text (`peer_local.py`)."""
    tables = {**vars(context), "sources": context.text_units}
    numbers = {part: [record.human_readable_id for record in tables[part]] for part in PARTS if part != "text"}
    written = f"{read_history(settings).text}\n{render_context(context, ContextStyle.of_settings(settings))}"
    lines = "\n".join(line for line in written.splitlines() if line.strip())
    return {**numbers, "text": hashlib.sha256(lines.encode()).hexdigest()[:16]}


def run_ours(index: GraphIndex, matched: Sequence[Sequence[str]], limit: str) -> list[Context]:
    """Return our context for each list of ids, at a limit by name."""
    return [select_ours(index, ids, reference_settings(LIMITS[limit])) for ids in matched]


def compare_contexts(questions: Sequence[str], contexts: Sequence[Context], theirs: Any, run: str) -> list[Comparison]:
    """Compare each part of the contexts with those of a run of the peer on the export."""
    return _compare_parts(PARTS, questions, contexts, theirs, run)


def _compare_parts(
    parts: Iterable[str],
    questions: Sequence[str],
    contexts: Sequence[Context],
    theirs: Any,
    run: str,
    reason_of: Callable[[int], str] = lambda _: "",
) -> list[Comparison]:
    """Compare some of `PARTS`; `reason_of` is that of `parity.compare`."""
    settings = reference_settings(LIMITS[run.split()[-1]])
    ours = [describe_context(context, settings) for context in contexts]
    return compare_descriptions(parts, questions, ours, theirs, run, reason_of)


def compare_descriptions(
    parts: Iterable[str],
    questions: Sequence[str],
    ours: Sequence[Any],
    theirs: Any,
    run: str,
    reason_of: Callable[[int], str] = lambda _: "",
) -> list[Comparison]:
    """Compare some of `PARTS` of described contexts; `reason_of` is that of `parity.compare`."""
    return [
        compare(
            f"local, {run} context: {PARTS[part]}",
            questions,
            [found[part] for found in ours],
            [found[part] for found in theirs],
            reason_of,
        )
        for part in parts
    ]


# ----------------------------------------------------------------------------------------------------------------- peer


def ask_peer(
    peer: Peer,
    tables: dict[str, tuple[Path, Sequence[str]]],
    matched: Sequence[Sequence[str]],
    talks: Mapping[str, Sequence[Sequence[tuple[str, str]]]],
) -> Any:
    """Return the peer's contexts by name of the tables and of the limit; on the export, also with each of `STYLES`.

    Args:
        tables: name -> folder, and the names of the limits.
        talks: name -> the conversation before each question, if there is one.
    """
    usual = LocalSearchSettings()

    def describe_run(folder: Path, limit: str, name: str = "", **options: Any) -> dict[str, Any]:
        shares = {"text_unit_prop": usual.text_unit_share, "community_prop": usual.community_share}
        shown = {"include_entity_rank": True, "include_relationship_weight": True}
        most = {"max_context_tokens": LIMITS[limit], "top_k_relationships": usual.top_k_relationships}
        return {
            "tables": str(folder),
            "level": usual.community_level,
            "talks": talks.get(name),
            "options": {**most, **shares, **shown, **options},
        }

    runs = {
        f"{name} {limit}": describe_run(folder, limit, name)
        for name, (folder, limits) in tables.items()
        for limit in limits
    }
    if "exported" in tables:
        folder, _ = tables["exported"]
        runs |= {f"{style} usual": describe_run(folder, "usual", **options) for style, options in STYLES.items()}
    request = {"ranks": str(tokens._RANKS), "matched": matched, "runs": runs}
    return peer.run("peer_local.py", request)


def compare_with_peer(peer: Peer, folder: Path, n_questions: int) -> list[Comparison]:
    """Compare the parts of the contexts of all questions: at each limit on the export, at the usual on the source."""
    import_graphrag(MICROSOFT_INDEX, folder / "root", load_static_embeddings(), Settings())
    with GraphIndex.open(folder / "root") as index:
        questions = make_questions(index, n_questions)
        matched = match_ids(index, questions)
        export_snapshot(index.snapshot, folder / "exported", "graphrag")
        tables = {"exported": (folder / "exported", tuple(LIMITS)), "source": (MICROSOFT_INDEX, ("usual",))}
        tables |= {name: (copied, ("usual",)) for name, copied in _write_copies(index, folder).items()}
        tables["talk"] = (folder / "exported", TALK_LIMITS)
        theirs = ask_peer(peer, tables, matched, {"talk": make_talks(index, len(questions))})
        peer.record(RECORDING, {"questions": questions, "matched": matched, "runs": theirs})
        found = []
        for limit in LIMITS:
            contexts = run_ours(index, matched, limit)
            found += compare_contexts(questions, contexts, theirs[f"exported {limit}"], f"exported {limit}")
            if limit == "usual":
                found += compare_source(questions, contexts, theirs)
        for limit in TALK_LIMITS:
            described = run_talks(index, matched, limit)
            found += compare_descriptions(PARTS, questions, described, theirs[f"talk {limit}"], f"talk {limit}")
        for style in STYLES:
            described = run_styled(index, matched, style)
            found += compare_descriptions(PARTS, questions, described, theirs[f"{style} usual"], f"{style} usual")
        return found


def _write_copies(index: GraphIndex, folder: Path) -> dict[str, Path]:
    """Write the copies of the source that `REASONS` names; return their folders."""
    entities = index.snapshot.table("entities")
    ids = dict(zip(*(entities[name].to_pylist() for name in ("title", "id")), strict=True))
    place = partial(place_entities, ids=ids)
    repairs = {"placed": [place], "folded": [fold_pairs], "repaired": [place, fold_pairs]}
    return {name: write_repaired(folder / name, repairs[name]) for name in REASONS}


def compare_source(questions: Sequence[str], contexts: Sequence[Context], theirs: Any) -> list[Comparison]:
    """Compare with the peer on Microsoft's own tables, and on the repaired copy, where everything must be equal.

    The texts of the tables are left out: the import also moves metadata lines out of text units, and fills empty cells.

    Args:
        theirs: runs of the peer by name.
    """
    settings, compared = reference_settings(LIMITS["usual"]), list[Comparison]()
    ours = [describe_context(context, settings) for context in contexts]
    for part in (part for part in PARTS if part != "text"):

        def name_reason(place: int, part: str = part) -> str:
            copies = (name for name in REASONS if theirs[f"{name} usual"][place][part] == ours[place][part])
            return next((REASONS[name] for name in copies), "")

        compared += _compare_parts([part], questions, contexts, theirs["source usual"], "source usual", name_reason)
        compared += _compare_parts([part], questions, contexts, theirs["repaired usual"], "repaired usual")
    return compared
