"""Fifty replies that no model should give; each may cost its own text unit and nothing else."""

from __future__ import annotations

_ENTITY = '("entity"<|>{}<|>PERSON<|>{})\n##\n'
_PAIR = '("relationship"<|>A<|>B<|>{}<|>{})\n##\n'
_TWO_MEGABYTES = 2_000_000


def _entity(name: str, description: str = "d") -> str:
    return _ENTITY.format(name, description) + "<|COMPLETE|>"


def _pair(strength: str, description: str = "d") -> str:
    return _PAIR.format(description, strength) + "<|COMPLETE|>"


def _big(part: str) -> str:
    return part * (_TWO_MEGABYTES // len(part))


HOSTILE_REPLIES: tuple[str, ...] = (
    # nothing, or next to it
    "", " \n\t ", "\x00", "\ud800", "\ufeff", "null", "[]", "{}", "<|>", "##", "<|COMPLETE|>", "()",
    # deep or broken JSON
    "[" * 100_000, '{"a":' * 100_000, "[" * 400 + "]" * 400, '{"entities": [{"name": ', '[{"name": "A", "type": NaN}]',
    '[{"name": null, "type": null, "description": null}]', '{"name": {"name": {"name": "A"}}, "type": []}',
    '[{"source": "A", "target": "B", "strength": 1e999}]', '[{"source": "A", "target": "B", "strength": ' + "9" * 9000,
    # huge, negative and impossible numbers
    _pair("NaN"), _pair("inf"), _pair("-5"), _pair("1e999"), _pair("9" * 5000), _pair("0x1F"), _pair("١٠"), _pair(""),
    # characters
    _entity("\u202eEGOORCS\u202c"), _entity("SCR\u200bOOGE"), _entity("\u0645\u062d\u0645\u062f"), _entity("A\ud800B"),
    _entity("e" + "\u0301" * 5000), _entity("\U0001f469\u200d\U0001f469\u200d\U0001f467"), _entity("A\x00B"),
    # SQL and markup
    _entity("x') OR ('1'='1"), _entity("'; DROP TABLE entities; --"), _entity("<script>alert(1)</script>"),
    _entity("{input_text}"), _entity("A", "a <| b |> c <|im_end|> d {0} %s"),
    # repeats and sizes
    _entity("A" * 100_000), _entity("A", "long " * 300_000), _big(_ENTITY.format("A", "d")), _big("<|>"), _big("("),
    _big('("entity"<|>'), _big(") \n"), _big("A (b) "), _big("{"),
)  # fmt: skip
