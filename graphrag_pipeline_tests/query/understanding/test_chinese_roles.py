import pytest

from graphrag_pipeline.query.understanding.chinese_definitions import asked_role, states_role


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("谁是李明的老师？", ("李明", "老师")),
        ("李明的师父是谁？", ("李明", "师父")),
        ("李明是谁？", None),
        ("谁写了这封信？", None),
    ],
)
def test_a_question_for_the_holder_of_a_role_is_read(question, expected):
    assert asked_role(question) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("王青是李明的老师。", True),
        ("李明的老师名叫王青。", True),
        ("李明的老师，王青，住在山上。", True),
        ("王青是赵强的老师。", False),
        ("小李明的老师名叫赵强。", False),
        ("李明的老师很严格。", False),
        ("王青是李明的老师的朋友。", False),
    ],
)
def test_the_owner_before_the_particle_must_be_the_person_asked_about(sentence, expected):
    assert states_role("李明", "老师", sentence) is expected
