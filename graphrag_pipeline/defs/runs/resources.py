"""The resource every asset and op uses: which root to work on; and who is told when a stage ends.

The path is configuration; the root itself is opened at each use, so that settings and prompts are always those on disk.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeVar

import dagster as dg

from graphrag_pipeline.models.accounting import CallStats
from graphrag_pipeline.pipeline.root import Root, find_root

Listener = Callable[[str, str, bool], None]
"""Told (stage, partition, was it fresh) after each stage: the command line's progress bar."""

_listeners: list[Listener] = []


T = TypeVar("T")


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
def _among(told: list[T], one: T) -> Iterator[None]:
    told.append(one)
    try:
        yield
    finally:
        told.remove(one)


def booking(bookkeeper: Bookkeeper) -> AbstractContextManager[None]:
    """Tell `bookkeeper` of every call of a model in this process meanwhile."""
    return _among(_bookkeepers, bookkeeper)


def book(stage: str, account: CallStats) -> None:
    """Tell every bookkeeper of calls."""
    for bookkeeper in _bookkeepers:
        bookkeeper(stage, account)


Teller = Callable[[str], None]
"""Told in words how far the calls of a stage are."""

_tellers: list[Teller] = []


def telling(teller: Teller) -> AbstractContextManager[None]:
    """Tell `teller` how far the calls of every stage in this process are meanwhile."""
    return _among(_tellers, teller)


def tell(line: str) -> None:
    """Tell every teller how far calls are."""
    for teller in _tellers:
        teller(line)


def listening(listener: Listener) -> AbstractContextManager[None]:
    """Tell `listener` of every stage that ends in this process meanwhile."""
    return _among(_listeners, listener)


def notify(stage: str, partition: str, is_fresh: bool) -> None:
    """Tell every listener that a partition of a stage is done."""
    for listener in _listeners:
        listener(stage, partition, is_fresh)
