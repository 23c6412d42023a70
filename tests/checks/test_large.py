"""values.large finds a count of 32 bits, with tensors that have more elements than that, and lets one of 64 bits pass.

The run takes 5 GB of memory and some ten seconds.
"""

from __future__ import annotations

import pytest
import torch

from opcheck_suite import OpSpec, Sample, check_op, memory
from opcheck_suite.inputs import huge
from reference_ops.broken.fault import COMPILER
from tests.checks import planted

NEEDED = 7 << 30


@pytest.fixture(scope="module")
def seen() -> planted.Walk:
    if COMPILER:
        pytest.skip(COMPILER["native"])
    if memory.free("cpu") < NEEDED:
        pytest.skip(f"less than {NEEDED >> 30} GiB of memory are free")
    checks = ("values.*", "fake.*", "schema.*", "registration.*", "!values.threads", "!values.growth")
    return planted.walk(["large"], timeout=300, good="large", checks=checks, large=True)


def test_the_fault_is_found_by_its_check_and_by_no_other(seen):
    assert planted.disagreements(seen, "large") == []


def test_the_message_says_how_many_elements(seen):
    message = seen.message("broken_cpp::inverted_int", "values.large")
    assert (
        "on 2,206,203,840 elements (bytes, 9,192,516 times) the result is wrong: from index 0 of dimension 0" in message
    )


def test_a_good_op_passes_having_run(seen):
    assert seen.noticed("broken_cpp::inverted") == {}
    assert [(r["outcome"], r["cases"]) for r in seen.of("broken_cpp::inverted", "values.large")] == [("pass", 1)]


# ------------------------------------------------- what it does with an op, on smaller tensors


def _result(kernel, *args, schema="(Tensor x) -> Tensor", large=True):
    with torch.library._scoped_library("suite_large", "FRAGMENT") as lib:
        lib.define("op" + schema)
        lib.impl("op", kernel, "CPU")
        spec = OpSpec("suite_large::op", samples=[Sample(args, name="one")])
        report = check_op(spec, checks=["values.large"], isolate="never", large=large)
    (found,) = [r for r in report.results if r.check == "values.large"]
    return found.outcome.value, found.message.splitlines()[0] if found.message else ""


@pytest.fixture
def beyond(monkeypatch):
    monkeypatch.setattr(huge, "BEYOND", 1 << 23)


X = torch.arange(12.0).reshape(3, 4)


def test_it_is_off_until_it_is_asked_for():
    expected = "it takes gigabytes: opcheck run --large, or --opcheck-large in pytest"
    assert _result(torch.relu, X, large=False) == ("skip", expected)


def test_ops_that_map_rows_pass(beyond):
    assert _result(torch.relu, X) == ("pass", "")
    assert _result(lambda x: x.amax(), X) == ("pass", "")
    assert _result(lambda x: torch.softmax(x, -1), X) == ("pass", "")


def test_an_op_that_adds_rows_up_is_left_out(beyond):
    expected = "where rows of the input are repeated, the op refuses it, or the result is not the same over and over"
    assert _result(lambda x: x.cumsum(0).cumsum(1), X) == ("skip", expected)


def test_a_refusal_is_no_fault(beyond):
    def refuses(x):
        torch._check(x.numel() < 1 << 23, lambda: "too many elements")
        return x.clone()

    outcome, message = _result(refuses, X)
    assert outcome == "skip"
    assert message.endswith("elements are refused: RuntimeError: too many elements")


def test_what_is_done_in_blocks_may_end_with_a_smaller_one(beyond):
    def by_blocks(x):
        flat = x.flatten()
        cut = flat.numel() // 4096 * 4096
        parts = [flat[:cut].reshape(-1, 4096), flat[cut:].reshape(1, -1)]
        scaled = [part / part.abs().amax(1, keepdim=True) for part in parts if part.numel()]
        return torch.cat([part.flatten() for part in scaled]).reshape(x.shape)

    assert _result(by_blocks, torch.arange(1.0, 13.0).reshape(3, 4)) == ("pass", "")


def test_elements_beyond_the_limit_are_looked_at(beyond):
    def wraps(x):
        out = x.clone()
        out.view(-1)[1 << 23 :] = 1
        return out

    outcome, message = _result(wraps, X)
    assert outcome == "fail"
    assert "the result is wrong: from index" in message


def test_written_arguments_are_looked_at(beyond):
    def negates_(x):
        x.neg_() if x.numel() < 1 << 23 else x

    outcome, message = _result(negates_, X, schema="(Tensor(a!) x) -> ()")
    assert outcome == "fail"
    assert "the result is wrong" in message
