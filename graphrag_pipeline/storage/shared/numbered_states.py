"""The states of a store as numbered objects: `states/000000017.json.gz` is current if no number is higher.

Publishing creates the next number, and only one of two writers can create it. A writer that lost its lease and wakes up
later creates nothing, or a number that is not the highest. Keep out: the meaning of a state.
"""

from __future__ import annotations

import re
import time

from graphrag_pipeline.storage.shared.objects import ObjectStore
from graphrag_pipeline.storage.shared.state import DamagedStateError, StoreState

STATES = "states"
_NAME = re.compile(rf"{STATES}/(\d+)\.json\.gz")
_N_KEPT = 2
"""States that are kept, so that a reader that listed one still finds it."""
_N_READS, _READ_AGAIN_S = 3, 0.3
"""A state counts as damaged if it cannot be read this often, with this pause: a transfer may have been cut off."""


def state_name(number: int) -> str:
    """Return the name of the object of a state."""
    return f"{STATES}/{number:09d}.json.gz"


class NumberedStates:
    """The states of one store."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def latest(self) -> StoreState | None:
        """Return the current state of the store; None if it has no state.

        Raises:
            StoreError: the store fails.
            DamagedStateError: the state is damaged.
        """
        for _ in range(_N_READS - 1):
            try:
                return self._read_latest()
            except DamagedStateError:
                time.sleep(_READ_AGAIN_S)
        return self._read_latest()

    def _read_latest(self) -> StoreState | None:
        while numbers := self._numbers():
            name = state_name(numbers[-1])
            data = self._objects.read(name)
            if data is not None:  # else a newer state replaced it since it was listed
                return StoreState.from_bytes(data, f"{self._objects.shown_url}/{name}", numbers[-1])
        return None

    def publish(self, state: StoreState) -> bool:
        """Publish a state, unless another writer published one of its number; return whether it is published.

        Raises:
            StoreError: the store fails; the state may be published or not.
        """
        self.remove_before(state.number - _N_KEPT)  # first, so that its error publishes nothing
        name, data = state_name(state.number), state.to_bytes()
        self._objects.flush()  # after a power cut, a state that is there names only objects that are there
        # A request that the client repeated finds the object of its first attempt.
        is_published = self._objects.create(name, data) or self._objects.read(name) == data
        self._objects.flush()
        return is_published

    def remove_before(self, number: int) -> None:
        """Remove the states of lower numbers, since they may name forgotten documents."""
        self._objects.remove([state_name(old) for old in self._numbers() if old < number])

    def _numbers(self) -> list[int]:
        found = (_NAME.fullmatch(name) for name in self._objects.names(STATES))
        return sorted(int(match[1]) for match in found if match)
