"""What `opcheck lint` finds, and what it leaves alone; and that each row of its tables is needed for that."""

from __future__ import annotations

import re

import pytest

from opcheck_suite import deprecated, reserved
from opcheck_suite.lint import cpp, rules
from opcheck_suite.lint.run import lint
from tests.lint import snippets

ROWS = {api.path: api for api in deprecated.DEPRECATED}
PYTHON = {**snippets.PYTHON_NAMESPACES, **snippets.OLD_TORCH, **snippets.LOOKALIKES}


@pytest.fixture
def found(scratch):
    """Writes a source and reads it; returns the lines and ids of the findings, and the findings."""

    def read(source: str):
        name = "source.cu" if "//" in source else "source.py"
        (scratch / name).write_text(source)
        findings = lint([name]).findings
        return [(finding.line, finding.id) for finding in findings], findings

    return read


def expected(source: str) -> list[tuple[int, str]]:
    marked = enumerate(source.splitlines(), 1)
    return [(n, id) for n, line in marked for id in re.findall(r"<- (lint\.\w+)", line)]


@pytest.mark.parametrize("path", snippets.APIS)
def test_a_deprecated_name_is_found_under_every_spelling(path, found):
    places, findings = found(snippets.APIS[path])
    assert places == expected(snippets.APIS[path])
    instead = ROWS[path].instead
    assert instead in {finding.instead for finding in findings}
    assert all(finding.instead in finding.message for finding in findings)


def test_every_deprecated_name_has_a_snippet():
    assert list(snippets.APIS) == [api.path for api in deprecated.DEPRECATED]


@pytest.mark.parametrize("path", snippets.APIS)
def test_without_its_row_a_deprecated_name_is_not_found_as_what_it_is(path, found, monkeypatch):
    rest = tuple(api for api in deprecated.DEPRECATED if api.path != path)
    for module in (deprecated, rules, cpp):
        monkeypatch.setattr(module, "DEPRECATED", rest)
    _, findings = found(snippets.APIS[path])
    assert ROWS[path].instead not in {finding.instead for finding in findings}


@pytest.mark.parametrize("title", snippets.CPP_NAMESPACES)
def test_cpp_sources(title, found):
    places, _ = found(snippets.CPP_NAMESPACES[title])
    assert places == expected(snippets.CPP_NAMESPACES[title])


@pytest.mark.parametrize("title", PYTHON)
def test_python_sources(title, found):
    places, _ = found(PYTHON[title])
    assert places == expected(PYTHON[title])


@pytest.mark.parametrize("name", reserved.RESERVED)
@pytest.mark.parametrize(
    "line",
    ["import torch; torch.library.custom_op('NS::f', mutates_args=())", "TORCH_LIBRARY(NS, m) {}  // C++"],
    ids=["python", "cpp"],
)
def test_every_reserved_namespace_is_found_because_of_its_row(name, line, found, monkeypatch):
    source = line.replace("NS", name)
    _, (finding,) = found(source)
    assert finding.id == "lint.reserved_namespace"
    assert reserved.RESERVED[name].owner in finding.message
    monkeypatch.delitem(reserved.RESERVED, name)
    assert found(source)[0] == []


SOURCES = {
    **{api.rule: snippets.APIS[api.path] for api in reversed(deprecated.DEPRECATED)},
    "lint.reserved_namespace": snippets.PYTHON_NAMESPACES["by every function"],
    "lint.syntax": "def f(:\n",
    "lint.unreadable": "# coding: no-such-encoding\n",
    "lint.ignore": "x = 1  # opcheck: ignore[lint.impl_abstrac]\n",
    "lint.unused_ignore": "x = 1  # opcheck: ignore[lint.impl_abstract]\n",
}


def test_every_rule_has_a_source():
    assert sorted(SOURCES) == sorted(rules.ids())


@pytest.mark.parametrize("id", SOURCES)
def test_without_its_row_a_rule_finds_nothing(id, scratch, monkeypatch):
    name = "source.cu" if "//" in SOURCES[id] else "source.py"
    (scratch / name).write_text(SOURCES[id])
    assert {finding.id for finding in lint([name], unused_ignores=True).findings} == {id}
    monkeypatch.setattr(rules, "RULES", tuple(rule for rule in rules.RULES if rule.id != id))
    assert id not in {finding.id for finding in lint([name], unused_ignores=True).findings}


def test_rules_are_documented():
    for rule in rules.RULES:
        assert rule.id.startswith("lint.")
        assert all((rule.title, rule.what, rule.why, rule.fix))
        assert rule.docs.startswith("https://")
    for api in deprecated.DEPRECATED:
        assert api.docs.startswith("https://")
        assert api.rule in rules.ids()
    assert {rule.id for rule in rules.RULES if rule.apis} == {api.rule for api in deprecated.DEPRECATED}


@pytest.mark.parametrize(
    "source", ["x = " + "(" * 3000 + ")" * 3000, "x = library" + " + 'a'" * 20_000, "\0", "x = 1\f\n"]
)
def test_no_source_is_too_odd(source, found):
    assert {id for _, id in found(source)[0]} <= {"lint.syntax"}


def test_columns_count_characters(found):
    _, findings = found("import torch; é = 'ü'; torch.library.impl_abstract\n\f\ntorch.library.impl_abstract\n")
    assert [(f.line, f.column) for f in findings] == [(1, 24), (3, 1)]
