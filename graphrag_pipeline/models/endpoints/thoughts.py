"""Thoughts that a reasoning model writes before its reply: where they end, in a whole text or in a stream.

Models mark their thoughts with a tag (`<think>`, `[THINK]`, `<seed:think>`), with special tokens, or with channels. A
chat template may have written the opening mark, so that a text begins with thoughts and holds only the closing mark.
The reply is what follows the last thoughts. A text may also speak of these marks. So a mark counts only where a model
sets one: not in code, quotes or strings of JSON, and an opening mark only at the start of a line or sentence.

Keep out: what a caller does with a text that is thoughts alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from graphrag_pipeline.text.late_patterns import late_re

_NAME = r"(?:[a-z]{1,20}:)?(?:think(?:ing)?|thoughts?|reason(?:ing)?|reflection|scratchpad)"
_CHANNEL = r"(?:<\|start\|>assistant\s?)?<\|channel\|?>\s?"
_MARK = late_re(
    rf"(?P<opening><{_NAME}(?:\s[^<>]{{0,80}})?>|<details\s[^<>]{{0,80}}reasoning[^<>]{{0,80}}>"
    rf"|<\|(?:{_NAME}|begin_of_thought|start_thinking)\|>|\[think(?:ing)?\]|[◁【⟨]{_NAME}[▷】⟩]"
    rf"|{_CHANNEL}(?:analysis|commentary|thought)\b(?:[^<\n]{{0,80}}<\|message\|>)?)"
    rf"|</{_NAME}\s?>|</details>|<\|(?:/{_NAME}|end_of_thought|end_thinking)\|>|\[/think(?:ing)?\]"
    rf"|[◁【⟨]/{_NAME}[▷】⟩]|<channel\|>"
    rf"|(?:<\|end\|>\s?)?{_CHANNEL}final\b\s?(?:<\|constrain\|>\s?\w{{1,20}}\s?)?(?:<\|message\|>)?",
    re.IGNORECASE,
)
"""Every part is bounded, so that the time of a search is linear in the text."""
_LONGEST = 260
_UNFINISHED = late_re(
    rf"(?:<[^\s<>]{{0,80}}|<\w[^<>]{{0,180}}|[\[◁【⟨]/?[\w:]{{0,30}}|{_CHANNEL}\w{{0,12}}(?:[^<\n]{{0,30}}<\|?[a-z|]{{0,12}}>?){{0,2}}\s?\w{{0,20}}"
    r"|<\|end\|>\s?(?:<\|start\|>\w{0,9})?(?:<[^<>]{0,30})?)\Z",
    re.IGNORECASE,
)
"""The end of a text that may be the start of a mark."""
_BEFORE_REPLY = late_re(r"\s*(?:<(?:answer|response|output)>|<\|(?:begin_of_solution|start_response)\|>)?\s*", re.I)
_AFTER_REPLY = late_re(
    r"(?:</(?:answer|response|output)>|<\|(?:return|end|end_of_solution|end_response)\|>)\s*\Z", re.I
)
_GOES_ON = late_re(r"[ \t]+[a-z]|[ \t]*[,;:.)…]")
"""A sentence that goes on behind a mark, and so speaks of it."""
_JSON = late_re(r"\s*(?:```\w{0,10}\s*)?(?:\{|\[\s*[\[{\"])")
_STRING = late_re(r'"(?:[^"\\]|\\.)*(?:"|\Z)', re.DOTALL)
_QUOTES = "\"'“”‘’«»„"
_SENTENCE_ENDS = "\n.!?…。！？"


class ThoughtFilter:
    """Passes on the reply in a text that arrives in pieces, and holds back the thoughts before it.

    Attributes:
        has_thoughts: whether the text so far holds thoughts.
        is_unmarked: whether they began without a mark, so that a stream cannot know them until they end.
    """

    def __init__(self) -> None:
        self.has_thoughts = self.is_unmarked = False
        self._text = ""
        self._begin = self._shown = 0
        self._is_open = False

    def add(self, piece: str) -> str:
        """Return what can be passed on now that this piece has come."""
        self._text += piece
        unfinished = _UNFINISHED.search(self._text, max(0, len(self._text) - _LONGEST))
        end = unfinished.start() if unfinished else len(self._text)
        marks = list(_MARK.finditer(self._text, max(0, len(self._text) - len(piece) - _LONGEST)))
        if marks:
            self._read_marks()
            if marks[-1].end() > len(self._text) - 2:  # what follows it decides what it is
                end = min(end, marks[-1].start())
        after = _AFTER_REPLY.search(self._text, max(0, end - 60))
        return self._pass_on(after.start() if after else end) if self._text.strip() else ""

    def rest(self) -> str:
        """Return the text of the reply that is held back; of thoughts without an end, nothing."""
        self._read_marks()
        end = len(self._text)
        while self.has_thoughts and (after := _AFTER_REPLY.search(self._text, max(0, end - 60), end)):
            end = after.start()
        return self._pass_on(end)

    def _pass_on(self, end: int) -> str:
        begin = max(self._begin, self._shown)
        if self._is_open or end <= begin:
            return ""
        self._shown = end
        return self._text[begin:end]

    def _read_marks(self) -> None:
        text, begin, last, n_fences = self._text, 0, 0, 0
        told_at = -_LONGEST  # the last opening mark that the text only speaks of
        self._is_open = self.is_unmarked = False
        strings = _JsonStrings(text, 0)
        for mark in _MARK.finditer(text):
            n_fences += text.count("```", last, mark.start())
            last = mark.start()
            if (n_fences % 2 and not self._is_open) or strings.hold(last) or _is_quoted(text, mark):
                continue
            if mark["opening"]:
                is_first = last - begin < _LONGEST and not text[begin:last].strip()
                if is_first or _may_begin(text, mark):
                    self._is_open = True
                elif not self._is_open:
                    told_at = last
            elif self._is_open or _may_end(text, mark, told_at):
                self.is_unmarked = self.is_unmarked or not self._is_open
                self._is_open, begin, n_fences = False, mark.end(), 0
                strings = _JsonStrings(text, begin)
        self.has_thoughts = self._is_open or begin > 0
        match = _BEFORE_REPLY.match(text, begin) if begin else None
        self._begin = match.end() if match else begin


def begins_as_json(text: str) -> bool:
    """Return whether a text begins as an object or a list of JSON, maybe in a code fence."""
    return _JSON.match(text) is not None


class _JsonStrings:
    """The strings of a text that begins as JSON, asked about in order."""

    def __init__(self, text: str, begin: int) -> None:
        opened = _JSON.match(text, begin)
        self._spans: Iterator[re.Match[str]] = _STRING.finditer(text, opened.end() - 1) if opened else iter(())
        self._span = next(self._spans, None)

    def hold(self, place: int) -> bool:
        while self._span is not None and self._span.end() <= place:
            self._span = next(self._spans, None)
        return self._span is not None and self._span.start() < place


def _left_of(text: str, place: int) -> str:
    """Return the character before a place, without blanks; a line break at the start of the text."""
    return text[max(0, place - 40) : place].rstrip(" \t")[-1:] or "\n"


def _may_begin(text: str, mark: re.Match[str]) -> bool:
    """Whether thoughts may begin behind other words: at the start of a line, or behind a sentence."""
    return _left_of(text, mark.start()) in _SENTENCE_ENDS and not _GOES_ON.match(text, mark.end())


def _may_end(text: str, mark: re.Match[str], told_at: int) -> bool:
    """Whether thoughts without an opening mark may end here: behind a sentence, at the start of a line, close to text.

    Args:
        told_at: place of an opening mark that the text speaks of; on the same line, it takes this one along.
    """
    place = mark.start()
    is_told = place - told_at < _LONGEST and "\n" not in text[told_at:place]
    if _GOES_ON.match(text, mark.end()) or (is_told and not text[mark.end() : mark.end() + 1].strip()):
        return False
    before = text[place - 1 : place] or "\n"
    return _left_of(text, place) in _SENTENCE_ENDS or before.isalnum() or before in "}])*%"


def _is_quoted(text: str, mark: re.Match[str]) -> bool:
    """Whether a mark is in quotes or in code within a line."""
    before, after = text[max(0, mark.start() - 1) : mark.start()], text[mark.end() : mark.end() + 1]
    if before and after and before in _QUOTES + "`" and after in _QUOTES + "`":
        return True
    line = text[max(0, mark.start() - 500) : mark.start()].rpartition("\n")[2]
    return line.count("`") % 2 == 1 and "`" in text[mark.end() : mark.end() + 500].partition("\n")[0]
