"""What README shows of the sample's index: the demo's answers, descriptions and reports, as the product prints them.

    python -m graphrag_pipeline_tests.support.readme_sample        # puts them into README.md

`test_readme.py` holds README to it. Keep out: anything that is not read from an index.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.pipeline.stages import CANDIDATE, SNAPSHOT
from graphrag_pipeline.query.graph_index import GraphIndex
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline_tests.support.paths import REPOSITORY
from graphrag_pipeline_tests.support.roots import build_tables, make_root

ROOT = REPOSITORY
README = ROOT / "README.md"
START, END = (
    "<!-- sample: made by python -m graphrag_pipeline_tests.support.readme_sample -->",
    "<!-- end of sample -->",
)
LOCAL_QUESTION = "Who is Ebenezer Scrooge's clerk?"
GLOBAL_QUESTION = "What are the main themes of the story?"
N_DESCRIPTIONS, N_SENTENCES = 20, 2
N_REPORTS = 10


def index_sample(folder: Path) -> GraphIndex:
    """Index the sample corpus as `make demo` does."""
    documents = {
        path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "data" / "input").glob("*.txt"))
    }
    settings = (ROOT / "data" / "settings.yaml").read_text(encoding="utf-8")
    root = make_root(folder / "root", documents, settings)
    build_tables(root)
    build_tables(root, (CANDIDATE.name, SNAPSHOT.name))
    return GraphIndex.open(root.path)


def render_sample(index: GraphIndex) -> str:
    """The part of README between `START` and `END`."""
    local = index.search(LOCAL_QUESTION).to_markdown()
    themes = index.search(GLOBAL_QUESTION, method="global").to_markdown()
    return "\n\n".join(
        [
            _fold(f"<i>{LOCAL_QUESTION}</i> (all that the demo prints)", local),
            _fold(f"<i>{GLOBAL_QUESTION}</i> (all that the demo prints)", themes),
            _fold(
                f"The {N_DESCRIPTIONS} most frequent entities and their descriptions (of each the first {N_SENTENCES} "
                "sentences of at most five)",
                "\n".join(_render_descriptions(index)),
            ),
            _fold(
                f"The {N_REPORTS} reports ranked highest (without citations; of each finding the heading and the first "
                "sentence)",
                "\n\n".join(_render_reports(index)),
            ),
        ]
    )


def _fold(summary: str, body: str) -> str:
    return f"<details><summary>{summary}</summary>\n\n{body.strip()}\n\n</details>"


def _render_descriptions(index: GraphIndex) -> list[str]:
    entities = index.snapshot.take("entities", range(index.snapshot.n_rows("entities")))
    entities.sort(key=lambda entity: (-entity["frequency"], entity["title"]))
    return [
        f"- **{entity['title']}** ({entity['type']}): {_first_sentences(entity['description'], N_SENTENCES)}"
        for entity in entities[:N_DESCRIPTIONS]
    ]


def _render_reports(index: GraphIndex) -> list[str]:
    reports = index.snapshot.take("community_reports", range(index.snapshot.n_rows("community_reports")))
    reports.sort(key=lambda report: (-report["rank"], report["community"]))
    return [_render_report(report) for report in reports[:N_REPORTS]]


def _render_report(report: dict) -> str:
    findings = [
        f"- *{finding['summary']}*: {_first_sentences(strip_citations(finding['explanation']), 1)}"
        for finding in report["findings"]
    ]
    heading = f"**{report['title']}** (level {report['level']}, rank {report['rank']:g})"
    return "\n".join([heading, "", strip_citations(report["summary"]), "", *findings]).strip()


def _first_sentences(text: str, n: int) -> str:
    return " ".join(" ".join(text[start:end].split()) for start, end in split_sentences(text)[:n])


def put_into_readme(sample: str) -> str:
    """README's text with the sample in its place."""
    before, _, rest = README.read_text(encoding="utf-8").partition(START)
    return f"{before}{START}\n\n{sample}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, index_sample(Path(folder)) as sample_index:
        README.write_text(put_into_readme(render_sample(sample_index)), encoding="utf-8")
