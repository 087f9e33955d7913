from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.text.cut_texts import (
    cut_tokens,
    drop_repeated_sentences,
    ends_in_certain_loop,
    is_loop,
    keep_whole_sentences,
)
from graphrag_pipeline.text.tokens import count_tokens_each


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("Scrooge is a miser. He has a cl", "Scrooge is a miser."),
        ('He says "Humbug!" Then he g', 'He says "Humbug!"'),
        ("It cost 3.5 pounds. It w", "It cost 3.5 pounds."),
        ("\u8427\u708e\u662f\u4e3b\u89d2\u3002\u4ed6", "\u8427\u708e\u662f\u4e3b\u89d2\u3002"),
        ("Scrooge is a mi", ""),
        ("He is mean. He is rich. He is rich. He is rich. He is r", "He is mean. He is rich."),
    ],
)
def test_a_text_that_was_cut_off_keeps_its_whole_sentences(reply: str, kept: str) -> None:
    assert keep_whole_sentences(reply) == kept


def test_a_sentence_is_said_once_and_its_repeated_start_at_the_end_is_left_out() -> None:
    loop = "Lund met Maas [Data: Sources (1)]. Maas sold a ferry.\n" + "Maas Sold  a ferry. " * 30 + "Maas so"
    assert drop_repeated_sentences(loop) == "Lund met Maas [Data: Sources (1)]. Maas sold a ferry."
    assert drop_repeated_sentences("One. Two. Th") == "One. Two. Th"


@given(st.lists(st.sampled_from(["Lund met Maas. ", "The ferry is old. ", "- A point.\n", "\u4ed6\u8d70\u4e86\u3002"])))
def test_every_sentence_stays_once_in_order(sentences: list[str]) -> None:
    text = "".join(sentences)
    kept = drop_repeated_sentences(text)
    assert drop_repeated_sentences(kept) == kept
    assert all(kept.count(sentence.strip()) == 1 for sentence in set(sentences))


@given(st.text(max_size=200), st.integers(0, 60))
def test_so_many_tokens_are_cut_at_least(text: str, n_tokens: int) -> None:
    [before, after] = count_tokens_each([text, cut := cut_tokens(text, n_tokens)])
    assert text.startswith(cut) and (not cut or after <= before - n_tokens)


def test_a_loop_is_told_from_a_long_list() -> None:
    assert is_loop('("relationship"<|>Lund<|>Maas<|>They met.<|>9)\n##\n' * 3 + '("relationship"<|>Lu')
    assert not is_loop("".join(f'("entity"<|>Person {number}<|>PERSON<|>A guest.)\n##\n' for number in range(50)))
    assert not is_loop("It ran. " * 2)


LONG_PART = " ".join(f"On day {n} the fog came at {n * 7 % 24} o'clock." for n in range(12)) + " "


@pytest.mark.parametrize(
    "part", [" The fog was thick.", '\n##\n("entity"<|>SCROOGE<|>PERSON<|>A miser)', "12, ", "\n", LONG_PART]
)
def test_copies_of_one_part_are_a_certain_loop(part: str) -> None:
    begin = "Scrooge lived alone in old rooms. He kept a low fire there."
    assert ends_in_certain_loop(begin + part * 1300)
    assert ends_in_certain_loop(begin + part * 1300 + part[: len(part) // 2])
    assert not ends_in_certain_loop(begin + part * 1300 + " At last he went home through the fog.")


def test_a_few_copies_a_table_and_a_list_that_counts_on_are_no_certain_loop() -> None:
    assert not ends_in_certain_loop("The fog was thick that day in the city. " * 5)
    assert not ends_in_certain_loop("|---" * 100 + "|")
    assert not ends_in_certain_loop("".join(f', {{"number": {n}, "rating": 3}}' for n in range(400)))


@given(st.lists(st.text(string.ascii_letters + " .", min_size=8), unique=True, max_size=60))
def test_a_text_of_different_lines_is_no_certain_loop(lines: list[str]) -> None:
    assert not ends_in_certain_loop("\n".join(f"{n} {line}" for n, line in enumerate(lines)))
