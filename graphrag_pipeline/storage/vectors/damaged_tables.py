"""Errors of LanceDB's library about damaged files of a vector table, as errors with the way out.

Add an error here if a damaged file raises another one. Keep out: finding damage by hashes (`storage/damage.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from graphrag_pipeline.filesystem import files

_ERRORS = (OSError, EOFError, RuntimeError, ValueError, KeyError, pa.ArrowException)
_PANICS = ("PanicException", "RustPanic")
"""Errors of a crash inside the library. The first derives from `BaseException`, and no package offers either type."""


@contextmanager
def reporting_damage(path: Path) -> Iterator[None]:
    """Raise errors of reading a vector table as `NoSnapshotError`.

    Args:
        path: the folder of the table.

    Raises:
        NoSnapshotError: a file of the table is missing or damaged.
    """
    try:
        yield
    except _ERRORS as error:
        raise files.read_error(path, error) from error
    except BaseException as error:
        if type(error).__name__ not in _PANICS:
            raise
        raise files.read_error(path, RuntimeError(str(error))) from error
