"""Messages for errors of fsspec and the packages behind it. Keep out: the operations that fail."""

from __future__ import annotations

import traceback

from graphrag_pipeline.settings.urls import holds_secret, mask_url, mask_urls

_MAX_REASON_CHARS = 200


def missing_package_message(url: str, error: ImportError) -> str:
    """Return the message for a URL whose package is not installed, with the package to install."""
    protocol = url.partition("://")[0]
    return f"{mask_url(url)}: no installed package reads {protocol}:// ({error}); pip install {_package_for(protocol)}"


def _package_for(protocol: str) -> str:
    from fsspec.registry import known_implementations

    package = known_implementations.get(protocol, {"class": ""})["class"].partition(".")[0]
    return "the package that this error names" if package in ("", "fsspec") else package


def describe_error(error: BaseException, url: str = "") -> str:
    """Return the type and the first line of an error, such as `PermissionError: Access Denied`.

    Args:
        url: what was opened; its secrets and those of other URLs are not shown.
    """
    first = mask_urls(str(error), url.rstrip("/")).partition("\n")[0]
    return f"{type(error).__name__}: {first[:_MAX_REASON_CHARS]}"


def shown_cause(error: BaseException, url: str) -> BaseException | None:
    """Return an error as the cause of ours, for tracebacks in logs and in Dagster; None if they would show a secret."""
    return None if holds_secret("".join(traceback.format_exception(error)), url) else error
