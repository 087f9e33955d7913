"""Thoughts of reasoning models: the reply is what follows them, whole or in pieces; a text about marks stays."""

from __future__ import annotations

import time

import pytest

from graphrag_pipeline.models.endpoints.thoughts import ThoughtFilter

REPLY = '{"title": "The ferry"}'
DRAFT = 'I could write {"title": "A draft"}.'
FORMS = {
    "tag": f"<think>\n{DRAFT}\n</think>\n\n{REPLY}",
    "longer tag": f"<thinking>{DRAFT}</thinking>{REPLY}",
    "attributes": f'<think time="3">{DRAFT}</think>{REPLY}',
    "reason": f"<reasoning>\n{DRAFT}</reasoning>\n{REPLY}",
    "brackets": f"[THINK]{DRAFT}[/THINK]{REPLY}",
    "triangles": f"◁think▷{DRAFT}◁/think▷{REPLY}",
    "name space": f"<seed:think>{DRAFT}</seed:think>{REPLY}",
    "channels": f"<|channel|>analysis<|message|>{DRAFT}<|end|>"
    f"<|start|>assistant<|channel|>final<|message|>{REPLY}<|return|>",
    "channels without ends": f"<|channel|>analysis {DRAFT} <|channel|>final<|message|>{REPLY}",
    "channel of JSON": f"<|channel|>final <|constrain|>json<|message|>{REPLY}",
    "open channel": f"<|channel>thought\n{DRAFT}<channel|>{REPLY}",
    "special tokens": f"<|START_THINKING|>{DRAFT}<|END_THINKING|><|START_RESPONSE|>{REPLY}<|END_RESPONSE|>",
    "solution": f"<|begin_of_thought|>{DRAFT}<|end_of_thought|>\n<|begin_of_solution|>{REPLY}<|end_of_solution|>",
    "answer": f"<thought>{DRAFT}</thought>\n<answer>{REPLY}</answer>",
    "details": f'<details type="reasoning" done="true">{DRAFT}</details>{REPLY}',
    "two blocks": f"<think>{DRAFT}</think>\n<think>{DRAFT}</think>\n{REPLY}",
    "quoted mark": f"<think>The tag `</think>` ends it. {DRAFT}\n</think>{REPLY}",
}
SHOWN_FIRST = {  # a stream has passed these on before it can know
    "no opening mark": f"Okay. {DRAFT}\n</think>\n\n{REPLY}",
    "no opening mark, one line": f"Okay. {DRAFT}</think>{REPLY}",
    "no opening mark, JSON": f'{{"title": "A draft"}}</think>{REPLY}',
    "words before": f"Sure!\n<think>{DRAFT}</think>\n{REPLY}",
    "words before, one line": f"Sure: <think>{DRAFT}</think>{REPLY}",
    "a draft between": f"<think>Hm.</think>{DRAFT}\n<think>No.</think>\n{REPLY}",
}
ALONE = [f"<think>{DRAFT}", f"<think>{DRAFT}</think>\n", f"{DRAFT}</think>", f"<|channel|>analysis<|message|>{DRAFT}"]
ABOUT_MARKS = [
    "The model writes <think> before its thoughts and </think> behind them.",
    "The tag `</think>` ends the thoughts.",
    "It ends with </think>, then comes the reply.",
    "DeepSeek writes <think>...</think> before the reply.",
    "Mistral uses [THINK] and [/THINK].",
    'The mark "</think>" is one of them.',
    "Such as:\n```\n<think>\nHm.\n</think>\n```\nThat is all.",
    '{"title": "Marks", "summary": "Set by the model.</think> and <think>x</think>y"}',
    '("entity"<|><THINK><|>TAG<|>The tag <think> opens the thoughts)',
    "\n A text [1] with a <b> and 1 < 2",
]


def read(text: str, size: int) -> tuple[str, ThoughtFilter]:
    thoughts = ThoughtFilter()
    pieces = [thoughts.add(text[start : start + size]) for start in range(0, len(text), size)]
    return "".join(pieces) + thoughts.rest(), thoughts


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_the_reply_is_what_follows_the_thoughts(text: str, size: int) -> None:
    assert read(text, size)[0] == REPLY


@pytest.mark.parametrize("text", SHOWN_FIRST.values(), ids=SHOWN_FIRST)
def test_thoughts_that_show_late_end_a_stream_with_the_reply(text: str) -> None:
    assert read(text, 1000)[0] == REPLY
    assert read(text, 3)[0].endswith(REPLY)


@pytest.mark.parametrize("size", [1, 1000])
@pytest.mark.parametrize("text", ALONE)
def test_thoughts_alone_leave_no_reply(text: str, size: int) -> None:
    found, thoughts = read(text, size)
    assert thoughts.has_thoughts and (not found or (size == 1 and thoughts.is_unmarked))


@pytest.mark.parametrize("size", [1, 4, 1000])
@pytest.mark.parametrize("text", ABOUT_MARKS)
def test_a_text_about_marks_stays(text: str, size: int) -> None:
    found, thoughts = read(text, size)
    assert found == text and not thoughts.has_thoughts


@pytest.mark.parametrize("part", ["<think>a", "</think>", "<", "<|channel|>", "``` ", '{"', "a.</think>b\n", "<|end|>"])
def test_time_grows_with_the_text(part: str) -> None:
    def seconds(n: int) -> float:
        started = time.process_time()
        read(part * n, 10**7)
        return time.process_time() - started

    assert seconds(16_000) < 5 * seconds(8_000) + 0.2
