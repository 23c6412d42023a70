"""What changed."""

from __future__ import annotations

import pytest

from opcheck_suite.reports.merged import diff, text
from tests.reports.merged.made import of, one, report

pytestmark = pytest.mark.usefixtures("few_checks")


def kinds(before, after) -> list[str]:
    old = of(report(*before))
    new = of(report(*after))
    return [c.kind.value for c in diff.diff(old, new).changes]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ("pass", "fail", "newly bad"),
        ("skip", "crash", "newly bad"),
        ("xfail", "fail", "newly bad"),
        (None, "fail", "newly bad"),
        ("fail", "pass", "fixed"),
        ("xfail", "pass", "fixed"),
        ("crash", "warn", "fixed"),
        ("fail", "xfail", "now an expected failure"),
        ("pass", "xfail", "now an expected failure"),
        ("pass", "skip", "now not exercised"),
        ("fail", "not_exercised", "now not exercised"),
        (None, "pass", "new"),
        (None, "skip", "new"),
        ("pass", None, "gone"),
        ("fail", None, "gone"),
        ("fail", "crash", None),
        ("pass", "warn", None),
        ("skip", "not_exercised", None),
        ("skip", "pass", None),
        ("pass", "pass", None),
    ],
)
def test_kinds(before, after, kind):
    other = one(op="my::other")
    changed = [[other, one(o, "told")] if o else [other] for o in (before, after)]
    assert kinds(*changed) == ([kind] if kind else [])


def test_versions_of_torch_are_compared_with_each_other():
    old, new = of(report(one())), of(report(one("fail", "wrong"), torch="2.15.0", python="3.14.0"))
    found = diff.diff(old, new)
    assert found.pairs == (("torch 2.13.0+cpu, cpu", "torch 2.15.0, cpu"),)
    assert not found.ok
    assert "my::op  values.runs  pass -> fail  in torch 2.15.0, cpu: wrong" in text.render_difference(found)


def test_columns_belong_together_by_their_environment():
    old = of(report(one()), report(one(), torch="2.14.1"), report(one(), device="cuda", torch="2.14.1"))
    new = of(report(one(), torch="2.15.0"), report(one(), torch="2.14.1"))
    pairs = diff.diff(old, new).pairs
    assert [(a.partition(",")[0], b.partition(",")[0]) for a, b in pairs] == [
        ("torch 2.13.0+cpu", "torch 2.15.0"),
        ("torch 2.14.1", "torch 2.14.1"),
    ]


def test_devices_are_not_compared_with_each_other():
    found = diff.diff(of(report(one())), of(report(one(device="cuda"))))
    assert (found.pairs, found.ok) == ((), False)
    assert found.unmatched == ("torch 2.13.0+cpu, cpu",)
    assert text.verdict(found) == "nothing was compared"


def test_a_new_matrix_that_is_incomplete_is_not_ok():
    found = diff.diff(of(report(one())), of(report(one(), stopped="interrupted")))
    assert not found.ok
    assert "incomplete  torch 2.13.0+cpu, cpu: jobs/0.json is incomplete: interrupted" in text.render_difference(found)


def test_no_change_is_ok():
    found = diff.diff(of(report(one())), of(report(one())))
    assert found.ok
    assert text.render_difference(found) == "compared torch 2.13.0+cpu, cpu\n\nverdict  no difference"


def test_what_comes_in_bulk_is_a_line_for_each_op():
    many = [one(check=c) for c in ("values.runs", "fake.runs", "namespace.reserved", "schema.mutation", "mine.own")]
    found = diff.diff(of(report(one(op="my::other"))), of(report(one(op="my::other"), *many)))
    shown = text.render_difference(found)
    assert "my::op  namespace.reserved, values.runs, schema.mutation, fake.runs and 1 more checks  in" in shown
