"""Cases: a call by the names of its arguments."""

from __future__ import annotations

import torch

from opcheck_suite import Sample, ops
from opcheck_suite.inputs import cases
from tests.fixtures import harness_ops

WRITTEN = ops.info(f"{harness_ops.NAMESPACE}::written")


def made(*args, info=WRITTEN, name="s", **kwargs) -> cases.Case:
    return cases.of_sample(info, Sample(args=args, kwargs=kwargs, name=name), "cpu")


def test_arguments_are_known_by_the_schema_s_names():
    x, y = torch.zeros(2), torch.ones(2)
    case = made(x, y=y, n=3)
    assert case.bound() == {"x": x, "y": y, "n": 3}
    assert [(n, t is e) for (n, t), e in zip(case.leaves(), (x, y), strict=True)] == [("x", True), ("y", True)]
    assert case.describe() == "written(x=float32[2], y=float32[2], n=3)"


def test_members_of_lists_are_numbered():
    with torch.library._scoped_library("suite_lists", "DEF") as library:
        library.define("f(Tensor[] xs, Tensor?[] ys) -> Tensor")
        case = made([torch.zeros(1), torch.zeros(2)], [None, torch.zeros(3)], info=ops.info("suite_lists::f"))
        assert [name for name, _ in case.leaves()] == ["xs[0]", "xs[1]", "ys[1]"]
        changed = case.replace({"xs[1]": torch.ones(5)}, variant="v", group="g")
        assert [tuple(t.shape) for _, t in changed.leaves()] == [(1,), (5,), (3,)]
        assert changed.args[1][0] is None


def test_replacing_leaves_the_case_itself_as_it_was():
    case = made(torch.zeros(2), y=torch.ones(2))
    changed = case.replace({"y": torch.full((2,), 5.0)}, variant="other(y)", group="others")
    assert (changed.key, changed.label, changed.group) == ("s|other(y)", "s, other(y)", "others")
    assert (case.key, case.label) == ("s|", "s")
    assert changed.kwargs["y"][0] == 5
    assert case.kwargs["y"][0] == 1
    assert changed.args[0] is case.args[0]


def test_every_call_gets_fresh_inputs():
    case = made(torch.zeros(2), torch.ones(2))
    args, _ = case.inputs()
    args[0].fill_(9)
    assert case.args[0].sum() == 0
    assert case.inputs()[0][0].sum() == 0
    assert case.raw()[0][0] is case.args[0]


def test_a_packed_case_has_the_values_in_memory_of_their_own():
    buffer = torch.arange(6.0)
    case = made(buffer.reshape(2, 3).t(), buffer[1:3])
    packed = case.packed()
    assert all(t.is_contiguous() and t.storage_offset() == 0 for _, t in packed.leaves())
    assert torch.equal(packed.args[0], case.args[0])
    assert packed.args[0].untyped_storage()._cdata != packed.args[1].untyped_storage()._cdata
    resolved = made(torch.tensor([1j]).conj(), torch.ones(1)).packed()
    assert not resolved.args[0].is_conj()
    assert resolved.args[0].item() == -1j


def test_a_signature_is_what_a_compiler_specialises_on():
    base = made(torch.zeros(2, 3), torch.zeros(3), n=1).signature()
    assert made(torch.zeros(5, 7), torch.zeros(7), n=4).signature() == base
    assert made(torch.zeros(5, 7), torch.zeros(5), n=4).signature() != base, "other sizes are equal"
    assert made(torch.zeros(5, 1), torch.zeros(1), n=4).signature() != base, "size one is special"
    assert made(torch.zeros(6), torch.zeros(3), n=1).signature() != base
    assert made(torch.zeros(2, 3, dtype=torch.float64), torch.zeros(3), n=1).signature() != base
    assert made(torch.zeros(2, 3), torch.zeros(3)).signature() != base
    assert made(torch.zeros(2, 3, requires_grad=True), torch.zeros(3), n=1).signature() != base


def test_a_plain_function_s_arguments_are_numbered():
    info = ops.info(torch.sin)
    assert list(made(torch.zeros(2), 3, info=info).bound()) == ["argument 0", "argument 1"]


def test_samples_are_moved_to_the_device_with_what_they_share():
    buffer = torch.zeros(4)
    case = cases.of_sample(WRITTEN, Sample(args=(buffer[:2], buffer[2:])), "meta")
    assert [t.device.type for _, t in case.leaves()] == ["meta", "meta"]
    assert case.args[0].untyped_storage()._cdata == case.args[1].untyped_storage()._cdata
