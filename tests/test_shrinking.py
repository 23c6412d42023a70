"""Failing inputs are told as small as they still fail, and verdicts do not depend on it."""

from __future__ import annotations

import dataclasses
import os
import time

import pytest
import torch
from torch import Tensor

from opcheck_suite import OpSpec, Sample, engine, isolate, registry, session, shrinking, specs
from opcheck_suite.inputs import variants
from opcheck_suite.model import Unit
from opcheck_suite.options import RunOptions
from opcheck_suite.reports import text

NAMESPACE = "suite_shrinking"


def numbers(*shape: int) -> Tensor:
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape)


def _define(fn):
    op = torch.library.custom_op(f"{NAMESPACE}::{fn.__name__}", fn, mutates_args=())
    op.register_fake(lambda x, *rest: torch.empty_like(x))
    return op


def triple(x: Tensor) -> Tensor:
    return x * 3


def beyond_four(x: Tensor) -> Tensor:
    out = x * 2
    out[..., 4:] += 1
    return out


def odd_pairs(x: Tensor, y: Tensor) -> Tensor:
    if x.dim() != 2 or x.shape != y.shape:
        raise ValueError("two matrices of one shape")
    return x * y + 1


def linear(x: Tensor) -> Tensor:
    packed = torch.empty(x.shape, device="meta").stride()
    return x.as_strided(x.shape, packed) * 2


def demands_three(x: Tensor) -> Tensor:
    if x.shape[-1] < 3:
        raise ValueError("rows of at least three")
    return x * 3


def dies_below_three(x: Tensor) -> Tensor:
    if x.shape[-1] < 3:
        os.abort()
    return x * 3


def sleeps_below_three(x: Tensor) -> Tensor:
    if x.shape[-1] < 3:
        time.sleep(60)
    return x * 3


def slow(x: Tensor) -> Tensor:
    time.sleep(0.25)
    return x * 3


def other_reason(x: Tensor) -> Tensor:
    """Wrong values for matrices of at least 6 x 6, a wrong shape for smaller ones."""
    return x * 3 if x.numel() >= 36 else x.reshape(-1)[:1] * 2


def refuses(x: Tensor) -> Tensor:
    raise ValueError("never")


_calls: list[int] = []


def counts(x: Tensor) -> Tensor:
    """Each call is another one: what a call that nobody sees would change."""
    _calls.append(x.numel())
    return x * 3 + len(_calls)


def indexed(x: Tensor, index: Tensor) -> Tensor:
    return x * 3


OPS = {
    fn.__name__: _define(fn)
    for fn in (
        triple,
        beyond_four,
        odd_pairs,
        linear,
        demands_three,
        dies_below_three,
        sleeps_below_three,
        slow,
        other_reason,
        refuses,
        counts,
        indexed,
    )
}


def spec(name: str, *args, reference=lambda x: x * 2, **claims) -> OpSpec:
    return OpSpec(OPS[name], samples=[Sample(args or (numbers(12, 12),), name="s")], reference=reference, **claims)


def run(given: OpSpec, *checks: str, **options):
    chosen = RunOptions(checks=checks or ("values.reference",), **options).validated()
    return engine.run(engine.plan(specs.Loaded("tests", specs.entries([given])), chosen))


def told(report, check: str = "values.reference") -> tuple[str, str, list[str]]:
    """Outcome, the call that is shown, and what it was reduced from."""
    (result,) = [r for r in report.results if r.check == check]
    lines = result.message.splitlines()
    call = next(line for line in lines if line.startswith("call ")).removeprefix("call").strip()
    return result.outcome.value, call, [line for line in lines if line.startswith("reduced from ")]


# -- the smallest input is told


def test_a_fault_beyond_a_size_is_told_with_the_first_size_beyond_it():
    for columns in (12, 1100):
        report = run(spec("beyond_four", numbers(6, columns)))
        from_ = f"reduced from beyond_four(x=float32[6, {columns}])"
        assert told(report) == ("fail", "beyond_four(x=float32[1, 5])", [from_])


def test_a_fault_on_any_input_is_told_with_one_element():
    assert told(run(spec("triple"))) == ("fail", "triple(x=float32[1, 1])", ["reduced from triple(x=float32[12, 12])"])


def test_a_report_shows_the_reduced_input():
    report = run(spec("triple", numbers(2, 6)))
    block = text.failures(report).splitlines()
    assert block[1:4] == [
        "  the result differs from the reference: output has wrong values: 1 of 1 elements differ; "
        "at [0, 0] got 3, expected 2",
        "  call    triple(x=float32[1, 1])",
        "  reduced from triple(x=float32[2, 6])",
    ]


def test_a_layout_is_kept():
    report = run(spec("linear", numbers(6, 12)), "values.noncontiguous")
    outcome, call, (from_,) = told(report, "values.noncontiguous")
    assert (outcome, call) == ("fail", "linear(x=float32[2, 2] stride (1, 2))")
    assert from_ == "reduced from linear(x=float32[6, 12] stride (1, 6))"


def test_equal_sizes_stay_equal():
    report = run(spec("odd_pairs", numbers(6, 5), numbers(6, 5), reference=torch.mul))
    assert told(report)[1] == "odd_pairs(x=float32[1, 1], y=float32[1, 1])"


def test_only_inputs_that_the_op_accepts_are_told():
    report = run(spec("demands_three", numbers(6, 12)))
    assert told(report)[1] == "demands_three(x=float32[1, 3])"


def test_another_failure_of_a_smaller_input_is_not_told():
    report = run(spec("other_reason"))
    (result,) = [r for r in report.results if r.check == "values.reference"]
    assert "wrong values" in result.message
    assert told(report)[1] == "other_reason(x=float32[6, 6])"


def test_the_smallest_input_is_left_as_it_is():
    assert told(run(spec("triple", numbers(1, 1))))[2] == []


def test_the_same_input_is_told_every_time():
    first, second = (run(spec("beyond_four", numbers(7, 13))) for _ in range(2))
    assert [r.message for r in first.results] == [r.message for r in second.results]


def test_of_several_samples_that_fail_the_first_is_reduced():
    given = dataclasses.replace(spec("triple"), samples=[Sample((numbers(n, 3),), name=f"s{n}") for n in (4, 5)])
    report = run(given)
    assert ["reduced from" in r.message for r in report.results if r.check == "values.reference"] == [True, False]


def test_an_op_that_hangs_of_smaller_inputs_is_left_alone_afterwards(monkeypatch):
    monkeypatch.setattr(variants, "derive", lambda *_, **__: [])
    monkeypatch.setattr(shrinking, "SECONDS", 0.3)
    tried, aside = [], isolate.aside
    monkeypatch.setattr(isolate, "aside", lambda *args, **more: tried.append(1) or aside(*args, **more))
    (entry,) = specs.entries([spec("sleeps_below_three", numbers(1, 12))])
    own = session.Session(entry, shrink=True)
    for _ in range(3):
        list(own.run(Unit(entry.name, "values.reference", "cpu")))
    assert tried == [1]


# -- what is not reduced


def test_positions_are_left_alone():
    report = run(spec("indexed", numbers(6, 5), torch.tensor([5, 0]), reference=lambda x, index: x * 2))
    assert told(report)[1:] == ("indexed(x=float32[6, 5], index=int64[2])", [])


def test_expected_failures_are_not_reduced(monkeypatch):
    monkeypatch.setattr(shrinking, "shrink", lambda *_: pytest.fail("an expected failure was reduced"))
    report = run(spec("triple", expected_failures={"values.reference": "known"}))
    assert told(report)[::2] == ("xfail", [])


def test_what_raises_is_not_reduced():
    assert told(run(spec("refuses"), "values.runs"), "values.runs")[::2] == ("fail", [])


@pytest.mark.parametrize(
    ("check", "x"),
    [
        ("compile.parity", numbers(3, 4)),
        ("export.anything", numbers(3, 4)),
        ("values.wide", torch.ones(1).expand(1 << 21, 2)),
    ],
)
def test_what_is_dear_is_not_tried_again(check, x, monkeypatch):
    monkeypatch.setattr(isolate, "aside", lambda *_, **__: pytest.fail("a dear check was tried again"))
    one = registry.get("values.reference")
    dear = dataclasses.replace(one, id=check)
    (entry,) = specs.entries([spec("triple", x)])
    ctx = session.Session(entry).context("cpu", "")
    assert shrinking.shrink(ctx, dear, ctx.samples[0], ctx.samples[0], "", lambda *_: None) is None


def test_without_a_process_of_its_own_an_op_is_not_called_again():
    assert told(run(spec("triple"), isolate="never"))[2] == []


# -- verdicts do not depend on it


def test_an_op_that_dies_of_smaller_inputs_is_told_with_the_smallest_before():
    report = run(spec("dies_below_three", numbers(6, 12)))
    assert told(report)[:2] == ("fail", "dies_below_three(x=float32[1, 12])")
    (runs,) = [r for r in report.results if r.check == "values.runs"]
    assert runs.outcome.value == "warn"  # of its own variant, as without reduction
    assert len(report.results) == 2


@pytest.mark.parametrize("name", ["sleeps_below_three", "slow"])
def test_time_is_limited(name, monkeypatch):
    monkeypatch.setattr(variants, "derive", lambda *_, **__: [])
    start = time.monotonic()
    report = run(spec(name, numbers(6, 12)), timeout=1.0)
    assert time.monotonic() - start < shrinking.SECONDS + 4
    assert told(report)[0] == "fail"
    assert [r.outcome.value for r in report.results] == ["pass", "fail"]


def test_tries_are_limited(monkeypatch):
    tried = []

    def aside(work, **_):
        work(lambda event: None)
        return []

    monkeypatch.setattr(isolate, "aside", aside)
    (entry,) = specs.entries([spec("triple", *[numbers(97, 89, 83)])])
    ctx = session.Session(entry).context("cpu", "")
    one = registry.get("values.reference")

    def never(_, case):
        tried.append(case.describe())

    assert shrinking.shrink(ctx, one, ctx.samples[0], ctx.samples[0], "message", never) is None
    assert len(tried) == shrinking.TRIES
    assert len(set(tried)) == len(tried)


def test_the_op_is_not_called_more_often():
    """Not in the process in which later checks run: what it keeps from call to call is what it would be."""
    (entry,) = specs.entries([spec("counts", numbers(2, 3))])
    unit = Unit(entry.name, "values.reference", "cpu")
    calls, rows = [], []
    for shrink in (False, True):
        _calls.clear()
        rows.append(list(session.Session(entry, shrink=shrink).run(unit)))
        calls.append(list(_calls))
    assert calls[0] == calls[1] != []
    assert ["reduced from" in row.message for (row,) in rows] == [False, True]
    assert len({(row.outcome, row.cases) for (row,) in rows}) == 1


# -- the parts


def test_layouts_are_groups_of_variants():
    assert set(shrinking.LAYOUTS) < set(variants.groups())


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (
            "the output of shape [3, 4] has strides [4, 1], with fake tensors [1, 3]\nmore",
            "the output of shape [2, 2] has strides [2, 1], with fake tensors [1, 2]",
            True,
        ),
        ("it differs: output has wrong values: 3 of 12 elements", "it differs: output has wrong values: -0.5", True),
        ("it differs: output has wrong values: 3", "it differs: output has shape (1, 1), expected (2,)", False),
        ("output 0 has shape (3, 4)", "output 1 has shape (1, 1)", True),
        ("the op raised ValueError: no", "the op raised RuntimeError: no", False),
        ("argument 'x' is written", "argument 'y' is written", False),
    ],
)
def test_messages_of_one_kind(a, b, same):
    assert (shrinking.kind(a) == shrinking.kind(b)) == same


@pytest.mark.parametrize(("least", "size"), [(1, 2), (2, 2), (5, 12), (12, 12), (129, 1100)])
def test_the_search_finds_the_least_size_in_few_tries(least, size):
    tried = []

    def holds(changes):
        tried.append(changes[size])
        return changes[size] >= least

    shrinking._search([size], holds, tries=20)
    assert min([n for n in tried if n >= least], default=size) == least
    assert len(tried) <= 1 + size.bit_length()


def test_sizes_are_reduced_one_after_the_other():
    seen = []
    shrinking._search([3, 2], lambda c: seen.append(c) or c.get(3, 3) >= 2, tries=20)
    assert seen == [{3: 1}, {3: 2}, {3: 2, 2: 1}]
