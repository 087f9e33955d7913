"""Roles and names that a conversation gives to its speakers."""

from __future__ import annotations

from graphrag_pipeline.query.understanding.spoken_roles import read_spoken_roles


def read(*paragraphs):
    """Return (role, holder's phrase, holder's name, name or phrase of the owner)."""
    text = "\n\n".join(paragraphs)
    return {
        (
            said.role,
            said.holder.phrase,
            "".join(said.holder.names),
            said.owner and ("".join(said.owner.names) or said.owner.phrase),
        )
        for said in read_spoken_roles(text, lambda name, opens: not opens)
    }


def test_the_answer_calls_the_speaker_by_name():
    assert ("", "Roth's nephew", "Emil", None) in read(
        "'It was dear,' said Roth's nephew. 'Very dear.'", "'More shame for you, Emil!' said Ida."
    )


def test_the_speaker_who_was_called_answers():
    assert ("", "the keeper", "Silas", None) in read(
        "'You let it go out, Silas!' cried the harbour master.", "'The oil was bad,' returned the keeper."
    )


def test_a_word_for_a_relative_gives_the_role_of_the_other():
    said = read("'Come home, dear brother!' said the girl.", "'Home, little Letty?' returned the boy.")
    assert ("brother", "the boy", "", "Letty") in said


def test_the_gender_is_that_of_the_words_beside_the_speaker():
    text = "'Come home, dear brother!' said the child, clapping her hands.\n\n'Home, Letty?' returned the boy."
    (brother,) = [said for said in read_spoken_roles(text, lambda name, opens: not opens) if said.role]
    assert (brother.holder.gender, brother.owner.gender) == ("male", "female")


def test_a_name_beside_a_relative_is_not_called():
    assert not read("'Where is your brother, Tim?' said Ann.", "'Here,' said the girl.")


def test_a_speech_that_calls_two_persons_names_none():
    assert not read("'Come, Tom, and you, Ida!' said Ann.", "'Here,' said the girl.")


def test_the_quoted_part_holds_the_name_and_the_speaker():
    text = "'It was dear,' said Roth's nephew.\n\n'More shame for you, Emil!' said Ida."
    (said,) = read_spoken_roles(text, lambda name, opens: not opens)
    assert text[said.start : said.end] == "said Roth's nephew.\n\n'More shame for you, "
