"""The lookup of engines by their entry points."""

from __future__ import annotations

import pytest

from graphrag_pipeline import ports
from graphrag_pipeline.errors import PipelineError


def test_both_engines_of_this_package_fill_every_port() -> None:
    for port in ports.PORTS.values():
        assert {"embedded", "model"} <= set(ports.engines_with(port))
        assert all(ports.load_port(port, engine) for engine in ("embedded", "model"))


def test_an_unknown_engine_is_named_with_the_known_ones() -> None:
    with pytest.raises(PipelineError, match="no installed package has the rater `mine`; engines with one: embedded, "):
        ports.load_port("rater", "mine")


def test_files_without_their_installation_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_installed", dict)
    with pytest.raises(PipelineError, match="install graphrag-pipeline again"):
        ports.engines_with("extractor")
