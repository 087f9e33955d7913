"""The part of an answer that is compared with a reference answer, and answers that decline.

Markers such as [1], markdown, and what the embedded engine writes around its quotations are not compared: the titles of
passages, and the opening line. An answer declines if it begins with the words of this
package, of Microsoft GraphRAG, or with a common English or Chinese phrase for it and no answer follows a "but". Keep
out: figures.
"""

from __future__ import annotations

import re

from graphrag_pipeline.query.answers.notes import strip_notes

_MARKER = re.compile(r"\s?\[\d+\]")
_MARKDOWN = re.compile(r"[*_`]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}|^#+\s+|^\s*[-*+]\s+", re.MULTILINE)
_QUOTED_LINE = re.compile(r"^- (.*)$", re.MULTILINE)
_REPLACED = re.compile(r"\AThe model gave no answer \(.*?\); the embedded engine answers instead\.\s*", re.DOTALL)
_SURE = re.compile(
    r"\W*(?:not in the index|no answer in what could be read|nothing in the index|not answered:|unanswerable\b|"
    r"(?:i am|i'm) sorry,? but i am unable to answer this question given the provided data)",
    re.IGNORECASE,
)
_SOURCES = r"(?:(?:the|these|those|this|my|your|provided|given|available|indexed|supplied|\w+ed) )*" + (
    r"(?:data|sources?|documents?|contexts?|texts?|records?|information|reports?|passages?|excerpts?|index|tables?)\b"
)
_OPENING = (
    r"\W*(?:(?:(?:i am|i'm|we are) )?(?:very |so )?sorry\W+|unfortunately\W+|i apologi[sz]e\W+|apologies\W+|"
    rf"(?:based on|according to|given|from|in) {_SOURCES}(?: provided| given)?\W+|(?:but|that|however)\W+)*"
)
_UNABLE = (
    r"(?:am unable to|am not able to|cannot|can't|can not|could not|couldn't|do not|don't|was unable to|did not|didn't)"
)
_DECLINES = re.compile(
    _OPENING
    + r"(?:(?:i|we) (?:(?:do not|don't) (?:know|have (?:any |enough |sufficient )?(?:information|data|answer))|"
    rf"(?:are unable to|{_UNABLE}) (?:answer|determine|say|tell)\b|"
    rf"{_UNABLE} (?:find|see|locate) (?:any |an )?(?:information|mention|answer|reference|evidence|record))|"
    rf"(?:none of )?{_SOURCES}(?: provided| given)? (?:(?:does|do|did) not|doesn't|don't|didn't) (?:\w+ly )?"
    r"(?:say|answer|contain|mention|provide|include|state|specify|tell|give|have|address)\b|"
    rf"{_SOURCES} (?:has|have|contains?|provides?|gives?) no (?:answer|information|mention|data)\b|"
    r"there (?:is|was|are) (?:no|not enough|insufficient) (?:\w+ )?(?:information|mention|answer|data|evidence|"
    r"references?|records?)(?= (?:about|on|regarding|of|for|to|in|available|given|provided|that)\b|\W*(?:$|[.,;:!\n]))|"
    r"no (?:\w+ )?(?:information|answer|mention|data)(?: (?:is|was|could be|about|on|regarding)\b|\W*(?:$|[.!\n]))|"
    r"(?:it|this|that) is not (?:stated|mentioned|known|given|specified)\b|"
    r"(?:this|the) question cannot be answered\b)",
    re.IGNORECASE,
)
_DECLINES_CHINESE = re.compile(
    r"\W*(?:(?:很|非常)?(?:抱歉|对不起|對不起|遗憾|遺憾)\W*)?(?:但是?\W*)?(?:"
    r"(?:我|我们|我們)?(?:并|並)?(?:无法|無法|不能|没法|沒法|没有办法|沒有辦法)(?:回答|确定|確定|判断|判斷|得知|找到)|我?不知道|我不清楚|"
    r"(?:所提供的?|提供的?|给出的?|給出的?|现有的?|現有的?|这些|這些|根据|根據|在)*"
    r"(?:索引|文档|文檔|文件|资料|資料|数据|數據|原文|文本|文中|上下文|来源|來源|信息)(?:中|里|裡|内|內)?\W*"
    r"(?:并|並|都)?(?:没有|沒有|未|无|無)|"
    r"(?:没有|沒有|未|无|無)(?:找到|提及|提到|包含)?(?:任何)?(?:相关|相關|有关|有關)的?(?:信息|资料|資料|内容|內容|答案|记录|記錄))"
)
_SENTENCE = re.compile(r".*?(?:[.!?](?=\s|$)|[。！？\n]|$)")
_CONTRAST = re.compile(
    r"\b(?:but|however|nevertheless|although|though)\b\W*|(?:但是?|不过|不過|然而|只是)\W*", re.IGNORECASE
)
_OFFER = re.compile(
    r"(?:please|if you|you (?:can|could|may|might)|feel free|let me know|"
    r"(?:i|we) (?:can|could|will|would|am|'d|would be) ?(?:help|happy|glad|be happy|be glad|try)|"
    r"请|請|如果您?|您可以|你可以)",
    re.IGNORECASE,
)


def declines(answer: str) -> bool:
    """Whether an answer begins by saying that it has none, and does not answer after a word such as "but".

    Words of this package and of Microsoft GraphRAG are enough. After other words, what follows "but" or "however" in
    the same sentence, or at the beginning of the next one, is an answer, unless it declines, too, or offers help.
    """
    text = _REPLACED.sub("", answer).replace("\u2019", "'").strip().replace("**", "")
    return _SURE.match(text) is not None or (_says_no_answer(text) and not _answers_after_contrast(text))


def _says_no_answer(text: str) -> bool:
    return _DECLINES.match(text) is not None or _DECLINES_CHINESE.match(text) is not None


def _answers_after_contrast(text: str) -> bool:
    said = max((found.end() for one in (_DECLINES, _DECLINES_CHINESE) if (found := one.match(text))), default=0)
    sentence = _SENTENCE.match(text, said)
    end = sentence.end() if sentence else len(text)
    following = len(text) - len(text[end:].lstrip())
    contrast = _CONTRAST.search(text, said, end) or _CONTRAST.match(text, following)
    rest = text[contrast.end() :] if contrast else ""
    return bool(rest) and not _says_no_answer(rest) and _OFFER.match(rest) is None


def answer_body(answer: str, engine: str) -> str:
    """Return what an answer says, as plain text: of the embedded engine, its passages, one a line."""
    passages = quoted_passages(answer, engine)
    return "\n".join(passages) if passages else _plain(strip_notes(_REPLACED.sub("", answer)))


def quoted_passages(answer: str, engine: str) -> list[str] | None:
    """Return the passages of an extractive answer as plain text, in order; None if a model answered."""
    return [_plain(line) for line in _QUOTED_LINE.findall(answer)] if _is_embedded(answer, engine) else None


def _plain(text: str) -> str:
    return _MARKDOWN.sub("", _MARKER.sub("", text)).strip()


def _is_embedded(answer: str, engine: str) -> bool:
    return engine == "embedded" or _REPLACED.match(answer) is not None
