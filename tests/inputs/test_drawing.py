"""Drawing samples from a strategy, and finding the smallest that fails."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from hypothesis import find, settings
from hypothesis import strategies as st

from opcheck_suite import Sample, ops
from opcheck_suite.inputs import drawing, strategies
from opcheck_suite.inputs.drawing import Drawn, arranged, draw, fingerprint, smallest
from tests.fixtures import harness_ops

NUMBERS = st.integers(0, 90)


def values(strategy, count=10, seed=0) -> list:
    return [one.value for one in draw(strategy, count=count, seed=seed)]


def test_the_simplest_comes_first_and_all_are_different():
    found = values(NUMBERS, 25)
    assert found[0] == 0
    assert len(set(found)) == 25


def test_the_same_seed_draws_the_same_and_another_does_not():
    assert values(NUMBERS) == values(NUMBERS)
    assert values(NUMBERS, seed=1) != values(NUMBERS)


def test_few_are_the_first_of_many():
    calls = strategies.sample(x=strategies.tensors(), dim=strategies.dim_of("x"))
    few, many = ([fingerprint(v) for v in values(calls, count)] for count in (10, 25))
    assert many[:10] == few


def test_a_small_strategy_gives_what_it_has():
    assert sorted(values(st.sampled_from([3, 1, 2]))) == [1, 2, 3]
    assert values(st.just("x")) == ["x"]


def test_neither_the_environment_nor_other_runs_of_hypothesis_change_what_is_drawn(monkeypatch):
    before = values(NUMBERS)
    monkeypatch.setenv("CI", "true")
    find(st.integers(), lambda n: n > 10)
    settings.register_profile("drawing", max_examples=3, derandomize=False)
    settings.load_profile("drawing")
    try:
        assert values(NUMBERS) == before
    finally:
        settings.load_profile("default")


def test_what_a_strategy_raises_is_passed_on():
    with pytest.raises(ZeroDivisionError):
        values(NUMBERS.map(lambda n: 1 // n))


def test_a_strategy_that_draws_nothing_raises():
    from hypothesis.errors import Unsatisfiable

    with pytest.raises(Unsatisfiable):
        values(NUMBERS.filter(lambda n: n > 90))


def test_no_example_is_kept_on_disk(scratch):
    values(NUMBERS)
    smallest(NUMBERS, lambda n: n > 10, start=draw(NUMBERS, count=10, seed=0)[5], seed=0, most=50, seconds=60)
    assert not (scratch / ".hypothesis" / "examples").exists()


def test_hypothesis_is_not_imported_for_specs_without_a_strategy():
    code = "import sys; from opcheck_suite import engine; print('hypothesis' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"


def test_only_strategies_are_strategies():
    assert drawing.is_strategy(st.integers())
    assert drawing.is_strategy(strategies.tensors())
    assert not drawing.is_strategy([1])
    assert not drawing.is_strategy(strategies.like("x"))
    assert not drawing.is_strategy(lambda device, dtype: [])


# -- the smallest that fails


def reduced(fails, *, most=300, seconds=60.0, strategy=NUMBERS):
    start = next(one for one in draw(strategy, count=25, seed=0) if fails(one.value))
    return start.value, smallest(strategy, fails, start=start, seed=0, most=most, seconds=seconds)


def test_the_smallest_value_that_fails_is_found():
    start, found = reduced(lambda n: n >= 17)
    assert start > 17
    assert found == 17


def test_what_was_drawn_before_is_not_tried_again():
    tried = []

    def fails(n):
        tried.append(n)
        return n >= 60

    drawn = draw(NUMBERS, count=25, seed=0)
    start = next(one for one in drawn if one.value >= 60)
    smallest(NUMBERS, fails, start=start, seed=0, most=300, seconds=60)
    assert tried[0] == start.value


def test_the_best_so_far_is_returned_when_the_budget_is_spent():
    count = 0

    def fails(n):
        nonlocal count
        count += 1
        return n >= 17

    start = next(one for one in draw(NUMBERS, count=25, seed=0) if one.value >= 17)
    found = smallest(NUMBERS, fails, start=start, seed=0, most=4, seconds=60)
    assert count == 4
    assert 17 <= found <= start.value
    assert smallest(NUMBERS, fails, start=start, seed=0, most=4, seconds=-1) is None


def test_a_value_that_does_not_fail_by_itself_has_no_smaller():
    assert smallest(NUMBERS, lambda n: False, start=Drawn(5, 3), seed=0, most=50, seconds=60) is None


def test_the_search_leaves_hypothesis_as_it_was():
    reduced(lambda n: n >= 17, most=4)
    assert find(st.integers(), lambda n: n > 10, settings=settings(database=None)) == 11


# -- telling values apart


@pytest.mark.parametrize(
    "other",
    [
        torch.arange(6.0).reshape(2, 3),
        torch.arange(6.0).double(),
        torch.arange(6.0) + 1,
        (torch.arange(12.0) / 2)[::2],
        torch.arange(7.0)[:6],
        torch.arange(6.0).requires_grad_(),
        torch.arange(6.0).to_sparse(),
        [torch.arange(6.0)],
        None,
    ],
    ids=["shape", "dtype", "values", "strides", "storage", "grad", "layout", "list", "None"],
)
def test_two_values_that_differ_have_two_marks(other):
    assert fingerprint(other) != fingerprint(torch.arange(6.0))


def test_equal_values_have_one_mark():
    def made():
        return Sample((torch.arange(3.0), 2, "x"), {"g": torch.Generator().manual_seed(3), "d": [torch.float32, None]})

    assert fingerprint(made()) == fingerprint(made())
    assert fingerprint(torch.rand(200, 200)) == fingerprint(torch.rand(200, 200)), "large ones by what describes them"
    assert fingerprint(torch.rand(3, device="meta")) == fingerprint(torch.rand(3, device="meta"))


# -- arguments in their places


def test_arguments_are_given_by_position_as_far_as_the_schema_goes():
    written = ops.info(f"{harness_ops.NAMESPACE}::written")  # (x, y, *, n=1)
    for given_ones, args, kwargs in [
        ({"n": 2, "y": 1, "x": 0}, (0, 1), {"n": 2}),
        ({"y": 1}, (), {"y": 1}),
        ({"x": 0}, (0,), {}),
        ({}, (), {}),
    ]:
        made = arranged(written, given_ones)
        assert (made.args, dict(made.kwargs)) == (args, kwargs)
