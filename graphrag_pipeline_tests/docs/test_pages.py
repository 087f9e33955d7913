"""The blocks of the documentation: each story runs in order, in an empty folder."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from graphrag_pipeline_tests.support.documentation.doc_pages import (
    DOCS,
    Story,
    all_blocks,
    pages,
    read_stories,
    sequence_name,
)
from graphrag_pipeline_tests.support.documentation.doc_runner import DocRunner
from graphrag_pipeline_tests.support.documentation.doc_setups import started_story
from graphrag_pipeline_tests.support.paths import REPOSITORY
from graphrag_pipeline_tests.support.thoroughness import usually

PACKAGE = REPOSITORY / "graphrag_pipeline"
STORIES = [story for page in pages() for story in read_stories(page)]
USUAL_STORIES = [story for story in STORIES if story.name.startswith(("README", "quickstart"))]
LIVE_STORIES = [story for story in STORIES if story.is_live]
MIN_REASON_WORDS = 2
MAX_SKIPPED_SHARE = 0.1
MIN_README_WORDS, MAX_README_WORDS = 600, 900
MAX_WORDS = 40_000


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Roots that were indexed once for all stories."""
    return tmp_path_factory.mktemp("doc_setups")


def run(story: Story, folder: Path, cache: Path, is_live: bool) -> DocRunner:
    with started_story(story.setups, folder / "story", cache) as start:
        story.replacements = start.replacements | story.replacements
        runner = DocRunner(start.folder, start.variables, start.values, is_live)
        runner.run(story)
    return runner


@pytest.mark.parametrize("story", usually(STORIES, *USUAL_STORIES), ids=lambda story: story.name)
def test_a_story_runs_as_its_page_shows_it(story: Story, tmp_path: Path, cache: Path) -> None:
    for line in run(story, tmp_path, cache, is_live=False).skipped:
        print("not run here:", line)


@pytest.mark.ui
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("story", LIVE_STORIES, ids=lambda story: story.name)
def test_a_story_runs_live_with_its_installation_and_its_servers(story: Story, tmp_path: Path, cache: Path) -> None:
    run(story, tmp_path, cache, is_live=True)


def test_blocks_that_never_run_are_few_and_say_what_they_need(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = list(all_blocks())
    skipped = [block for block in blocks if block.has("skip")]
    with capsys.disabled():
        print(f"\n{len(blocks)} blocks of {len(pages())} pages, {len(skipped)} never run:")
        for block in skipped:
            print(f"  {block.place}: {block.value('skip')}")
    assert all(len((block.value("skip") or "").split()) >= MIN_REASON_WORDS for block in skipped)
    assert len(skipped) <= MAX_SKIPPED_SHARE * len(blocks)


def test_each_sequence_of_commands_is_run_by_a_test() -> None:
    sources = "".join(
        path.read_text(encoding="utf-8")
        for path in (REPOSITORY / "graphrag_pipeline_tests").rglob("test_*.py")
        if path != Path(__file__)
    )
    names = {name for block in all_blocks() if (name := sequence_name(block))}
    assert [name for name in sorted(names) if f'"{name}"' not in sources] == []


@pytest.mark.parametrize(
    ("page", "heading", "folder"),
    [
        ("contributing.md", "Where do I change ...", "graphrag_pipeline"),
        ("explanation/architecture.md", "Promises, and the tests that hold them", "graphrag_pipeline_tests"),
    ],
)
def test_the_paths_that_readers_are_sent_to_exist(page: str, heading: str, folder: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    paths = [path for path in re.findall(r"`([\w/]+(?:\.py|/))`", section) if path != f"{folder}/"]
    assert paths and [path for path in paths if not (REPOSITORY / folder / path).exists()] == []


def test_the_modules_that_docstrings_name_exist() -> None:
    """A name is relative to the module's folder or to one above it. Microsoft's package and tests are not looked up."""
    missing = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] != "bundled"
        for name in _modules_named_in(path)
        if not any((folder / name).exists() for folder in path.parents if folder.is_relative_to(PACKAGE))
    ]
    assert missing == []


def _modules_named_in(path: Path) -> list[str]:
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, kinds)]
    docstrings = "\n".join(ast.get_docstring(node) or "" for node in nodes)
    return re.findall(r"`((?!graphrag/|graphrag_pipeline_tests/)[\w/]+\.py)`", docstrings)


def test_links_of_the_readme_lead_to_files() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", text)
    assert targets and [target for target in targets if not (REPOSITORY / target).exists()] == []


def test_the_readme_stays_short() -> None:
    n_words = len((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    assert MIN_README_WORDS <= n_words <= MAX_README_WORDS


def test_the_documentation_stays_short() -> None:
    texts = [path.read_text(encoding="utf-8") for path in (*pages(), DOCS / "audit.yaml")]
    assert sum(len(text.split()) for text in texts) <= MAX_WORDS
