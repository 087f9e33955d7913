"""Verification of a root: every immutable file is compared with its hash, and damaged ones are made again.

`verify` reads all files, and `index` those that were not checked for the longest time. Keep out: how a file is repaired
(`file_repairs.py`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields, replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.pipeline.file_repairs import (
    DOWNLOADED,
    DamagedFile,
    check_passed,
    check_records,
    list_parts,
    repair_parts,
)
from graphrag_pipeline.pipeline.root import VIEWS_FOLDER, Root
from graphrag_pipeline.settings.settings import SETTINGS_FILE
from graphrag_pipeline.storage.damage import CheckTimes, StoredPart, find_changed_parts
from graphrag_pipeline.storage.locks import one_index_run, one_view_builder, one_writer
from graphrag_pipeline.storage.shared.transfer import UPLOAD_AGAIN

if TYPE_CHECKING:
    from graphrag_pipeline.storage.shared.shared_store import SharedStore

VERIFY_DAYS = 30.0
"""Days after which `index` compares a file with its hash again; it also checks the oldest 512 MB."""
_WITHOUT_REPAIR = "run `graphrag-pipeline verify --repair`"
_NOT_HERE = f"this root has no whole copy of it; {UPLOAD_AGAIN}"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Verification:
    """The result of a verification.

    Attributes:
        n_parts: number of files and folders that were checked.
        n_bytes: their size.
        seconds: duration of the check, without repairs.
        findings: damaged files.
    """

    n_parts: int
    n_bytes: int
    seconds: float
    findings: tuple[DamagedFile, ...]

    @property
    def is_whole(self) -> bool:
        """Whether nothing is damaged now, or `index` makes it again."""
        return all(finding.is_repaired for finding in self.findings)


def verify_root(root: Root, is_repairing: bool = False, has_store: bool = False) -> Verification:
    """Read every immutable file of a root and of its views, and compare it with its hash.

    Args:
        is_repairing: repair what is damaged.
        has_store: check also every object of the shared store; it is downloaded and not kept.

    Raises:
        PipelineError: `has_store` is set, and the root has no shared store.
    """
    objects = _verify_store(root, is_repairing) if has_store else []  # first: what is uploaded can be downloaded
    found = _verify_files(root, is_repairing)
    found = replace(found, findings=(*objects, *found.findings))
    places = sorted(path.parent for path in (root.path / VIEWS_FOLDER).glob(f"*/{SETTINGS_FILE}"))
    if not places:
        return found
    with one_view_builder(root.path / VIEWS_FOLDER) if is_repairing else nullcontext():
        return reduce(_add, (_verify_view(root, place, is_repairing, has_store) for place in places), found)


def _verify_view(root: Root, place: Path, is_repairing: bool, has_store: bool) -> Verification:
    """Verify a view, which is a root of its own; `access build` does for it what `index` does for its root."""
    name = place.relative_to(root.path).as_posix()
    try:
        found = verify_root(Root(place), is_repairing, has_store)
    except PipelineError as error:  # of its settings
        finding = DamagedFile(name, "view", f"run `graphrag-pipeline access build`: {error}")
        return Verification(0, 0, 0.0, (finding,))
    findings = (
        replace(
            one,
            path=one.path if "://" in one.path else f"{name}/{one.path}",
            outcome=one.outcome.replace("`index`", "`access build`"),
        )
        for one in found.findings
    )
    return replace(found, findings=tuple(findings))


def _add(one: Verification, other: Verification) -> Verification:
    return Verification(*(getattr(one, field.name) + getattr(other, field.name) for field in fields(Verification)))


def _verify_store(root: Root, is_repairing: bool) -> list[DamagedFile]:
    """Return the missing and damaged objects of the store, uploaded again if asked for and whole here."""
    if not root.shared:
        raise PipelineError("--store checks the shared store, but the root has none (`storage.url`)")
    if not is_repairing:
        return _describe_objects(root.shared, *root.shared.find_damaged_objects(), uploaded=None)
    with one_index_run(root.path), root.writing():
        missing, damaged = root.shared.find_damaged_objects()
        return _describe_objects(root.shared, missing, damaged, root.shared.upload_whole([*missing, *damaged]))


def _describe_objects(
    shared: SharedStore, missing: Sequence[str], damaged: Sequence[str], uploaded: Sequence[str] | None
) -> list[DamagedFile]:
    found = []
    for name in (*missing, *damaged):
        is_uploaded = uploaded is not None and name in uploaded
        outcome = "uploaded again" if is_uploaded else _NOT_HERE if uploaded is not None else UPLOAD_AGAIN
        kind = "object, which is missing" if name in missing else "object"
        found.append(DamagedFile(f"{shared.shown_url}/{name}", kind, outcome, is_uploaded))
    return found


def _verify_files(root: Root, is_repairing: bool) -> Verification:
    if not is_repairing:
        return _verify(root, is_repairing=False)
    # The shared store is followed before the repair, which downloads damaged files of snapshots.
    before = find_changed_parts(list_parts(root), is_fresh=True) if root.shared else []
    with one_index_run(root.path), root.writing(), one_writer(root.path):
        found = _verify(root, is_repairing=True)
    named = {finding.path for finding in found.findings}
    fetched = [DamagedFile.of(root, part, path, DOWNLOADED, True) for part, paths in before for path in paths]
    return replace(found, findings=(*found.findings, *(item for item in fetched if item.path not in named)))


def repair_before_index(root: Root, is_all: bool = False) -> Verification:
    """Check and repair the files that were not checked for the longest time; the caller holds the locks of an index.

    Args:
        is_all: check every file, since one was found damaged.
    """
    with one_writer(root.path):
        return _verify(root, is_repairing=True, is_all=is_all)


def _verify(root: Root, is_repairing: bool, is_all: bool = True) -> Verification:
    records = check_records(root, is_repairing)  # first: a manifest names the parts
    parts, times = list_parts(root), CheckTimes(root.path)
    chosen = parts if is_all else times.find_due(parts, time.time(), VERIFY_DAYS)
    started = time.perf_counter()
    damaged = find_changed_parts(chosen, is_fresh=True)
    seconds = time.perf_counter() - started
    n_bytes = sum(part.n_bytes() for part in chosen)
    wrong = {part.path for part, _ in damaged}
    if is_repairing:
        found = repair_parts(root, damaged)
    else:
        found = [DamagedFile.of(root, part, path, _WITHOUT_REPAIR) for part, paths in damaged for path in paths]
    _record(times, [part for part in chosen if part.path not in wrong], parts)
    passed = check_passed(root, is_repairing)
    return Verification(len(chosen), n_bytes, seconds, (*records, *found, *passed))


def _record(times: CheckTimes, checked: Sequence[StoredPart], known: Sequence[StoredPart]) -> None:
    try:
        times.record(checked, known, time.time())
    except PipelineError as error:
        _log.warning("%s", error)  # a root that this process cannot write is verified, too
