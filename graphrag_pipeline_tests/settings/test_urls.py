"""No message about a URL shows a user, a password or a query string."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from graphrag_pipeline.settings.settings import Settings
from graphrag_pipeline.settings.urls import has_password, holds_secret, mask_url, mask_urls, secrets_of

SECRETS = st.text("abcXYZ019/:?#%&=+-._~!$ '\"", min_size=1).map(lambda text: f"s3cret{text}s3cret")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("s3://bucket/index", "s3://bucket/index"),
        ("file:///srv/a@b/index", "file:///srv/a@b/index"),
        ("sftp://host:22/srv/index", "sftp://host:22/srv/index"),
        ("abfs://container@account.dfs.core.windows.net/x", "abfs://container@account.dfs.core.windows.net/x"),
        ("sftp://user:pass@host/x", "sftp://***@host/x"),
        ("sftp://user:pa/ss@host/x", "sftp://***@host/x"),
        ("sftp://user:p@ss/w@host/x", "sftp://***@host/x"),
        ("https://token@host/x", "https://***@host/x"),
        ("https://host/x?sig=abc&x=1", "https://host/x?***"),
        ("https://user:pa?ss@host/x", "https://***"),
        ("https://host:443/x?mail=a@b", "https://***"),
        ("simplecache::https://host/x?sig=abc", "simplecache::https://host/x?***"),
        ("input", "input"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    assert mask_url(url) == shown
    assert mask_urls(f"cannot list {url} now") == f"cannot list {shown} now"


@given(SECRETS, SECRETS)
def test_no_part_of_a_password_or_query_is_shown(password: str, query: str) -> None:
    for url in (f"sftp://user:{password}@host/x", f"https://host/x?{query}", f"https://u:{password}@host/x?{query}"):
        assert "s3cret" not in mask_url(url)


@given(SECRETS)
def test_no_part_of_a_fragment_is_shown(fragment: str) -> None:
    for url in (f"https://host/x#{fragment}", f"https://u@host:1/x#{fragment}", f"http://host:1/x?a=b#{fragment}"):
        assert "s3cret" not in mask_url(url)
        assert holds_secret(f"cannot open {url} here", url)
    assert mask_url("s3://bucket/a#b") == "s3://bucket/a#b"


@given(SECRETS, SECRETS)
def test_a_text_with_any_part_of_a_url_that_may_be_secret_is_recognised(password: str, query: str) -> None:
    for url in (
        f"sftp://user:{password}@host/x",
        f"https://host/x?key={query}",
        f"https://u:{password}@host/x?{query}",
    ):
        assert holds_secret(f"cannot open {url} here", url)
        assert all(holds_secret(f"a driver says {part}", url) for part in secrets_of(url))
    assert holds_secret("bucket KEY:s3cret is not a name", "s3://KEY:s3cret@bucket/x")
    assert holds_secret("a token a/b", "https://host/x?sig=a%2Fb&y=1")
    assert not holds_secret("cannot open https://host/x", "https://host/x?sig=abc")


@given(st.text())
def test_a_masked_text_stays_as_it_is(text: str) -> None:
    assert mask_urls(mask_urls(text)) == mask_urls(text)


def test_a_password_with_a_slash_is_refused_and_not_shown() -> None:
    for section, key in (("storage", "url"), ("input", "folder")):
        with pytest.raises(ValidationError, match="URL with a password"):
            Settings.model_validate({section: {key: "sftp://user:pa/ss@host/x"}})
    assert not has_password("sftp://host:22/a@b") and not has_password("s3://bucket/a@b")
