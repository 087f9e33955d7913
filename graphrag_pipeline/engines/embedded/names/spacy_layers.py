"""The layers of spaCy's models, run with less work for the same results.

spaCy computes the vector of every token of a text, though half of them repeat a word, and its transition parser takes
three quarters of the time of entities by reading token after token. Here each distinct word is embedded once for all
texts, and NumPy computes the layers around it. Outside an entity, the move of the parser depends on one token only, so
these moves are found for all tokens by one matrix product. Then the entities that begin are followed to their ends,
side by side. Entities and tags are those of `pipeline(text)`: same weights, same rules for the moves.

Keep out: which pipeline, and what becomes of its entities (`spacy_pipeline.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from spacy.language import Language
    from spacy.pipeline.ner import EntityRecognizer
    from spacy.tokens import Doc
    from thinc.api import Model

_NO_SCORE = np.float32(-np.inf)


def tag_tokens(pipeline: Language, docs: Sequence[Doc]) -> list[list[str]]:
    """Return the tag of each token of each text, by the parts `tok2vec` and `tagger` of a pipeline."""
    words: Any = pipeline.get_pipe("tok2vec")
    tagger: Any = pipeline.get_pipe("tagger")
    labels = tagger.labels
    scores = tagger.model.layers[-1].predict(_read_words(words.model, docs))
    return [[labels[number] for number in text.argmax(axis=1).tolist()] for text in scores]


def _read_words(model: Model, docs: Sequence[Doc]) -> list[NDArray[np.float32]]:
    """Return the vectors of the tokens of texts, one row a token."""
    if not any(layer.name == "extract_features" for part in model.layers[:1] for layer in part.layers[:1]):
        return model.predict(docs)  # a transformer, vectors of a file, or a part that listens to another
    embed, encode = model.layers
    features = embed.layers[0].predict(docs)
    words = [row.tobytes() for row in np.ascontiguousarray(np.concatenate(features))]
    known = embed.attrs.setdefault("known words", {})  # lives as long as the pipeline
    if new := list(dict.fromkeys(word for word in words if word not in known)):
        met = [np.frombuffer(b"".join(new), features[0].dtype).reshape(-1, features[0].shape[1])]
        for layer in embed.layers[1:]:
            met = layer.predict(met)
        known.update(zip(new, met[0], strict=True))
    texts = np.split(np.array([known[word] for word in words]), np.cumsum([len(text) for text in features])[:-1])
    blocks = [block for part in encode.layers[:1] for block in part.layers]
    if {block.name for block in blocks} != {"residual(expand_window>>maxout>>layernorm>>dropout)"}:
        return encode.predict(texts)  # another architecture
    ops: Any = encode.ops
    pad = encode.attrs["pad"]
    rows = ops.flatten(texts, pad=pad)
    for block in blocks:
        rows = rows + _look_around({layer.name: layer for layer in block.walk()}, rows)
    return ops.unflatten(rows, [len(text) for text in texts], pad=pad)


def _look_around(layers: dict[str, Any], rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the result of a block of layers; the product of NumPy takes two thirds of the time of spaCy's."""
    maxout, norm = layers["maxout"], layers["layernorm"]
    weights, bias = maxout.get_param("W"), maxout.get_param("b")  # units, pieces, inputs; units, pieces
    window = maxout.ops.seq2col(rows, layers["expand_window"].attrs["window_size"])
    pieces = window @ weights.reshape(-1, window.shape[1]).T + bias.ravel()
    widest = _widest(pieces.reshape(len(rows), *bias.shape))
    widest -= widest.mean(axis=1, keepdims=True)
    widest /= np.sqrt(np.square(widest).mean(axis=1, keepdims=True) + np.float32(1e-8))  # as in thinc
    return widest * norm.get_param("G") + norm.get_param("b")


def can_follow(ner: EntityRecognizer) -> bool:
    """Whether a recognizer is greedy and its moves depend on this token, the one before and the first of the entity."""
    model = ner.model
    return ner.cfg["beam_width"] == 1 and model.attrs["has_upper"] and model.get_ref("lower").get_dim("nF") == 3


def follow_moves(ner: EntityRecognizer, doc: Doc) -> list[tuple[int, int, str]]:
    """Return (first token, token after the last, label) of the entities of a text, in order.

    Args:
        ner: of which `can_follow` is true.
        doc: read by the parts of the pipeline that `ner` listens to.
    """
    if not len(doc):
        return []
    read, *others = ner.model.get_ref("tok2vec").layers
    vectors: Any = _read_words(read, [doc])
    for layer in others:
        vectors = layer.predict(vectors)
    lower, upper = ner.model.get_ref("lower"), ner.model.get_ref("upper")
    pad, *_ = features = lower.predict(vectors)  # tokens + 1, 3, hidden units, pieces
    features, bias = features[1:], lower.get_param("b")
    weights, upper_bias = upper.get_param("W"), upper.get_param("b")
    names = [ner.moves.get_class_name(number) for number in range(ner.moves.n_moves)]
    begins = np.array([name[:2] == "B-" for name in names])
    starts = begins | [name[:2] == "U-" and len(name) > 2 for name in names]  # "U-" forbids an entity

    hidden = _widest(features[:, 0] + (pad[1] + pad[2] + bias))
    scores = upper.ops.gemm(hidden, weights, trans2=True) + upper_bias
    scores[:, ~starts & [name != "O" for name in names]] = _NO_SCORE
    scores[:, sorted(ner.model.attrs["unseen_classes"])] = _NO_SCORE
    scores[np.ix_(doc.to_array("IS_SPACE").astype(bool), starts)] = _NO_SCORE
    scores[-1, begins] = _NO_SCORE  # an entity that begins has another token
    moves = scores.argmax(axis=1)

    firsts = np.flatnonzero(begins[moves])
    labels = [names[move][2:] for move in moves[firsts]]
    # spaCy takes the first of two moves with the same score, and "I-" comes before "L-"
    going = np.array([[names.index(kind + label) for label in labels] for kind in ("I-", "L-")], dtype=int)
    ends = dict(zip(firsts.tolist(), _follow(features, bias, firsts, weights[going], upper_bias[going]), strict=True))
    found, place = [], 0
    for token in np.flatnonzero(starts[moves]).tolist():
        if token >= place:
            place = ends.get(token, token + 1)
            found.append((token, place, names[moves[token]][2:]))
    return found


def _follow(
    features: NDArray[np.float32],
    bias: NDArray[np.float32],
    firsts: NDArray[np.intp],
    weights: NDArray[np.float32],
    move_bias: NDArray[np.float32],
) -> list[int]:
    """Return the token after the last of each entity that begins.

    Args:
        features: tokens, 3, hidden units, pieces; the sum of three and `bias` makes the hidden units.
        firsts: the first token of each entity.
        weights: of the moves that continue and end each entity: 2, entities, hidden units.
        move_bias: of the same moves: 2, entities.
    """
    ends = np.zeros(len(firsts), dtype=int)
    open_ = np.arange(len(firsts))
    tokens = firsts + 1
    while len(open_):
        hidden = _widest(features[tokens, 0] + features[firsts[open_], 1] + features[tokens - 1, 2] + bias)
        goes_on, is_last = (hidden * weights[:, open_]).sum(axis=2) + move_bias[:, open_]
        ending = (is_last > goes_on) | (tokens == len(features) - 1)
        ends[open_[ending]] = tokens[ending] + 1
        open_, tokens = open_[~ending], tokens[~ending] + 1
    return ends.tolist()


def _widest(pieces: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the maximum over the last axis, which is too short for numpy's own."""
    return reduce(np.maximum, np.moveaxis(pieces, -1, 0))
