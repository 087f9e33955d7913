"""What documents say about themselves: labels become metadata, and a date is found in the order that is set."""

from __future__ import annotations

import json

import pytest

from graphrag_pipeline.inputs.documents import read_records
from graphrag_pipeline.settings.input import DateSource, InputSettings

LABELLED = {
    "lines": "# T\n\n**Owner:** Ana Reyes\n**Incident commander:** Bo\n\nText.",
    "one line": "# T\n\n**Owner:** Ana Reyes  **Incident commander:** Bo\n\nText.",
    "list": "# T\n\n- Owner: Ana Reyes\n- Incident commander : Bo\n\nText.",
    "table": "# T\n\n| Owner | Ana Reyes |\n|--|--|\n| **Incident commander** | Bo |\n\nText.",
    "terms": "# T\n\nOwner\n: Ana Reyes\n\nIncident commander\n: Bo\n\nText.",
    "front matter": "---\nowner: Ana Reyes\nincident_commander: Bo\n---\n# T\n\nText.",
}


def metadata_of(text: str, path: str = "a.md") -> dict[str, object]:
    [record] = read_records(path, text.encode(), InputSettings())
    values = json.loads(record.metadata)
    assert isinstance(values, dict)
    return values


@pytest.mark.parametrize("text", LABELLED.values(), ids=LABELLED)
def test_labels_in_any_form_are_metadata(text: str) -> None:
    assert metadata_of(text) == {"owner": "Ana Reyes", "incident_commander": "Bo"}


@pytest.mark.parametrize(
    "text",
    [
        "# T\n\nNote: this is said. It is long.",
        "# T\n\nText.\n\nMore.\n\n## U\n\nEven more.\n\nAnd more.\n\nAnd.\n\nOwner: Ana",
        "---\n- a list\n---\ntext",
        "---\n: [broken\n---\ntext",
        "| 09:02 | the alert |\n|---|---|\n| 09:10 | the rollback |",
        "The ratio was 2: 1.\nThat is all.",
    ],
)
def test_what_is_no_label_stays_text(text: str) -> None:
    assert metadata_of(text) == {}


@pytest.mark.parametrize(
    ("path", "text", "dates", "day"),
    [
        ("2025-01-01-x.md", "---\ndate: 2025-03-04\n---\n**Date:** 5 May 2025\n\n# Of 6 June 2025", None, "2025-03-04"),
        ("2025-01-01-x.md", "# Of 6 June 2025\n\n**Date:** 5 May 2025", None, "2025-05-05"),
        ("2025-01-01-x.md", "# Of 6 June 2025\n\ntext", None, "2025-06-06"),
        ("board_20250415.md", "# Board\n\ntext", None, "2025-04-15"),
        ("weekly-2025-W10.md", "# Weekly\n\ntext", None, "2025-03-03"),
        ("a.md", "# T\n\nDatum: 4.3.2025", None, "2025-03-04"),
        ("a.md", "# T\n\nDatum: 3. März 2023", None, "2023-03-03"),
        ("a.md", "# T\n\nDate: 1 de mayo de 2024", None, "2024-05-01"),
        ("a.md", "# T\n\nReviewed: 2 May 2024\nDate: 3 May 2024", None, "2024-05-03"),
        ("a.md", "# T\n\nDate: 3 Feb 2026", None, "2026-02-03"),
        ("a.md", "# T\n\nDate: Feb 3, 2026 at 10:30", None, "2026-02-03"),
        ("a.md", "# T\n\nDate: 13/02/2026", None, "2026-02-13"),
        ("a.md", "# T\n\nDate: 05/07/2026", None, None),
        ("a.md", "# T\n\nVersion: 7\nOwner: May\nTime: 10:30\nSeen: March 2026", None, None),
        ("a-20251345.md", "# T\n\nOn 5 May 2025 it rained.", None, None),
        ("2025-01-01.md", "# T\n\nDate: 5 May 2025", ("file_name",), "2025-01-01"),
        ("2025-01-01.md", "# T\n\nDate: 5 May 2025", (), None),
    ],
)
def test_the_first_source_with_a_date_gives_it(
    path: str, text: str, dates: tuple[DateSource, ...] | None, day: str | None
) -> None:
    settings = InputSettings() if dates is None else InputSettings(dates=dates)
    [record] = read_records(path, text.encode(), settings)
    assert record.creation_date == day


@pytest.mark.parametrize("written", ["2026-02-31", "05/07/2026", "soon"])
def test_a_date_that_names_no_day_is_said(written: str) -> None:
    [record] = read_records("a.md", f"# T\n\n**Date:** {written}\n\nText.".encode(), InputSettings())
    assert record.note == f"no day in 'date: {written}'; write it as 2025-03-04" and record.problem is None
