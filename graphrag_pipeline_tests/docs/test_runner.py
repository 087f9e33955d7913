"""The runner of pages fails where a page is wrong, and reads the marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphrag_pipeline_tests.support.documentation import doc_pages
from graphrag_pipeline_tests.support.documentation.doc_pages import Story, read_stories
from graphrag_pipeline_tests.support.documentation.doc_runner import DocRunner, split_commands


@pytest.fixture
def stories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The stories of a page with a text."""
    monkeypatch.setattr(doc_pages, "DOCS", tmp_path)

    def read(text: str) -> list[Story]:
        (tmp_path / "page.md").write_text(text, encoding="utf-8")
        return read_stories(tmp_path / "page.md")

    return read


@pytest.fixture
def runner(tmp_path: Path) -> DocRunner:
    (tmp_path / "story").mkdir()
    return DocRunner(tmp_path / "story", {}, {"word": "changed"})


@pytest.mark.parametrize(
    "block",
    [
        "```bash\nfalse\n```\n",
        "```bash\ngraphrag-pipeline --root nowhere status\n```\n",
        "```bash\ntrue  # exit status 1\n```\n",
        "```console\n$ echo one\ntwo\n```\n",
        "```python\nassert 1 == 2\n```\n",
        "```python\nundefined\n```\n",
        "```yaml\n# settings.yaml\ntext_units: {sise: 600}\n```\n",
        "```json\n{]\n```\n",
        "```csv\na,b\n1,2,3\n```\n",
        "```bash\necho one\n```\n<!-- output -->\n```text\ntwo\n```\n",
    ],
)
def test_a_wrong_block_fails_with_page_and_line(block: str, stories, runner: DocRunner) -> None:
    [story] = stories(f"# Page\n\n{block}")
    with pytest.raises(AssertionError, match=r"page\.md:\d+"):
        runner.run(story)


@pytest.mark.parametrize(
    "block",
    [
        "```bash\nexport A=b\nmkdir c && cd c\n```\n```console\n$ echo $A $(basename $PWD)\nb c\n```\n",
        "```bash\ngraphrag-pipeline --root nowhere status  # exit status 1\n```\n",
        "```bash\ncat > f <<'END'\n# no comment\nEND\ntest \"$(cat f)\" = '# no comment'\n```\n",
        "```bash\nfor i in 1 2; do\n  echo $i\ndone\necho a \\\n  b\n```\n<!-- output -->\n```text\n1\n2\na b\n```\n",
        "```console\n$ printf 'one\\ntwo\\nthree 3 s\\n'\none\n...\nthree ... s\n```\n",
        "```python\nx = 1\n```\n\n```python\nimport asyncio\nawait asyncio.sleep(0)\nassert x == 1\n```\n",
        '<!-- write: a/b.txt -->\n```text\nhere\n```\n```bash\ntest "$(cat a/b.txt)" = here\n```\n',
        "<!-- replace: WORD = {word} -->\n```console\n$ echo WORD\nchanged\n```\n",
        "<!-- prepare\nprintf x > unseen\n-->\n```bash\ntest -f unseen\n```\n",
    ],
)
def test_a_right_block_passes(block: str, stories, runner: DocRunner) -> None:
    [story] = stories(f"# Page\n\n{block}")
    runner.run(story)


def test_what_is_skipped_or_live_does_not_run_and_is_listed(stories, runner: DocRunner) -> None:
    [story] = stories(
        "<!-- skip: needs a cloud account -->\n```bash\nfalse\n```\n"
        "<!-- live: needs the network -->\n```bash\nfalse\n```\n"
    )
    runner.run(story)
    assert runner.skipped == ["page.md:2: needs a cloud account", "page.md:6: needs the network"]
    assert story.is_live


def test_a_story_mark_begins_a_new_story(stories) -> None:
    first, second = stories(
        "```bash\ntrue\n```\n<!-- story: sample, model_server -->\n<!-- replace: A = B -->\n```bash\ntrue\n```\n"
        "<!-- replace: C = D -->\n```bash\ntrue\n```\n"
    )
    assert (first.setups, second.setups) == ((), ("sample", "model_server"))
    assert second.replacements == {"A": "B"}
    assert [block.replacements for block in second.blocks] == [{}, {"C": "D"}]


@pytest.mark.parametrize("text", ["```\nx\n```\n", "```shell\nx\n```\n", "<!-- skipp: x -->\n```bash\ntrue\n```\n"])
def test_a_block_without_a_known_language_and_an_unknown_mark_are_errors(text: str, stories) -> None:
    with pytest.raises(ValueError, match=r"page\.md:1"):
        stories(text)


def test_commands_are_split_where_the_shell_splits_them() -> None:
    text = "# comment\na\nb \\\n c\nif true; then\n  d\nfi\ncat <<E\nx\nE\n"
    assert split_commands(text) == ["a", "b \\\n c", "if true; then\n  d\nfi", "cat <<E\nx\nE"]
    with pytest.raises(ValueError, match="incomplete"):
        split_commands("a \\\n")
