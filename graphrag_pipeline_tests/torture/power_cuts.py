"""Power cuts at random moments of `index`, on a real file system that writes as late as it may.

    python -m graphrag_pipeline_tests.torture.power_cuts --cuts 12 --seed 7

The root lies on ext4 in an image file, mounted with late, unordered writes. At each cut the processes are stopped and
the image is copied: the copy has what reached the "disk", and no more. Then the copy is mounted as after a restart.
What was published when the cut came must answer, and one `index` must lead to the snapshot that the root without the
cut has. Needs Linux, root's rights, loop devices and mkfs.ext4.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from graphrag_pipeline.errors import PipelineError
from graphrag_pipeline.storage.snapshot_store import SnapshotStore
from graphrag_pipeline_tests.support.command_line import environment, program, run
from graphrag_pipeline_tests.torture.corpus import PEOPLE, PLACES

LATE_WRITES = "loop,data=writeback,nobarrier,noauto_da_alloc,commit=300"
"""Mount options: data after names, no order between writes, no early write of a replaced file."""
IMAGE_MB = 400
N_CUTS = 12
SEED = 7
SETTLE_S = 0.5


@dataclass
class Cut:
    """What a cut left behind."""

    after_s: float
    was_published: str | None
    is_answered: bool
    is_published_kept: bool
    is_mended: bool
    message: str = ""

    @property
    def is_clean(self) -> bool:
        return self.is_answered and self.is_published_kept and self.is_mended


def main() -> int:
    """Cut, print a line for each cut, and return how many were not clean."""
    parser = argparse.ArgumentParser(prog="python -m graphrag_pipeline_tests.torture.power_cuts", description=__doc__)
    parser.add_argument("--cuts", type=int, default=N_CUTS, help=f"number of power cuts; default {N_CUTS}")
    parser.add_argument("--seed", type=int, default=SEED, help=f"seed of their times; default {SEED}")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="graphrag-power-") as temporary:
        cuts = [
            _print_cut(number, cut) for number, cut in enumerate(run_cuts(Path(temporary), chosen.cuts, chosen.seed), 1)
        ]
    n_unclean = sum(not cut.is_clean for cut in cuts)
    print(f"{len(cuts)} cuts, {n_unclean} not clean (seed {chosen.seed})")
    return n_unclean


def run_cuts(folder: Path, n_cuts: int, seed: int) -> Iterator[Cut]:
    """Yield the result of each cut; the next begins from the undisturbed root, two documents later."""
    chance = random.Random(seed)
    image, copy = folder / "disk.img", folder / "cut.img"
    _make_file_system(image)
    with _mounted(image, folder / "disk", LATE_WRITES) as disk:
        root = disk / "root"
        _write_documents(root / "input", 6, chance)
        run("init", root).check_returncode()
        run("--root", root, "index").check_returncode()
        for number in range(n_cuts):
            after = chance.uniform(0.1, 1.1) * _time_of_update(root, 7 + 2 * number, chance)
            _write_documents(root / "input", 8 + 2 * number, chance)
            published = _cut_during_index(root, after, image, copy)
            yield _restart(copy, folder / "restarted", after, published, expected=_published(root))


def _time_of_update(root: Path, n_documents: int, chance: random.Random) -> float:
    """Return the seconds that one document more takes, which the machine's other work changes."""
    _write_documents(root / "input", n_documents, chance)
    started = time.monotonic()
    run("--root", root, "index").check_returncode()
    return time.monotonic() - started


def _cut_during_index(root: Path, after: float, image: Path, copy: Path) -> str | None:
    """Copy the disk `after` seconds into an index, let it end, and return what was published at the cut."""
    process = subprocess.Popen(
        program("--root", root, "index"),
        env=environment(),
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGSTOP)
    published = _published(root) if process.returncode is not None else None
    _copy_settled(image, copy)
    if process.returncode is None:
        os.killpg(process.pid, signal.SIGCONT)
    process.wait()
    return published


def _copy_settled(image: Path, copy: Path) -> None:
    """Copy an image between two writes to it."""
    while True:
        time.sleep(SETTLE_S)
        before = image.stat().st_mtime_ns
        shutil.copyfile(image, copy)
        if image.stat().st_mtime_ns == before:
            return


def _restart(copy: Path, mount: Path, after: float, published: str | None, expected: str | None) -> Cut:
    """Mount what a cut left, ask, index again, and compare what is published."""
    subprocess.run(["e2fsck", "-fp", str(copy)], capture_output=True, check=False)
    with _mounted(copy, mount, "loop") as disk:
        root = disk / "root"
        kept = published is None or _published(root) == published
        asked = run("--root", root, "query", "Who lives in Harrowgate?")
        indexed = run("--root", root, "index")
        mended = indexed.returncode == 0 and _published(root) == expected
        message = "" if asked.returncode == 0 else _last_line(asked)
        return Cut(after, published, asked.returncode == 0, kept, mended, message or _last_line(indexed))


def _published(root: Path) -> str | None:
    try:
        return SnapshotStore(root).current()
    except PipelineError:
        return None


def _write_documents(folder: Path, n_documents: int, chance: random.Random) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(n_documents):
        path = folder / f"note_{number:03}.txt"
        if not path.exists():
            lines = [f"{chance.choice(PEOPLE)} of {chance.choice(PLACES)} wrote to {chance.choice(PEOPLE)}."] * 3
            path.write_text("\n".join([*lines, f"{PEOPLE[number % 6]} lives in {PLACES[number % 4]}."]))
    os.sync()


def _make_file_system(image: Path) -> None:
    with open(image, "wb") as file:
        file.truncate(IMAGE_MB << 20)
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)


@contextmanager
def _mounted(image: Path, folder: Path, options: str) -> Iterator[Path]:
    folder.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", options, str(image), str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


def _last_line(ran: subprocess.CompletedProcess[str]) -> str:
    return next(reversed((ran.stdout + ran.stderr).strip().splitlines()), "")


def _print_cut(number: int, cut: Cut) -> Cut:
    state = "clean" if cut.is_clean else f"NOT CLEAN: {cut}"
    when = f"published {cut.was_published}" if cut.was_published else "before it ended"
    print(f"cut {number} after {cut.after_s:.1f} s ({when}): {state}", flush=True)
    return cut


if __name__ == "__main__":
    sys.exit(main())
