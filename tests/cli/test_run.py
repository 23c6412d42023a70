"""``opcheck run``: what it prints, writes, and exits with."""

from __future__ import annotations

import json
import os
import re

import expecttest

from opcheck_suite import cli, reports


def test_a_clean_run_is_zero_and_writes_every_report(scratch, fixtures, capsys):
    words = ["run", str(fixtures / "clean_specs.py"), "--tier", "quick"]
    for name in ("r.json", "deep/r.md", "r.txt", "r.xml", "r.html"):
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
    assert (scratch / "r.xml").read_text().startswith('<?xml version="1.0" encoding="utf-8"?>\n<testsuites ')
    assert "<title>Conformance: clean</title>" in (scratch / "r.html").read_text()


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
  the result differs from the reference: output has wrong values: 1 of 1 elements differ; at [0, 0] got 2, expected 3
  call    failing(x=float32[1, 1])
  reduced from failing(x=float32[2, 3])
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
    assert cli.main([*words, "github"]) == 0
    assert capsys.readouterr().out == "::notice title=opcheck::clean\n"


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
    def broken(*args, **options):
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


def test_known_failures_are_expected_and_strict(scratch, fixtures, capsys):
    words = ["run", str(fixtures / "mixed_specs.py"), "--checks", "values.reference", "--known", "known.toml"]

    def status(op: str) -> int:
        rest = 'check = "values.reference"\ncategory = "op-bug"\nreason = "issue 3"\n'
        (scratch / "known.toml").write_text(f'[[known]]\nop = "suite_mixed::{op}"\n{rest}')
        return cli.main(words)

    assert status("failing") == 0
    assert "expected failure  values.reference: op-bug: issue 3" in capsys.readouterr().out
    assert status("clean") == 1
    assert "known to fail (issue 3), but passes" in capsys.readouterr().out
    assert status("faling") == 1
    assert "no op is called 'suite_mixed::faling'; did you mean 'suite_mixed::failing'?" in capsys.readouterr().out


def test_samples_are_chosen_by_name_or_glob(scratch, fixtures, capsys):
    words = ["run", str(fixtures / "mixed_specs.py"), "--ops", "suite_mixed::clean", "--checks", "values.reference"]

    def samples(*names: str) -> set[str]:
        cli.main([*words, *(w for name in names for w in ("--sample", name)), "--report", "r.json"])
        capsys.readouterr()
        results = json.loads((scratch / "r.json").read_text())["results"]
        return {r["sample"] for r in results if r["outcome"] == "pass"}

    assert samples() == {"ones", "row"}
    assert samples("row") == {"row"}
    assert samples("o*") == {"ones"}
    assert samples("ones", "r?w") == {"ones", "row"}


def test_a_sample_that_no_op_has_is_not_a_clean_run(fixtures, capsys):
    words = ["run", str(fixtures / "clean_specs.py"), "--checks", "values.runs", "--sample", "nosuch"]
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("opcheck: no sample is called 'nosuch'")
    assert len(err.splitlines()) == 1
