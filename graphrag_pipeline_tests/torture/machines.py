"""Machines of a torture run: roots with the same settings and input, and the faults that each has had lately.

Keep out: what is run on them.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

EXCUSED_S = 20.0
"""How long after its end a fault of the store may still be the reason of an error."""

SNAPSHOT_ID = re.compile(r"[0-9a-f]{16}")
SETTINGS = """\
input:
  folder: {input}
storage:
  n_buckets: 2
{store}"""


@dataclass
class Machine:
    """A root, and the damage since its last index that was made after it.

    Attributes:
        damage: what was done to files, while it may still show.
    """

    root: Path
    environment: Mapping[str, str]
    damage: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note_damage(self, what: str) -> None:
        """Remember a damage, as an excuse for errors."""
        with self.lock:
            self.damage.append(what)

    def forget_damage(self, known: int) -> None:
        """An index has mended the first `known` damages."""
        with self.lock:
            del self.damage[:known]

    def excuse(self) -> str:
        """Return the damage that may still show."""
        with self.lock:
            return "; ".join(self.damage)

    def snapshot_ids(self) -> list[str]:
        """Return the ids of the snapshots that have a manifest here."""
        return sorted(
            path.stem for path in (self.root / "snapshots").glob("*.json") if SNAPSHOT_ID.fullmatch(path.stem)
        )


def make_machines(
    folder: Path, n_machines: int, input_folder: Path, url: str, more: Mapping[str, str]
) -> list[Machine]:
    """Make roots that read one folder of documents and share the store at `url`; "" for none."""
    store = f"  url: {url}\n  lease_s: 10\n" if url else ""
    machines = []
    for number in range(n_machines):
        root = folder / f"machine_{number}"
        root.mkdir(parents=True)
        (root / "settings.yaml").write_text(SETTINGS.format(input=input_folder, store=store), encoding="utf-8")
        machines.append(Machine(root, more))
    return machines


class Weather:
    """Times of faults of the store: whether one is under way, or was a moment ago."""

    def __init__(self) -> None:
        self._until = 0.0

    def begin(self, seconds: float) -> None:
        """A fault of some seconds begins."""
        self._until = time.monotonic() + seconds

    def is_bad(self) -> bool:
        """Return whether requests fail now."""
        return time.monotonic() < self._until

    def excuse(self) -> str:
        """Return the excuse for an error now."""
        return "fault of the store" if time.monotonic() < self._until + EXCUSED_S else ""
