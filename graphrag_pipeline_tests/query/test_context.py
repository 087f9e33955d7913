from hypothesis import given
from hypothesis import strategies as st

from graphrag_pipeline.query.context import PART_OVERHEAD, Part, divide_budget, pack_parts, pack_rows

COSTS = st.lists(st.integers(1, 60), max_size=12)
PARTS = st.lists(st.tuples(st.floats(0, 1), COSTS), min_size=1, max_size=5).map(
    lambda parts: [Part(str(i), share, costs) for i, (share, costs) in enumerate(parts)]
)


def test_a_part_keeps_its_share_where_all_want_more():
    assert divide_budget([100, 100], [0.25, 0.75], 40) == [10, 30]


def test_what_a_part_leaves_goes_to_the_others_by_their_shares():
    assert divide_budget([4, 100, 100], [0.5, 0.25, 0.25], 40) == [4, 18, 18]


def test_a_row_that_does_not_fit_is_passed_over():
    assert pack_rows([5, 9, 4, 1], 10) == [0, 2, 3]


def test_text_units_left_out_make_room_for_the_other_parts():
    parts = [Part("reports", 0.1, [50, 50, 50]), Part("text_units", 0.9, [10])]
    packed = pack_parts(parts, 160 + 2 * PART_OVERHEAD)
    assert packed == {"reports": [0, 1, 2], "text_units": [0]}


@given(wanted=st.lists(st.integers(0, 500), max_size=6), budget=st.integers(0, 1000), data=st.data())
def test_a_divided_budget_is_spent_unless_every_wish_is_met(wanted, budget, data):
    n = len(wanted)
    shares = data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n))
    given_tokens = divide_budget(wanted, shares, budget)
    assert sum(given_tokens) == min(budget, sum(wanted))
    assert all(got <= wish for got, wish in zip(given_tokens, wanted, strict=True))


@given(parts=PARTS, budget=st.integers(0, 700))
def test_a_packed_context_keeps_the_budget_and_wastes_nothing(parts, budget):
    packed = pack_parts(parts, budget)
    filled = [part for part in parts if part.costs]
    spent = sum(part.costs[row] for part in parts for row in packed[part.name])
    left = budget - PART_OVERHEAD * len(filled) - spent
    if spent:
        assert left >= 0
    for part in parts:
        assert packed[part.name] == sorted(set(packed[part.name]))
        assert all(part.costs[row] > left for row in set(range(len(part.costs))) - set(packed[part.name]))
