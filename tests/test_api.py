"""The library door."""

from __future__ import annotations

import subprocess
import sys

import expecttest
import pytest
import torch

from opcheck_suite import ConformanceError, OpSpec, Sample, check_op, parametrize_with_checks
from opcheck_suite.registry import UsageError
from tests.fixtures import harness_ops
from tests.fixtures.harness_ops import matrix, spec

QUICK = {"checks": ("values", "fake.strides")}
SAMPLES = [(matrix(),)]


@pytest.mark.parametrize(
    "op",
    [
        OpSpec("suite_tests::trained"),
        "suite_tests::trained",
        torch.ops.suite_tests.trained.default,
        torch.ops.suite_tests.trained,
        harness_ops.trained,
    ],
    ids=["spec", "name", "overload", "packet", "definition"],
)
def test_every_way_to_name_an_op_is_checked(op):
    report = check_op(op, SAMPLES, **QUICK)
    assert report.ok, report
    assert {r.op for r in report.results} == {"suite_tests::trained"}
    assert {r.outcome.value for r in report.results} >= {"pass"}


def test_samples_replace_those_of_the_spec():
    given = spec("double")
    assert {r.sample for r in check_op(given, checks=("values.runs",)).results} == {"small"}
    other = check_op(given, samples=[Sample((torch.ones(1),), name="mine")], checks=("values.runs",))
    assert {r.sample for r in other.results} == {"mine"}
    assert given.samples[0].name == "small"


def test_a_function_of_samples_is_asked():
    report = check_op("suite_tests::double", lambda device, dtype: [(torch.ones(2),)], checks=("values.runs",))
    assert report.ok


def test_a_report_of_a_faulty_op_says_so_in_every_way():
    report = check_op(spec("wrong", reference=lambda x: x * 2), checks=("values.reference",))
    assert not report.ok
    assert [r.check for r in report.bad] == ["values.reference"]
    text = str(report)
    assert "values.reference  suite_tests::wrong  cpu  sample 'small'  FAIL" in text
    assert text.endswith("verdict  1 bad")
    with pytest.raises(ConformanceError) as caught:
        report.raise_if_bad()
    assert str(caught.value) == text


def test_a_report_of_a_good_op_raises_nothing():
    report = check_op(spec("double"), **QUICK)
    report.raise_if_bad()
    assert str(report).endswith("verdict  clean")


def test_an_op_that_dies_is_reported_and_this_process_lives():
    report = check_op(spec("aborts"), checks=("values.runs",))
    assert [r.outcome.value for r in report.results] == ["crash"]


def test_strict_and_static():
    assert check_op(spec("double", samples=[]), checks=("values.runs",)).ok
    assert not check_op(spec("double", samples=[]), checks=("values.runs",), strict=True).ok
    report = check_op(spec("aborts"), tier="static")
    assert report.ok, "no kernel is run"


def test_what_the_caller_mistypes_is_told_with_the_nearest():
    def told(*args, **kwargs) -> str:
        with pytest.raises(UsageError) as caught:
            check_op(*args, **kwargs)
        return str(caught.value)

    found = [
        told("suite_tests::duoble"),
        told("suite_tests::several"),
        told(3),
        told(spec("double"), tier="quik"),
        told(spec("double"), checks=("fake.stride",)),
        told(spec("double"), device="cdua"),
        told(spec("double"), isolate="nevr"),
        told(spec("double"), timeout=-1.0),
        told(spec("double"), samples=[(matrix(), 1)]),
        told(spec("double"), samples=["x"]),
    ]
    expecttest.assert_expected_inline(
        "\n".join(found),
        """\
there is no op 'suite_tests::duoble'; did you mean 'suite_tests::double'?
suite_tests::several has 2 overloads; name one of suite_tests::several.Tensor, suite_tests::several.Scalar
an op must be a name such as 'ns::name', or an operator; got int
unknown tier 'quik'; did you mean 'quick'?
unknown check 'fake.stride'; did you mean 'fake.strides'?
unknown device 'cdua'; did you mean 'cuda'?
unknown isolate 'nevr'; did you mean 'never'?
timeout and memory must not be negative; 0 means no limit
suite_tests::double: sample 0 has 2 positional arguments, the schema takes 1: suite_tests::double(Tensor x) -> Tensor
suite_tests::double: sample 0 must be a Sample, (args, kwargs) or a tuple of args; got str""",
    )


def test_a_misspelt_keyword_is_a_type_error():
    with pytest.raises(TypeError, match="tiers"):
        check_op(spec("double"), tiers="quick")


def test_without_isolation_the_op_runs_here():
    seen = []
    torch.library.custom_op(
        "suite_tests::here", lambda x: seen.append(1) or x * 2, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    check_op("suite_tests::here", SAMPLES, checks=("values.runs",))
    assert seen == []
    check_op("suite_tests::here", SAMPLES, checks=("values.runs",), isolate="never")
    assert seen != []


AFTER_BACKWARD = """
import torch
from opcheck_suite import check_op
from tests.fixtures import harness_ops

x = torch.ones(1000, requires_grad=True)
(x * 2).sum().backward()
report = check_op("suite_tests::trained", [(torch.rand(3, dtype=torch.float64),)], checks=("autograd", "values"))
print(report)
gradients = [r.outcome.value for r in report.results if r.check == "autograd.gradcheck"]
assert gradients == ["pass"], gradients
assert report.ok
"""


def test_it_works_after_a_backward_in_this_process():
    done = subprocess.run([sys.executable, "-c", AFTER_BACKWARD], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_process_that_cannot_be_forked_runs_the_op_itself_and_says_so(monkeypatch):
    monkeypatch.setattr("opcheck_suite.api.can_fork_safely", lambda: False)
    report = check_op(spec("double"), **QUICK)
    assert report.ok
    assert report.environment["isolation"].startswith("none: this process has used torch")
    assert "isolation: none" in str(report)
    assert "isolation" not in check_op(spec("double"), isolate="always", **QUICK).environment


# -- pytest parameters


@parametrize_with_checks(
    [spec("double", reference=lambda x: x + x), spec("scale", unavailable={"native": "no compiler"})],
    checks=("values.runs", "values.reference"),
)
def test_units_are_parameters(unit):
    if unit.unit.op == "suite_tests::scale":
        with pytest.raises(pytest.skip.Exception, match="no compiler"):
            unit.run()
    else:
        unit.run()
    assert repr(unit) == str(unit.unit)


FAULTY = parametrize_with_checks(
    [spec("wrong", reference=lambda x: x * 2), spec("raises", expected_failures={"values.runs": "moody"})],
    checks=("values.runs", "values.reference"),
)


@FAULTY
def test_bad_units_raise_and_expected_failures_xfail(unit):
    expected = {
        ("suite_tests::wrong", "values.runs"): None,
        ("suite_tests::wrong", "values.reference"): ConformanceError,
        ("suite_tests::raises", "values.runs"): pytest.xfail.Exception,
        ("suite_tests::raises", "values.reference"): pytest.skip.Exception,
    }[unit.unit.op, unit.unit.check]
    if expected is None:
        unit.run()
    else:
        with pytest.raises(expected):
            unit.run()


def test_parameters_are_named_like_the_plugin_s_tests():
    assert [p.id for p in FAULTY.args[1]] == [
        "suite_tests::wrong-values.runs-cpu",
        "suite_tests::wrong-values.reference-cpu",
        "suite_tests::raises-values.runs-cpu",
        "suite_tests::raises-values.reference-cpu",
    ]


def test_parameters_of_a_module_and_of_nothing():
    mark = parametrize_with_checks("tests.fixtures.mixed_specs", tier="static")
    assert {p.values[0].unit.op for p in mark.args[1]} == {
        f"suite_mixed::{name}" for name in ("clean", "failing", "expected", "absent")
    }
    with pytest.raises(UsageError, match="there is no module or op namespace"):
        parametrize_with_checks("tests.fixtures.mixed_spec")
