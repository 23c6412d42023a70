"""The command line: exit statuses, and one line for everything that can be mistyped."""

# ruff: noqa: E501 - goldens are as long as what they hold

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import expecttest
import pytest
import torch

from opcheck_suite import cli, reports
from tests.fixtures import harness_ops  # noqa: F401 - registers ops that specs of these tests name

OPCHECK = str(pathlib.Path(sys.executable).with_name("opcheck"))
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}


@pytest.fixture
def misuse(scratch, capsys):
    """Runs the command line on something wrong; returns its one line on stderr."""

    def run(*words: str) -> str:
        status = cli.main(words)
        out, err = capsys.readouterr()
        assert status == 2, err
        assert out == ""
        assert err.count("\n") == 1, err
        assert err.startswith("opcheck: ")
        assert "Traceback" not in err
        return err.strip().replace(str(scratch), "HERE").replace(torch.__version__, "TORCH")

    return run


def specs(path: pathlib.Path, body: str) -> str:
    """Write a file of specs; returns its name."""
    path.write_text(f"import torch\nfrom opcheck_suite import OpSpec, Sample\nx = torch.ones(2)\n{body}\n")
    return path.name


def lines(*found: str) -> str:
    return "\n".join(found)


# -- misuse


def test_words_that_are_not_there(misuse):
    found = [
        misuse("rum", "x"),
        misuse("run"),
        misuse("run", "x", "--chekcs", "fake"),
        misuse("run", "x", "y"),
        misuse("run", "x", "--strict=yes"),
        misuse("audit"),
        misuse("explain"),
        misuse("--verson"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: unknown verb 'rum'; did you mean 'run'?
opcheck: the following arguments are required: target
opcheck: unknown option '--chekcs'; did you mean '--checks'?
opcheck: unexpected argument 'y'
opcheck: argument --strict: ignored explicit argument 'yes'
opcheck: the following arguments are required: target
opcheck: the following arguments are required: check
opcheck: unknown option '--verson'; did you mean '--version'?""",
    )


def test_values_that_are_not_there(misuse):
    found = [
        misuse("run", "x", "--tier", "quik"),
        misuse("run", "x", "--format", "jsno"),
        misuse("run", "x", "--isolate", "nevr"),
        misuse("run", "x", "--require", "nativ"),
        misuse("run", "x", "--jobs", "-1"),
        misuse("run", "x", "-j", "0"),
        misuse("run", "x", "-j", "two"),
        misuse("run", "x", "--timeout", "soon"),
        misuse("run", "x", "--timeout", "-1"),
        misuse("run", "x", "--memory", "-0.5"),
        misuse("run", "x", "--seed", "1.5"),
        misuse("run", "x", "--seed"),
        misuse("audit", "x", "--format", "jsno"),
        misuse("list", "--format", "json"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: unknown tier 'quik'; did you mean 'quick'?
opcheck: unknown format 'jsno'; did you mean 'json'?
opcheck: unknown isolate 'nevr'; did you mean 'never'?
opcheck: unknown require 'nativ'; did you mean 'native'?
opcheck: jobs must be at least 1, got -1
opcheck: jobs must be at least 1, got 0
opcheck: argument -j/--jobs: invalid int value: 'two'
opcheck: argument --timeout: invalid float value: 'soon'
opcheck: timeout and memory must not be negative; 0 means no limit
opcheck: timeout and memory must not be negative; 0 means no limit
opcheck: argument --seed: invalid int value: '1.5'
opcheck: argument --seed: expected one argument
opcheck: unknown format 'jsno'; did you mean 'json'?
opcheck: unknown format 'json'; it is one of text, markdown""",
    )


def test_checks_that_are_not_there(misuse):
    found = [
        misuse("explain", "fake.stride"),
        misuse("explain", "strides"),
        misuse("explain", "fake"),
        misuse("list", "fke"),
        misuse("run", "suite_tests", "--checks", "fake.shap"),
        misuse("run", "suite_tests", "--checks", "!fak"),
        misuse("run", "suite_tests", "--checks", "fake", "--checks", "!fake"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: unknown check 'fake.stride'; did you mean 'fake.strides'?
opcheck: unknown check 'strides'; did you mean 'fake.strides'?
opcheck: unknown check 'fake'; did you mean 'fake.runs'?
opcheck: unknown check 'fke'; did you mean 'fake'?
opcheck: unknown check 'fake.shap'; did you mean 'fake.shape'?
opcheck: unknown check 'fak'; did you mean 'fake'?
opcheck: no check is left to run: --checks takes them all away""",
    )


def test_modules_and_files_that_are_not_there(misuse, scratch):
    specs(scratch / "suite_near_specs.py", "SPECS = []")
    (scratch / "folder.py").mkdir()
    found = [
        misuse("run", "suite_near_spec"),
        misuse("run", "suite_near_specs.inner"),
        misuse("run", "opcheck_suite.reprots"),
        misuse("run", "suite_near_spec.py"),
        misuse("run", "no/such/specs.py"),
        misuse("run", "./folder"),
        misuse("run", "folder.py"),
        misuse("run", "suite_tests::duoble"),
        misuse("run", "suite_test*"[:-1] + "z::*"),
        misuse("run", ""),
        misuse("audit", "suite_near_spec"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: there is no module or op namespace 'suite_near_spec'; did you mean 'suite_near_specs'?
opcheck: there is no module or op namespace 'suite_near_specs.inner'; if a module registers the ops of that namespace, name the module
opcheck: there is no module or op namespace 'opcheck_suite.reprots'; did you mean 'opcheck_suite.reports'?
opcheck: there is no file 'suite_near_spec.py'; did you mean 'suite_near_specs.py'?
opcheck: there is no file 'no/such/specs.py'
opcheck: there is no file 'folder'; did you mean 'folder.py'?
opcheck: folder.py cannot be read: Is a directory
opcheck: no registered op matches 'suite_tests::duoble'; did you mean 'suite_tests::double'?
opcheck: no registered op matches 'suite_testz::*'; did you mean 'suite_tests'?
opcheck: the target is empty; give a module, a file, or a namespace of ops
opcheck: there is no module or op namespace 'suite_near_spec'; did you mean 'suite_near_specs'?""",
    )


def test_modules_that_cannot_be_imported(misuse, scratch):
    (scratch / "syntax.py").write_text("def f(:\n")
    (scratch / "raises.py").write_text("raise RuntimeError('first\\nsecond')\n")
    (scratch / "exits.py").write_text("raise SystemExit(0)\n")
    (scratch / "needs.py").write_text("import suite_is_not_installed\n")
    (scratch / "bytes.py").write_bytes(b"x = '\xff\xfe'\n")
    (scratch / "null.py").write_bytes(b"x = 1\0\n")
    found = []
    for stem in ("syntax", "raises", "exits", "needs", "bytes", "null"):
        found += [misuse("run", f"{stem}.py"), misuse("run", stem)]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: syntax.py cannot be imported: SyntaxError: invalid syntax (syntax.py, line 1)
opcheck: syntax cannot be imported: SyntaxError: invalid syntax (syntax.py, line 1)
opcheck: raises.py cannot be imported: RuntimeError: first
opcheck: raises cannot be imported: RuntimeError: first
opcheck: exits.py cannot be imported: SystemExit: 0
opcheck: exits cannot be imported: SystemExit: 0
opcheck: needs.py cannot be imported: ModuleNotFoundError: No module named 'suite_is_not_installed'
opcheck: needs cannot be imported: it needs 'suite_is_not_installed', which is not installed
opcheck: bytes.py cannot be imported: SyntaxError: (unicode error) 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte (bytes.py, line 1)
opcheck: bytes cannot be imported: SyntaxError: (unicode error) 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte (bytes.py, line 1)
opcheck: null.py cannot be imported: SyntaxError: source code string cannot contain null bytes
opcheck: null cannot be imported: SyntaxError: source code string cannot contain null bytes""",
    )


def test_modules_that_hold_no_specs(misuse, scratch):
    (scratch / "none.py").write_text("x = 1\n")
    (scratch / "near.py").write_text("specs = []\n")
    found = [
        misuse("run", "none.py"),
        misuse("run", "near.py"),
        misuse("run", specs(scratch / "empty.py", "SPECS = []")),
        misuse("run", specs(scratch / "strings.py", "SPECS = ['aten::relu']")),
        misuse("run", specs(scratch / "single.py", "SPECS = OpSpec('aten::relu')")),
        misuse("run", specs(scratch / "nothing.py", "SPECS = None")),
        misuse("run", specs(scratch / "raising.py", "def SPECS():\n    raise KeyError('gone')")),
        misuse("run", specs(scratch / "lazy.py", "def SPECS():\n    yield 1 / 0")),
        misuse("audit", "none.py"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: none.py has no SPECS and registers no ops
opcheck: near.py has no SPECS and registers no ops; it has specs
opcheck: SPECS of empty.py is empty
opcheck: SPECS of strings.py must hold OpSpec objects, found str
opcheck: SPECS of single.py must be a list of OpSpec objects, found OpSpec
opcheck: SPECS of nothing.py must be a list of OpSpec objects, found NoneType
opcheck: SPECS of raising.py raised KeyError: 'gone'
opcheck: SPECS of lazy.py raised ZeroDivisionError: division by zero
opcheck: none.py has no SPECS and registers no ops""",
    )


def test_ops_that_are_not_there(misuse, scratch):
    found = [
        misuse("run", specs(scratch / "typo.py", "SPECS = [OpSpec('suite_tests::duoble')]")),
        misuse("run", specs(scratch / "overload.py", "SPECS = [OpSpec('suite_tests::several.Tenosr')]")),
        misuse("run", specs(scratch / "packet.py", "SPECS = [OpSpec(torch.ops.suite_tests.several)]")),
        misuse("run", specs(scratch / "number.py", "SPECS = [OpSpec(3)]")),
        misuse("run", specs(scratch / "twice.py", "SPECS = [OpSpec('suite_tests::double')] * 2")),
        misuse("run", "suite_tests", "--ops", "suite_tests::duoble"),
        misuse("run", "suite_tests", "--ops", "nothing*"),
        misuse("audit", "suite_tests", "--ops", "suite_tests::duoble"),
        misuse(
            "run", specs(scratch / "check.py", "SPECS = [OpSpec('aten::relu', expected_failures={'fake.stride': ''})]")
        ),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: there is no op 'suite_tests::duoble'; did you mean 'suite_tests::double'?
opcheck: suite_tests::several has no overload 'Tenosr'; did you mean 'Tensor'?
opcheck: suite_tests::several has 2 overloads; name one of suite_tests::several.Tensor, suite_tests::several.Scalar
opcheck: an op must be a name such as 'ns::name', or an operator; got int
opcheck: suite_tests::double has two specs
opcheck: no op in the selection matches 'suite_tests::duoble'; did you mean 'suite_tests::double'?
opcheck: no op in the selection matches 'nothing*'
opcheck: no op in the selection matches 'suite_tests::duoble'; did you mean 'suite_tests::double'?
opcheck: aten::relu: expected_failures names an unknown check 'fake.stride'; did you mean 'fake.strides'?""",
    )


SAMPLES = {
    "many": "(x, x, x)",
    "unknown": "((x, x), {'m': 2})",
    "lacking": "(x,)",
    "twice": "((x, x), {'y': x})",
    "kind": "'x'",
}


def test_samples_in_lists_that_do_not_fit(misuse, scratch):
    found = [
        misuse("run", specs(scratch / f"{name}.py", f"SPECS = [OpSpec('suite_tests::written', samples=[{sample}])]"))
        for name, sample in SAMPLES.items()
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: suite_tests::written: sample 0 has 3 positional arguments, the schema takes 2: suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 0 has an unknown argument 'm': suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 0 lacks argument 'y': suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 0 gives argument 'y' twice: suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 0 must be a Sample, (args, kwargs) or a tuple of args; got str""",
    )


def test_samples_of_functions_that_do_not_fit(misuse, scratch):
    found = [
        misuse(
            "run",
            specs(
                scratch / f"{name}.py",
                f"SPECS = [OpSpec('suite_tests::written', samples=lambda device, dtype: [(x, x), {sample}])]",
            ),
        )
        for name, sample in SAMPLES.items()
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: suite_tests::written: sample 1 has 3 positional arguments, the schema takes 2: suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 1 has an unknown argument 'm': suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 1 lacks argument 'y': suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 1 gives argument 'y' twice: suite_tests::written(Tensor(a!) x, Tensor y, *, int n=1) -> Tensor(a!)
opcheck: suite_tests::written: sample 1 must be a Sample, (args, kwargs) or a tuple of args; got str""",
    )


def test_devices_that_are_not_there(misuse):
    found = [
        misuse("run", "suite_tests", "--device", "cdua"),
        misuse("run", "suite_tests", "--device", ""),
        misuse("run", "suite_tests", "--device", "cpu,gpuu"),
        misuse("run", "suite_tests", "--device", "meta"),
        misuse("audit", "suite_tests", "--device", "cdua"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: unknown device 'cdua'; did you mean 'cuda'?
opcheck: --device is empty; give cpu, cuda, or auto
opcheck: unknown device 'gpuu'; did you mean 'xpu'?
opcheck: device 'meta' holds no data, so that nothing can be checked on it; fake.* checks need no device
opcheck: unknown device 'cdua'; did you mean 'cuda'?""",
    )


def test_a_device_that_this_machine_lacks_is_no_green_run_of_skips(misuse, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.version, "cuda", None)
    found = [misuse("run", "suite_tests", "--device", "cuda")]
    monkeypatch.setattr(torch.version, "cuda", "12.6")
    found += [misuse("run", "suite_tests", "--device", "cuda:0"), misuse("run", "suite_tests", "--device", "cpu,xpu")]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: device 'cuda' is not available on this machine: torch TORCH is built without it; use --device auto to take what is there
opcheck: device 'cuda:0' is not available on this machine: no such device was found; use --device auto to take what is there
opcheck: device 'xpu' is not available on this machine: no such device was found; use --device auto to take what is there""",
    )


def test_reports_that_cannot_be_written(misuse, scratch):
    (scratch / "file").touch()
    (scratch / "folder.md").mkdir()
    found = [
        misuse("run", "suite_tests", "--report", "report.xml"),
        misuse("run", "suite_tests", "--report", "report.jsno"),
        misuse("run", "suite_tests", "--report", "report"),
        misuse("run", "suite_tests", "--report", "file/report.json"),
        misuse("run", "suite_tests", "--report", "folder.md"),
        misuse("audit", "suite_tests", "--report", "report.xml"),
    ]
    expecttest.assert_expected_inline(
        lines(*found),
        """\
opcheck: 'report.xml': reports are written as .json, .md, .txt; did you mean '.md'?
opcheck: 'report.jsno': reports are written as .json, .md, .txt; did you mean '.json'?
opcheck: 'report': reports are written as .json, .md, .txt
opcheck: 'file/report.json' cannot be written: 'file' is not a folder
opcheck: 'folder.md' cannot be written: it is a folder
opcheck: 'report.xml': reports are written as .json, .md, .txt; did you mean '.md'?""",
    )


def test_no_word_at_all_shows_the_help(capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main([])
    assert caught.value.code == 2
    assert "VERB" in capsys.readouterr().out


# -- runs


def test_a_clean_run_is_zero_and_writes_every_report(scratch, fixtures, capsys):
    words = ["run", str(fixtures / "clean_specs.py"), "--tier", "quick"]
    for name in ("r.json", "deep/r.md", "r.txt"):
        words += ["--report", name]
    assert cli.main(words) == 0
    out, err = capsys.readouterr()
    assert out.rstrip().endswith("verdict  clean")
    assert re.fullmatch(r"\[1/1\] suite_clean::double ok \d+\.\d s\n", err)
    data = json.loads((scratch / "r.json").read_text())
    assert data["complete"] is True
    assert data["totals"]["ops"]["conformant"] == 1
    assert (scratch / "deep" / "r.md").read_text().startswith("# Conformance: clean\n")
    assert (scratch / "r.txt").read_text() == out


def test_bad_results_are_one_and_the_report_is_whole(scratch, fixtures, capsys):
    source = str(fixtures / "mixed_specs.py")
    words = ["run", source, "--checks", "values.reference", "--report", "r.json"]
    assert cli.main(words) == 1
    out, _ = capsys.readouterr()
    text = re.sub(r"in \d+\.\d s", "in N s", out).replace(source, "SPECS.py")
    text = re.sub(r"^opcheck_suite .*$", "HEADER", text, count=1, flags=re.MULTILINE)
    text = re.sub(r"^  fix .*\n(?:    .*\n)*", "  fix     FIX\n", text, flags=re.MULTILINE)
    expecttest.assert_expected_inline(
        text,
        """\
HEADER

op                     values
---------------------  --------
suite_mixed::clean     ..
suite_mixed::failing   .F
suite_mixed::expected  .x
suite_mixed::absent    --

. pass  F fail  x xfail  - skip
the characters of a family are, in order:
  values  runs reference

values.reference  suite_mixed::failing  cpu  sample 'ones'  FAIL
  the result differs from the reference: output has wrong values: 6 of 6 elements differ; at [0, 0] got 2, expected 3
  call    failing(x=float32[2, 3])
  also    size 7(x dim 0), size 7(x dim 1), sizes 7(x dim 0), 11(x dim 1), size 1(x dim 0) and 11 more
  likewise on sample 'row'
  fix     FIX
  rerun   opcheck run SPECS.py --ops suite_mixed::failing --checks values.reference
  more    opcheck explain values.reference

expected failure  values.reference: issue 12: the reference is of another op
  suite_mixed::expected
skip  values.runs, values.reference: no compiler in this test
  suite_mixed::absent

ops      4 in the run, 3 with samples, 3 tested, 2 conformant
results  8 pass, 2 fail, 2 xfail, 2 skip in N s
nothing exercised  suite_mixed::absent
verdict  2 bad
""",
    )
    written = json.loads((scratch / "r.json").read_text())
    outcomes = {(r["op"], r["check"], r["outcome"]) for r in written["results"]}
    assert ("suite_mixed::failing", "values.reference", "fail") in outcomes
    assert ("suite_mixed::expected", "values.reference", "xfail") in outcomes
    assert ("suite_mixed::absent", "values.reference", "skip") in outcomes


def test_what_is_printed_is_the_format_asked_for(scratch, fixtures, capsys):
    words = ["run", str(fixtures / "clean_specs.py"), "--checks", "values.runs", "--format"]
    assert cli.main([*words, "json"]) == 0
    assert json.loads(capsys.readouterr().out)["complete"] is True
    assert cli.main([*words, "markdown"]) == 0
    assert capsys.readouterr().out.startswith("# Conformance: clean\n")


def test_ops_without_samples_are_named(capsys):
    assert cli.main(["run", "suite_tests::double", "--checks", "values.runs"]) == 0
    assert "nothing exercised  suite_tests::double" in capsys.readouterr().out
    assert cli.main(["run", "suite_tests::double", "--checks", "values.runs", "--strict"]) == 1
    assert capsys.readouterr().out.endswith("verdict  1 bad\n")


def test_a_capability_that_is_required_and_missing_is_one(fixtures, capsys):
    words = ["run", str(fixtures / "mixed_specs.py"), "--ops", "suite_mixed::absent", "--checks", "values.runs"]
    assert cli.main(words) == 0
    assert cli.main([*words, "--require", "native"]) == 1
    assert "--require native: no compiler in this test" in capsys.readouterr().out


def test_a_failure_of_the_harness_is_three_with_a_traceback(monkeypatch, capsys):
    def broken(*args):
        raise LookupError("a fault of ours")

    monkeypatch.setattr("opcheck_suite.engine.plan", broken)
    assert cli.main(["run", "suite_tests::double"]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("opcheck: the harness failed; this says nothing of the ops\nTraceback")
    assert "LookupError: a fault of ours" in err


def test_a_report_that_cannot_be_written_after_all_is_told_beside_the_results(scratch, fixtures, monkeypatch, capsys):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(reports.os, "replace", full)
    words = ["run", str(fixtures / "clean_specs.py"), "--checks", "values.runs", "--report", "r.json"]
    assert cli.main(words) == 3
    out, err = capsys.readouterr()
    assert "verdict  clean" in out
    assert err.splitlines()[-1] == "opcheck: 'r.json' cannot be written: No space left on device"
    assert os.listdir(scratch) == []


# -- the other verbs


def test_audit_shows_the_table_and_runs_nothing(capsys):
    assert cli.main(["audit", "suite_tests::aborts"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    header, _, first = out.splitlines()[:3]
    assert header.split() == [
        *["op", "CPU", "CUDA", "fake", "autograd", "vmap", "autocast", "tags", "registered", "at"]
    ]
    assert first.split()[:4] == ["suite_tests::aborts", "explicit", "explicit", "python"]
    assert out.rstrip().endswith("verdict  clean")


def test_audit_finds_what_is_lacking_on_a_device_that_is_not_here(capsys):
    assert cli.main(["audit", "suite_tests::single.only", "--device", "cuda", "--format", "json"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert ("registration.kernel", "fail") in {(r["check"], r["outcome"]) for r in data["results"]}
    assert {r["device"] for r in data["results"]} == {"cuda"}


def test_list_shows_what_was_asked_for(capsys):
    assert cli.main(["list", "fake", "!fake.strides"]) == 0
    shown = [line.split()[0] for line in capsys.readouterr().out.splitlines()[2:]]
    assert "fake.shape" in shown
    assert "fake.strides" not in shown
    assert all(id.startswith("fake.") for id in shown)
    assert cli.main(["list", "--format", "markdown"]) == 0
    assert "| `fake.strides`" in capsys.readouterr().out


def test_explain_says_what_why_and_how(capsys):
    assert cli.main(["explain", "fake.strides"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("fake.strides: ")
    assert {"what", "why", "fix", "tier"} <= {line.split()[0] for line in out.splitlines() if line.strip()}


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["--version"]], ids=" ".join)
def test_help_and_version_are_clean(words, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(words)
    assert caught.value.code == 0
    assert capsys.readouterr().out


# -- as a process


def test_the_command_and_the_module_are_the_same(scratch, fixtures):
    words = ["run", str(fixtures / "clean_specs.py"), "--checks", "values.runs"]
    shown = []
    for command in ([OPCHECK], [sys.executable, "-m", "opcheck_suite.cli"]):
        done = subprocess.run([*command, *words], capture_output=True, text=True, env=ENVIRONMENT)
        assert done.returncode == 0, done.stderr
        shown.append(re.sub(r"in \d+\.\d s", "", done.stdout))
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["run", "mixed_specs.py", "--checks", "values.reference"], 1),
        (["run", "mixed_specs.py", "--device", "hpu"], 2),
        (["explain", "fake.stride"], 2),
    ],
)
def test_exit_statuses_of_the_process(words, status, fixtures):
    done = subprocess.run([OPCHECK, *words], capture_output=True, text=True, cwd=fixtures, env=ENVIRONMENT)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error_and_changes_no_verdict(fixtures):
    def read_nothing(*words: str) -> tuple[int, str]:
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as closed:
            done = subprocess.run([OPCHECK, *words], stdout=closed, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
        return done.returncode, done.stderr

    assert read_nothing("list") == (0, "")
    status, err = read_nothing("run", str(fixtures / "mixed_specs.py"), "--checks", "values.reference")
    assert status == 1
    assert "Traceback" not in err
    assert "Exception" not in err
