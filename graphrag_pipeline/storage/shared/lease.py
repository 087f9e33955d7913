"""The lease of a shared store: one writer at a time, and one that stopped holds nobody up for long.

`lease.json` names its holder; a thread of the holder renews it. Whoever finds one that nobody renews for as long as it
lasts takes it over: that is measured by the clock of who waits, so clocks of machines need not agree. A holder that was
taken over (a machine that slept, a network that was cut) is told by `check` before it removes anything, and stops; that
it publishes nothing is seen to by the numbers of states. Stores that create what is there already (the header that
forbids it is unknown to them) are found out once for every copy: there, who writes at the same time waits and looks.
A working copy whose own process was killed goes on at once: it knows the token of its lease. Keep out: what is written
under a lease.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from graphrag_pipeline.errors import LeaseLostError, PipelineError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.storage.shared.objects import ObjectStore

LEASE = "lease.json"
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class LeaseHolder:
    """Who holds the lease.

    Attributes:
        token: made anew for every lease.
        name: machine and process, for people.
        lasts_s: seconds without a renewal after which it may be taken over.
        n_renewals: so that two looks tell whether it was renewed in between.
    """

    token: str
    name: str
    lasts_s: float
    n_renewals: int = 0

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()


def read_holder(objects: ObjectStore) -> LeaseHolder | None:
    """Who holds the lease now; None if nobody does. One that cannot be read counts as held by nobody known."""
    data = objects.read(LEASE)
    if data is None:
        return None
    try:
        return LeaseHolder(**json.loads(data))
    except (ValueError, TypeError):
        return LeaseHolder("", "an unknown process", 60.0, len(data))


class Lease:
    """The lease as one process takes, renews and releases it.

    Args:
        objects: of the store.
        memory: a file of the working copy that remembers tokens; one process of the copy at a time may come here.
        lasts_s: as in `Holder`.
    """

    def __init__(self, objects: ObjectStore, memory: Path, lasts_s: float) -> None:
        self._objects = objects
        self._memory = memory
        self._proof = memory.with_name(f"{memory.name}.exclusive")
        """Holds the URL of the store, once that was seen to refuse to create what is there."""
        self._holder = LeaseHolder(secrets.token_hex(16), f"{socket.gethostname()}, process {os.getpid()}", lasts_s)
        self._is_lost = False
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self) -> None:
        """Take the lease; waits while another holder renews it, and says so."""
        # Those before stay until it is ours: a process that was killed while it waited had none of them.
        own = {*self._tokens(), self._holder.token}
        files.replace(self._memory, "\n".join(sorted(own)).encode())
        watched: LeaseHolder | None = None
        since = time.monotonic()
        while not self._create():
            found = read_holder(self._objects)
            if found is None:
                time.sleep(min(0.1, self._holder.lasts_s / 10))
                continue
            if found != watched:
                if watched is None and found.token not in own:
                    _log.warning("%s: %s is writing the index; waiting for it", self._objects.url, found.name)
                watched, since = found, time.monotonic()
            is_own = found.token in own
            if is_own or time.monotonic() - since > found.lasts_s:
                if not is_own:
                    _log.warning("%s: %s stopped without a word; taking over", self._objects.url, found.name)
                self._objects.write(LEASE, self._holder.to_json())
                if (is_own and self._is_exclusive) or self._is_settled():
                    break
            time.sleep(min(2.0, found.lasts_s / 10))
        files.replace(self._memory, self._holder.token.encode())
        self._thread = threading.Thread(target=self._renew, args=(self._objects.for_thread(),), daemon=True)
        self._thread.start()

    def _tokens(self) -> list[str]:
        """Of the last process of this copy that had the lease, and of those that waited for it since."""
        return self._memory.read_text().split() if self._memory.exists() else []

    @property
    def _is_exclusive(self) -> bool:
        return self._proof.exists() and self._proof.read_text() == self._objects.url

    def _create(self) -> bool:
        """Create the lease if nobody has it; whether it is ours then."""
        data = self._holder.to_json()
        if self._is_exclusive:
            return self._objects.create(LEASE, data)
        if read_holder(self._objects) is not None or not self._objects.create(LEASE, data):
            return False
        if self._objects.is_exclusive and not self._objects.create(LEASE, data):
            files.replace(self._proof, self._objects.url.encode())
            return True
        return self._is_settled()

    def _is_settled(self) -> bool:
        """Whether the lease is ours, once everybody who wrote at the same time has."""
        time.sleep(min(1.0, self._holder.lasts_s / 10))
        found = read_holder(self._objects)
        return found is not None and found.token == self._holder.token

    def _renew(self, objects: ObjectStore) -> None:
        renewed_at = time.monotonic()
        holder = self._holder
        while not self._is_over.wait(holder.lasts_s / 3):
            try:
                found = read_holder(objects)
                if found is None or found.token != holder.token:
                    self._is_lost = True
                    return
                holder = LeaseHolder(holder.token, holder.name, holder.lasts_s, holder.n_renewals + 1)
                if not self._is_over.is_set():
                    objects.write(LEASE, holder.to_json())
                renewed_at = time.monotonic()
            except PipelineError as error:
                _log.warning("the lease could not be renewed, trying again: %s", error)
                if time.monotonic() - renewed_at > holder.lasts_s:
                    self._is_lost = True
                    return

    def raise_if_lost(self) -> None:
        """Stop if a renewal found the lease gone; nothing is asked of the store.

        Raises:
            LeaseLostError: it is.
        """
        if self._is_lost:
            raise self.lost_error()

    def check(self) -> None:
        """Ask the store whether the lease is still ours; to be called right before anything is removed.

        Raises:
            LeaseLostError: it is not.
        """
        self.raise_if_lost()
        found = read_holder(self._objects)
        if found is None or found.token != self._holder.token:
            self._is_lost = True
            raise self.lost_error()

    def lost_error(self) -> LeaseLostError:
        """The error that says so."""
        return LeaseLostError(
            f"{self._objects.url}: another process took over the lease of the shared store, since it was not renewed "
            f"for {self._holder.lasts_s:g} s; all work is kept here: run again, and it goes on from there"
        )

    def release(self) -> None:
        """Give the lease back; one that was lost is left to its holder, one that cannot be removed runs out."""
        self._is_over.set()
        if self._thread:
            self._thread.join(self._holder.lasts_s / 3)
        try:
            found = read_holder(self._objects)
            if found is not None and found.token == self._holder.token:
                self._objects.remove([LEASE])
        except PipelineError as error:
            _log.warning("the lease could not be given back and runs out by itself: %s", error)
