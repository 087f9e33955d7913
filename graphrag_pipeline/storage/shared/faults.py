"""Errors of a shared store as one-line messages with the way out. Keep out: the operations (`objects.py`)."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphrag_pipeline.errors import PipelineError, StoreError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.fsspec_errors import describe_error, missing_package_message, shown_cause
from graphrag_pipeline.settings.urls import mask_url

_OF_THIS_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Errors of this machine's disk during a download; they are not errors of the store."""


@contextmanager
def translate_errors(url: str, *passing: type[Exception]) -> Iterator[None]:
    """Raise errors of a store again as `StoreError` with the way out.

    Args:
        url: the store, for the message.
        passing: types of errors that are raised unchanged, for the caller.

    Raises:
        StoreError: the store failed, or its package is not installed.
        PipelineError: the disk of this machine failed.
    """
    try:
        yield
    except PipelineError:
        raise
    except ImportError as error:
        raise StoreError(missing_package_message(url, error)) from None
    except Exception as error:  # the packages of stores have different errors for rights, names and networks
        if isinstance(error, passing):
            raise
        if isinstance(error, OSError) and error.errno in _OF_THIS_MACHINE:
            raise files.write_error(Path(error.filename or tempfile.gettempdir()), error) from error
        raise StoreError(
            f"{mask_url(url)}: the shared store of storage.url failed ({describe_error(error, url)}); check the URL, "
            "the network and the credentials, then run again. Finished work is kept here"
        ) from shown_cause(error, url)
