"""Ids and hashes of records, normalized names, and buckets of documents.

Equal content has equal ids in every run and on every machine. Keep out: columns (`tables/`).
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable


def stable_hash(*parts: str) -> str:
    """Return 32 hex digits for a sequence of strings; parts are length-prefixed, so ("ab", "c") != ("a", "bc")."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()[:32]


def bucket_of(document_id: str, n_buckets: int) -> str:
    """Return the partition key of a document: sha256(document id) mod n_buckets, three digits."""
    return f"{int(hashlib.sha256(document_id.encode()).hexdigest(), 16) % n_buckets:03d}"


_QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201b": "'", "\u02bc": "'", "`": "'", "\u00b4": "'",
                         "\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00ab": '"', "\u00bb": '"'})  # fmt: skip
_SPACE = re.compile(r"\s+")


def normalize_title(name: str) -> str:
    """Return the title of an entity: NFKC, upper case, white space and quotes folded, outer quotes removed."""
    if name.isascii():  # the same result in a quarter of the time
        folded = " ".join(name.replace("`", "'").upper().split())
    else:
        folded = unicodedata.normalize("NFKC", name).translate(_QUOTES).upper()
        folded = unicodedata.normalize("NFKC", _SPACE.sub(" ", folded)).strip()
    while (bare := _without_outer_quotes(folded)) != folded:
        folded = bare
    return folded


def best_name(title: str, names: Iterable[str] | None) -> str:
    """Return the written form to show for an entity: one of its title, not in capitals if there is such a form."""
    written = list(names or ()) or [title]
    alike = [name for name in written if normalize_title(name) == title] or written
    return next((name for name in alike if not name.isupper()), alike[0])


def _without_outer_quotes(title: str) -> str:
    """Remove a pair of quotes, or double quotes at one end; a leading apostrophe stays ('CHANGE)."""
    if len(title) > 1 and title[0] == title[-1] == "'":
        title = title[1:-1]
    return title.strip('" ')


def entity_text(title: str, description: str) -> str:
    """Return the text that is embedded for an entity."""
    return f"{title}:{description}"


def entity_id(title: str) -> str:
    return stable_hash("entity", title)


def relationship_id(title_a: str, title_b: str) -> str:
    """Return the id of the unordered pair."""
    return stable_hash("relationship", *sorted((title_a, title_b)))


def text_hash(text: str) -> str:
    """Return the key of a text in the embedding tables."""
    return stable_hash("text", text)


WHOLE = "all"
"""Partition key of a table or stage that is not partitioned."""


def bucket_keys(n_buckets: int) -> list[str]:
    """Return the partition keys of a partitioned table, in order."""
    return [f"{bucket:03d}" for bucket in range(n_buckets)]
