"""Bodies of the stages in the group `publish`: the candidate is frozen, then published.

Keep out: loops, parsing, files, networks.
"""

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from graphrag_pipeline.defs.assets.pages import metadata
from graphrag_pipeline.defs.assets.stage_run import StageRun

if TYPE_CHECKING:
    from graphrag_pipeline.storage.manifests import Manifest


def index_candidate(run: StageRun) -> None:
    from graphrag_pipeline.indexing.embeddings import look_up_all_vectors
    from graphrag_pipeline.publishing.candidates import freeze_candidate
    from graphrag_pipeline.publishing.contract_tables import JOINED_TABLES, join_contract_tables
    from graphrag_pipeline.publishing.token_counts import COUNTED_TEXTS
    from graphrag_pipeline.text.tokens import count_tokens_each

    last = run.root.tables.head(run.stage.name)
    previous = run.root.snapshots.last_manifest(last.data_version if last else None)
    numbers = _carried_numbers(run, previous)
    count_tokens = partial(count_tokens_each, encoding=run.settings.text_units.encoding)
    counted = run.frozen_before(COUNTED_TEXTS)
    tables = join_contract_tables({name: run.read(name) for name in JOINED_TABLES}, numbers, count_tokens, counted)
    del counted
    vectors = look_up_all_vectors(tables, run.scan, run.root.embedder.dimensions)
    snapshot_id = freeze_candidate(
        run.root.snapshots,
        tables,
        vectors,
        run.root.embedder.fingerprint,
        sentences=run.read("sentence_embeddings"),
        heads=run.pinned,
        previous=previous,
        code=run.pinned_code,
    )
    run.details["snapshot"] = snapshot_id
    run.write_candidate(snapshot_id)


def _carried_numbers(run: StageRun, previous: "Manifest | None") -> pa.Table | None:
    from graphrag_pipeline.indexing.communities.numbers import carry_community_numbers

    numbers = run.root.snapshots.record_numbers(previous)
    old = run.root.snapshots.whole_table(previous, "communities")
    return numbers if numbers is None or old is None else carry_community_numbers(numbers, old, run.read("communities"))


def index_snapshot(run: StageRun) -> None:
    from graphrag_pipeline.defs.assets.published import of_snapshot, open_published
    from graphrag_pipeline.defs.assets.quality import of_quality
    from graphrag_pipeline.evaluation.regression_gate import check_golden_questions, try_searches
    from graphrag_pipeline.pipeline.stages import CANDIDATE
    from graphrag_pipeline.publishing.candidates import publish

    candidate = run.root.tables.need(CANDIDATE.name).data_version
    pinned = run.root.snapshots.pinned()
    if pinned not in (None, candidate):
        run.log(
            f"candidate {candidate} is not published: snapshot {pinned} is pinned; run "
            "`graphrag-pipeline snapshots unpin` to publish it"
        )
        run.details |= {"snapshot": pinned, "waiting for unpin": candidate}
        run.is_withheld = True
        return
    run.details |= check_golden_questions(run.root, candidate)
    before = open_published(run.root)
    trial = partial(try_searches, run.root)
    publish(run.root.snapshots, candidate, run.settings.publishing, trial, run.allows_removal)
    run.details |= of_snapshot(run.root, candidate, before) | metadata.of_calls(run.session.costs.total)
    run.details |= of_quality(run.root, candidate, before)
