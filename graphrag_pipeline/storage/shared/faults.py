"""What went wrong with a store, in one line with the way out. Keep out: what is asked of a store (`objects.py`)."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from graphrag_pipeline.errors import PipelineError, StoreError
from graphrag_pipeline.filesystem import files
from graphrag_pipeline.filesystem.fsspec_errors import describe_error, missing_package_message

_OF_THIS_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""What goes wrong with a disk here while something is fetched, not with a store."""


@contextmanager
def translate_errors(url: str, *passing: type[Exception]) -> Iterator[None]:
    """Say what went wrong with a store in one line, with the way out; errors in `passing` are the caller's affair."""
    try:
        yield
    except PipelineError:
        raise
    except ImportError as error:
        raise StoreError(missing_package_message(url, error)) from None
    except Exception as error:  # each store's package has errors of its own for rights, names and networks
        if isinstance(error, passing):
            raise
        if isinstance(error, OSError) and error.errno in _OF_THIS_MACHINE:
            raise files.write_error(Path(error.filename or tempfile.gettempdir()), error) from error
        raise StoreError(
            f"{url}: the shared store of storage.url failed ({describe_error(error)}); check the URL, the network and "
            "the credentials, then run again: what was finished is kept here"
        ) from error
