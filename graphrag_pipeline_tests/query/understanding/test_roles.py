from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.query.question import stem
from graphrag_pipeline.query.understanding.roles import Role, find_role

WORDS = ["nephew", "uncle", "wife", "husband", "employer", "teacher", "successor", "cousin", "grandson"]


@given(st.sampled_from(WORDS))
def test_the_other_person_has_the_role_in_the_other_direction(word: str) -> None:
    role = find_role(stem(word))
    assert role is not None
    others = [find_role(stem(other)) for other in role.inverses]
    assert others and all(other is not None and role.word in other.inverses for other in others)


def test_a_role_has_a_gender_if_its_word_says_so() -> None:
    found = [find_role(stem(word)) for word in ("nephew", "aunt", "cousin")]
    assert [role.gender for role in found if role] == ["male", "female", ""]


def test_a_role_may_be_said_by_a_verb() -> None:
    role = find_role(stem("husband"))
    assert isinstance(role, Role) and stem("married") in role.related
    assert find_role(stem("dentist")) is None
