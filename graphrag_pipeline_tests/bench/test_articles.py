"""Generated articles: the same for the same seed, of the stated size, with recurring names."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

from graphrag_pipeline_tests.bench.articles import N_CHARACTERS, iterate_articles, write_articles


def test_equal_seeds_give_equal_articles_on_any_machine() -> None:
    texts = "".join(article.title + article.text for article in iterate_articles(20))
    assert texts == "".join(article.title + article.text for article in iterate_articles(20))
    assert texts != "".join(article.title + article.text for article in iterate_articles(20, seed=1))
    assert hashlib.sha256(texts.encode()).hexdigest()[:12] == "facc373f32a4"


def test_a_smaller_corpus_is_the_beginning_of_a_larger_one() -> None:
    assert list(iterate_articles(5)) == list(iterate_articles(12))[:5]


def test_articles_are_distinct_and_of_about_the_promised_size() -> None:
    articles = list(iterate_articles(200))
    assert len({article.text for article in articles}) == len({article.name for article in articles}) == 200
    mean = sum(len(article.text) for article in articles) / 200
    assert 0.95 < mean / N_CHARACTERS < 1.05


def test_few_names_are_common_and_most_are_rare() -> None:
    words = Counter(
        word for article in iterate_articles(300) for word in set(article.text.split()) if word[0].isupper()
    )
    n_rare = sum(count == 1 for count in words.values())
    assert n_rare > 0.3 * len(words)
    assert max(words.values()) > 50


def test_files_are_title_and_text(tmp_path: Path) -> None:
    n_characters = write_articles(tmp_path / "input", 3)
    files = sorted((tmp_path / "input").iterdir())
    assert [file.name for file in files] == ["article_00000.txt", "article_00001.txt", "article_00002.txt"]
    assert sum(len(file.read_text(encoding="utf-8")) for file in files) == n_characters
