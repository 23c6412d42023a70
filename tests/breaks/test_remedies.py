"""The table of kinds of breaks: each is met in practice, and known to torch."""

from __future__ import annotations

import json
import pathlib
import re

import pytest
import torch
import torch._dynamo

from opcheck_suite import breaks
from opcheck_suite.breaks import remedies
from opcheck_suite.graphbreaks import Break
from opcheck_suite.model import Sample
from tests.fixtures import breaking

X = torch.tensor([1.5, -0.5, 2.0, 0.25, -1.0, 3.0])
REGISTRY = pathlib.Path(torch._dynamo.__file__).with_name("graph_break_registry.json")


@pytest.mark.parametrize("fn", breaking.KINDS, ids=lambda fn: fn.__name__)
def test_a_break_that_torch_reports_is_of_its_kind(fn):
    found = breaks.examine(fn, [Sample((X.clone(),))], skeletons="none")
    assert not found.ok
    assert tuple(dict.fromkeys(f.kind.id for f in found.findings)) == breaking.KINDS[fn]
    assert found.trace.error is None


def test_every_kind_is_met():
    assert {id for ids in breaking.KINDS.values() for id in ids} == {k.id for k in (*remedies.KINDS, remedies.UNKNOWN)}


def test_a_kind_that_the_table_does_not_know_gets_general_advice():
    unknown = remedies.kind_of(Break("Something new: it cannot be", "a.py:1", "", kind="Something new"))
    assert unknown is remedies.UNKNOWN
    assert {name for name, _ in unknown.advice} == {"rewrite", "move", "custom_op", "leave"}


def test_a_kind_is_known_by_its_number_when_its_title_has_changed():
    link = "https://meta-pytorch.github.io/compile-graph-break-site/gb/gb0170.html"
    renamed = Break("Branch on data", "a.py:1", "", kind="Branch on data", link=link)
    assert remedies.kind_of(renamed, "if x.sum() > 0:").id == "data-dependent branch"
    assert remedies.kind_of(renamed, "while x.sum() > 0:").id == "data-dependent loop"


@pytest.mark.skipif(not REGISTRY.exists(), reason="this torch has no registry of graph breaks")
def test_numbers_are_those_of_torch():
    registry = json.loads(REGISTRY.read_text())
    used = {id for kind in remedies.KINDS for id in kind.ids}
    assert {id for id in used if re.fullmatch(r"GB\d{4}", id)} == used
    lacking = used - set(registry)
    assert not lacking or not torch.__version__.startswith("2.13.")


@pytest.mark.parametrize("kind", [*remedies.KINDS, remedies.UNKNOWN], ids=lambda k: k.id)
def test_every_kind_has_remedies_that_exist_and_ends_with_leaving_it(kind):
    names = [name for name, _ in kind.advice]
    assert len(names) == len(set(names))
    assert set(names) <= set(remedies.REMEDIES)
    assert "leave" in names
    assert all(text.endswith(".") and (text[0].isupper() or text.startswith("torch.")) for _, text in kind.advice)
    for pattern in (*kind.titles, kind.context, kind.source):
        re.compile(pattern)


def test_every_remedy_is_advised_somewhere_and_has_a_link_to_torch():
    advised = {name for kind in (*remedies.KINDS, remedies.UNKNOWN) for name, _ in kind.advice}
    assert advised == set(remedies.REMEDIES)
    assert all(r.link.startswith("https://docs.pytorch.org/") for r in remedies.REMEDIES.values())


def test_a_line_without_tensors_is_to_be_moved():
    (found,) = breaks.examine(breaking.c_function, [Sample((X,))]).findings
    assert found.kind.advice[0][0] == "move"
    assert found.skeleton == ""
    assert "custom_op" not in dict(found.kind.advice)
