"""The resource every asset and op uses: which root to work on; and who is told when a stage ends.

The path is configuration; the root itself is opened at each use, so that settings and prompts are always those on disk.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import dagster as dg

from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.root import Root, find_root

Listener = Callable[[str, str, bool], None]
"""Told (stage, partition, was it fresh) after each stage: the command line's progress bar."""

_listeners: list[Listener] = []


class IndexRoot(dg.ConfigurableResource):
    """One project root.

    Attributes:
        path: the folder that holds settings.yaml.
    """

    path: str

    def open(self) -> Root:
        return Root(find_root(self.path))


Bookkeeper = Callable[[str, CallStats], None]
"""Told (stage, calls of models) after each partition of a stage and each pool of calls, also when they failed."""

_bookkeepers: list[Bookkeeper] = []


@contextmanager
def booking(bookkeeper: Bookkeeper) -> Iterator[None]:
    """Tell `bookkeeper` of every call of a model in this process meanwhile."""
    _bookkeepers.append(bookkeeper)
    try:
        yield
    finally:
        _bookkeepers.remove(bookkeeper)


def book(stage: str, account: CallStats) -> None:
    """Tell every bookkeeper of calls."""
    for bookkeeper in _bookkeepers:
        bookkeeper(stage, account)


Teller = Callable[[str], None]
"""Told in words how far the calls of a stage are."""

_tellers: list[Teller] = []


@contextmanager
def telling(teller: Teller) -> Iterator[None]:
    """Tell `teller` how far the calls of every stage in this process are meanwhile."""
    _tellers.append(teller)
    try:
        yield
    finally:
        _tellers.remove(teller)


def tell(line: str) -> None:
    """Tell every teller how far calls are."""
    for teller in _tellers:
        teller(line)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell `listener` of every stage that ends in this process meanwhile."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def notify(stage: str, partition: str, is_fresh: bool) -> None:
    """Tell every listener that a partition of a stage is done."""
    for listener in _listeners:
        listener(stage, partition, is_fresh)
