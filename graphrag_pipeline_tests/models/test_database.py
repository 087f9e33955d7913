"""No message about the database of replies shows a password or an option of its URL, nor does its traceback."""

from __future__ import annotations

import threading
import traceback
from pathlib import Path

import pytest

from graphrag_pipeline.errors import PipelineError, SettingsError
from graphrag_pipeline.models.database import SharedDatabase
from graphrag_pipeline.settings.file import load_settings
from graphrag_pipeline.settings.urls import hide_secrets, secrets_of


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////nowhere/at/all.db?password=s3cret",
        "sqlite:////nowhere/at/all.db?sslpassword=x&options=s3cret%20word",
        "postgresql+psycopg://ann:pass@s3cret@127.0.0.1:1/replies",
        "postgresql+psycopg://ann:s3cret@127.0.0.1:1x/replies",
        "nosuch://ann:s3cret@127.0.0.1/replies",
    ],
)
def test_no_error_shows_the_secrets_of_the_url(url: str) -> None:
    with pytest.raises(PipelineError, match="cache database") as error:
        SharedDatabase(url)
    assert "s3cret" not in "".join(traceback.format_exception(error.value))


def test_an_at_sign_in_a_password_is_named_with_its_remedy() -> None:
    with pytest.raises(PipelineError, match="%40 for @"):
        SharedDatabase("postgresql+psycopg://ann:pass@word@127.0.0.1:1/replies")


def test_the_message_of_a_driver_is_shown_without_values_of_the_url() -> None:
    url = "postgresql+psycopg://ann:s3cret@h:5432/d?options=-cx%3Ds3cret2&port=54"
    shown = hide_secrets('invalid value "-cx=s3cret2" at h:5432 for ann (s3cret)', secrets_of(url))
    assert shown == 'invalid value "***" at h:5432 for ann (***)'


@pytest.mark.parametrize("text", ["storage: {cache_url: ['sqlite://a:s3cret@h/d']}", "storage: https://h/x?s3cret"])
def test_settings_that_are_refused_show_no_secret(tmp_path: Path, text: str) -> None:
    (tmp_path / "settings.yaml").write_text(text, encoding="utf-8")
    for environment in ({}, {"GRAPHRAG__STORAGE__N_BUCKETS": "2"}):
        with pytest.raises(SettingsError) as error:
            load_settings(tmp_path, environment)
        assert "s3cret" not in str(error.value)


def test_a_closed_database_never_waits_for_writes(tmp_path: Path) -> None:
    database = SharedDatabase(tmp_path / "responses.sqlite")
    database.close()
    flushing = [threading.Thread(target=database.flush, daemon=True) for _ in range(2)]
    for thread in flushing:
        thread.start()
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in flushing)
