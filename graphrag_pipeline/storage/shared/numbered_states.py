"""What a store says, as numbered objects: `states/000000017.json.gz` is current if no higher number is there.

Publishing creates the next number, which only one of two can: who was taken over and wakes up later, or whose request
was under way all the time, creates nothing, or a number that is not the highest. Keep out: what a state means.
"""

from __future__ import annotations

import re

from graphrag_pipeline.storage.shared.objects import ObjectStore
from graphrag_pipeline.storage.shared.state import StoreState

STATES = "states"
_NAME = re.compile(rf"{STATES}/(\d+)\.json\.gz")
_N_KEPT = 2
"""So that a reader that has listed the last one still finds it."""


def state_name(number: int) -> str:
    return f"{STATES}/{number:09d}.json.gz"


class NumberedStates:
    """The states of one store."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects

    def latest(self) -> StoreState | None:
        """What the store says now; None if it never said anything.

        Raises:
            StoreError: the store fails.
            PipelineError: the state is damaged.
        """
        while numbers := self._numbers():
            name = state_name(numbers[-1])
            data = self._objects.read(name)
            if data is not None:  # else it was superseded and removed since it was listed
                return StoreState.from_bytes(data, f"{self._objects.url}/{name}", numbers[-1])
        return None

    def publish(self, state: StoreState) -> bool:
        """Make the store say a state, if nobody has published one of its number; whether it does.

        Raises:
            StoreError: the store fails; whether it says it is known only by reading it.
        """
        self.remove_before(state.number - _N_KEPT)  # first, so that its fault publishes nothing
        name, data = state_name(state.number), state.to_bytes()
        # A request that was repeated on the way finds what its first try created.
        return self._objects.create(name, data) or self._objects.read(name) == data

    def remove_before(self, number: int) -> None:
        """Remove the states of lower numbers: they may name what was forgotten."""
        self._objects.remove([state_name(old) for old in self._numbers() if old < number])

    def _numbers(self) -> list[int]:
        found = (_NAME.fullmatch(name) for name in self._objects.names(STATES))
        return sorted(int(match[1]) for match in found if match)
