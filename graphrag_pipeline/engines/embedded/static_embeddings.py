"""Static embeddings: text vectors of the embedded engine, from files in the package.

The vector of a text is the normalised sum of fixed vectors of its word pieces, distilled from all-MiniLM-L6-v2
(`bundled/static_embeddings/PROVENANCE.md`). No model runs, so no key, server or download is needed. Table cells are
int8 and are summed exactly as integers, so the same text gives the same bytes in every batch.

Properties:
    - Word order and context do not count ("dog bites man" = "man bites dog"). The vocabulary is English.
    - The whole text counts; nothing is cut at 512 tokens. The vector of a long text drifts to the average topic.
    - A text without a known word piece (empty, spaces, "!!!", most emoji) has the zero vector. Its dot product with
      every vector is 0, and it has no cosine, so it matches nothing.
    - A word joined to an unknown character ("great" + emoji) or longer than 100 characters is unknown as a whole.
    - NUL, other control characters and lone surrogates are ignored. A surrogate pair counts as its character.

A word between blanks always has the same pieces. They are looked up once per word and cached for up to
`MAX_KNOWN_WORDS` words, which reduces the time per sentence from 50 to 10 microseconds.

The two files are read with `tokenizers` and `safetensors`, the libraries under model2vec. `StaticModel.encode` of
model2vec changes its tokenizer at every call, and above 10,000 texts also the environment of the process, so it is not
safe in threads.

Add here: text vectors without a model call. Keep out: vectors from an endpoint, caching, search.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING

from graphrag_pipeline.models.ports import Embedder, Failure

if TYPE_CHECKING:
    import numpy as np
    from tokenizers import Encoding, Tokenizer

    from graphrag_pipeline.pipeline.root import Root

MAX_BATCH_TEXTS = 1_000
MAX_BATCH_CHARS = 500_000
MAX_ROWS_AT_ONCE = 65_536
MAX_WORDS_ALONE = 32
MAX_KNOWN_WORDS = 200_000
MAX_KNOWN_LENGTH = 32  # characters; longer words are rarely repeated


class StaticEmbeddings:
    """Vectors of texts, from a table with one row per word piece. Safe to share between threads.

    Attributes:
        dimensions: length of a vector.
        fingerprint: changes when the vector of a text may change; part of the key of stored vectors.
    """

    def __init__(self, table: np.ndarray, tokenizer: Tokenizer, fingerprint: str) -> None:
        """Set the table, int8 (vocabulary, dimensions) with a zero row for the unknown token, and its tokenizer."""
        self.dimensions: int = table.shape[1]
        self.fingerprint = fingerprint
        self._table = table
        self._tokenizer = tokenizer
        self._known: dict[str, tuple[int, ...]] = {}

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Turn texts into vectors.

        Args:
            texts: any strings, of any length; each vector depends on its own text alone.

        Returns:
            float32 (n texts, dimensions), rows in the order of `texts`, of length 1, or all zeros for a text without a
            known word piece.

        Raises:
            TypeError: `texts` is one string instead of a sequence of strings.
        """
        import numpy as np

        if isinstance(texts, str):
            raise TypeError("texts is a single string: pass a sequence of strings, such as [text]")
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        row = 0
        for batch in _split_into_batches(texts):
            totals = np.zeros((len(batch), self.dimensions))
            for total, token_ids in zip(totals, self._read_pieces(batch), strict=True):
                for start in range(0, len(token_ids), MAX_ROWS_AT_ONCE):
                    rows = self._table.take(token_ids[start : start + MAX_ROWS_AT_ONCE], axis=0)
                    total += rows.sum(axis=0, dtype=np.int32)  # of whole numbers, so exact in any order; a block fits
            lengths = np.sqrt(np.square(totals).sum(axis=1, keepdims=True))
            vectors[row : row + len(batch)] = totals / np.where(lengths > 0, lengths, 1.0)
            row += len(batch)
        return vectors

    def try_embed(
        self, texts: Sequence[str], progress: Callable[[int, int], None] | None = None
    ) -> tuple[np.ndarray, list[Failure]]:
        """See `ports.Embedder`; no text fails."""
        return self.embed(texts), []

    def _read_pieces(self, texts: list[str]) -> Iterator[list[int]]:
        """Yield the word piece ids of each text: the pieces of its words, in order."""
        if len(self._known) > MAX_KNOWN_WORDS:
            self._known = {}
        known = self._known  # another thread may replace the dictionary, but not remove words from this one
        split = [text.replace("\n", " ").split(" ") for text in texts]
        unknown = list({word: None for words in split for word in words if word not in known})
        fresh = {word: tuple(encoding.ids) for word, encoding in zip(unknown, self._tokenize(unknown), strict=True)}
        for words in split:
            token_ids: list[int] = []
            for word in words:
                found = known.get(word)
                token_ids += fresh[word] if found is None else found
            yield token_ids
        known.update(item for item in fresh.items() if len(item[0]) <= MAX_KNOWN_LENGTH)

    def _tokenize(self, words: list[str]) -> list[Encoding]:
        """Return the pieces of words; a batch is shared among threads, whose start costs more than a few words."""
        if len(words) <= MAX_WORDS_ALONE:
            return [self._tokenizer.encode(word, add_special_tokens=False) for word in words]
        encodings: list[Encoding] = self._tokenizer.encode_batch_fast(words, add_special_tokens=False)
        return encodings


@lru_cache(maxsize=1)
def load_static_embeddings() -> StaticEmbeddings:
    """Read the bundled table once per process (about 8 MB).

    Raises:
        FileNotFoundError: the package was installed without its data files.
    """
    from safetensors.numpy import load
    from tokenizers import Tokenizer

    folder = files("graphrag_pipeline") / "bundled" / "static_embeddings"
    model_bytes = (folder / "model.safetensors").read_bytes()
    tokenizer_bytes = (folder / "tokenizer.json").read_bytes()
    table = load(model_bytes)["embeddings"]
    content_hash = hashlib.sha256(model_bytes + tokenizer_bytes).hexdigest()
    return StaticEmbeddings(
        table=table,
        tokenizer=Tokenizer.from_str(tokenizer_bytes.decode("utf-8")),
        fingerprint=f"static:all-MiniLM-L6-v2:{table.shape[1]}:{content_hash[:12]}",
    )


def _split_into_batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Split `texts` into batches for the tokenizer: large enough for all cores, small enough for memory."""
    batch: list[str] = []
    n_chars = 0
    for text in texts:
        if batch and (len(batch) == MAX_BATCH_TEXTS or n_chars + len(text) > MAX_BATCH_CHARS):
            yield batch
            batch, n_chars = [], 0
        batch.append(_replace_lone_surrogates(text))
        n_chars += len(text)
    if batch:
        yield batch


def _replace_lone_surrogates(text: str) -> str:
    """Make `text` valid Unicode, which the tokenizer requires; it ignores the replacement character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def load_embedder(root: Root | None = None) -> Embedder:
    """Return the bundled embeddings; they need nothing of a root."""
    return load_static_embeddings()
