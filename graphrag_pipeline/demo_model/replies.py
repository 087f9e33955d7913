"""Replies by rule: the kind of a prompt is recognized and answered, from the conversation only.

| kind | recognized by | answer |
|---|---|---|
| `extraction`, `gleaning`, `loop` | `("entity"` in the prompt; a follow-up on what was "missed"; by Y or N | records |
| `claims`, `claims-gleaning` | `(<subject...` or "claim status" in the prompt | claim records |
| `report` | "findings" and "rating_explanation", in the prompt or the schema | report JSON with citations |
| `rating` | "rating" and "reason" as JSON names | `{"reason", "rating"}`, 0-5 by shared words |
| `ratings` | "ratings" as a JSON name | `{"ratings": [{"number", "rating"}]}`, the same for each numbered record |
| `map` | "points" and "score" as JSON names | `{"points": [{"description", "score"}]}`, 0-100 |
| `personas` | "personas" as a JSON name | readers and tasks, named after the records |
| `questions` | "questions" as a JSON name | questions about names in the records |
| `verdict` | "winner" as a JSON name | the answer with more words, for directness with fewer |
| `keywords` | "low_level_keywords" as a JSON name | names and other long words of the question |
| `statements` | "statements" as a JSON name | the sentences of the text |
| `checks` | "checks" as a JSON name | each statement, supported if the text has most of its words |
| `corpus`, `types`, `scale` | "domain", "entity_types", "criterion" as JSON names | of the passages |
| `example` | "entities" as a JSON name | names and pairs of the passage |
| `primer` | "follow_up_queries" | that, `intermediate_answer`, `response`, `score` |
| `summary` | "description" and "summar..." | the distinct descriptions, joined and cut |
| `answer` | "[Data:" in the prompt | the best records, cited |
| `echo` | all else | a short echo |

With a JSON schema, the answer is changed to fit it; an unknown schema is filled.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any

from graphrag_pipeline.demo_model.evaluating import (
    reply_checks,
    reply_personas,
    reply_questions,
    reply_statements,
    reply_verdict,
)
from graphrag_pipeline.demo_model.extraction import (
    answer_loop_question,
    extract_claims,
    extract_graph,
    split_sentences,
)
from graphrag_pipeline.demo_model.prompts import PromptMessages, PromptRecord, number_of, read_records
from graphrag_pipeline.demo_model.schemas import fit_schema
from graphrag_pipeline.demo_model.tuning import (
    choose_entity_types,
    define_rating,
    describe_corpus,
    make_example,
)

_WORD = re.compile(r"\w+")
_ENTITY_FORMAT = re.compile(r"\(\s*[\"“]?entity[\"”]?\s*\W{1,8}[<{\w\"]", re.IGNORECASE)
_CLAIM_FORMAT = re.compile(r"\(\s*[<{\[]subject|claim[ _]status", re.IGNORECASE)
_YES_OR_NO = re.compile(r"\bY(?:es)?\b.{0,80}\bN(?:o)?\b", re.IGNORECASE | re.DOTALL)
_DESCRIPTIONS = re.compile(
    r"descriptions?(?:[ _]list)?\s*:\s*(.+?)(?:\n#{3,}|\noutput\s*:|\Z)", re.IGNORECASE | re.DOTALL
)
_MAX_WORDS = re.compile(r"(\d{2,5}) words")
_CITATION = re.compile(r"\[Data: \w+ \(\d")
_DATA = re.compile(
    r"^-{0,5}[ \t]*(?:data tables|analyst reports|data reports|context|data)[ \t]*-{0,5}:?$(.*?)(?=^---|\Z)",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_DATA_TAGS = re.compile(r"^<data>$(.*?)^</data>$", re.MULTILINE | re.DOTALL)
_KIND_OF_NAME = {
    "personas": "personas",
    "questions": "questions",
    "winner": "verdict",
    "statements": "statements",
    "checks": "checks",
    "domain": "corpus",
    "entity_types": "types",
    "criterion": "scale",
    "entities": "example",
    "low_level_keywords": "keywords",
}
_N_FINDINGS = 5
_N_POINTS = 3


def name_kind(conversation: PromptMessages) -> str:
    """Return the kind of a prompt, from the table above."""
    prompt, last = conversation.opening, conversation.last
    names = set(conversation.schema.get("properties", ())) if conversation.schema else set()
    is_graph = _ENTITY_FORMAT.search(prompt) is not None
    is_claims = not is_graph and not names and _CLAIM_FORMAT.search(prompt) is not None
    if (is_graph or is_claims) and conversation.n_replies and "missed" in last:
        if _YES_OR_NO.search(last):
            return "loop"
        return "gleaning" if is_graph else "claims-gleaning"
    if is_graph or is_claims:
        return "extraction" if is_graph else "claims"
    if "findings" in names or ("findings" in prompt and "rating_explanation" in prompt):
        return "report"
    if "ratings" in names or '"ratings"' in prompt:
        return "ratings"
    if {"rating", "reason"} <= names or ('"rating"' in prompt and '"reason"' in prompt):
        return "rating"
    for name, kind in _KIND_OF_NAME.items():
        if name in names or f'"{name}":' in prompt:
            return kind
    if "points" in names or ('"points"' in prompt and '"score"' in prompt):
        return "map"
    if "follow_up_queries" in names or "follow_up_queries" in prompt:
        return "primer"
    if names:
        return "echo"
    lowered = prompt.lower()
    if "description" in lowered and "summar" in lowered and "[data:" not in lowered:
        return "summary"
    return "answer" if "[data:" in lowered else "echo"


def reply_to(kind: str, conversation: PromptMessages) -> str:
    """Return the text of the reply; JSON if the kind, the schema or `json_object` requires it."""
    value = _REPLIES[kind](conversation)
    if conversation.schema is not None:
        hint = conversation.question[:80] or "ok"
        return json.dumps(fit_schema(value, conversation.schema, hint), ensure_ascii=False)
    if isinstance(value, str):
        return json.dumps({"answer": value}, ensure_ascii=False) if conversation.wants_json else value
    return json.dumps(value, ensure_ascii=False)


def _report(conversation: PromptMessages) -> dict[str, Any]:
    text = conversation.input_text
    records = read_records(text, "Entities")
    names = [_first_field(record) for record in records if record.section == "Entities"]
    sentences = split_sentences(text)[:_N_FINDINGS] or ["Nothing is known."]
    title = " and ".join(names[:2]) or sentences[0][:60]
    findings = [
        {"summary": _first_field(record), "explanation": f"{_cut(record.text, 60)} {_cite([record])}"}
        for record in _best_records(records, title, _N_FINDINGS)
    ] or [{"summary": sentence[:60], "explanation": sentence} for sentence in sentences]
    return {
        "title": title,
        "summary": f"The community of {title} holds {len(records)} records. {_cite(records[:5])}".strip(),
        "rating": float(1 + number_of(text, 9)),
        "rating_explanation": f"Rated by the number of records that concern {title}.",
        "findings": findings,
    }


def _rating(conversation: PromptMessages) -> dict[str, Any]:
    question = _content_words(conversation.question)
    given = conversation.opening.replace(conversation.question, " ")
    shared = sorted(question & _content_words(given))
    return {
        "reason": f"Shares {', '.join(shared) or 'no word'} with the question.",
        "rating": _rate(shared, question),
    }


def _ratings(conversation: PromptMessages) -> dict[str, Any]:
    question = _content_words(conversation.question)
    return {
        "ratings": [
            {"number": record.number, "rating": _rate(question & _content_words(record.text), question)}
            for record in read_records(_data_of(conversation), "Reports")
        ]
    }


def _rate(shared: Iterable[str], question: set[str]) -> int:
    return min(5, -(-5 * len(list(shared)) // max(1, len(question))))


def _map(conversation: PromptMessages) -> dict[str, Any]:
    question = _content_words(conversation.question)
    records = _best_records(read_records(_data_of(conversation), "Reports"), conversation.question, _N_POINTS)
    scores = [100 * len(question & _content_words(record.text)) // max(1, len(question)) for record in records]
    return {
        "points": [
            {"description": f"{_cut(record.text, 40)} {_cite([record])}", "score": score}
            for record, score in zip(records, scores, strict=True)
        ]
    }


def _primer(conversation: PromptMessages) -> dict[str, Any]:
    answer = _answer(conversation)
    names = [_first_field(record) for record in read_records(_data_of(conversation), "Reports")][:3]
    questions = [f"What is known about {name}?" for name in names] or [f"What else concerns {conversation.question}"]
    score = 10 + number_of(answer, 90)
    return {"intermediate_answer": answer, "response": answer, "score": score, "follow_up_queries": questions}


def _keywords(conversation: PromptMessages) -> dict[str, Any]:
    """Capitalized words behind the first one are names, neighbours together; other words of five letters are themes."""
    names = re.findall(r"(?<=\s)[A-Z][\w'-]*(?: [A-Z][\w'-]*)*", conversation.last)
    taken = {word.lower() for name in names for word in _WORD.findall(name)}
    words = dict.fromkeys(word.lower() for word in _WORD.findall(conversation.last) if len(word) >= 5)
    return {
        "high_level_keywords": [word for word in words if word not in taken][:6],
        "low_level_keywords": list(dict.fromkeys(names))[:6],
    }


def _summary(conversation: PromptMessages) -> str:
    found = _DESCRIPTIONS.search(conversation.opening)
    block = found[1].strip() if found else conversation.input_text
    try:
        parts = [str(part) for part in json.loads(block)] if block.startswith("[") else block.splitlines()
    except ValueError:
        parts = block.strip("[]").splitlines()
    distinct = dict.fromkeys(sentence for part in parts for sentence in split_sentences(part.strip(" -*\t")))
    limit = _MAX_WORDS.search(conversation.opening)
    return _cut(" ".join(distinct), int(limit[1]) if limit else 100)


def _answer(conversation: PromptMessages) -> str:
    data = _data_of(conversation)
    records = _best_records(read_records(data), conversation.question, _N_POINTS)
    if records:
        said = (max(record.text.split("|"), key=len) for record in records)  # of the fields of a row, the prose
        return "\n\n".join(f"{_cut(text, 50)} {_cite([record])}." for text, record in zip(said, records, strict=True))
    cited = [line.strip() for line in data.splitlines() if _CITATION.search(line)]
    return "\n\n".join(cited[:5]) or "I do not know: the data tables hold no record."


def _echo(conversation: PromptMessages) -> str:
    return f"Echo: {' '.join(conversation.last.split())[:200]}"


def _data_of(conversation: PromptMessages) -> str:
    """Return the data of a query prompt: between tags, from its heading to the next one, or all of it."""
    tagged = _DATA_TAGS.search(conversation.opening)
    if tagged:
        return tagged[1]
    found = _DATA.search(conversation.opening)
    return found[1] if found and found[1].strip() else conversation.opening


def _best_records(records: list[PromptRecord], question: str, n: int) -> list[PromptRecord]:
    """Return the `n` records that share most words with the question; ties keep their order."""
    wanted = _content_words(question)
    return sorted(records, key=lambda record: -len(wanted & _content_words(record.text)))[:n]


def _content_words(text: str) -> set[str]:
    """First six letters of the words of more than three letters, lower case; words of other scripts as they are."""
    return {word[:6] for word in _WORD.findall(text.lower()) if len(word) > 3 or not word.isascii()}


def _cite(records: list[PromptRecord]) -> str:
    sections: dict[str, list[str]] = {}
    for record in records:
        sections.setdefault(record.section, []).append(str(record.number))
    inner = "; ".join(f"{section} ({', '.join(numbers)})" for section, numbers in sections.items())
    return f"[Data: {inner}]" if inner else ""


def _first_field(record: PromptRecord) -> str:
    return re.split(r"[,|\t]", record.text, maxsplit=1)[0].strip('" ')[:80]


def _cut(text: str, n_words: int) -> str:
    return " ".join(text.split()[:n_words]).rstrip(".")


_REPLIES: dict[str, Callable[[PromptMessages], Any]] = {
    "extraction": extract_graph,
    "gleaning": extract_graph,
    "loop": answer_loop_question,
    "claims": extract_claims,
    "claims-gleaning": extract_claims,
    "report": _report,
    "rating": _rating,
    "ratings": _ratings,
    "map": _map,
    "primer": _primer,
    "personas": lambda conversation: reply_personas(conversation, read_records(_data_of(conversation))),
    "questions": lambda conversation: reply_questions(conversation, read_records(_data_of(conversation))),
    "verdict": reply_verdict,
    "keywords": _keywords,
    "statements": reply_statements,
    "checks": reply_checks,
    "corpus": describe_corpus,
    "types": choose_entity_types,
    "scale": define_rating,
    "example": make_example,
    "summary": _summary,
    "answer": _answer,
    "echo": _echo,
}
