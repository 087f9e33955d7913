"""The extraction of the demo model: what it says of a name."""

from __future__ import annotations

import re

import pytest

from graphrag_pipeline.demo_model.extraction import extract_graph
from graphrag_pipeline.demo_model.prompts import PromptMessages


@pytest.mark.parametrize("text", ["Ebenezer Scrooge met Jacob Marley " + "again " * 30, "《红楼梦》" + "说" * 150])
def test_a_long_sentence_is_cut_between_words_where_there_are_any(text: str) -> None:
    prompt = f'("entity"<|>name<|>type<|>description)##\nText: {text}'
    said = re.findall(r'\("entity"<\|>[^<]+<\|>[^<]+<\|>([^)]*)\)', extract_graph(PromptMessages((("user", prompt),))))
    assert said and all(90 < len(one) <= 100 and one in text for one in said)
    assert all(text[text.index(one) + len(one)] == " " for one in said if " " in text)
