"""Names of every kind in every way to register: refused by torch, or found by a static check.

`test_reserved` runs this file in a process of its own: torch.compile fails in one where there has been an op whose name
cannot be parsed.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opcheck_suite.reserved import RESERVED, Namespace
from reference_ops.native import _build
from tests.rules import refusals
from tests.rules.refusals import FIRST, KERNELS, TABLE, Names
from tests.rules.registering import CPP, MODERN, WAYS, compiled, judge
from tests.settings import PROPERTY


def missing(way: str) -> str:
    """Why this torch or this machine lacks a way, or nothing."""
    if way == "torch._custom_op":
        return "" if importlib.util.find_spec("torch._custom_op") else "this torch has no torch._custom_op any more"
    if way in CPP:
        try:
            compiled()
        except _build.NotBuilt as failure:
            return str(failure)
    return ""


@pytest.fixture(params=WAYS)
def way(request):
    if why := missing(request.param):
        pytest.skip(why)
    return request.param


def as_the_table_says(row: Names, way: str) -> None:
    for namespace, name in row.examples:
        assert judge(WAYS[way], namespace, name) == row.refused_by[way], (namespace, name)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.kind)
def test_names_are_refused_by_whom_the_table_says(row, way):
    as_the_table_says(row, way)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.kind)
def test_a_change_of_any_row_of_the_table_is_seen(row, way):
    if way in row.torch + KERNELS:
        changed = _Changed(row.kind, row.examples, "nobody")
    else:
        changed = _Changed(row.kind, row.examples, "torch")
    with pytest.raises(AssertionError):
        as_the_table_says(changed, way)


class _Changed(Names):
    @property
    def refused_by(self) -> dict[str, str]:
        return dict.fromkeys(WAYS, self.otherwise)


# -- the rule


def as_the_rule_says(namespace: str, rule: Namespace) -> None:
    """What the row of a namespace says of torch is so, and the check finds what torch takes."""
    assert rule.owner
    assert rule.why
    for way in WAYS.keys() - CPP.keys():
        if missing(way):
            continue
        torch_refuses = (
            (rule.modern and way in MODERN)
            or (rule.deprecated and way in refusals.DEPRECATED)
            or (rule.taken and way in FIRST)
            or way in KERNELS
        )
        assert judge(WAYS[way], namespace, "probe") == ("torch" if torch_refuses else "namespace.reserved"), way


@pytest.mark.parametrize("namespace", RESERVED)
def test_the_rule_holds_for_each_of_its_rows(namespace):
    as_the_rule_says(namespace, RESERVED[namespace])


@pytest.mark.parametrize(
    ("namespace", "field"),
    [
        (namespace, field)
        for namespace, rule in RESERVED.items()
        for field in ("owner", "why", "modern", "deprecated", "taken")
        if not (field == "taken" and rule.modern)  # torch.library refuses any block of it
        if not (field == "deprecated" and missing("torch._custom_op"))
    ],
)
def test_a_change_of_any_row_of_the_rule_is_seen(namespace, field):
    rule = RESERVED[namespace]
    wrong = "" if field in ("owner", "why") else not getattr(rule, field)
    with pytest.raises(AssertionError):
        as_the_rule_says(namespace, dataclasses.replace(rule, **{field: wrong}))


@pytest.mark.parametrize("namespace", RESERVED)
def test_a_row_that_is_missing_is_seen(namespace, monkeypatch):
    rule = RESERVED[namespace]
    monkeypatch.delitem(RESERVED, namespace)
    if rule.modern:  # C++ is what is left for it
        assert judge(WAYS["TORCH_LIBRARY_FRAGMENT"], namespace, "probe") == "nobody"
    else:
        with pytest.raises(AssertionError):
            as_the_rule_says(namespace, rule)


# -- names that nobody has thought of

ordinary = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,12}", fullmatch=True).filter(
    lambda name: name.lower() not in RESERVED and not keyword.iskeyword(name)
)
capitals = st.sampled_from(list(RESERVED)).flatmap(
    lambda name: st.tuples(*(st.sampled_from([c, c.upper()]) for c in name)).map("".join)
)
#: No zero, which ends a string in C++, and no parenthesis, with which a schema's arguments begin.
odd = st.text(st.characters(codec="utf-8", exclude_characters="\0("), max_size=8).filter(
    lambda name: not (name.isascii() and name.isidentifier())
)


ways = st.deferred(lambda: st.sampled_from([way for way in WAYS if not missing(way)]))


@given(ways, ordinary, ordinary)
@PROPERTY
def test_ordinary_names_are_taken(way, namespace, name):
    assert judge(WAYS[way], namespace, name) == ("torch" if way in KERNELS else "nobody")


@given(ways, capitals, ordinary.map(lambda name: f"suite_{name}"))
@PROPERTY
def test_reserved_names_in_any_case_are_refused(way, namespace, name):
    assert judge(WAYS[way], namespace, name) in ("torch", "namespace.reserved")


@given(ways, odd)
@PROPERTY
def test_namespaces_that_are_no_identifiers_are_refused(way, namespace):
    assert judge(WAYS[way], namespace, "probe") != "nobody"


@given(ways, odd)
@PROPERTY
def test_names_that_are_no_identifiers_are_refused(way, name):
    assert judge(WAYS[way], "suite_names", name) != "nobody"
