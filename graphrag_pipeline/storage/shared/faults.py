"""What went wrong with a store, in one line with the way out. Keep out: what is asked of a store (`objects.py`)."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphrag_pipeline.errors import PipelineError, StoreError
from graphrag_pipeline.filesystem import files

_OF_THIS_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""What goes wrong with a disk here while something is fetched, not with a store."""


@contextmanager
def explained(url: str, *passing: type[Exception]) -> Iterator[None]:
    """Say what went wrong with a store in one line, with the way out; errors in `passing` are the caller's affair."""
    try:
        yield
    except PipelineError:
        raise
    except ImportError as error:
        raise StoreError(missing_package(url, error)) from None
    except Exception as error:  # each store's package has errors of its own for rights, names and networks
        if isinstance(error, passing):
            raise
        if isinstance(error, OSError) and error.errno in _OF_THIS_MACHINE:
            raise files.write_error(Path(error.filename or tempfile.gettempdir()), error) from error
        raise StoreError(
            f"{url}: the shared store of storage.url failed ({reason_of(error)}); check the URL, the network and the "
            "credentials, then run again: what was finished is kept here"
        ) from error


def missing_package(url: str, error: ImportError) -> str:
    """That no package here reads a URL, and which one does."""
    return f"{url}: no package here reads {url.partition('://')[0]}:// ({error}); pip install {_package_for(url)}"


def _package_for(url: str) -> str:
    from fsspec.registry import known_implementations

    package = known_implementations.get(url.partition("://")[0], {"class": ""})["class"].partition(".")[0]
    return "what that names" if package in ("", "fsspec") else package


def reason_of(error: BaseException) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0][:200]}"
