"""Answers, descriptions and reports of the sample's index, as the documentation shows them.

    python -m graphrag_pipeline_tests.support.documentation.doc_sample  # puts them into docs/explanation/sample.md

A test compares the page with what the product prints. Keep out: anything that is not read from an index.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from graphrag_pipeline.citations import strip_citations
from graphrag_pipeline.pipeline.stages import CANDIDATE, SNAPSHOT
from graphrag_pipeline.query.index.graph_index import GraphIndex
from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline_tests.support.paths import REPOSITORY
from graphrag_pipeline_tests.support.roots import build_tables, make_root

PAGE = REPOSITORY / "docs" / "explanation" / "sample.md"
START = "<!-- sample: made by python -m graphrag_pipeline_tests.support.documentation.doc_sample -->"
END = "<!-- end of sample -->"
LOCAL_QUESTION = "Who is Ebenezer Scrooge's clerk?"
GLOBAL_QUESTION = "What are the main themes of the story?"
N_DESCRIPTIONS, N_SENTENCES = 20, 2
N_REPORTS = 10


def index_sample(folder: Path) -> GraphIndex:
    """Index the sample corpus as `make demo` does."""
    documents = {
        path.name: path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "data" / "input").glob("*.txt"))
    }
    settings = (REPOSITORY / "data" / "settings.yaml").read_text(encoding="utf-8")
    root = make_root(folder / "root", documents, settings)
    build_tables(root)
    build_tables(root, (CANDIDATE.name, SNAPSHOT.name))
    return GraphIndex.open(root.path)


def render_sample(index: GraphIndex) -> str:
    """Return the part of the page between `START` and `END`."""
    local = index.search(LOCAL_QUESTION).to_markdown()
    themes = index.search(GLOBAL_QUESTION, method="global").to_markdown()
    return "\n\n".join(
        [
            f"## {LOCAL_QUESTION}",
            local.strip(),
            f"## {GLOBAL_QUESTION}",
            themes.strip(),
            f"## The {N_DESCRIPTIONS} most frequent entities",
            f"Of each description, the first {N_SENTENCES} sentences of at most five.",
            "\n".join(_render_descriptions(index)),
            f"## The {N_REPORTS} reports ranked highest",
            "Without citations; of each finding the heading and the first sentence.",
            "\n\n".join(_render_reports(index)),
        ]
    )


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


def put_into_page(sample: str) -> str:
    """Return the page's text with the sample in its place."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(START)
    return f"{before}{START}\n\n{sample}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder, index_sample(Path(folder)) as sample_index:
        PAGE.write_text(put_into_page(render_sample(sample_index)), encoding="utf-8")
