"""Corpora and questions for retrieval, made by code from what the repository holds; the same for the same seed.

A question is a sentence of the corpus as clues: without one of its names and without some of its words. Two and three
clues from different documents make questions that need them all. Nothing of a question names its evidence, unless the
sentence itself does. Keep out: indexing, measuring.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from graphrag_pipeline.text.sentences import split_sentences
from graphrag_pipeline_tests.bench.articles import Article, iterate_articles

KEPT = 0.6
"""Share of a sentence's words in a clue."""
_NAME = re.compile(r"[A-Z][\w.\-]+(?: [A-Z][\w.\-]+)+")
_RELATIONS = {
    "director of": r"directed by ({name})",
    "writer of": r"written by ({name})",
    "composer of": r"composed by ({name})",
    "performer of": r"(?:performed|recorded) by ({name})",
    "spouse of": r"married(?: to)? ({name})",
    "parent of": r"(?:son|daughter) of ({name})",
}
_ASKED = ("When was the {} {} born?", "Where did the {} {} die?", "Why is the {} {} known?")


@dataclass(frozen=True)
class Asked:
    """A question and its evidence: titles of documents, or sentences of a text; all are needed."""

    question: str
    evidence: tuple[str, ...]


def write_articles_apart(n: int) -> list[dict[str, str]]:
    """Return n generated articles, each a document with title and text."""
    return [{"id": a.name, "title": f"Article {i}", "text": f"{a.title}. {a.text}"} for i, a in _numbered(n)]


def write_dossiers(n: int, n_articles: int = 6) -> list[dict[str, str]]:
    """Return n long documents of `n_articles` generated articles each."""
    texts = [f"{article.title}. {article.text}" for _, article in _numbered(n * n_articles)]
    parts = [texts[i : i + n_articles] for i in range(0, len(texts), n_articles)]
    return [{"id": f"d{i}", "title": f"Dossier {i}", "text": "\n\n".join(part)} for i, part in enumerate(parts)]


def _numbered(n: int) -> Iterator[tuple[int, Article]]:
    return enumerate(iterate_articles(n, seed=7))


def ask_for_documents(documents: Sequence[dict[str, str]], n: int, n_needed: int, seed: int = 0) -> list[Asked]:
    """Return n questions that each need `n_needed` documents."""
    source = random.Random(f"{seed} {n_needed}")
    asked = []
    for _ in range(n):
        needed = source.sample(documents, n_needed)
        clues = [make_clue(source, source.choice(list(long_sentences(one["text"])))) for one in needed]
        asked.append(Asked(_join(clues), tuple(one["title"] for one in needed)))
    return asked


def ask_for_passages(passages: Sequence[dict[str, str]], but: Iterable[str], n: int, seed: int = 0) -> list[Asked]:
    """Return n questions of one hop and up to n of two hops.

    Args:
        but: titles of passages that no question may need.
    """
    left_out = set(but)
    free = [passage for passage in passages if passage["title"] not in left_out]
    source = random.Random(seed)
    hops = list(_find_hops(free))
    source.shuffle(hops)
    asked = [Asked(_ASKED[i % 3].format(relation, bare(a)), (a, b)) for i, (a, relation, b) in enumerate(hops[:n])]
    return ask_for_documents([p for p in free if any(long_sentences(p["text"]))], n, 1, seed) + asked


def _find_hops(passages: Sequence[dict[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield (title, relation, title of the passage about the name that a text gives for it)."""
    titles: dict[str, list[str]] = {}
    for passage in passages:
        titles.setdefault(bare(passage["title"]), []).append(passage["title"])
    for passage in passages:
        for relation, pattern in _RELATIONS.items():
            found = re.search(pattern.replace("{name}", _NAME.pattern), passage["text"])
            ends = titles.get(found[1].rstrip("."), []) if found else []
            if len(ends) == 1 and ends[0] != passage["title"]:
                yield passage["title"], relation, ends[0]
                break


def bare(title: str) -> str:
    """Return a title without what is in brackets at its end."""
    return re.sub(r" \(.*\)$", "", title)


def long_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of 10 to 35 words, each on one line."""
    for start, end in split_sentences(text):
        sentence = " ".join(text[start:end].split())
        if 10 <= len(sentence.split()) <= 35:
            yield sentence


def make_clue(source: random.Random, sentence: str) -> str:
    """Return a sentence without one of its names and without some words."""
    names = _NAME.findall(sentence)
    if len(names) > 1:
        sentence = sentence.replace(source.choice(names), "")
    words = [word.strip('.,;:"!?()') for word in sentence.split()]
    return " ".join(word for word in words if word[:1].isupper() or source.random() < KEPT)


def _join(clues: Sequence[str]) -> str:
    return "What is said about " + ", and about ".join(clues) + "?"
