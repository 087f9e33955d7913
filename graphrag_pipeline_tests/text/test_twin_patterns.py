"""Both forms of a pattern find the same in texts of ASCII; every pattern of the extraction can be read by `re`."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from pkgutil import walk_packages

import pytest

from graphrag_pipeline.indexing.extraction import names
from graphrag_pipeline.text.twin_patterns import TwinPattern

_TEXTS = Path(__file__).parents[2] / "data" / "input"


def patterns() -> Iterator[tuple[str, TwinPattern]]:
    for module in walk_packages(names.__path__, f"{names.__name__}."):
        for name, value in vars(importlib.import_module(module.name)).items():
            found = value if isinstance(value, tuple) else (value,)
            yield from ((f"{module.name}.{name}", one) for one in found if isinstance(one, TwinPattern))


def windows() -> list[str]:
    """The text before and around each capitalized word of the sample, as cues are read."""
    made = [
        "a tug called the 'Titan",
        "Mr J. Lund of ",
        "an invoice for tiles from ",
        "We moved the wiki from the ",
        "\n* ACTION: ",
        "the notary ",
        "our host, ",
        ", the activist fund that sued",
        " have quoted $4,000",
        "x = f(y);\n",
        "in Legal ",
    ]
    for path in sorted(_TEXTS.glob("*.txt"))[:3]:
        text = path.read_text(encoding="utf-8").encode("ascii", "replace").decode()[:30_000]
        places = [match.start() for match in re.finditer(r"\b[A-Z]", text)]
        made += [text[max(place - 60, 0) : place] for place in places] + [text[place : place + 80] for place in places]
    return made


def test_both_forms_find_the_same_in_ascii() -> None:
    texts, found = windows(), list(patterns())
    assert len(found) > 60 and len(texts) > 1000
    for name, pattern in found:
        for text in texts:
            plain, other = pattern._in_ascii.search(text), pattern._in_any.search(text)
            assert (plain and (plain.span(), plain.groups())) == (other and (other.span(), other.groups())), name


@pytest.mark.parametrize(
    ("text", "found"), [("the \u00d8resund ferry", ["\u00d8resund"]), ("the Elbe ferry", ["Elbe"]), ("a b", [])]
)
def test_other_letters_count_as_letters(text: str, found: list[str]) -> None:
    assert TwinPattern(r"\p{Lu}[\p{L}-]+").findall(text) == found
