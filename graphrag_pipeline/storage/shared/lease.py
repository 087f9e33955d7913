"""The lease of a shared store: it admits one writer at a time, and expires if the writer crashes.

`lease.json` names the holder, and a thread of the holder renews it. A process that waits takes over a lease that was
not renewed for its whole duration. It measures that by its own clock, so clocks of machines need not agree.

A holder can lose its lease, for example while its machine slept or the network was down. `check` reports that before
anything is removed, and the numbers of states prevent that the former holder publishes. Some stores overwrite an
existing object although the request forbids it. Each working copy tests its store for that once; on such a store, a
process that wrote a lease waits and reads it again.

If the own process of a working copy was killed, the next process of that copy continues at once, since the copy keeps
the token of its lease. Keep out: the data written under a lease.
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
    """The holder of the lease.

    Attributes:
        token: random text, new for every lease.
        name: machine and process, for messages.
        lasts_s: seconds without a renewal after which the lease expires.
        n_renewals: number of renewals; a change shows that the lease was renewed.
    """

    token: str
    name: str
    lasts_s: float
    n_renewals: int = 0

    def to_json(self) -> bytes:
        return json.dumps(asdict(self), indent=1).encode()


def read_holder(objects: ObjectStore) -> LeaseHolder | None:
    """Return the holder of the lease, or None; a lease that cannot be read counts as held by an unknown process."""
    data = objects.read(LEASE)
    if data is None:
        return None
    try:
        return LeaseHolder(**json.loads(data))
    except (ValueError, TypeError):
        return LeaseHolder("", "an unknown process", 60.0, len(data))


class Lease:
    """The lease of one process: acquiring, renewing and releasing it.

    Args:
        objects: the objects of the store.
        memory: file of the working copy that keeps tokens; the caller admits one process of the copy at a time.
        lasts_s: see `LeaseHolder`.
    """

    def __init__(self, objects: ObjectStore, memory: Path, lasts_s: float) -> None:
        self._objects = objects
        self._memory = memory
        self._proof = memory.with_name(f"{memory.name}.exclusive")
        """File with the URL of the store, written once the store refused to create an existing object."""
        self._holder = LeaseHolder(secrets.token_hex(16), f"{socket.gethostname()}, process {os.getpid()}", lasts_s)
        self._is_lost = False
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(self) -> None:
        """Take the lease; wait while another holder renews it, and log that."""
        # Earlier tokens stay until the lease is ours: one of them may hold it, if its process was killed.
        own = {*(self._memory.read_text().split() if self._memory.exists() else []), self._holder.token}
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
                    _log.warning("%s: %s is writing the index; waiting for it", self._objects.shown_url, found.name)
                watched, since = found, time.monotonic()
            is_own = found.token in own
            if is_own or time.monotonic() - since > found.lasts_s:
                if not is_own:
                    _log.warning(
                        "%s: %s stopped renewing its lease; taking it over", self._objects.shown_url, found.name
                    )
                self._objects.write(LEASE, self._holder.to_json())
                if (is_own and self.is_exclusive) or self._is_settled():
                    break
            time.sleep(min(2.0, found.lasts_s / 10))
        files.replace(self._memory, self._holder.token.encode())
        self._thread = threading.Thread(target=self._renew, args=(self._objects.for_thread(),), daemon=True)
        self._thread.start()

    @property
    def is_exclusive(self) -> bool:
        """Whether the store was seen to refuse the creation of an object that exists."""
        return self._proof.exists() and self._proof.read_text() == self._objects.url

    def _create(self) -> bool:
        """Create the lease if it does not exist; return whether this process has it now."""
        data = self._holder.to_json()
        if self.is_exclusive:
            return self._objects.create(LEASE, data)
        if read_holder(self._objects) is not None or not self._objects.create(LEASE, data):
            return False
        if self._objects.is_exclusive and not self._objects.create(LEASE, data):
            files.replace(self._proof, self._objects.url.encode())
            return True
        return self._is_settled()

    def _is_settled(self) -> bool:
        """Return whether this process has the lease, after a pause for others that wrote at the same time."""
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
        """Raise if a renewal found the lease lost; no request is sent.

        Raises:
            LeaseLostError: the lease is lost.
        """
        if self._is_lost:
            raise self.lost_error()

    def check(self) -> None:
        """Read the lease from the store and raise if it is lost; callers check right before they remove objects.

        Raises:
            LeaseLostError: the lease is lost.
        """
        self.raise_if_lost()
        found = read_holder(self._objects)
        if found is None or found.token != self._holder.token:
            self._is_lost = True
            raise self.lost_error()

    def lost_error(self) -> LeaseLostError:
        return LeaseLostError(
            f"{self._objects.shown_url}: another process took over the lease of the shared store, since it was not "
            f"renewed for {self._holder.lasts_s:g} s (`storage.lease_s`). All work is kept here; run again to continue"
        )

    def release(self) -> None:
        """Give the lease back; a lost lease is left to its holder, and a lease that cannot be removed expires."""
        self._is_over.set()
        if self._thread:
            self._thread.join(self._holder.lasts_s / 3)
        try:
            found = read_holder(self._objects)
            if found is not None and found.token == self._holder.token:
                self._objects.remove([LEASE])
        except PipelineError as error:
            _log.warning("the lease could not be given back and will expire: %s", error)
