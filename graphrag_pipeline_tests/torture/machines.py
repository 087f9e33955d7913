"""Machines of a torture run: roots with the same settings and input, and the damage to each.

Keep out: what is run on them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

SNAPSHOT_ID = re.compile(r"[0-9a-f]{16}")
LEASE_S = 10
SETTINGS = """\
input:
  folder: {input}
storage:
  n_buckets: 2
{store}"""


@dataclass
class Machine:
    """A root, and the damage to it since its last index.

    Attributes:
        is_importer: it imports exports of the others, and has an index of its own.
        has_store: it is a working copy of a shared store.
        damage: what was done to files, while it may still show.
        older_damage: damage that an import left, since it mends only what it publishes.
        last_cut: which of the damages last cut a file short, from 1; 0 if none did.
    """

    root: Path
    environment: Mapping[str, str]
    is_importer: bool = False
    has_store: bool = False
    damage: list[str] = field(default_factory=list)
    older_damage: list[str] = field(default_factory=list)
    n_damages: int = 0
    last_cut: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note_damage(self, what: str) -> None:
        """Remember a damage, as the cause of errors."""
        with self.lock:
            self.n_damages += 1
            self.damage.append(what)
            if what.startswith("cut "):
                self.last_cut = self.n_damages

    def was_cut_since(self, n_damages: int) -> bool:
        """Return whether a file was cut after the first `n_damages` damages."""
        return self.last_cut > n_damages

    def forget_damage(self, before: int, is_import: bool = False) -> None:
        """An index, or an import, that began after `before` damages has mended them."""
        with self.lock:
            n_mended = max(len(self.damage) - (self.n_damages - before), 0)
            self.older_damage = [*self.older_damage, *self.damage[:n_mended]] if is_import else []
            del self.damage[:n_mended]

    def snapshot_ids(self) -> list[str]:
        """Return the ids of the snapshots that have a manifest here."""
        return sorted(
            path.stem for path in (self.root / "snapshots").glob("*.json") if SNAPSHOT_ID.fullmatch(path.stem)
        )


def make_machine(
    root: Path, input_folder: Path, url: str, more: Mapping[str, str], is_importer: bool = False
) -> Machine:
    """Make a root that reads a folder of documents and shares the store at `url`; "" for none."""
    store = f"  url: {url}\n  lease_s: {LEASE_S}\n" if url else ""
    root.mkdir(parents=True)
    (root / "settings.yaml").write_text(SETTINGS.format(input=input_folder, store=store), encoding="utf-8")
    return Machine(root, more, is_importer, has_store=bool(url))
