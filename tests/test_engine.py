"""Plans and runs: what is promised about results whatever an op does."""

from __future__ import annotations

import collections
import dataclasses

import pytest
import torch

from opcheck_suite import OpSpec, Sample, engine, isolate, jobs, registry, specs
from opcheck_suite.model import Outcome, Result, Unit
from opcheck_suite.options import RunOptions
from opcheck_suite.registry import UsageError
from tests.fixtures import harness_ops
from tests.fixtures.harness_ops import matrix, spec

FAMILIES = ("values", "schema", "fake")


def plan(*given: OpSpec, **options) -> engine.Plan:
    chosen = RunOptions(**{"checks": FAMILIES, **options}).validated()
    return engine.plan(specs.Loaded("tests", specs.entries(given)), chosen)


def run(*given: OpSpec, **options):
    return engine.run(plan(*given, **options))


def verdicts(report) -> set[tuple]:
    """Results without times and without what a process wrote, which may hold addresses."""
    return {(r.op, r.check, r.device, r.dtype, r.sample, r.outcome, r.message, r.cases) for r in report.results}


def bad(report) -> list[tuple[str, str, str]]:
    return [(r.check, r.sample, r.outcome.value) for r in report.bad]


def outcomes(report) -> dict[str, set[str]]:
    found = collections.defaultdict(set)
    for r in report.results:
        found[r.check].add(r.outcome.value)
    return dict(found)


# -- plans


def test_a_plan_has_a_unit_for_every_op_check_and_dtype_in_order():
    made = plan(
        spec("double", dtypes=(torch.float32, torch.float64), samples=lambda device, dtype: []),
        spec("scale"),
        checks=("fake.shape", "values.reference"),
    )
    checks = ["values.runs", "values.reference", "fake.runs", "fake.shape"]
    expected = [
        Unit(f"suite_tests::{op}", check, "cpu", dtype)
        for op, dtype in [("double", "float32"), ("double", "float64"), ("scale", "")]
        for check in checks
    ]
    assert list(made.units) == expected


def test_a_plan_without_samples_needs_no_prerequisite():
    assert {u.check for u in plan(spec("double"), checks=("registration.name",)).units} == {"registration.name"}


def test_ops_are_selected_by_name_glob_and_namespace():
    names = [f"suite_tests::{n}" for n in ("double", "scale", "wrong")]
    given = [spec("double"), spec("scale"), spec("wrong")]

    def chosen(*patterns):
        return list(plan(*given, ops=patterns).entries)

    assert chosen() == names
    assert chosen("suite_tests") == names
    assert chosen("suite_tests::s*", "suite_tests::double") == names[:2]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"ops": ("suite_tests::duoble",)}, "no op in the selection matches .*did you mean 'suite_tests::double'"),
        ({"checks": ("fake.shap",)}, "unknown check 'fake.shap'; did you mean 'fake.shape'"),
        ({"checks": ("values", "!values")}, "no check is left to run"),
        ({"device": "cdua"}, "unknown device 'cdua'; did you mean 'cuda'"),
        ({"device": ""}, "--device is empty"),
        ({"device": "meta"}, "holds no data"),
    ],
)
def test_a_plan_that_cannot_be_made_is_a_usage_error(options, told):
    with pytest.raises(UsageError, match=told):
        plan(spec("double"), **options)


def test_an_expected_failure_of_an_unknown_check_is_a_usage_error():
    with pytest.raises(UsageError, match=r"unknown check 'fake\.strdies'; did you mean 'fake.strides'"):
        plan(spec("double", expected_failures={"fake.strdies": "why"}))


# -- every unit has a result

ALL = [
    "double",
    "wrong",
    "raises",
    "aborts",
    "leaves",
    "dies_when_empty",
    "dies_when_transposed",
    "dies_on_one_row",
    "fake_dies",
    "kernel_less",
    "composed",
]


@pytest.mark.parametrize("jobs", [1, 3])
def test_every_planned_unit_has_results_in_the_plan_s_order(jobs):
    given = [spec(name) for name in ALL]
    made = plan(*given, spec("scale", unavailable={"cuda": "no GPU"}), spec("increment_", samples=[]), jobs=jobs)
    report = engine.run(made)
    assert list(dict.fromkeys(r.unit for r in report.results)) == list(made.units)


def test_a_listener_hears_every_result_and_then_its_unit():
    made = plan(spec("double"), spec("aborts"), checks=("values",))
    heard: list[Result | Unit] = []
    report = engine.run(made, listener=heard.append)
    assert {e for e in heard if isinstance(e, Unit)} == set(made.units)
    assert collections.Counter(e for e in heard if isinstance(e, Result)) == collections.Counter(report.results)
    open_units = [e.unit if isinstance(e, Result) else e for e in heard]
    assert list(dict.fromkeys(open_units)) == [e for e in heard if isinstance(e, Unit)]


# -- deaths


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("aborts", "the op, called on small: it died of SIGABRT (Aborted)"),
        ("leaves", "the op, called on small: it ended the process with exit status 7"),
    ],
)
def test_an_op_that_dies_on_its_sample_is_one_bad_result_and_the_rest_is_not_exercised(name, how):
    report = run(spec(name, reference=lambda x: x))
    assert bad(report) == [("values.runs", "small", "crash")]
    assert report.bad[0].message.splitlines() == [how, f"call    {name}(x=float32[2, 3])"]
    others = {r.outcome for r in report.results if r.check != "values.runs" and r.sample}
    assert others == {Outcome.NOT_EXERCISED}
    assert Outcome.PASS not in {r.outcome for r in report.results if registry.get(r.check).tier != "static"}


def test_a_crash_shows_what_the_op_wrote_and_where_it_died():
    (crash,) = run(spec("aborts"), checks=("values.runs",)).bad
    assert "last words" in crash.detail
    assert "harness_ops.py" in crash.detail
    assert "/opcheck_suite/" not in crash.detail


def test_an_op_that_hangs_is_one_timeout():
    report = run(spec("hangs"), spec("double"), checks=("values.runs", "schema.mutation"), timeout=0.5)
    assert bad(report) == [("values.runs", "small", "timeout")]
    told = ["the op, called on small: it did not finish within 0.5 s", "call    hangs(x=float32[2, 3])"]
    assert report.bad[0].message.splitlines() == told
    assert {r.outcome for r in report.results if r.op == "suite_tests::double"} == {Outcome.PASS}


def test_an_op_that_raises_is_one_bad_result():
    report = run(spec("raises", reference=lambda x: x))
    assert bad(report) == [("values.runs", "small", "fail")]
    assert "RuntimeError: the op is not in the mood" in report.bad[0].message
    assert {r.outcome for r in report.results if r.check == "fake.shape"} == {Outcome.NOT_EXERCISED}


ON_VARIANTS = [
    ("dies_when_empty", "values.empty"),
    ("dies_when_transposed", "values.noncontiguous"),
    ("dies_on_one_row", "values.runs"),
]


@pytest.mark.parametrize(("name", "owner"), ON_VARIANTS)
def test_an_op_that_dies_on_a_variant_only_is_one_bad_result_at_its_owner(name, owner):
    report = run(spec(name, reference=lambda x: x * 2))
    assert bad(report) == [(owner, "small", "crash")]
    ran = {r.check: r.outcome for r in report.results if r.check in ("values.reference", "fake.shape", "fake.strides")}
    assert set(ran.values()) == {Outcome.PASS}


@pytest.mark.parametrize(("name", "owner"), ON_VARIANTS)
def test_where_a_death_is_reported_does_not_depend_on_how_a_run_is_split(name, owner):
    parts = [run(spec(name), checks=(family,)) for family in ("fake", "schema", "values")]
    found = {(r.check, r.sample, r.outcome.value) for report in parts for r in report.bad}
    assert found == {(owner, "small", "crash")}


@pytest.mark.parametrize(("name", "owner"), ON_VARIANTS)
def test_where_a_death_is_reported_does_not_depend_on_the_order_of_checks(name, owner):
    made = plan(spec(name))
    backwards = dataclasses.replace(made, units=tuple(reversed(made.units)))
    assert bad(engine.run(backwards)) == [(owner, "small", "crash")]


def test_a_random_op_that_dies_on_a_variant_is_reported_too():
    report = run(spec("dies_when_transposed", deterministic=False))
    assert [(r.sample, r.outcome.value) for r in report.bad] == [("small", "crash")]


def test_a_death_with_one_dtype_says_nothing_of_another():
    def samples(device, dtype):
        # the other dtype has other values: its variants in float64 are no death
        return [Sample(args=(torch.full((3,), 0.125 if dtype == torch.float64 else 0.5, dtype=dtype),), name="ones")]

    report = run(spec("dies_on_double", samples=samples, dtypes=(torch.float64, torch.float32)))
    assert [(r.check, r.dtype, r.outcome.value) for r in report.bad] == [("values.runs", "float64", "crash")]
    (other,) = {r.outcome for r in report.results if r.check == "values.state" and r.dtype == "float32"}
    assert other is Outcome.PASS


def test_a_fake_kernel_that_dies_is_one_bad_result():
    report = run(spec("fake_dies"))
    assert bad(report) == [("fake.runs", "small", "crash")]
    told = "the op, called with fake tensors, on small: it died of SIGABRT (Aborted)"
    assert report.bad[0].message.splitlines() == [told, "call    fake_dies(x=float32[2, 3])"]


def test_a_death_on_one_sample_leaves_the_others_tested():
    given = [Sample(args=(torch.full((3,), value),), name=name) for name, value in [("up", 1.0), ("down", -0.25)]]
    report = run(spec("dies_on_negative", samples=[*given, Sample(args=(torch.ones(4),), name="after")]))
    assert bad(report) == [("values.runs", "down", "crash")]
    tested = {r.sample for r in report.results if r.check == "schema.mutation" and r.outcome is Outcome.PASS}
    assert tested == {"up", "after"}


def test_an_op_that_dies_on_every_one_of_many_samples_ends():
    many = [Sample(args=(torch.ones(n + 1),), name=f"n{n}") for n in range(20)]
    report = run(spec("aborts", samples=many), checks=("values.runs",))
    assert {r.outcome for r in report.results} == {Outcome.CRASH}
    assert len(report.results) == jobs.MOST_DEATHS
    first = report.results[-1].message.partition("\n")[0]
    assert first.endswith("; after 8 such ends the check's other samples are given up")


def test_samples_that_end_the_process_are_the_spec_s_fault():
    import os

    report = run(spec("double", samples=lambda device, dtype: os._exit(4)), spec("scale"), checks=("values.runs",))
    (one,) = report.bad
    assert (one.op, one.outcome) == ("suite_tests::double", Outcome.ERROR)
    assert one.message == "the process ended while the samples were made: it ended the process with exit status 4"


# -- whose fault


def test_samples_that_raise_are_an_error_of_the_spec():
    def samples(device, dtype):
        raise KeyError("lost")

    report = run(spec("double", samples=samples))
    sampled = [r for r in report.results if registry.get(r.check).scope != "op" and r.outcome is not Outcome.SKIP]
    assert {r.outcome for r in sampled} == {Outcome.ERROR}
    assert {r.message for r in sampled} == {"the spec is at fault: samples('cpu', None) raised KeyError: 'lost'"}
    assert "KeyError: 'lost'" in sampled[0].detail


def test_a_reference_that_raises_on_a_sample_is_an_error_of_the_spec():
    report = run(spec("double", reference=lambda x: 1 / 0))
    assert bad(report) == [("values.reference", "small", "error")]
    assert report.bad[0].message.splitlines()[0] == (
        "the spec is at fault: the reference raised ZeroDivisionError: division by zero"
    )


def test_an_exception_inside_a_check_is_an_error_of_the_harness(monkeypatch):
    def broken(ctx, case):
        return {}["nothing"]

    check = dataclasses.replace(registry.get("values.state"), fn=broken)
    monkeypatch.setitem(registry._CHECKS, "values.state", check)
    report = run(spec("double"), checks=("values.state",))
    assert bad(report) == [("values.state", "small", "error")]
    assert report.bad[0].message.splitlines()[0] == (
        "values.state itself failed, which says nothing of the op: KeyError: 'nothing'"
    )
    assert "Traceback" in report.bad[0].detail


def test_an_op_without_samples_is_not_exercised_and_named():
    report = run(spec("double", samples=[]), checks=("values.runs",))
    assert outcomes(report) == {"values.runs": {"not_exercised"}}
    assert report.ok
    assert "nothing exercised  suite_tests::double" in str(report)


def test_strict_counts_what_was_not_exercised_as_bad():
    report = run(spec("double", samples=[]), checks=("values.runs",), strict=True)
    assert not report.ok
    assert bad(report) == [("values.runs", "", "not_exercised")]


# -- expected failures


def test_an_expected_failure_that_fails_is_an_xfail():
    given = spec("wrong", reference=lambda x: x * 2, expected_failures={"values.reference": "issue 7"})
    report = run(given)
    assert report.ok
    assert outcomes(report)["values.reference"] == {"xfail"}
    (one,) = [r for r in report.results if r.outcome is Outcome.XFAIL]
    assert one.message.splitlines()[0] == "issue 7"
    assert "differs from the reference" in one.message


def test_an_expected_failure_that_passes_is_bad():
    report = run(spec("double", reference=lambda x: x * 2, expected_failures={"values.reference": "issue 7"}))
    assert bad(report) == [("values.reference", "small", "xpass")]
    assert report.bad[0].message == ("expected to fail (issue 7), but passes: remove it from expected_failures")


def test_an_expected_failure_on_one_of_two_samples_is_no_xpass():
    samples = [Sample(args=(torch.zeros(2),), name="zeros"), Sample(args=(torch.full((2,), 5.0),), name="fives")]
    given = spec("wrong", samples=samples, reference=lambda x: x * (2 if bool((x == 5).any()) else 3))
    report = run(dataclasses.replace(given, expected_failures={"values.reference": "issue 7"}))
    found = {r.sample: r.outcome.value for r in report.results if r.check == "values.reference"}
    assert report.ok
    assert found == {"zeros": "pass", "fives": "xfail"}


def test_an_expected_crash_is_an_xfail():
    report = run(spec("aborts", expected_failures={"values.runs": "known to die"}))
    assert report.ok
    assert outcomes(report)["values.runs"] == {"xfail"}


def test_an_expected_failure_does_not_hide_an_error_of_the_spec():
    given = spec("double", reference=lambda x: 1 / 0, expected_failures={"values.reference": "issue 7"})
    assert bad(run(given)) == [("values.reference", "small", "error")]


# -- capabilities


def test_an_op_that_this_machine_cannot_have_is_skipped_with_the_reason():
    report = run(spec("double", unavailable={"native": "no C++ compiler"}), spec("scale"))
    found = [r for r in report.results if r.op == "suite_tests::double"]
    assert {(r.outcome, r.message) for r in found} == {(Outcome.SKIP, "no C++ compiler")}
    assert report.ok


def test_a_required_capability_that_is_missing_is_an_error():
    given = [spec("double", unavailable={"native": "no C++ compiler"}), spec("scale")]
    report = run(*given, require=("native",))
    assert {(r.op, r.outcome, r.message) for r in report.bad} == {
        ("suite_tests::double", Outcome.ERROR, "--require native: no C++ compiler")
    }
    assert run(*given, require=("cuda",)).ok


# -- one verdict whatever the circumstances

SEVERAL = ["double", "wrong", "dies_when_empty", "composed", "scale", "raises"]


def _several() -> list[OpSpec]:
    claims = {"wrong": {"reference": lambda x: x * 2}}
    return [spec(name, **claims.get(name, {})) for name in SEVERAL]


@pytest.fixture(scope="module")
def one_by_one():
    return run(*_several())


def test_a_death_in_threads_is_blamed_on_the_op_when_it_comes_back(tmp_path, monkeypatch):
    monkeypatch.setattr(harness_ops, "died_once", tmp_path / "died")
    report = run(spec("dies_once_in_threads"), spec("dies_in_threads"), checks=("values.threads",))
    assert harness_ops.died_once.exists()
    assert bad(report) == [("values.threads", "small", "crash")]
    assert report.bad[0].message.startswith("the op, called from several threads at once on small: it died of SIGABRT")


def test_a_death_that_only_tracing_brings_about_is_not_the_ops():
    report = run(spec("dies_when_traced"), checks=("values.threads", "values.wide"))
    assert outcomes(report)["values.threads"] == {"pass"}
    assert not bad(report)


def test_a_call_that_may_be_invalid_does_not_end_a_later_check():
    sample = Sample(args=(matrix(), torch.ones(5)), name="small")
    report = run(spec("damages", samples=[sample]), checks=("values.empty", "dispatch.inference_mode"))
    assert outcomes(report)["values.empty"] == {"pass"}
    assert outcomes(report)["dispatch.inference_mode"] == {"pass"}


def test_two_jobs_give_the_verdicts_of_one(one_by_one):
    two = run(*_several(), jobs=2)
    assert verdicts(two) == verdicts(one_by_one)
    assert [r.unit for r in two.results] == [r.unit for r in one_by_one.results]


def test_the_order_of_ops_does_not_change_verdicts(one_by_one):
    assert verdicts(run(*reversed(_several()))) == verdicts(one_by_one)


def test_an_op_alone_has_the_verdicts_that_it_has_among_others(one_by_one):
    alone = [run(each) for each in _several()]
    assert set().union(*(verdicts(report) for report in alone)) == verdicts(one_by_one)


def test_one_seed_gives_one_report():
    from opcheck_suite.reports import json

    def text(report) -> str:
        results = tuple(dataclasses.replace(r, seconds=0.0) for r in report.results)
        return json.render(dataclasses.replace(report, results=results, seconds=0.0))

    names = ("double", "wrong", "dies_on_one_row")
    first, second = (run(*(spec(n) for n in names), seed=3) for _ in range(2))
    assert text(first) == text(second)


@pytest.mark.parametrize("name", ["double", "composed", "wrong"])
def test_runs_without_isolation_have_the_same_verdicts(name):
    given = spec(name, reference=lambda x: x * 2)
    isolated, bare = run(given), run(given, isolate="never")
    # what they say may be of another input, since none is reduced without a process to spare
    assert {(*v[:6], v[7]) for v in verdicts(isolated)} == {(*v[:6], v[7]) for v in verdicts(bare)}


def test_units_run_one_at_a_time_give_the_results_of_a_run():
    made = plan(spec("double"), spec("dies_when_empty"), spec("scale", unavailable={"cuda": "no GPU"}))
    with engine.Runner(made) as runner:
        found = [r for unit in made.units for r in runner.run_unit(unit)]
    whole = engine.run(made)
    assert verdicts(engine.report(made, found, seconds=0.0)) == verdicts(whole)


@pytest.mark.parametrize(
    ("checks", "prepared"),
    [(("namespace",), []), (("values.runs",), [False]), (("values.runs", "compile.parity"), [True])],
    ids=["static", "quick", "standard"],
)
def test_only_what_a_plan_needs_is_imported_before_forking(checks, prepared, monkeypatch):
    seen = []
    monkeypatch.setattr("opcheck_suite.compiling.prepare", lambda *, compiler: seen.append(compiler))
    engine.Runner(plan(spec("double"), checks=checks))
    assert seen == prepared


def test_a_runner_leaves_no_child_behind():
    made = plan(spec("double"), checks=("values",))
    runner = engine.Runner(made)
    with runner:
        runner.run_unit(made.units[0])
        (job,) = runner._jobs.values()
        pid = job.child.pid
    assert not _alive(pid)


def test_a_run_that_its_listener_interrupts_leaves_no_child_behind():
    seen: list[int] = []

    class Spy(isolate.Child):
        def __init__(self, *args, **kwargs) -> None:
            super().__init__(*args, **kwargs)
            seen.append(self.pid)

    def stop(event):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(isolate, "Child", Spy)
        with pytest.raises(KeyboardInterrupt):
            engine.run(plan(spec("double"), spec("scale"), jobs=2), listener=stop)
    assert seen
    assert not any(_alive(pid) for pid in seen)


def _alive(pid: int) -> bool:
    import psutil

    return psutil.pid_exists(pid)


# -- before a run


def test_a_sample_that_does_not_fit_is_told_before_the_run():
    made = plan(spec("double", samples=lambda device, dtype: [(torch.ones(2), 3)]))
    with pytest.raises(UsageError, match="has 2 positional arguments, the schema takes 1"):
        engine.preflight(made)


def test_samples_that_die_or_raise_are_left_to_the_run():
    import os

    engine.preflight(plan(spec("double", samples=lambda device, dtype: os._exit(1)), checks=("values",)))
    engine.preflight(plan(spec("double", samples=lambda device, dtype: 1 / 0), checks=("values",)))


def test_a_report_says_what_its_results_depend_on(one_by_one):
    environment = one_by_one.environment
    assert environment["torch"] == torch.__version__
    assert environment["device"] == "cpu"
    assert set(environment) - {"commit"} == {"torch", "python", "platform", "device", "opcheck_suite"}
    assert one_by_one.options["checks"] == list(FAMILIES)
    assert one_by_one.options["source"] == "tests"
    assert list(one_by_one.ops) == [f"{harness_ops.NAMESPACE}::{name}" for name in SEVERAL]


def test_this_process_can_be_forked():
    assert isolate.can_fork_safely()
