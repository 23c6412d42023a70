"""Comparing outputs, and the words for how they differ."""

from __future__ import annotations

import pytest
import torch

from opcheck_suite import compare

NAN, INF = float("nan"), float("inf")


def t(*values, **kwargs) -> torch.Tensor:
    return torch.tensor(values, **kwargs)


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (t(1.0, NAN, INF), t(1.0, NAN, INF)),
        (t(1.0, 2.0), t(1.0, 2.0 + 1e-7)),
        (t(1 + 2j, complex(NAN, 1)), t(1 + 2j, complex(NAN, 1))),
        (t(1, 2), t(1, 2)),
        (t(True, False), t(True, False)),
        (torch.empty(0, 3), torch.empty(0, 3)),
        (t(1.0, 2.0).to(torch.float8_e4m3fn), t(1.0, 2.0).to(torch.float8_e4m3fn)),
        ([t(1.0), [t(2.0)]], [t(1.0), [t(2.0)]]),
        (None, None),
        ((t(1.0), None, 3, "x"), (t(1.0), None, 3, "x")),
        (1.0, 1.0 + 1e-7),
        (NAN, NAN),
        (torch.ones(2, 3).t(), torch.ones(3, 2)),
        (t(1 + 2j).conj(), t(1 - 2j)),
    ],
)
def test_equal_outputs_are_equal(actual, expected):
    assert compare.values(actual, expected) is None


@pytest.mark.parametrize(
    ("actual", "expected", "told"),
    [
        (t(1.0, 2.0), t(1.0, 3.0), "output has wrong values: 1 of 2 elements differ; at [1] got 2, expected 3"),
        (t(1.0, 5.0, 9.0), t(1.0, 3.0, 4.0), "2 of 3 elements differ; at [2] got 9, expected 4"),
        (torch.tensor(1.0), torch.tensor(3.0), "output has wrong values: the value differs; at [] got 1, expected 3"),
        (t(1.0, NAN), t(NAN, NAN), "1 of 2 elements differ; at [0] got 1, expected nan"),
        (t(INF, 1.0), t(-INF, 1.0), "1 of 2 elements differ; at [0] got inf, expected -inf"),
        (torch.zeros(2, 2), torch.eye(2), "2 of 4 elements differ; at [0, 0] got 0, expected 1"),
        (t(1, 2), t(1, 3), "1 of 2 elements differ; at [1] got 2, expected 3"),
        (t(True, False), t(True, True), "at [1] got False, expected True"),
        (t(1j), t(2j), "at [0] got 1j, expected 2j"),
        (t(1.0), t(1.0, dtype=torch.float64), "output has dtype torch.float32, expected torch.float64"),
        (torch.ones(2, 3), torch.ones(3, 2), "output has shape (2, 3), expected (3, 2)"),
        (torch.ones(1), torch.ones(()), "output has shape (1,), expected ()"),
        ([t(1.0)], [t(1.0), t(2.0)], "1 outputs, expected 2"),
        ([t(1.0), t(2.0)], [t(1.0), t(3.0)], "output 1 has wrong values: 1 of 1 elements differ"),
        (t(1.0), 1.0, "output is float32[1], expected 1.0 of type float"),
        (None, t(1.0), "output is None of type NoneType, expected float32[1]"),
        (1, True, "output is 1, expected True"),
        (1, 1.0, "output is 1, expected 1.0"),
        (1.0, 1.1, "output is 1.0, expected 1.1"),
        (NAN, 1.0, "output is nan, expected 1.0"),
    ],
)
def test_differences_are_told_with_values(actual, expected, told):
    found = compare.values(actual, expected)
    assert found is not None
    assert told in found


def test_tolerances_are_the_spec_s():
    a, b = t(1.0), t(1.001)
    assert compare.values(a, b) is not None
    assert compare.values(a, b, tolerances=(0.01, 0.0)) is None
    assert compare.values(a, b, tolerances=(0.0, 0.01)) is None
    assert compare.values(1.0, 1.001, tolerances=(0.01, 0.0)) is None


def test_zero_tolerances_are_zero():
    """``torch.library.opcheck`` takes a zero for the default."""
    a, b = t(1.0), torch.nextafter(t(1.0), t(2.0))
    assert compare.values(a, b) is None
    assert compare.values(a, b, tolerances=(0.0, 0.0)) is not None
    assert compare.values(1.0, 1.0 + 1e-9, tolerances=(0.0, 0.0)) is not None


def test_float8_is_compared_by_its_own_spacing():
    a = t(1.0).to(torch.float8_e4m3fn)
    neighbour, far = t(1.125).to(torch.float8_e4m3fn), t(2.0).to(torch.float8_e4m3fn)
    assert compare.values(a, neighbour) is None
    assert compare.values(a, far) is not None
    assert compare.values(a, neighbour, tolerances=(0.0, 0.0)) is not None


def test_sparse_outputs_are_compared():
    a, b = torch.eye(2).to_sparse(), (2 * torch.eye(2)).to_sparse()
    assert compare.values(a, a.clone()) is None
    assert "wrong values" in compare.values(a, b)


def test_the_name_of_what_is_compared_is_the_caller_s():
    assert compare.values(1, 2, names="gradient") == "gradient is 1, expected 2"


def test_bitwise_sees_what_equality_does_not():
    assert compare.bitwise(t(NAN), t(NAN))
    assert not compare.bitwise(t(0.0), t(-0.0))
    payload = torch.tensor([0x7FC00001], dtype=torch.int32).view(torch.float32)
    assert not compare.bitwise(t(NAN), payload)
    assert not compare.bitwise(t(1.0), t(1.0, dtype=torch.float64))
    assert not compare.bitwise(torch.ones(2), torch.ones(2, 1))
    assert compare.bitwise(torch.empty(0), torch.empty(0))
    assert compare.bitwise(torch.arange(6.0).reshape(2, 3).t(), torch.arange(6.0).reshape(2, 3).t().contiguous())
    assert compare.bitwise(torch.tensor(2.0), torch.tensor(2.0))


@pytest.mark.parametrize(
    ("got", "want", "agree"),
    [
        (t(1.0, 3.0, NAN), t(1.00001, 1e6, 3.0), True),
        (t(1.0, 2.0), t(1.0, 2.1), False),
        (t(1.0, 100.0), t(1.005, 100.0), True),
        (t(1 + 0j), t(1.0), True),
        (t(1.0), t(1 + 1j), False),
        (t(1 - 1j).conj(), t(1 + 1j), True),
    ],
)
def test_rough_comparison_is_relative_to_the_largest_number(got, want, agree):
    assert (compare.roughly(got, want) is None) == agree


def test_rough_comparison_allows_slack_as_it_is():
    assert compare.roughly(t(3.0), t(4.0)) is not None
    assert compare.roughly(t(3.0), t(4.0), slack=1.0) is None
