"""Integer tensors by what they hold: offsets, counts, orders and positions, and how each grows and shrinks."""

from __future__ import annotations

import pytest
import torch

from opcheck_suite import Sample, ops
from opcheck_suite.inputs import cases, relations
from opcheck_suite.inputs.relations import Kind


@pytest.fixture(scope="module", autouse=True)
def library():
    with torch.library._scoped_library("suite_relations", "DEF") as library:
        library.define("f(Tensor x, Tensor index, Tensor? more=None, int n=0) -> Tensor")
        library.define("fill_(Tensor x, Tensor(a!) index) -> ()")
        yield library


def case(x, index, *more, name="f", **kwargs) -> cases.Case:
    info = ops.info(f"suite_relations::{name}")
    return cases.of_sample(info, Sample(args=(x, torch.tensor(index), *more), kwargs=kwargs, name="s"), "cpu")


ROWS = torch.zeros(7, 3)


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        ([0, 2, 2, 7], Kind.OFFSETS),
        ([0, 2, 2, 5], Kind.RISING),
        ([2, 0, 5], Kind.COUNTS),
        ([3, 1, 0, 2], Kind.ORDER),
        ([4, 4, 1], Kind.POSITIONS),
        ([-1, 3], Kind.POSITIONS),
        ([[0, 1], [3, 3]], Kind.COUNTS),
        ([[0, 1], [3, 4]], Kind.POSITIONS),
        ([0], Kind.POSITIONS),
    ],
)
def test_values_say_what_integers_are(index, kind):
    assert relations.kinds(case(ROWS, index)) == {"index": kind}


@pytest.mark.parametrize(
    ("index", "kind"),
    [
        ([0, 1, 2, 0, 1, 2], Kind.POSITIONS),  # two rows in each of three groups
        ([0, 2, 2, 0, 2, 0], Kind.COUNTS),
        ([1, 1, 1, 1, 1, 1], Kind.COUNTS),
        ([0, 1, 2, 3, 0, 0], Kind.COUNTS),
    ],
)
def test_groups_whose_numbers_add_up_to_the_rows_by_chance_are_no_counts(index, kind):
    assert relations.kinds(case(torch.zeros(6, 4), index)) == {"index": kind}


def test_an_order_whose_sum_is_a_size_is_unclear():
    assert relations.kinds(case(torch.zeros(6, 2), [3, 0, 2, 1])) == {"index": Kind.UNCLEAR}


def test_a_number_among_the_arguments_may_be_what_offsets_end_at():
    assert relations.kinds(case(torch.zeros(3), [0, 4, 9], n=9)) == {"index": Kind.OFFSETS}


def test_counts_of_two_tensors_may_add_up_together():
    found = relations.kinds(case(ROWS, [1, 2], torch.tensor([4, 0])))
    assert found == {"index": Kind.COUNTS, "more": Kind.COUNTS}


def test_floats_and_empty_tensors_are_not_judged():
    assert relations.kinds(case(ROWS, [], torch.ones(2))) == {}


def test_what_the_op_writes_to_is_no_index():
    index = torch.tensor([1, 2])
    assert relations.may_index(case(ROWS, [1, 2]), "index", index)
    assert not relations.may_index(case(ROWS, [1, 2], name="fill_"), "index", index)
    assert not relations.may_index(case(ROWS, [1, 2]), "index", index.to(torch.uint8))


def test_sizes_that_follow_from_values_are_fixed():
    given = case(ROWS, [0, 2, 7], torch.tensor([3, 4]))
    assert relations.fixed(given, relations.kinds(given)) == {7}


def grown(kind, values, new, *, tied=False):
    made = relations.extended(kind, torch.tensor(values), 0, new, tied=tied)
    return None if made is None else made.tolist()


@pytest.mark.parametrize(
    ("kind", "values", "new", "expected"),
    [
        (Kind.OFFSETS, [0, 2, 7], 5, [0, 2, 7, 7, 7]),  # more rows, all of them empty
        (Kind.OFFSETS, [0, 2, 7], 2, None),  # the rows that are cut off are not empty
        (Kind.OFFSETS, [0, 7, 7], 2, [0, 7]),
        (Kind.OFFSETS, [0, 7], 0, None),
        (Kind.COUNTS, [2, 0, 5], 5, [2, 0, 5, 0, 0]),
        (Kind.COUNTS, [2, 0, 5], 2, None),
        (Kind.COUNTS, [2, 5, 0], 2, [2, 5]),
        (Kind.POSITIONS, [4, 4, 1], 2, [4, 4]),
        (Kind.POSITIONS, [4, 4, 1], 4, [4, 4, 1, 0]),
        (Kind.ORDER, [1, 0, 2], 5, None),
        (Kind.UNCLEAR, [1, 0, 2], 2, None),
    ],
)
def test_integers_stay_valid_for_another_number_of_entries(kind, values, new, expected):
    assert grown(kind, values, new) == expected


def test_an_order_grows_and_shrinks_with_what_it_orders():
    assert grown(Kind.ORDER, [1, 0, 2], 5, tied=True) == [1, 0, 2, 3, 4]
    assert grown(Kind.ORDER, [1, 0, 2], 2, tied=True) == [1, 0]


def test_only_what_may_be_offsets_makes_a_size_unsure():
    assert relations.unsure(case(ROWS, [0, 2, 6]), 3)
    assert not relations.unsure(case(ROWS, [0, 2, 6]), 7)
    assert not relations.unsure(case(ROWS, [0, 2, 7]), 3)
