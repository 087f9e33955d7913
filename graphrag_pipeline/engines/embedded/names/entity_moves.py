"""The moves of a spaCy entity recognizer over a text, all tokens at once.

spaCy's transition parser reads a text token by token, and takes three quarters of the time of its entity recognizer for
it. Outside an entity, its move depends on one token only: so these moves are found for all tokens by one matrix
product. Then the entities that begin are followed to their ends, all of them side by side. The entities are those of
`ner(doc)`: same weights, same rules on which move may follow which.

Keep out: the vectors of words, which spaCy computes (`spacy_pipeline.py`).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from spacy.pipeline.ner import EntityRecognizer
    from spacy.tokens import Doc

_NO_SCORE = np.float32(-np.inf)


def can_follow(ner: EntityRecognizer) -> bool:
    """Whether a recognizer is greedy and reads what this module knows: the token, the first of the entity, the last."""
    model = ner.model
    return ner.cfg["beam_width"] == 1 and model.attrs["has_upper"] and model.get_ref("lower").get_dim("nF") == 3


def follow_moves(ner: EntityRecognizer, doc: Doc) -> list[tuple[int, int, str]]:
    """Return (first token, token after the last, label) of the entities of a text, in order.

    Args:
        ner: of which `can_follow` is true.
        doc: read by the parts of the pipeline before `ner`.
    """
    if not len(doc):
        return []
    model, upper = ner.model, ner.model.get_ref("upper")
    lower = model.get_ref("lower")
    features = lower.predict(model.get_ref("tok2vec").predict([doc]))  # (tokens + 1, 3, hidden, pieces); the first pads
    pad, features = features[0], features[1:]
    bias = lower.get_param("b")
    weights, upper_bias = upper.get_param("W"), upper.get_param("b")

    hidden = _widest(features[:, 0] + (pad[1] + pad[2] + bias))
    closed = model.ops.gemm(hidden, weights, trans2=True) + upper_bias
    names = [ner.moves.get_class_name(number) for number in range(ner.moves.n_moves)]
    can_start = np.array([name[:2] in ("B-", "U-") and len(name) > 2 for name in names])
    begins = np.array([name[:2] == "B-" for name in names])
    closed[:, [not (name == "O" or start) for name, start in zip(names, can_start, strict=True)]] = _NO_SCORE
    closed[:, sorted(model.attrs["unseen_classes"])] = _NO_SCORE
    closed[np.ix_(doc.to_array("IS_SPACE").astype(bool), can_start)] = _NO_SCORE
    closed[-1, begins] = _NO_SCORE  # an entity that begins has another token
    moves = closed.argmax(axis=1)

    starts = np.flatnonzero(begins[moves])
    labels = [names[move][2:] for move in moves[starts]]
    inside = np.array([names.index(f"I-{label}") for label in labels], dtype=int)
    last = np.array([names.index(f"L-{label}") for label in labels], dtype=int)
    ends = dict(zip(starts.tolist(), _follow(features, starts, inside, last, bias, weights, upper_bias), strict=True))
    found, place = [], 0
    for token in np.flatnonzero(can_start[moves]).tolist():
        if token >= place:
            place = ends.get(token, token + 1)
            found.append((token, place, names[moves[token]][2:]))
    return found


def _follow(
    features: NDArray[np.float32],
    starts: NDArray[np.intp],
    inside: NDArray[np.intp],
    last: NDArray[np.intp],
    bias: NDArray[np.float32],
    weights: NDArray[np.float32],
    upper_bias: NDArray[np.float32],
) -> list[int]:
    """Return for each entity that begins the token after its last.

    Args:
        starts: its first token, as `inside` (its move to go on) and `last` (its move to end) one an entity.
    """
    ends = np.zeros(len(starts), dtype=int)
    going = np.arange(len(starts))
    tokens = starts + 1
    while len(going):
        hidden = _widest(features[tokens, 0] + features[starts[going], 1] + features[tokens - 1, 2] + bias)
        moves = np.stack((last[going], inside[going]))
        scores = (hidden * weights[moves]).sum(axis=2) + upper_bias[moves]
        # spaCy takes the first of two equal moves, and to go on comes before to end
        is_last = (scores[0] > scores[1]) | (tokens == len(features) - 1)
        ends[going[is_last]] = tokens[is_last] + 1
        going, tokens = going[~is_last], tokens[~is_last] + 1
    return ends.tolist()


def _widest(pieces: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the maximum over the last axis, which is too short for numpy's own."""
    return reduce(np.maximum, np.moveaxis(pieces, -1, 0))
