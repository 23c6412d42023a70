"""The pytest door, each time in a pytest of its own."""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest

CHECKS = "--opcheck-checks=values.reference"
IDS = {
    f"suite_mixed::{op}-{check}-cpu"
    for op in ("clean", "failing", "expected", "absent")
    for check in ("values.runs", "values.reference")
}


@pytest.fixture
def specs(pytester, fixtures, monkeypatch):
    """A folder with the fixtures' specs in it, and nothing of this repository's conftest.py."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    for name in ("mixed_specs.py", "clean_specs.py"):
        pytester.path.joinpath(name).write_text(fixtures.joinpath(name).read_text())
    return pytester


def run(pytester, *words: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("--opcheck", "mixed_specs", CHECKS, "-p", "no:randomly", *words)


def test_results_are_tests_and_the_summary_shows_the_matrix(specs):
    done = run(
        specs, "-v", "--opcheck-report", "out/report.json", "--opcheck-report", "r.html", "--junitxml", "junit.xml"
    )
    assert done.ret == 1
    done.assert_outcomes(passed=4, failed=1, skipped=2, xfailed=1)
    verdicts = dict(re.findall(r"^(\S+) (PASSED|FAILED|SKIPPED|XFAIL)", done.stdout.str(), flags=re.MULTILINE))
    assert {name.removeprefix("mixed_specs::") for name in verdicts} == IDS
    assert verdicts["mixed_specs::suite_mixed::failing-values.reference-cpu"] == "FAILED"
    assert verdicts["mixed_specs::suite_mixed::expected-values.reference-cpu"] == "XFAIL"
    done.stdout.fnmatch_lines(
        [
            "*= conformance =*",
            "op *values*",
            "suite_mixed::clean * ..",
            "suite_mixed::failing * .F",
            "suite_mixed::expected * .x",
            "suite_mixed::absent * --",
            "ops      4 in the run, 3 with samples, 3 tested, 2 conformant",
            "verdict  2 bad",
            "wrote out/report.json",
        ]
    )
    _the_failure_is_shown_without_the_harness(done.stdout.str())
    written = json.loads(specs.path.joinpath("out/report.json").read_text())
    assert written["complete"] is True
    assert "<title>Conformance: 1 bad</title>" in specs.path.joinpath("r.html").read_text()
    assert written["options"]["source"] == "mixed_specs"
    assert {f"{r['op']}-{r['check']}-{r['device']}" for r in written["results"]} == IDS
    cases = ElementTree.parse(specs.path / "junit.xml").getroot().findall(".//testcase")
    assert {f"{c.get('classname')}::{c.get('name')}" for c in cases} == {f"mixed_specs.{id}" for id in IDS}
    (failed,) = [case for case in cases if case.find("failure") is not None]
    assert failed.get("name") == "failing-values.reference-cpu"
    assert "differs from the reference" in failed.find("failure").text
    (absent,) = {c.find("skipped").get("message") for c in cases if "absent" in c.get("name")}
    assert absent == "no compiler in this test"


def _the_failure_is_shown_without_the_harness(out: str) -> None:
    shown = out[out.index("= FAILURES =") : out.index("= conformance =")]
    assert "values.reference  suite_mixed::failing  cpu  sample 'ones'  FAIL" in shown
    assert "rerun   opcheck run mixed_specs --ops suite_mixed::failing --checks values.reference" in shown
    assert "Traceback" not in shown
    assert "/opcheck_suite/" not in shown
    assert "raise ConformanceError" not in shown


def test_k_and_lf_and_x_select_as_ever(specs):
    done = run(specs, "-k", "reference and not absent and not expected")
    done.assert_outcomes(passed=1, failed=1, deselected=6)
    done = run(specs, "--lf", "-v")
    done.assert_outcomes(failed=1, deselected=7)
    assert "suite_mixed::failing-values.reference-cpu FAILED" in done.stdout.str()
    done = run(specs, "-x", "-k", "failing or expected", "--opcheck-report", "stopped.json")
    done.assert_outcomes(passed=1, failed=1, deselected=4)
    assert "stopping after 1 failures" in done.stdout.str()
    done.stdout.fnmatch_lines(["verdict  incomplete: the session was stopped; 2 bad so far"])
    done.stdout.fnmatch_lines(["wrote stopped.json: incomplete"])
    written = json.loads(specs.path.joinpath("stopped.json").read_text())
    assert (written["complete"], written["stopped"]) == (False, "the session was stopped")
    assert {r["outcome"] for r in written["results"]} == {"pass", "fail"}


def test_other_tests_run_beside_and_only_leaves_them_out(specs):
    specs.makepyfile(test_beside="def test_beside():\n    pass\n")
    done = run(specs, "-k", "beside or clean")
    done.assert_outcomes(passed=3, deselected=6)
    done = run(specs, "-k", "beside or clean", "--opcheck-only")
    assert done.ret == 0
    done.assert_outcomes(passed=2, deselected=7)


def test_two_workers_have_the_verdicts_of_the_command_line(specs):
    done = run(specs, "-n", "2", "--opcheck-report", "workers.json")
    assert done.ret == 1
    done.assert_outcomes(passed=4, failed=1, skipped=2, xfailed=1)
    words = ["run", "mixed_specs", "--checks", "values.reference", "-j", "2", "--report", "cli.json"]
    assert specs.run(sys.executable, "-m", "opcheck_suite.cli", *words).ret == 1
    workers, cli = (json.loads(specs.path.joinpath(name).read_text()) for name in ("workers.json", "cli.json"))

    def verdicts(report) -> list[dict]:
        return [{k: v for k, v in r.items() if k != "seconds"} for r in report["results"]]

    assert verdicts(workers) == verdicts(cli)
    assert workers["totals"] == cli["totals"]
    assert workers["environment"] == cli["environment"]
    assert workers["ops"] == cli["ops"]


def test_a_library_s_own_device_option_is_honoured(specs):
    specs.makeconftest(
        "def pytest_addoption(parser):\n    parser.addoption('--device', default='cpu', help='of the library')\n"
    )
    done = run(specs, "--device", "cdua")
    assert done.ret == 4
    done.stderr.fnmatch_lines(["ERROR: opcheck: unknown device 'cdua'; did you mean 'cuda'?"])
    done = run(specs, "--device", "cdua", "--opcheck-device", "cpu", "-k", "clean")
    assert done.ret == 0
    done.assert_outcomes(passed=2, deselected=6)


NO_CUDA = """
import torch
torch.cuda.is_available = lambda: False
def pytest_addoption(parser):
    parser.addoption('--device', default='cpu')
"""


@pytest.mark.parametrize(
    "words", [["--device", "cuda"], ["--opcheck-device", "cuda"], ["--opcheck-device=cuda", "-n2"]], ids=" ".join
)
def test_a_device_that_is_not_there_is_an_error_and_no_run_of_skips(specs, words):
    specs.makeconftest(NO_CUDA)
    done = run(specs, *words)
    assert done.ret == 4
    assert not re.search(r"\d (passed|skipped)", done.stdout.str())
    done.stderr.fnmatch_lines(["ERROR: opcheck: device 'cuda' is not available on this machine: *"])
    assert "INTERNALERROR" not in done.stdout.str() + done.stderr.str()
    assert "Traceback" not in done.stdout.str() + done.stderr.str()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--opcheck", "mixed_spec"], "there is no module or op namespace 'mixed_spec'; did you mean 'mixed_specs'?"),
        (["--opcheck", "mixed_spec", "-n2"], "there is no module or op namespace 'mixed_spec'; did you mean *"),
        (["--opcheck-tier", "quik"], "unknown tier 'quik'; did you mean 'quick'?"),
        (["--opcheck-report", "r.jsno"], "'r.jsno': reports are written as .json, .md, .txt, .xml, .html; *"),
        (["--opcheck-ops", "nothing*"], "no op in the selection matches 'nothing*'"),
        (["--opcheck-timeout", "-1"], "timeout and memory must not be negative; 0 means no limit"),
    ],
)
def test_what_is_mistyped_is_one_line_and_status_four(specs, words, told):
    done = specs.runpytest_subprocess("--opcheck", "clean_specs", *words)
    assert done.ret == 4
    told = told.replace("[", "[[]")
    done.stderr.fnmatch_lines([f"ERROR: opcheck: {told}"])
    assert "Traceback" not in done.stdout.str() + done.stderr.str()
    assert "INTERNALERROR" not in done.stdout.str() + done.stderr.str()


def test_static_checks_and_their_options(specs):
    done = specs.runpytest_subprocess("--opcheck", "clean_specs.py", "--opcheck-tier", "static", "-q")
    assert done.ret == 0
    assert set(done.parseoutcomes()) <= {"passed", "skipped"}
    assert "values" not in done.stdout.str()


def test_a_crash_is_one_failed_test_and_the_rest_goes_on(specs):
    specs.makepyfile(
        deadly_specs="""
        import os, torch
        from opcheck_suite import OpSpec

        def define(name, fn):
            op = torch.library.custom_op(f"suite_deadly::{name}", fn, mutates_args=(), schema="(Tensor x) -> Tensor")
            op.register_fake(torch.empty_like)

        define("aborts", lambda x: os.abort())
        define("fine", lambda x: x * 2)
        SPECS = [OpSpec(f"suite_deadly::{name}", samples=[(torch.ones(3),)]) for name in ("aborts", "fine")]
        """
    )
    done = specs.runpytest_subprocess("--opcheck", "deadly_specs", "--opcheck-checks", "values", "-v")
    assert done.ret == 1
    outcomes = done.parseoutcomes()
    assert outcomes["failed"] == 1
    assert "suite_deadly::aborts-values.runs-cpu FAILED" in done.stdout.str()
    assert "suite_deadly::fine-values.state-cpu PASSED" in done.stdout.str()
    assert "it died of SIGABRT (Aborted)" in done.stdout.str()


def test_strict_fails_what_nothing_exercised(specs):
    specs.makepyfile(
        bare_specs="from opcheck_suite import OpSpec\nSPECS = [OpSpec('aten::relu')]\n",
    )
    words = ["--opcheck", "bare_specs", "--opcheck-checks", "values.runs"]
    done = specs.runpytest_subprocess(*words)
    assert done.ret == 0
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["nothing exercised  aten::relu"])
    done = specs.runpytest_subprocess(*words, "--opcheck-strict")
    assert done.ret == 1
    done.assert_outcomes(failed=1)


def test_without_the_option_nothing_happens(specs):
    specs.makepyfile(
        "import sys\n\ndef test_plain():\n    assert not {'torch', 'opcheck_suite.engine'} & set(sys.modules)\n"
    )
    done = specs.runpytest_subprocess()
    assert done.ret == 0
    done.assert_outcomes(passed=1)
    assert "conformance" not in done.stdout.str()


def test_the_plugin_can_be_named_and_turned_off(specs):
    specs.makepyfile("def test_plain():\n    pass\n")
    assert specs.runpytest_subprocess("-p", "opcheck_suite.plugin").ret == 0
    done = specs.runpytest_subprocess("-p", "no:opcheck_suite.plugin", "--opcheck", "mixed_specs")
    assert done.ret == 4


def test_parametrize_with_checks(specs):
    specs.makepyfile(
        """
        from opcheck_suite import parametrize_with_checks

        @parametrize_with_checks("mixed_specs", checks=["values.reference"])
        def test_conformance(unit):
            unit.run()
        """
    )
    done = specs.runpytest_subprocess("-v", "-p", "no:cacheprovider")
    assert done.ret == 1
    done.assert_outcomes(passed=4, failed=1, skipped=2, xfailed=1)
    shown = set(re.findall(r"::test_conformance\[(\S+)\] (?:PASSED|FAILED|SKIPPED|XFAIL)", done.stdout.str()))
    assert shown == IDS
    assert "values.reference  suite_mixed::failing  cpu  sample 'ones'  FAIL" in done.stdout.str()


def test_every_option_is_prefixed_and_in_the_help(specs):
    done = specs.runpytest_subprocess("--help")
    listed = done.stdout.str()
    section = listed[listed.index("conformance of PyTorch custom operators") :].split("\n\n")[0]
    names = set(re.findall(r"^  (--[\w-]+)", section, flags=re.MULTILINE))
    assert all(name.startswith("--opcheck") for name in names)
    fields = ["ops", "checks", "device", "tier", "timeout", "memory", "isolate", "require", "sample", "strict", "seed"]
    fields += ["shard", "durations", "known", "large"]
    assert names == {"--opcheck", "--opcheck-only", "--opcheck-report", "--opcheck-guard"} | {
        f"--opcheck-{f}" for f in fields
    }
