"""Roots whose stages query the test model server."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from graphrag_pipeline.demo_model.replies import reply_to
from graphrag_pipeline.pipeline.root import Root, init_root
from graphrag_pipeline.settings.presets import settings_for_model
from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline_tests.bench.articles import write_articles

if TYPE_CHECKING:
    from graphrag_pipeline.pipeline.root import Root
    from graphrag_pipeline_tests.model_server import ModelServer
    from graphrag_pipeline_tests.model_server.scripts import Script
from graphrag_pipeline.pipeline.root import Root
from graphrag_pipeline_tests.model_server import ReceivedRequest

KEY_VARIABLE = "GRAPHRAG_TESTS_KEY"
KEY = "sk-test-0123456789abcdef-very-secret"
TEXT = (
    "Ada Lovelace wrote to Charles Babbage from London. Charles Babbage built the Difference Engine. "
    "Ada Lovelace admired Mary Somerville, who taught Ada Lovelace."
)


def make_model_root(path: Path, base_url: str, n_articles: int = 6, **sections: dict) -> Root:
    """Make a root whose stages all use the model at an address."""
    settings = settings_for_model("test-chat", "test-embedding", base_url, KEY_VARIABLE)
    values = settings.model_dump(mode="json")
    defaults = {"storage": {"n_buckets": 2}, "chat_model": {"timeout_s": 5}}
    for section, options in {**defaults, **sections}.items():
        values[section] |= options
    init_root(path, Settings.model_validate(values))
    write_articles(path / "input", n_articles)
    return Root(path)


def move(root: Root, base_url: str) -> Root:
    """Let a root use the model at another address, which makes nothing stale; return it newly opened."""
    path = root.path / "settings.yaml"
    text = path.read_text(encoding="utf-8").replace(root.settings.chat_model.base_url, base_url)
    path.write_text(text, encoding="utf-8")
    return Root(root.path)


@dataclass
class ModelIndex:
    """A root that a model indexed, and the server behind it; `script` may be set to change replies from then on."""

    root: Root
    server: ModelServer
    script: Script | None = None

    def change_prompt(self, name: str) -> None:
        """Edit a prompt; return the root newly opened, as the next command opens it."""
        from graphrag_pipeline.pipeline.root import Root

        path = self.root.path / "prompts" / f"{name}.txt"
        path.write_text("Be brief.\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
        self.root = Root(self.root.path)


def other_reports(request: ReceivedRequest) -> str | None:
    """Return the server's own reports with changed words."""
    if request.kind != "report":
        return None
    return reply_to(request.kind, request.conversation).replace("The community of", "A community around")
