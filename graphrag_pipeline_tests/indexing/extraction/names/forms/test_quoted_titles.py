import pytest

from graphrag_pipeline.indexing.extraction.names.forms.quoted_titles import join_quoted_titles
from graphrag_pipeline.indexing.extraction.names.occurrences import Name


def joined(text: str, *forms: str) -> list[str]:
    names = [Name(form, text.index(form), text.index(form) + len(form), 0) for form in forms]
    return [name.form for name in join_quoted_titles(names, text, [0])[0]]


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [
        ('his film "One Flew Over the Tessim\'s Nest" won', ("Tessim", "Nest"), ["One Flew Over the Tessim's Nest"]),
        ('the song" Where Do Tessims Go" was', ("Tessims",), ["Where Do Tessims Go"]),
        ("an album, “Songs from the Big Tessim”, and", ("Songs", "Big Tessim"), ["Songs from the Big Tessim"]),
        ('the play "The Tessim", by', ("Tessim",), ["Tessim"]),
        ('she said "Ann Tessim" and', ("Ann Tessim",), ["Ann Tessim"]),
        ('she said, "Tessim is here," and', ("Tessim",), ["Tessim"]),
        ('"Tell Tessim" he said', (), []),
    ],
)
def test_a_quoted_title_is_one_name(text: str, parts: tuple[str, ...], expected: list[str]) -> None:
    assert joined(text, *parts) == expected
