"""Known failures: strict in every way. No torch is needed."""

from __future__ import annotations

import dataclasses
import datetime

import pytest

from opcheck_suite import known
from opcheck_suite.registry import UsageError
from tests.reports.merged.made import one, report
from tests.reports.sample import ENVIRONMENT

TODAY = datetime.date(2026, 6, 30)
FAILING = one("fail", "values differ\ninput   small, transposed(x)\ncall    op(x)")


def entry(**changes) -> known.KnownFailure:
    given = {"op": "my::op", "check": "values.runs", "category": "op-bug", "reason": "issue 7", "number": 1}
    return known.KnownFailure(**given | changes)


def excused(*results, **changes) -> list[str]:
    """The outcome of each result."""
    found = known.excuse(results, [entry(**changes)], ENVIRONMENT, TODAY)
    return [r.outcome.value for r in found]


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, "xfail"),
        ({"op": "my::*", "check": "values.*"}, "xfail"),
        ({"op": "my::other"}, "fail"),
        ({"check": "fake.*"}, "fail"),
        ({"device": "cpu"}, "xfail"),
        ({"device": "cuda"}, "fail"),
        ({"dtype": "float16"}, "fail"),
        ({"sample": "sm*"}, "xfail"),
        ({"sample": "large"}, "fail"),
        ({"variant": "transposed*"}, "xfail"),
        ({"variant": "empty*"}, "fail"),
        ({"raises": "values dif+er"}, "xfail"),
        ({"raises": "^died"}, "fail"),
        ({"torch": "<2.14"}, "xfail"),
        ({"torch": "==2.13.*"}, "xfail"),
        ({"torch": ">=2.14"}, "fail"),
        ({"python": ">=3.11"}, "xfail"),
        ({"python": "<3.11"}, "fail"),
        ({"expires": TODAY}, "xfail"),
        ({"expires": datetime.date(2026, 6, 29)}, "fail"),
    ],
    ids=str,
)
def test_what_an_entry_is_about(changes, outcome):
    assert excused(FAILING, **changes) == [outcome]


@pytest.mark.parametrize(
    ("outcome", "then"),
    [("crash", "xfail"), ("timeout", "xfail"), ("warn", "xfail"), ("error", "error"), ("skip", "skip")],
)
def test_what_can_be_excused(outcome, then):
    assert excused(one(outcome, "told")) == [then]


def test_messages_say_what_is_known():
    (found,) = known.excuse([FAILING], [entry(url="https://x/7")], ENVIRONMENT, TODAY)
    assert found.message.splitlines()[:2] == ["op-bug: issue 7 (https://x/7)", "values differ"]
    (found,) = known.excuse([FAILING], [entry(raises="^died")], ENVIRONMENT, TODAY)
    assert "known   issue 7; but that is said to fail in another way: known failure 1" in found.message
    (found,) = known.excuse([FAILING], [entry(expires=datetime.date(2026, 1, 1))], ENVIRONMENT, TODAY)
    assert found.message.endswith("(my::op values.runs) expired on 2026-01-01")


def test_what_passes_all_the_same_is_bad():
    assert excused(one(sample="a"), one(sample="b")) == ["xpass", "xpass"]
    assert excused(one(sample="a"), one("fail", "x", sample="b")) == ["pass", "xfail"]
    assert excused(one(sample="a"), one(sample="b"), sample="a") == ["xpass", "pass"]
    assert excused(one("skip", "x")) == ["skip"]
    assert excused(one(), torch=">=2.14") == ["pass"]
    assert excused(one(), expires=datetime.date(2026, 1, 1)) == ["xpass"]


def stale(*results, options=None, stopped="", **changes) -> list[str]:
    made = report(*results, options=options, stopped=stopped)
    scope = known.Scope(ops=["my::op"], checks=["values.runs"])
    after = known.apply(made, [entry(**changes)], scope, today=TODAY)
    return [r.message.partition(": ")[2] for r in after.results if r.outcome == "error"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"op": "my::opp"}, "no op is called 'my::opp'; did you mean 'my::op'?"),
        ({"op": "myy::op"}, "no op is in a namespace 'myy'; did you mean 'my'?"),
        ({"op": "yours::op", "check": "values.run"}, "no check is called 'values.run'; did you mean 'values.runs'?"),
        ({"op": "*::opp"}, "no op is called '*::opp'; did you mean 'my::op'?"),
        ({"check": "values.run"}, "no check is called 'values.run'; did you mean 'values.runs'?"),
        ({"sample": "smal"}, "no sample is called 'smal'; did you mean 'small'?"),
        ({"op": "my::*"}, "all that it matches passes"),
    ],
    ids=str,
)
def test_an_entry_that_matches_nothing_is_bad_with_the_nearest_name(changes, told):
    assert stale(one(), **changes) == [told]
    if "op" in changes and "opp" in changes["op"]:
        assert stale(one(), options={"ops": ["my::other"]}, **changes) == [told]


def test_an_entry_is_not_called_needless_by_a_run_that_left_something_out():
    assert stale(one(), options={"sample": ["x"]}, op="my::*") == []
    assert stale(one(), stopped="interrupted", op="my::*") == []
    assert stale(one("skip", "x"), op="my::*") == []
    assert stale(one(), op="my::*", torch=">2.20") == []
    assert stale(FAILING, op="my::*") == []


SCOPES = [
    ({}, {"ops": ["my::op", "my::other"]}, {"op": "my::*"}, "my::other was not part of the run"),
    ({}, {"checks": ["values.runs", "values.wide"]}, {"check": "values.*"}, "values.wide was not part of the run"),
    ({}, {"devices": {"my::op": ("cpu", "cuda")}}, {}, "device cuda was not part of the run"),
    ({}, {"planned": [FAILING.unit, dataclasses.replace(FAILING.unit, device="xpu")]}, {}, "xpu was not run"),
    ({}, {"narrow": {FAILING.unit: "tier quick tries fewer inputs"}}, {}, "tier quick tries fewer inputs"),
    ({"options": {"sample": ["sm*"]}}, {}, {}, "only some samples were run"),
    ({"options": {"sample": ["sm*"]}}, {}, {"sample": "sm*"}, "only some samples were run"),
    ({"stopped": "interrupted"}, {}, {}, "the run did not end"),
    # what a run can tell
    ({}, {"ops": ["my::op", "yours::op", "aten::relu"]}, {"op": "*"}, ""),
    ({}, {"checks": ["values.runs", "fake.runs"]}, {"check": "values.*"}, ""),
    ({}, {"devices": {"my::op": ("cpu", "cuda")}}, {"device": "cpu"}, ""),
    ({}, {"devices": {"my::op": ("cpu", "cuda"), "my::other": ("xpu",)}}, {"device": "c[p]u"}, ""),
    ({"options": {"sample": ["small"]}}, {}, {"sample": "small"}, ""),
    ({"options": {"ops": ["my::op"]}}, {"ops": ["my::op", "my::other"]}, {}, ""),
]


@pytest.mark.parametrize(("run", "scope", "changes", "why"), SCOPES, ids=str)
def test_what_a_run_can_tell_of_an_entry(run, scope, changes, why):
    made = dataclasses.replace(report(one(), **run), ops={"my::op": ""})
    given = {"ops": ["my::op"], "checks": ["values.runs"]} | scope
    told = known.unjudged(made, entry(**changes), known.Scope(**given))
    assert told.endswith(why)
    assert bool(told) is bool(why)


def test_what_was_not_exercised_tells_nothing():
    scope = known.Scope(["my::op"], ["values.runs"])
    for outcome in ("not_exercised", "error"):
        made = report(one(), one(outcome, "x", sample="large"))
        assert known.unjudged(made, entry(), scope) == "my::op values.runs cpu was not exercised"
        assert known.unjudged(made, entry(sample="small"), scope) == ""
    # a check that does not apply to the op is another thing
    assert known.unjudged(report(one("skip", "x")), entry(), scope) == ""


def test_a_run_that_looks_at_fewer_inputs_takes_no_entry_for_needless():
    (found,) = known.excuse([one()], [entry()], ENVIRONMENT, TODAY, narrow={FAILING.unit})
    assert found.outcome == "pass"
    (found,) = known.excuse([one()], [entry(sample="sm*")], ENVIRONMENT, TODAY, sampled=True)
    assert found.outcome == "pass"


def test_entries_of_other_libraries_are_left_alone():
    assert stale(one(), op="yours::op") == []


def test_a_report_with_a_stale_entry_is_not_ok():
    scope = known.Scope(ops=["my::op"], checks=["values.runs"])
    assert not known.apply(report(one()), [entry(op="my::opp")], scope, today=TODAY).ok
    assert known.apply(report(FAILING), [entry()], scope, today=TODAY).ok


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "known.toml"
        path.write_text(text)
        return str(path)

    return write


WHOLE = """
[[known]]
op = "my::op"
check = "values.runs"
device = "cuda"
dtype = "float16"
sample = "small"
variant = "transposed*"
torch = "<2.15"
python = ">=3.11"
category = "torch-bug"
reason = "issue 7"
raises = "differ"
url = "https://x/7"
expires = 2026-12-31
"""


def test_a_file_is_read(file):
    (found,) = known.load(file(WHOLE))
    changes = {"device": "cuda", "dtype": "float16", "sample": "small", "variant": "transposed*", "torch": "<2.15"}
    rest = {"python": ">=3.11", "category": "torch-bug", "raises": "differ", "url": "https://x/7"}
    assert found == entry(**changes, **rest, expires=datetime.date(2026, 12, 31))
    assert known.load(file("")) == ()
    assert {f.name for f in dataclasses.fields(known.KnownFailure)} - {"number"} == {
        line.partition(" ")[0] for line in WHOLE.splitlines() if " = " in line
    }


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('reason = "issue 7"', "", "entry 1: reason is missing"),
        ('reason = "issue 7"', 'reason = " "', "entry 1: reason is missing"),
        ("device", "devise", "'devise'; did you mean 'device'?"),
        ('"torch-bug"', '"torchbug"', "'torchbug'; did you mean 'torch-bug'?"),
        ('"differ"', '"("', "entry 1: raises is no regular expression"),
        ('"<2.15"', '"2.15-"', "entry 1: '2.15-' is no specifier of versions"),
        ("2026-12-31", '"2026-12-31"', "entry 1: expires must be a date, found '2026-12-31'"),
        ('"small"', "3", "entry 1: sample must be text, found 3"),
        ("[[known]]", "[[knwon]]", "'knwon'; did you mean 'known'?"),
        ("[[known]]", "[known]", r"entries begin with \[\[known\]\]"),
        ("[[known]]", "[[known]", "is not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_line(file, old, new, told):
    with pytest.raises(UsageError, match=told) as raised:
        known.load(file(WHOLE.replace(old, new)))
    assert len(str(raised.value).splitlines()) == 1
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        known.load("nowhere.toml")
