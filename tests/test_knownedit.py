"""Changes to a file of known failures, and the three doors that read it."""

from __future__ import annotations

import dataclasses
import json
import re

import expecttest
import pytest

from opcheck_suite import KnownFailure, check_op, cli, known, knownedit, specs
from opcheck_suite.registry import UsageError
from tests.reports.merged.made import one, report
from tests.test_known import TODAY, entry

FILE = """\
# ours

[[known]]
op = "my::op"   # the first
check = "values.runs"
category = "op-bug"
reason = "a"

# about the second
[[known]]
check = 'values.runs'
op = "my::other"
category = "op-bug"
reason = "b"
# the end
"""


def test_comments_order_and_formatting_stay():
    new = KnownFailure(op="my::new", check="fake.runs", device="cpu", category="op-bug", reason='says "no"')
    expecttest.assert_expected_inline(
        knownedit.edited(FILE, [new], [1]),
        """\
# ours


# about the second
[[known]]
check = 'values.runs'
op = "my::other"
category = "op-bug"
reason = "b"
# the end

[[known]]
op = "my::new"
check = "fake.runs"
device = "cpu"
category = "op-bug"
reason = "says \\"no\\""
""",
    )
    assert "# the end" in knownedit.edited(FILE, [], [2])
    assert "# about the second" in knownedit.edited(FILE, [], [1, 2])
    assert knownedit.edited(FILE, []) == FILE


def changes(*results, entries, **options) -> knownedit.Changes:
    scope = known.Scope(ops=["my::op"], checks=["values.runs"])
    made = known.excused(report(*results, **options), entries, scope, today=TODAY)
    return knownedit.changes(made, entries, scope, today=TODAY)


def test_what_a_run_says_of_a_file():
    (added,) = changes(one("fail", "values differ\nmore"), entries=[]).added
    assert (added.device, added.reason) == ("cpu", "TODO review: values differ")
    stay = [entry(), entry(device="cuda"), entry(torch=">2.20"), entry(op="yours::op")]
    assert list(changes(one(), entries=stay).removed) == [stay[0]]
    assert list(changes(one(), entries=[entry(op="my::opp")]).removed) == [entry(op="my::opp")]
    assert changes(one(), entries=stay, stopped="interrupted").removed == {}
    assert "fails in another way" in changes(one("fail", "x"), entries=[entry(raises="^y")]).left[0]
    assert "an error is the harness's" in changes(one("error", "x"), entries=[]).left[0]


def test_what_a_run_could_not_judge_is_kept_and_why_is_said():
    scope = known.Scope(
        ops=["my::op"], checks=["values.runs", "values.wide"], devices={"my::op": ("cpu", "cuda")}, narrow={}
    )
    entries = [entry(), entry(device="cpu", number=2), entry(check="values.*", device="cpu", number=3)]
    made = dataclasses.replace(report(one()), ops={"my::op": ""})
    found = knownedit.changes(known.excused(made, entries, scope, today=TODAY), entries, scope, today=TODAY)
    expecttest.assert_expected_inline(
        "\n".join(found.lines("known.toml")),
        """\
removed  known failure 2 (my::op values.runs): passes on cpu
kept     known failure 1 (my::op values.runs): all that was run passes, but device cuda was not part of the run
kept     known failure 3 (my::op values.*): all that was run passes, but values.wide was not part of the run
known.toml: 0 added, 1 removed""",
    )


def of_dtypes(*outcomes: str) -> knownedit.Changes:
    results = [one(o, "" if o == "pass" else "x", dtype=f"float{2 << n + 3}") for n, o in enumerate(outcomes)]
    return changes(*results, entries=[entry()])


def test_an_entry_that_is_true_of_some_dtypes_is_for_a_person_to_narrow():
    assert list(of_dtypes("pass", "pass").removed) == [entry()]
    (told,) = of_dtypes("pass", "fail").left
    assert "passes somewhere (cpu/float16) and fails somewhere (cpu/float32): narrow it" in told
    assert of_dtypes("fail", "fail").lines("k.toml") == ["k.toml: unchanged"]


def test_update_makes_a_file_and_empties_it(scratch, fixtures, capsys):
    text = (fixtures / "mixed_specs.py").read_text()
    (scratch / "mixed_specs.py").write_text(text)
    words = ["run", "mixed_specs.py", "--checks", "values.reference"]
    assert cli.main([*words, "--update-known"]) == 0
    assert known.load(known.FILE)[0].op == "suite_mixed::failing"
    assert cli.main(words) == 0
    assert f"known failures: {scratch / known.FILE}" in capsys.readouterr().out


def test_the_three_doors_agree(pytester, fixtures, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    path = fixtures / "mixed_specs.py"
    pytester.path.joinpath("mixed_specs.py").write_text(path.read_text())
    rows = [("failing", "values.reference"), ("clean", "values.runs"), ("claen", "values.runs")]
    text = "".join(
        f'[[known]]\nop = "suite_mixed::{op}"\ncheck = "{check}"\ncategory = "op-bug"\nreason = "r"\n'
        for op, check in rows
    )
    pytester.path.joinpath(known.FILE).write_text(text)
    command = ["run", str(path), "--checks", "values.reference", "--known", known.FILE, "--report", "cli.json"]
    assert cli.main(command) == 1
    done = pytester.runpytest_subprocess(
        "--opcheck", "mixed_specs", "--opcheck-checks=values.reference", "--opcheck-report=pytest.json"
    )
    assert done.ret == 1
    assert "no op is called 'suite_mixed::claen'; did you mean 'suite_mixed::clean'?" in done.stdout.str()

    def verdicts(found) -> set[tuple[str, ...]]:
        return {(r["op"], r["check"], r["sample"], r["outcome"]) for r in found}

    by_cli = verdicts(json.loads(pytester.path.joinpath("cli.json").read_text())["results"])
    assert by_cli == verdicts(json.loads(pytester.path.joinpath("pytest.json").read_text())["results"])
    by_library = set()
    for spec in (e.spec for e in specs.load(str(path)).entries):
        made = check_op(spec, checks=["values.reference"], known=known.FILE)
        by_library |= {(r.op, r.check, r.sample, r.outcome.value) for r in made.results}
    assert by_library == by_cli
    assert ("suite_mixed::clean", "values.runs", "ones", "xpass") in by_cli


def test_where_the_file_is(tmp_path):
    below = tmp_path / "a"
    below.mkdir()
    (tmp_path / "pyproject.toml").write_text("")
    assert known.find(None, below) == ""
    (tmp_path / known.FILE).write_text("")
    assert known.find(None, below) == str(tmp_path / known.FILE)
    assert known.find("", below) == ""
    (tmp_path / "pyproject.toml").write_text('[tool.opcheck]\nknwon = "x"')
    with pytest.raises(UsageError, match="'knwon'; did you mean 'known'"):
        known.find(None, below)
    (tmp_path / "pyproject.toml").write_text('[tool.opcheck]\nknown = "x.toml"')
    with pytest.raises(UsageError, match=re.escape("names 'x.toml', which is not there")):
        known.find(None, below)


def test_failures_of_optests(scratch, capsys):
    tests = {
        "T.test_schema__test_a": {"comment": "why", "status": "xfail"},
        "T.test_faketensor__test_a": {"comment": "", "status": "skip"},
    }
    (scratch / "dict.json").write_text(json.dumps({"_description": "", "_version": 1, "data": {"my::op": tests}}))
    assert cli.main(["import-failures", "dict.json", "-o", "k.toml"]) == 0
    assert [(e.check, e.reason) for e in known.load("k.toml")] == [
        ("schema.*", "TODO review: torch's test_schema: why"),
        ("opcheck.utils", "TODO review: torch's test_schema: why"),
    ]
    assert "skip     my::op T.test_faketensor__test_a: not carried over" in capsys.readouterr().err
    for text in ("{", "[]", '{"_version": 2, "data": {}}', '{"_version": 1, "data": {"a": {"b": {"status": "x"}}}}'):
        (scratch / "dict.json").write_text(text)
        assert cli.main(["import-failures", "dict.json"]) == 2
        told = capsys.readouterr().err
        assert "expected is a failures_dict.json" in told
        assert len(told.splitlines()) == 1
