"""Pairwise judging of answers by a chat model, criterion by criterion, in both orders.

The criteria are those of the GraphRAG paper (Edge et al. 2024, arXiv 2404.16130): comprehensiveness, diversity,
empowerment and directness. For each question and criterion the judge gives two verdicts, one with each answer first. An
answer wins the question if it gets more of the two verdicts, so a judge that prefers the first place produces a tie.
Two answers with the same text are a tie without a call. Keep out: where answers come from.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from graphrag_pipeline.evaluation.confidence import Estimate, estimate_mean, estimate_proportion, sign_test
from graphrag_pipeline.models.ports import ChatRequest, Failure, ReplyFormatError
from graphrag_pipeline.models.prompt_echoes import PromptEchoes
from graphrag_pipeline.models.prompts import AUTO
from graphrag_pipeline.models.reply_json import MOST_CHARACTERS, json_schema_format, read_json
from graphrag_pipeline.query.model_requests import as_data, open_question, request_all

if TYPE_CHECKING:
    from graphrag_pipeline.query.index.graph_index import GraphIndex

SECTION = "evaluation"
CRITERIA = {
    "comprehensiveness": "how much detail the answer gives to cover all aspects of the question.",
    "diversity": "how varied and rich the answer is in perspectives on the question and insights about it.",
    "empowerment": "how well the answer helps the reader to understand the subject and to judge it for themselves.",
    "directness": "how specifically and clearly the answer says what was asked, and nothing else.",
}


# The docstring of this model is a description in the schema that is sent; request keys cover it.


class VerdictReply(BaseModel):
    """The schema that the model is asked for."""

    reason: str
    winner: int


VERDICT_FORMAT = json_schema_format(VerdictReply, "verdict")
LIMITS: dict[str, dict[str, Any]] = {"reason": {"maxLength": MOST_CHARACTERS}, "winner": {"enum": [0, 1, 2]}}
Pair = tuple[str, str, str]
"""Question, answer of A, answer of B."""


@dataclass(frozen=True)
class CriterionFigures:
    """Verdicts by one criterion; "wins" are those of A.

    Attributes:
        wins, losses, ties: questions.
        win_rate: share of the questions that A wins, where a tie is half a win, 0-1.
        p_value: two-sided sign test over the questions that are not ties; 1 if all are ties.
        first_share: share of the verdicts with a winner that chose the answer in first place; 0.5 without a bias.
        n_failed: questions without both verdicts.
        win_rate_estimate, first_share_estimate: the same with 95 % confidence intervals.
    """

    criterion: str
    wins: int
    losses: int
    ties: int
    win_rate: float
    p_value: float
    first_share: float
    n_failed: int
    win_rate_estimate: Estimate
    first_share_estimate: Estimate


def judge_pairs(index: GraphIndex, pairs: Sequence[Pair]) -> list[CriterionFigures]:
    """Judge A against B by every criterion.

    Raises:
        PipelineError: no call can be answered, or the budget of the root is spent.
    """
    verdict_keys = [
        (criterion, place, is_swapped)
        for criterion in CRITERIA
        for place, (_, of_a, of_b) in enumerate(pairs)
        for is_swapped in (False, True)
        if of_a.strip() != of_b.strip()
    ]
    replies = request_all(
        index,
        SECTION,
        [_request_verdict(index, criterion, pairs[place], swap) for criterion, place, swap in verdict_keys],
    )
    verdicts: dict[tuple[str, int, bool], int | None] = {
        key: None if isinstance(reply, Failure) else reply.value
        for key, reply in zip(verdict_keys, replies, strict=True)
    }

    def both(criterion: str, place: int) -> tuple[int | None, int | None]:
        first, second = (verdicts.get((criterion, place, is_swapped), 0) for is_swapped in (False, True))
        return first, second

    places = range(len(pairs))
    return [count_verdicts(criterion, [both(criterion, place) for place in places]) for criterion in CRITERIA]


def count_verdicts(criterion: str, verdicts: Sequence[tuple[int | None, int | None]]) -> CriterionFigures:
    """Count (verdict with A first, verdict with B first): 1 or 2 for the answer in that place, 0 for neither."""
    whole = [(first, second) for first, second in verdicts if first is not None and second is not None]
    signs = [_sign(first) - _sign(second) for first, second in whole]
    wins, losses = sum(sign > 0 for sign in signs), sum(sign < 0 for sign in signs)
    decided = [verdict for verdict in itertools.chain.from_iterable(whole) if verdict]
    ties = len(whole) - wins - losses
    return CriterionFigures(
        criterion=criterion,
        wins=wins,
        losses=losses,
        ties=ties,
        win_rate=(wins + ties / 2) / len(whole) if whole else 0.5,
        p_value=sign_test(wins, losses),
        first_share=decided.count(1) / len(decided) if decided else 0.5,
        n_failed=len(verdicts) - len(whole),
        win_rate_estimate=estimate_mean([(1 + (sign > 0) - (sign < 0)) / 2 for sign in signs]),
        first_share_estimate=estimate_proportion(decided.count(1), len(decided)),
    )


def _sign(verdict: int) -> int:
    return {0: 0, 1: 1, 2: -1}[verdict]


def _request_verdict(index: GraphIndex, criterion: str, pair: Pair, is_swapped: bool) -> ChatRequest[int]:
    question, *answers = pair
    first, second = reversed(answers) if is_swapped else answers
    prompt = index.prompt("judge_answers")
    messages = open_question(
        prompt,
        AUTO,
        question,
        criterion=criterion,
        definition=CRITERIA[criterion],
        answer_1=as_data(first),
        answer_2=as_data(second),
    )
    read = partial(read_verdict, echoes=prompt.echoes)
    return ChatRequest(f"{criterion}: {question[:60]}", messages, read, VERDICT_FORMAT, limits=LIMITS)


def read_verdict(reply: str, echoes: PromptEchoes | None = None) -> int:
    """Read the verdict: 1 or 2 for the better answer, 0 for neither.

    Args:
        echoes: of the prompt; a verdict whose reason repeats it is copied, too. None accepts any reason.

    Raises:
        ReplyFormatError: the reply has no such number of the model's own.
    """
    for value in read_json(reply):
        fields = {str(key).strip().casefold(): item for key, item in value.items()} if isinstance(value, dict) else {}
        if "winner" in fields:
            winner, reason = fields["winner"], fields.get("reason")
            if echoes and isinstance(reason, str) and echoes.holds(reason):
                raise ReplyFormatError(f"the reason {reason[:80]!r} repeats the prompt: say why, then choose")
            number = int(winner) if isinstance(winner, str) and winner.strip() in ("0", "1", "2") else winner
            if isinstance(number, bool) or number not in (0, 1, 2):
                raise ReplyFormatError(f"the winner is {str(winner)[:40]!r}, not 0, 1 or 2")
            return int(number)
    raise ReplyFormatError(f"no JSON object with a winner; the reply starts {reply[:80]!r}")
