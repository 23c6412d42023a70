"""Known failures in pytest, in a spec, and where a run ends before its time."""

from __future__ import annotations

import dataclasses
import datetime
import pathlib
import re

import pytest
from hypothesis import strategies

from opcheck_suite import KnownFailure, check_op, cli, engine, known, results, specs
from opcheck_suite.model import Unit
from opcheck_suite.options import RunOptions
from tests.fixtures.harness_ops import spec

CHECKS = "--opcheck-checks=values.reference"


def listed(*rows: tuple[str, str], more: str = "") -> str:
    """A file with an entry for each op and check."""
    return "".join(
        f'[[known]]\nop = "suite_mixed::{op}"\ncheck = "{check}"\ncategory = "op-bug"\nreason = "r"\n{more}'
        for op, check in rows
    )


FAILS = ("failing", "values.reference")
PASSES = ("clean", "values.reference")


@pytest.fixture
def project(pytester, fixtures, monkeypatch):
    """A directory with specs of which one op fails, and with what a test puts into the file of known failures."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    pytester.path.joinpath("mixed_specs.py").write_text((fixtures / "mixed_specs.py").read_text())
    pytester.makepyfile(
        test_ops=f"""
        from opcheck_suite import parametrize_with_checks

        @parametrize_with_checks("mixed_specs", checks=["values.reference"], known="{known.FILE}")
        def test_conformance(unit):
            unit.run()
        """
    )
    return pytester


def write(project, text: str) -> None:
    project.path.joinpath(known.FILE).write_text(text)


@pytest.mark.parametrize("how", [("--opcheck", "mixed_specs", CHECKS, "--opcheck-only"), ("test_ops.py",)])
def test_a_known_failure_is_an_xfail_with_its_reason(project, how):
    write(project, listed(FAILS))
    done = project.runpytest_subprocess("-rx", *how)
    assert done.ret == 0
    assert done.parseoutcomes()["xfailed"] == 2
    assert "failed" not in done.parseoutcomes()
    assert "suite_mixed::failing-values.reference-cpu" in done.stdout.str()
    assert re.search(r"XFAIL .*suite_mixed::failing.* r$", done.stdout.str(), re.M)


@pytest.mark.parametrize("how", [("--opcheck", "mixed_specs", CHECKS, "--opcheck-only"), ("test_ops.py",)])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            listed(PASSES, ("claen", "values.reference")) + listed(FAILS, more="expires = 2020-01-31\n"),
            ["passes: remove known failure 1 (suite_mixed::clean", "did you mean 'suite_mixed::clean'?", "2020-01-31"],
        ),
        (listed(FAILS, more='raises = "not this"\n'), ["said to fail in another way"]),
    ],
    ids=["passes, misspelt, expired", "another way"],
)
def test_an_entry_that_is_not_so_is_bad(project, how, text, told):
    write(project, text)
    done = project.runpytest_subprocess(*how)
    assert done.ret == 1
    for part in told:
        assert part in done.stdout.str()


@pytest.mark.parametrize("how", [("--opcheck", "mixed_specs", CHECKS, "--opcheck-only"), ("test_ops.py",)])
def test_an_entry_whose_op_was_deselected_is_not_judged(project, how):
    write(project, listed(FAILS))
    done = project.runpytest_subprocess("-k", "clean or known", *how)
    assert done.ret == 0
    assert "suite_mixed::failing" not in done.stdout.str()


def test_workers_judge_a_file_as_one_process_does(project):
    write(project, listed(FAILS, ("claen", "values.reference")))
    how = ["--opcheck", "mixed_specs", CHECKS, "--opcheck-only"]
    alone, spread = project.runpytest_subprocess(*how), project.runpytest_subprocess("-n", "2", *how)
    assert (alone.ret, alone.parseoutcomes()["xfailed"]) == (spread.ret, spread.parseoutcomes()["xfailed"]) == (1, 2)
    assert "did you mean 'suite_mixed::clean'?" in spread.stdout.str()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[known]\n", "is not TOML"),
        (listed(FAILS).replace("op-bug", "op-bgu"), "did you mean 'op-bug'?"),
        (listed(FAILS).replace("reason", "raeson"), "did you mean 'reason'?"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_wrong_use(project, text, told, capsys):
    write(project, text)
    done = project.runpytest_subprocess("--opcheck", "mixed_specs", CHECKS, "--opcheck-only")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    assert told in done.stderr.str()
    capsys.readouterr()  # what pytester has shown of it
    assert cli.main(["run", "mixed_specs.py", "--known", known.FILE]) == 2
    err = capsys.readouterr().err
    assert told in err
    assert len(err.splitlines()) == 1


# -- in a spec


def of_spec(**fields) -> set[str]:
    """The outcomes of a check that fails, where its spec says so with some fields more."""
    entry = KnownFailure(reason="r", **fields)
    given = spec("double", reference=lambda x: x * 3, expected_failures={"values.reference": entry})
    report = check_op(given, checks=["values.reference"], isolate="never")
    return {r.outcome.value for r in report.results if r.check == "values.reference"}


def test_an_entry_in_a_spec_says_what_one_in_a_file_says():
    assert of_spec() == {"xfail"}
    assert of_spec(raises="differs from the reference") == {"xfail"}
    assert of_spec(raises="^dies") == {"fail"}
    assert of_spec(torch="<2.0") == {"fail"}
    assert of_spec(device="cuda") == {"fail"}
    assert of_spec(sample="sm*") == {"xfail"}
    assert of_spec(expires=datetime.date(2020, 1, 31)) != {"xfail"}
    assert of_spec(expires=datetime.date(2999, 1, 31)) == {"xfail"}


# -- a run that ends before its time


def test_an_interrupted_run_removes_no_entry(scratch, fixtures, monkeypatch, capsys):
    (scratch / "mixed_specs.py").write_text((fixtures / "mixed_specs.py").read_text())
    pathlib.Path(known.FILE).write_text(listed(PASSES))
    run = engine.run

    def stopped(plan, **options):
        whole = run(plan, **options)
        raise engine.Stopped(engine.report(plan, whole.results, seconds=1.0, stopped="interrupted"))

    words = ["run", "mixed_specs.py", "--checks", "values.reference", "--update-known"]
    with monkeypatch.context() as patch:
        patch.setattr(engine, "run", stopped)
        assert cli.main(words) == 130
    assert [e.op for e in known.load(known.FILE)] == ["suite_mixed::clean", "suite_mixed::failing"]
    assert cli.main(words) == 0
    assert [e.op for e in known.load(known.FILE)] == ["suite_mixed::failing"]
    assert "removed  known failure 1 (suite_mixed::clean values.reference)" in capsys.readouterr().err


# -- a run that could not judge


def test_a_lower_tier_keeps_what_a_higher_one_may_need(scratch, fixtures, capsys):
    (scratch / "mixed_specs.py").write_text((fixtures / "mixed_specs.py").read_text())
    both = listed(PASSES, ("clean", "values.*"))
    words = ["run", "mixed_specs.py", "--ops", "suite_mixed::clean", "--checks", "values.reference"]

    def run(tier: str, *more: str) -> tuple[int, list[str], str]:
        pathlib.Path(known.FILE).write_text(both)
        status = cli.main([*words, "--tier", tier, *more])
        return status, [e.check for e in known.load(known.FILE)], capsys.readouterr().err

    status, kept, told = run("quick", "--update-known")
    assert (status, kept) == (0, ["values.reference", "values.*"])
    assert (
        "kept     known failure 1 (suite_mixed::clean values.reference): all that was run passes, but tier quick"
        in told
    )
    assert "kept     known failure 2 (suite_mixed::clean values.*)" in told
    assert run("quick")[0] == 0
    status, kept, told = run("standard", "--update-known")
    assert (status, kept) == (0, ["values.*"])
    assert "removed  known failure 1 (suite_mixed::clean values.reference): passes on cpu" in told


def test_which_tiers_look_at_all_inputs():
    double = specs.entries([spec("double")])[0]

    def narrow(check: str, tier: str, given=double) -> str:
        return results.narrow(given, Unit(given.name, check, "cpu"), RunOptions(tier=tier))

    assert narrow("values.noncontiguous", "quick") == "tier quick tries fewer inputs for values.noncontiguous"
    assert narrow("values.noncontiguous", "standard") == ""
    assert narrow("dispatch.no_grad", "quick") == ""
    assert narrow("registration.fake", "static") == ""
    drawing = dataclasses.replace(double, spec=dataclasses.replace(double.spec, samples=strategies.just(((), {}))))
    assert narrow("dispatch.no_grad", "quick", drawing).startswith("tier quick draws fewer samples")
    assert narrow("dispatch.no_grad", "full", drawing) == ""
    assert "not available on this machine" in narrow("dispatch.no_grad", "full", dataclasses.replace(double, info=None))


def test_an_entry_without_a_device_is_kept_until_all_claimed_ones_were_looked_at():
    double = specs.entries([spec("double", devices=("cpu", "cuda"))])[0]
    found = results.scope({double.name: double}, RunOptions(), named=[double.name])
    assert found.devices == {double.name: ("cpu", "cuda")}
