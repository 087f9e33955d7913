"""Work that an index leaves open: failed records, deferred reports, unused files of the user, an unpublished candidate,
documents without an entity.

Only heads and files of the root are read, and the texts of such documents. Keep out: what is stale (`staleness.py`).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.identity import WHOLE, bucket_keys
from graphrag_pipeline.indexing.graph.overrides import find_unused, read_overrides
from graphrag_pipeline.models.prompts import FORMER_DEFAULTS, find_edited_prompt, is_former_default
from graphrag_pipeline.pipeline.root import PROMPTS_FOLDER, Root
from graphrag_pipeline.pipeline.stage_code import prompts_of
from graphrag_pipeline.pipeline.stages import CANDIDATE, STAGES
from graphrag_pipeline.settings.settings import OVERRIDES_FILE
from graphrag_pipeline.storage.snapshot_store import read_review
from graphrag_pipeline.tables import MODEL_STAGES
from graphrag_pipeline.text.counted import counted
from graphrag_pipeline.text.languages import LANGUAGE_NAMES, detect_language

LONG_TEXT_UNIT = 2_000
"""Tokens above which the literature advises against a text unit: its vector is the mean of five or more parts."""


@dataclass(frozen=True)
class ReportLag:
    """How many of all reports are deferred, and the largest share of new evidence in one of them."""

    n_reports: int
    n_deferred: int
    largest_new_share: float

    def to_dict(self) -> dict[str, float]:
        """Return the values by the keys of `status --json`."""
        values = {"n_reports": self.n_reports, "n_waiting": self.n_deferred}
        return {**values, "largest_new_share": self.largest_new_share}


def measure_lag(root: Root) -> ReportLag:
    """Count the reports that are deferred until more of their evidence is new (`reports.rewrite_share`)."""
    head = root.tables.head("community_reports", WHOLE)
    rows = root.tables.dataset([head]).to_table(columns=["new_share"]) if head else None
    shares = [share or 0.0 for share in rows["new_share"].to_pylist()] if rows else []  # null in rows of older releases
    return ReportLag(len(shares), sum(share > 0 for share in shares), max(shares, default=0.0))


def list_failures(root: Root) -> list[dict[str, str]]:
    """Return the records without a usable model reply: stage, partition and the columns of its failures table.

    `place` is where a text unit stands, such as "stave_1.txt, characters 0 to 5,120"; empty for other records.
    """
    failures = []
    for name in MODEL_STAGES:
        for partition in STAGES[name].partitions(root.settings):
            head = root.tables.head(f"{name}_failures", partition)
            rows = root.tables.read_head(head).to_pylist() if head and head.n_rows else []
            places = _find_places(root, partition, {row["record"] for row in rows}) if rows else {}
            failures += [
                {"stage": name, "partition": partition, "place": places.get(row["record"], ""), **row} for row in rows
            ]
    return failures


def _find_places(root: Root, partition: str, records: Collection[str]) -> dict[str, str]:
    """Return text unit id -> its document and offsets, for the records of a partition that are text units."""
    heads = [root.tables.head(table, partition) for table in ("text_units", "documents")]
    if partition == WHOLE or None in heads:
        return {}
    text_units, documents = (
        root.tables.dataset([head]).to_table(columns=columns)
        for head, columns in zip(heads, (["id", "document_id", "start", "end"], ["id", "path", "record"]), strict=True)
        if head
    )
    paths = {row["id"]: f"{row['path']} {row['record']}".rstrip() for row in documents.to_pylist()}
    wanted = text_units.filter(pc.is_in(text_units["id"], pa.array(sorted(records))))
    return {
        row["id"]: f"{paths.get(row['document_id'], row['document_id'])}, characters {row['start']:,} to {row['end']:,}"
        for row in wanted.to_pylist()
    }


def count_failures(root: Root) -> dict[str, int]:
    """Return stage -> number of its records without a usable model reply, if it has any."""
    counts = {
        name: sum(
            head.n_rows
            for head in root.tables.heads(f"{name}_failures", STAGES[name].partitions(root.settings)).values()
            if head
        )
        for name in MODEL_STAGES
    }
    return {name: n_failed for name, n_failed in counts.items() if n_failed}


def list_unused_overrides(root: Root) -> list[str]:
    """Return rows of entity_overrides.csv that name no entity of the graph, or why the file cannot be read."""
    try:
        overrides = read_overrides(root.read_file(OVERRIDES_FILE))
    except PipelineError as error:
        return str(error).split("\n")
    head = root.tables.head("entities") if overrides.num_rows else None
    return find_unused(overrides, root.tables.dataset([head])) if head else []


def summarize_dates(root: Root) -> dict[str, Any] | None:
    """Return `n_dated`, `n_documents`, and the `first` and the `last` day of the documents; None without documents."""
    partitions = bucket_keys(root.settings.storage.n_buckets)
    heads = [head for partition in partitions if (head := root.tables.head("documents", partition))]
    if not heads:
        return None
    dates = root.tables.dataset(heads).to_table(columns=["creation_date"])["creation_date"].to_pylist()
    days = sorted(date[:10] for date in dates if date)
    return {
        "n_dated": len(days),
        "n_documents": len(dates),
        "first": days[0] if days else None,
        "last": days[-1] if days else None,
    }


def list_silent_documents(root: Root) -> list[str]:
    """Return a line on the documents without an entity: number, scripts, what helps; none if all have one."""
    silent: list[tuple[str, str]] = []  # path, and language or script
    n_documents = 0
    for partition in bucket_keys(root.settings.storage.n_buckets):
        heads = [root.tables.head(table, partition) for table in ("documents", "text_units", "entity_mentions")]
        documents, units, mentions = (root.tables.dataset([head]) if head else None for head in heads)
        if documents is None or units is None or mentions is None:
            continue
        named = mentions.to_table(columns=["text_unit_id"])["text_unit_id"].unique()
        known = units.to_table(columns=["document_id"], filter=pc.field("id").isin(named))["document_id"].unique()
        rows = documents.to_table(columns=["path", "text"], filter=~pc.field("id").isin(known)).to_pylist()
        silent += [(row["path"], _describe_language(row["text"])) for row in rows]
        n_documents += documents.count_rows()
    if not silent:
        return []
    kinds = Counter(kind for _, kind in silent if kind)
    shown = ", ".join(f"{n:,} in {kind}" for kind, n in kinds.most_common(5))
    helps = (
        "check the texts, the prompt and `extraction.entity_types`"
        if root.settings.extraction.engine == "model"
        else "the embedded engine finds names by capitals and for some languages; `extraction.engine: model` finds more"
    )
    some = f"{len(silent):,} of {counted(n_documents, 'documents')}{f' ({shown})' if shown else ''}"
    return [f"no entity in {some}, such as {min(silent)[0]}: {helps}"]


def _describe_language(text: str) -> str:
    """Return the language of a text, or its script unless that is Latin; "" if neither is known."""
    if language := detect_language(text):
        return LANGUAGE_NAMES[language]
    scripts = Counter(unicodedata.name(letter, "").partition(" ")[0] for letter in text[:2000] if letter.isalpha())
    script = max(scripts, key=scripts.__getitem__, default="LATIN")
    return "" if script == "LATIN" else f"{script.capitalize()} script"


_QUERY_PROMPTS = {
    "rating": ("rate_report", "rate_reports", "rate_text_units"),
    "answers": (
        "local_search_answer", "basic_search_answer", "global_search_map", "global_search_reduce",
        "drift_hypothetical_answer", "drift_primer", "drift_follow_up", "lazy_subqueries", "lazy_search_map",
        "follow_up_questions",
    ),
}  # fmt: skip
"""Section whose engine sends them -> prompts of searches."""


def list_unread_prompts(root: Root) -> list[str]:
    """Return the user's prompts that differ from the default and that no model gets, and the setting that decides."""
    settings, lines = root.settings, list[str]()
    for stage in STAGES.values():
        unread = set(stage.prompts).difference(prompts_of(stage, settings))
        lines += _describe_unread(root, stage.engine, [name for name in stage.prompts if name in unread])
    for section, names in _QUERY_PROMPTS.items():
        lines += _describe_unread(root, section, () if getattr(settings, section).uses_model else names)
    return lines


def list_long_text_units(root: Root) -> list[str]:
    """Return the sizes of text units above `LONG_TEXT_UNIT`, each with what it costs."""
    settings = root.settings.text_units
    return [
        f"`text_units.{name}` is {size:,} tokens: above {LONG_TEXT_UNIT:,}, the vector of a text unit is the average "
        "of many parts, and a model may miss entities in it"
        for name in ("size", "aggregation_target")
        if (size := getattr(settings, name)) > LONG_TEXT_UNIT
    ]


def list_former_prompts(root: Root) -> list[str]:
    """Return a line on the default prompts of an earlier release that the stages still send; [] if there are none."""
    sent = {name for stage in STAGES.values() for name in prompts_of(stage, root.settings)}
    paths = [root.path / PROMPTS_FOLDER / f"{name}.txt" for name in FORMER_DEFAULTS if name in sent]
    former = [f"{PROMPTS_FOLDER}/{path.name}" for path in paths if is_former_default(path)]
    how = "delete it to adopt that of this release; the stages that send it are then made again"
    return [f"default prompt of an earlier release: {name}: {how}" for name in former]


def _describe_unread(root: Root, section: str, names: Iterable[str]) -> list[str]:
    edited = [path for name in names if (path := find_edited_prompt(root.path / PROMPTS_FOLDER, name))]
    if not edited:
        return []
    engine = getattr(root.settings, section).engine
    reason = "`extraction.has_claims` is false"
    if engine != "model":
        reason = f"`{section}.engine` is {engine}, which reads no prompt; set it to model"
    elif section == "resolution":
        reason = "`resolution.rules` has no verdict of the model"
    files = ", ".join(f"{PROMPTS_FOLDER}/{path.name}" for path in edited)
    return [f"edited but not used: {files}: {reason}"]


def find_unpublished_candidate(root: Root) -> str | None:
    """Return the candidate that waits for `snapshots unpin` or for review, or was rejected; None without one."""
    candidate = root.tables.head(CANDIDATE.name)
    if candidate is None or candidate.data_version == root.snapshots.current():
        return None
    is_held = root.snapshots.pinned() is not None or read_review(root.snapshots, candidate.data_version)
    return candidate.data_version if is_held else None
