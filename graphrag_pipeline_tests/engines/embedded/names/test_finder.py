from __future__ import annotations

import pytest

from graphrag_pipeline.engines.embedded.extraction import read_document
from graphrag_pipeline.engines.embedded.names.finder import clean_form, find_words, match_forms


def names(text: str) -> set[str]:
    sentences, _ = read_document("", text)
    return {occurrence.name for sentence in sentences for occurrence in sentence.occurrences}


@pytest.mark.parametrize(
    ("found", "name"),
    [
        ("the Bank of England's", "Bank of England"),
        ("\u201cAnna Berg,", "Anna Berg"),
        ("Apple Inc.", "Apple Inc."),
        ("4.2 Access Control", "Access Control"),
        ("Health Organization (WHO", "Health Organization"),
        ("Rome, Paris", "Paris"),
        ("Owner | Anna Berg", "Anna Berg"),
        ("20th Century Fox", "20th Century Fox"),
        ("...", ""),
    ],
)
def test_articles_possessives_and_marks_are_no_part_of_a_name(found: str, name: str) -> None:
    start, end = clean_form(found, 0, len(found))
    assert found[start:end] == name


def test_the_longest_form_is_matched_as_whole_words() -> None:
    text = "Ann met Anna Berg and Anna, Annabel and Anna's dog. 北京大学在北京。"
    found = [
        form for _, _, form in sorted(match_forms(text, find_words(text), ["Anna", "Anna Berg", "北京", "北京大学"]))
    ]
    assert found == ["Anna Berg", "Anna", "Anna", "北京大学", "北京"]


def test_speakers_labels_datelines_and_shouted_words_are_no_entities() -> None:
    assert names("BROWN: We met in Paris.\n\nSMITH: Paris is nice.") == {"Paris"}
    assert names("**Owner:** Anna Berg lives in Oslo.\n") == {"Anna Berg", "Oslo"}
    assert "WASHINGTON" not in names("WASHINGTON (AP) \u2014 The Senate of Ohio voted on Friday with Jane Roe.")
    assert "HISTORYTHE" not in names("HISTORYTHE committee met Anna Berg in Geneva.")


def test_a_name_that_is_found_once_counts_everywhere() -> None:
    sentences, _ = read_document("", "Anna Berg lives in Oslo. Nobody in oslo knew why Oslo, or Anna Berg, was there.")
    written = [occurrence.written for sentence in sentences for occurrence in sentence.occurrences]
    assert written == ["Anna Berg", "Oslo", "Oslo", "Anna Berg"]


def test_a_common_word_at_the_start_of_a_sentence_is_no_name() -> None:
    assert names("Restart the server. Restart it in Oslo, then restart it in Oslo again.") == {"Oslo"}


def test_function_words_alone_are_no_name() -> None:
    text = "How Do I restart Kafka? What I did: I asked Will Smith. Then Will restarted Kafka."
    assert names(text) == {"Kafka", "Will Smith"}


def test_a_name_with_small_words_inside_is_one() -> None:
    text = "The Centers for Disease Control and Prevention spoke. The Department of Health and Human Services agreed."
    assert names(text) >= {"Centers for Disease Control and Prevention", "Department of Health and Human Services"}
