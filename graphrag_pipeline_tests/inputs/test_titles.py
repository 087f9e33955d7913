"""The title of a Markdown text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.inputs.titles import read_title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# One\n\ntext\n\n# Two", "One"),
        ("\n\n## Begins with a part\n\n# Later", "Begins with a part"),
        ("A badge.\n\n## Installing\n\ntext", ""),
        ("A badge.\n\n## Installing\n\n# The Name", "The Name"),
        ("The Name\n========\n\n## Installing", "The Name"),
        ("========\nThe Name\n========\n", "The Name"),
        ("Text above.\n\n---\n\n## Part", ""),
        ('<h1 align="center">\n  <img src="x.png"> The <b>Name</b> &amp; Co\n</h1>\n\n## Installing', "The Name & Co"),
        ('<h1 align="center">\n\n![logo](a/b.svg)\n\n</h1>\n\ntext\n\n# The Name', "The Name"),
        ("---\nauthor: A\ntitle: 'The Name'\n---\n\n# Another", "The Name"),
        ("---\ntitle: >\n  folded\n---\n\n# The Name", "The Name"),
        ("---\nno end of it\n\n# The Name", "The Name"),
        ("```bash\n# install\npip install x\n```\n\n## Part", ""),
        ("~~~~\n# install\n~~~~\n\n# The Name", "The Name"),
        ("```\n# never closed", ""),
        ("<!-- # hidden -->\n## Begins with a part", "Begins with a part"),
        ("# [The *Name*](https://a.example/b_c): `fast` and **small** #", "The Name: fast and small"),
        ("# About C#", "About C#"),
        ("# ![logo](x.png)\n\n# The Name", "The Name"),
        ("#hash\n\ntext # no heading", ""),
        ("", ""),
        ("Use `<!--` to open.\n\n# The Name", "The Name"),
        ("```not a fence``` text\n\n# The Name", "The Name"),
        ("Use `<h1>x</h1>` for it.\n\n# The Name", "The Name"),
        ('<div align="center"><h1>The Name</h1></div>', "The Name"),
        ("<<<<<<< HEAD\n# One\n=======\n# Two", "One"),
        ("# [The Name](https://a.example/The_(name)) is here", "The Name is here"),
        ("---\ntitle: null\n---\n# The Name", "The Name"),
        ("---\ntitle: C# guide # a comment\n---", "C# guide"),
        ("---\ntitle: 'Ida''s bridge'\n---", "Ida's bridge"),
        ('---\ntitle: "The \\"old\\" bridge"\n---', 'The "old" bridge'),
        ("# a" + " " * 20_000 + "b\n\n# The Name", "The Name"),
    ],
)
def test_the_title_is_that_of_the_whole_text(text: str, title: str) -> None:
    assert read_title(text) == title


@pytest.mark.parametrize("piece", ["<h1>a", "# [", "![", "`a ", "*a ", "<!--", "<!--\n", "| a" + " " * 99 + "|\n"])
def test_a_hostile_text_of_many_characters_is_read(piece: str) -> None:
    assert isinstance(read_title("# " + piece * 20_000), str)


@given(st.text("#=-`~<h1>/![]()*& \nab", max_size=60))
def test_a_title_is_one_line_without_blanks_around(text: str) -> None:
    title = read_title(text)
    assert title == " ".join(title.split())
