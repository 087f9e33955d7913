"""Graph and claim extraction by rule: runs of capitalized words are entities, neighbours in a sentence are related.

The rules are good enough to build a whole index. They take about 0.3 ms for 4,600 characters, so they do not dominate a
benchmark. The last two entities of a longer text are kept for the first gleaning. In Chinese or Japanese text, the
first two characters of each clause are a name.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

from graphrag_pipeline.demo_model.prompts import (
    Marks,
    PromptMessages,
    number_of,
    read_entity_types,
    read_marks,
)

# Each pattern starts with one character set, which makes the search fast.
_SENTENCE_END = re.compile(r"[.!?。！？\n](?:(?<=[.!?])[\"'”’)]*\s+|(?<=[。！？])[。！？”」』]*|(?<=\n)\n+)")
_CAPITAL = "A-ZÀ-ÖØ-ÞĀĂĄĆČĎĐĘĚŁŃŇŐŘŚŠŤŮŰŹŻŽΑ-ΩА-ЯЁ"
_NAME = re.compile(
    rf"[{_CAPITAL}](?<!\w[{_CAPITAL}])[\w’'&-]*(?:\s(?:of |the |for |de |van |von )?[{_CAPITAL}][\w’'&-]*)*"
)
_CJK_NAME = re.compile(r"(?:^|(?<=[，。！？、；：“”《》\s]))[\u3400-\u9fff]{2}")
_DATE = re.compile(r"\b(?:1[5-9]|20)\d\d(?:-\d\d-\d\d)?\b")
_OPENER_WORDS = """
    A An The This That These Those It Its He His She Her They Their We Our You Your I In On At By For From To Of And Or
    But If As When While After Before Since Then There Here What Who Why How Where Which Not No Yes So Also Chapter With
    Without Under Over During Two Three Some All Many Most Each Every Only Even Now Still Mr Mrs Miss Dr
"""
_OPENERS = frozenset(_OPENER_WORDS.split())
_MAX_DESCRIPTION = 100  # characters
_MIN_FOR_GLEANING = 4  # entities
_N_HELD_BACK = 2
_CLAIM_TYPES = ("REPORTED ACTION", "STATEMENT", "DISPUTE")
_CLAIM_STATES = ("TRUE", "SUSPECTED", "FALSE")


def extract_graph(conversation: PromptMessages) -> str:
    """Return records of entities and relationships of the input text; the ones kept back for a gleaning prompt."""
    marks = read_marks(conversation)
    found = list(_find_names(conversation.input_text))
    titles = list(dict.fromkeys(title for _, names in found for title in names))
    held_back = set(titles[-_N_HELD_BACK:]) if len(titles) >= _MIN_FOR_GLEANING else set()
    if conversation.n_replies == 0:
        wanted = set(titles) - held_back
    else:
        wanted = held_back if conversation.n_replies == 1 else set()
    types = read_entity_types(conversation)
    return _join([*_entity_records(found, wanted, types, marks), *_pair_records(found, wanted, titles, marks)], marks)


def extract_claims(conversation: PromptMessages) -> str:
    """Return claim records of about a third of the sentences with two names; none for a gleaning prompt."""
    marks = read_marks(conversation)
    records: list[str] = []
    for sentence, names in _find_names(conversation.input_text) if conversation.n_replies == 0 else ():
        if len(names) < 2 or number_of(sentence, 3):
            continue
        date = _DATE.search(sentence)
        day = "NONE" if date is None else f"{date[0]}-01-01"[:10]
        kind, state = _CLAIM_TYPES[number_of(names[0], 3)], _CLAIM_STATES[number_of(sentence[::-1], 3)]
        text = _description(sentence, marks)
        records.append(f"({marks.field.join([names[0], names[1], kind, state, day, day, text, text])})")
    return _join(records, marks)


def answer_loop_question(conversation: PromptMessages) -> str:
    """Y once for about half of the texts, then N."""
    return "Y" if conversation.n_replies == 1 and number_of(conversation.input_text, 2) else "N"


def split_sentences(text: str) -> list[str]:
    """Sentences with white space folded, without empty ones."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text)]
    bounds = itertools.pairwise([0, *ends, len(text)])
    return [folded for start, end in bounds if (folded := " ".join(text[start:end].split()))]


def find_titles(sentence: str) -> list[str]:
    """The distinct names of a sentence, in upper case, in order of appearance."""
    return list(dict.fromkeys(title for _, names in _find_names(sentence) for title in names))


def find_pairs(sentence: str) -> list[tuple[str, str]]:
    """Neighbouring names of a sentence."""
    return list(itertools.pairwise(find_titles(sentence)))


def _find_names(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each sentence with its distinct names in upper case, in order of appearance."""
    for sentence in split_sentences(text):
        names: dict[str, None] = {}
        for name in _NAME.findall(sentence):
            words = name.split()
            while words and words[0] in _OPENERS:
                words.pop(0)
            title = " ".join(words).rstrip("-&'’").removesuffix("'s").removesuffix("’s")
            if len(title) > 1:
                names[title.upper()] = None
        for name in () if names else _CJK_NAME.findall(sentence):
            names[name] = None
        yield sentence, list(names)


def _entity_records(
    found: list[tuple[str, list[str]]], wanted: set[str], types: list[str], marks: Marks
) -> Iterator[str]:
    seen: set[str] = set()
    for sentence, names in found:
        for title in names:
            if title in wanted and title not in seen:
                seen.add(title)
                kind = types[number_of(title, len(types))]
                yield f'("entity"{marks.field.join(["", title, kind, _description(sentence, marks)])})'


def _pair_records(
    found: list[tuple[str, list[str]]], wanted: set[str], titles: list[str], marks: Marks
) -> Iterator[str]:
    """Neighbouring names of a sentence, each pair once; a pair belongs to the reply that names its later entity."""
    order = {title: place for place, title in enumerate(titles)}
    seen: set[tuple[str, str]] = set()
    for sentence, names in found:
        for source, target in itertools.pairwise(names):
            pair = (min(source, target), max(source, target))
            if pair in seen or max(pair, key=lambda title: order[title]) not in wanted:
                continue
            seen.add(pair)
            strength = 1 + number_of("|".join(pair), 10)
            fields = ["", source, target, _description(sentence, marks), str(strength)]
            yield f'("relationship"{marks.field.join(fields)})'


def _description(sentence: str, marks: Marks) -> str:
    text = sentence[:_MAX_DESCRIPTION]
    if len(sentence) > _MAX_DESCRIPTION:
        text = text.rpartition(" ")[0] or text  # not every script has blanks
    for mark in (marks.field, marks.record, marks.end):
        text = text.replace(mark, " ")
    return text


def _join(records: list[str], marks: Marks) -> str:
    return f"\n{marks.record}\n".join([*records]) + f"\n{marks.end}" if records else marks.end
