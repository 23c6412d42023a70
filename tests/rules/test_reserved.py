"""Namespaces of PyTorch: what torch refuses, and what `guard` and the check ``namespace.reserved`` catch instead."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from opcheck_suite import OpSpec, ReservedNamespaceError, check_op, guard
from opcheck_suite.reserved import RESERVED, owner
from tests.rules import registering
from tests.rules.refusals import DEPRECATED, FIRST, KERNELS
from tests.rules.registering import CPP, MODERN, WAYS, forgotten
from tests.settings import PROPERTY

ROOT = pathlib.Path(__file__).parents[2]

#: A way and a namespace, where torch itself lets an op be defined.
TAKEN = [
    (way, namespace)
    for way in MODERN
    for namespace, rule in RESERVED.items()
    if not rule.modern and not (rule.taken and way in FIRST)
]


@pytest.fixture(autouse=True)
def forget():
    """What a test registered in PyTorch's namespaces is taken away again."""
    with forgotten():
        yield


@pytest.fixture(params=[way for way in WAYS if way not in (*CPP, *KERNELS)])
def way(request):
    if request.param in DEPRECATED:
        pytest.importorskip("torch._custom_op.impl", reason="this torch has no torch._custom_op any more")
    return WAYS[request.param]


def test_the_table_has_every_namespace_that_torch_knows_as_reserved():
    impl = pytest.importorskip("torch._custom_op.impl", reason="this torch has no torch._custom_op any more")
    assert {n for n, rule in RESERVED.items() if rule.deprecated} == set(impl.RESERVED_NS)
    assert {n for n, rule in RESERVED.items() if rule.modern} == set(torch.library._reserved_namespaces)


def test_the_check_says_whose_it_is_and_why():
    WAYS["Library FRAGMENT"]("aten", "suite_probe")
    found = check_op(OpSpec("aten::suite_probe"), tier="static", checks=["namespace.reserved"], isolate="never")
    assert RESERVED["aten"].owner in found.results[0].message
    assert RESERVED["aten"].why in found.results[0].message


@pytest.mark.parametrize(("way", "namespace"), TAKEN)
def test_the_guard_refuses_and_names_op_and_line(way, namespace):
    with guard(), pytest.raises(ReservedNamespaceError) as raised:
        MODERN[way](namespace, "suite_probe")
    text = str(raised.value)
    assert text.startswith(f"{namespace}::suite_probe")
    assert RESERVED[namespace].owner in text
    line = int(text.partition(f"{registering.__file__}:")[2].partition(",")[0])
    start = MODERN[way].__code__.co_firstlineno
    assert start < line <= start + 4


def test_the_guard_leaves_other_namespaces_alone_and_ends(way):
    before = torch.library.Library.define
    with guard():
        way("suite_guarded", "probe")
    assert torch.library.Library.define is before
    WAYS["define"]("pytorch", "suite_probe")  # taken again


def test_the_guard_lets_kernels_of_torchs_own_ops_be_replaced():
    with guard():
        library = torch.library.Library("aten", "IMPL")
        library.impl("_foobar", lambda *args: args[0], "Meta")
        library._destroy()


def test_the_guard_lets_torch_define_its_own():
    program = "def make(library):\n    library.define('suite_probe(Tensor x) -> Tensor')\n"
    inside: dict[str, object] = {"__name__": "torch._somewhere"}
    exec(program, inside)
    library = torch.library.Library("prims", "FRAGMENT")
    with guard():
        inside["make"](library)  # type: ignore[operator]
    library._destroy()


@pytest.mark.parametrize("spelled", ["ATEN", "Aten", "Prim", "TORCH", "PyTorch"])
def test_upper_and_lower_case_are_one(spelled):
    assert owner(spelled) == RESERVED[spelled.lower()].owner
    with guard(), pytest.raises(ReservedNamespaceError):
        WAYS["Library FRAGMENT"](spelled, "suite_probe")


@given(st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True).filter(lambda n: n not in RESERVED))
@PROPERTY
def test_ordinary_namespaces_are_nobodys(name):
    assert owner(name) is None


def test_names_of_every_kind_in_every_way():
    """The tests of `naming`, in a process of their own."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/rules/naming.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
