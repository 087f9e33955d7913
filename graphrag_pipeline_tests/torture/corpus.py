"""A small corpus that random edits change, and a memory of everything it ever said.

Keep out: what a machine does with it.
"""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path

PEOPLE = ("Ada Fenwick", "Bram Osgood", "Clara Whitlow", "Dora Penhallow", "Edwin Marsh", "Flora Kettering")
PLACES = ("Harrowgate", "Millbrook", "Saltmarsh", "Thornby")
DEEDS = ("wrote to", "met", "paid", "sent a letter to", "asked for", "worked with")
MIN_DOCUMENTS, MAX_DOCUMENTS = 6, 14


class Corpus:
    """Documents in a folder that all machines read; safe for use by several threads.

    Args:
        chance: chooses the edits.
    """

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self._chance = chance
        self._lock = threading.Lock()
        self._n_texts = 0
        self._said: list[str] = []
        self.deleted: list[str] = []
        folder.mkdir(parents=True)
        for _ in range(MIN_DOCUMENTS + 2):
            self._add()

    def edit(self) -> str:
        """Add, change or delete a document; return what was done."""
        with self._lock:
            names = self.names()
            kinds = ["change"] + ["add"] * (len(names) < MAX_DOCUMENTS) + ["delete"] * (len(names) > MIN_DOCUMENTS)
            kind = self._chance.choice(kinds)
            if kind == "add":
                return f"add {self._add()}"
            name = self._chance.choice(names)
            if kind == "change":
                self._write(name)
            else:
                (self.folder / name).unlink()
                self.deleted.append(name)
            return f"{kind} {name}"

    def names(self) -> list[str]:
        """Return the names of the present documents."""
        return sorted(path.name for path in self.folder.glob("*.txt"))

    def said(self, quote: str) -> bool:
        """Return whether any version of a document contained a quotation."""
        with self._lock:
            return any(quote in text for text in self._said)

    def _add(self) -> str:
        name = f"note_{self._n_texts:04}.txt"
        self._write(name)
        return name

    def _write(self, name: str) -> None:
        self._n_texts += 1
        choose = self._chance.choice
        lines = [f"{choose(PEOPLE)} {choose(DEEDS)} {choose(PEOPLE)} in {choose(PLACES)}." for _ in range(8)]
        text = "\n".join([*lines, f"{choose(PEOPLE)} lives in {choose(PLACES)}; note {self._n_texts} says so."])
        self._said.append(text)
        temporary = self.folder / f".{name}"
        temporary.write_text(text, encoding="utf-8")
        os.replace(temporary, self.folder / name)
