"""What is read from torch's registries."""

from __future__ import annotations

import pytest
import torch

from opcheck_suite import ops
from opcheck_suite.registry import UsageError
from tests.fixtures import harness_ops


def info(name: str) -> ops.OpInfo:
    return ops.info(f"{harness_ops.NAMESPACE}::{name}")


# -- which op is meant


@pytest.mark.parametrize(
    "given",
    [
        "suite_tests::trained",
        "suite_tests::trained.default",
        torch.ops.suite_tests.trained,
        torch.ops.suite_tests.trained.default,
        harness_ops.trained,
    ],
    ids=["name", "name with overload", "packet", "overload", "definition"],
)
def test_every_way_to_name_an_op_means_the_same(given):
    assert ops.resolve(given) is torch.ops.suite_tests.trained.default
    assert ops.info(given).name == "suite_tests::trained"


def test_an_overload_that_is_not_the_default_keeps_its_name():
    assert ops.info("suite_tests::several.Tensor").name == "suite_tests::several.Tensor"
    assert ops.info("suite_tests::single").name == "suite_tests::single.only"
    assert ops.info(torch.ops.suite_tests.single).name == "suite_tests::single.only"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("suite_tests::trainde", "there is no op 'suite_tests::trainde'; did you mean 'suite_tests::trained'"),
        ("suite_tset::trained", "there is no op 'suite_tset::trained'; did you mean 'suite_tests::trained'"),
        ("trained", "op 'trained' is not of the form 'ns::name'"),
        ("suite_tests::", "is not of the form"),
        ("suite_tests::several.Tenosr", "suite_tests::several has no overload 'Tenosr'; did you mean 'Tensor'"),
        (
            "suite_tests::several",
            "has 2 overloads; name one of suite_tests::several.Tensor, suite_tests::several.Scalar",
        ),
        (torch.ops.suite_tests.several, "has 2 overloads"),
        (3, "an op must be a name such as 'ns::name', or an operator; got int"),
    ],
)
def test_an_op_that_is_not_there_is_told_with_the_nearest(given, told):
    with pytest.raises(UsageError, match=told):
        ops.resolve(given)


def test_a_plain_function_is_no_operator():
    def plain(x):
        return x

    found = ops.info(plain)
    assert not found.is_operator
    assert found.name.endswith("plain")
    assert "test_ops.py:" in found.where


# -- facts


def test_a_custom_op_has_a_formula_only_where_one_was_registered():
    """The decorator itself puts a kernel at Autograd, which only raises."""
    assert "Autograd" in info("double").kernels
    assert info("double").autograd is None
    assert info("trained").autograd == "formula"


def test_ops_of_a_library_have_what_was_registered():
    assert info("single.only").autograd is None
    assert info("composed").autograd == "composite"
    assert info("composed").vmap is None  # torch loops over composite ops of others
    assert info("single.only").vmap is None


def test_a_formula_at_the_autograd_key_of_a_library_is_one():
    with torch.library._scoped_library("suite_formula", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x + 1, "CPU")
        assert ops.info("suite_formula::f").autograd is None
        library.impl("f", lambda x: x + 1, "Autograd")
        assert ops.info("suite_formula::f").autograd == "formula"


def test_formulas_are_told_apart_by_device():
    with torch.library._scoped_library("suite_formula", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x + 1, "CPU")
        found = ops.info("suite_formula::f")
        assert (found.autograd_devices, found.autograd_for("cpu")) == ((), None)
        library.impl("f", lambda x: x + 1, "AutogradCPU")
        found = ops.info("suite_formula::f")
        assert found.autograd_devices == ("cpu",)
        assert (found.autograd_for("cpu"), found.autograd_for("cuda")) == ("AutogradCPU", None)
        library.impl("f", lambda x: x + 1, "Autograd")
        assert ops.info("suite_formula::f").autograd_for("cuda") == "Autograd"
    assert (info("trained").autograd_for("cuda"), info("double").autograd_for("cpu")) == ("Autograd", None)
    assert info("composed").autograd_for("cpu") == "CompositeImplicitAutograd"


def test_the_python_kernel_of_a_custom_op_is_known_by_device():
    x = torch.ones(2)
    op = torch.library.custom_op(
        "suite_tests::by_device", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor", device_types="cpu"
    )
    op.register_kernel("cuda", lambda x: x + 2)
    assert ops.info(op).function_for("cpu")(x).tolist() == [2, 2]
    assert ops.info(op).function_for("cuda")(x).tolist() == [3, 3]
    assert ops.info(op).function_for("xpu") is None
    assert info("double").function_for("cuda")(x).tolist() == [2, 2]
    assert info("composed").function_for("cpu") is None


def test_a_batching_rule_and_an_autocast_rule_are_seen():
    op = torch.library.custom_op("suite_tests::ruled", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    assert (ops.info(op).vmap, ops.info(op).autocast) == (None, ())
    op.register_vmap(lambda info, dims, x: (op(x), dims[0]))
    op.register_autocast("cpu", torch.bfloat16)
    assert (ops.info(op).vmap, ops.info(op).autocast) == ("rule", ("cpu",))
    assert ops.info("aten::mm").autocast != ()


def test_a_rule_of_register_autocast_is_told_from_others():
    lib = torch.library.Library("suite_tests", "FRAGMENT")
    for name in ("cast_by_torch", "cast_by_hand"):
        lib.define(f"{name}(Tensor x) -> Tensor")
    torch.library.register_autocast("suite_tests::cast_by_torch", "cpu", torch.float16, lib=lib)
    lib.impl("cast_by_hand", lambda x: x.half(), "AutocastCPU")
    op = torch.library.custom_op("suite_tests::cast", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    op.register_autocast("cpu", torch.bfloat16)

    def seen(op: object) -> tuple[bool, bool]:
        info = ops.info(op)
        return info.autocasts_on("cpu"), info.casts_to_one_dtype("cpu")

    assert seen(op) == seen("suite_tests::cast_by_torch") == (True, True)
    assert seen("suite_tests::cast_by_hand") == (True, False)
    assert not ops.info(op).autocasts_on("cuda")
    assert not ops.info(op).casts_to_one_dtype("cuda")


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("double", "python"),
        ("increment_", "trivial"),
        ("single.only", None),
        ("composed", "composite"),
        ("several.Tensor", None),
    ],
)
def test_where_fake_outputs_come_from(name, source):
    assert info(name).fake == source


def test_a_custom_op_without_a_fake_kernel_has_none():
    op = torch.library.custom_op(
        "suite_tests::unfaked", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    assert ops.info(op).fake is None
    assert ops.info("aten::relu").fake == "meta"


def test_the_user_s_functions_are_found_inside_torch_s_wrappers():
    def fake(x):
        return torch.empty_like(x)

    with torch.library._scoped_library("suite_fakes", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        torch.library.register_fake("suite_fakes::f", fake, lib=library)
        found = ops.info("suite_fakes::f")
        assert found.fake == "python"
        assert found.fake_function is fake
        assert "test_ops.py:" in found.fake_source
        assert found.function is None
    assert info("trained").fake_function is torch.empty_like
    assert info("trained").function is harness_ops.trained._init_fn
    assert info("composed").fake_function is None


def test_what_a_schema_declares_written():
    assert info("increment_").mutated == ("x",)
    assert info("written").mutated == ("x",)
    assert info("written").returns_alias
    assert info("double").mutated == ()
    assert not info("double").returns_alias


def test_kernels_and_devices():
    assert info("double").kernel_for("cpu") == info("double").kernel_for("cuda") == "CompositeExplicitAutograd"
    assert info("single.only").devices == ("cpu",)
    assert info("single.only").kernel_for("cuda") is None
    assert info("composed").kernel_for("cuda") == "CompositeImplicitAutograd"
    assert info("composed").devices == ("cpu",)
    assert info("composed").transparent
    assert info("kernel_less").kernel_for("cpu") is None
    assert info("kernel_less").devices == ()
    assert ops.info("aten::relu").kernel_for("cpu") == "CPU"


def test_a_key_that_is_passed_by_has_no_kernel():
    with torch.library._scoped_library("suite_passed", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", lambda x: x + 1, "CPU")
        for key in ("Autograd", "Negative"):
            library.impl("f", torch.library.fallthrough_kernel, key)
        found = ops.info("suite_passed::f")
        assert set(found.kernels) == {"CPU"}
        assert found.fallthroughs == {"Autograd", "Negative"}
        assert found.autograd is None


@pytest.mark.parametrize("key", ["CPU", "CompositeExplicitAutograd", "Autograd", "CompositeImplicitAutograd"])
@pytest.mark.parametrize("passed", [False, True])
def test_which_kernels_meet_lazy_views(key, passed):
    """What is said of an op is what its kernel is handed."""
    met = []

    def kernel(x):
        met.append(x.is_neg())
        return x + 1

    with torch.library._scoped_library("suite_lazy", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        library.impl("f", kernel, key)
        if passed:
            library.impl("f", torch.library.fallthrough_kernel, "Negative")
        torch.ops.suite_lazy.f(torch.tensor([1 + 2j]).conj().imag)
        assert met == [ops.info("suite_lazy::f").meets_lazy_views]


def test_custom_ops_meet_no_lazy_views():
    assert not info("trained").meets_lazy_views


def test_where_an_op_was_registered():
    assert "harness_ops.py:" in info("trained").where
    assert "harness_ops.py:" in info("single.only").where
    assert "harness_ops.py:" in info("single.only").kernels["CPU"]


def test_only_torch_s_own_ops_are_torch_s():
    assert ops.info("aten::relu").from_torch
    assert not info("double").from_torch
    assert not info("single.only").from_torch


def test_tags_are_named():
    op = torch.library.custom_op(
        "suite_tests::tagged",
        lambda x: x + 1,
        mutates_args=(),
        schema="(Tensor x) -> Tensor",
        tags=(torch.Tag.nondeterministic_seeded,),
    )
    assert "nondeterministic_seeded" in ops.info(op).tags
    assert "nondeterministic_seeded" not in info("double").tags


def test_ops_without_tensors_are_known():
    with torch.library._scoped_library("suite_plain", "DEF") as library:
        library.define("n(int n) -> int")
        library.define("ts(Tensor[] xs) -> Tensor")
        library.define("t(Tensor? x) -> Tensor")
        assert not ops.info("suite_plain::n").takes_tensors
        assert ops.info("suite_plain::ts").takes_tensors
        assert ops.info("suite_plain::t").takes_tensors


def test_an_op_that_was_taken_away_has_no_kernels_and_is_no_error():
    with torch.library._scoped_library("suite_gone", "DEF") as library:
        library.define("f(Tensor x) -> Tensor")
        overload = torch.ops.suite_gone.f.default
    assert ops.info(overload).kernels == {}


# -- many


def test_matching_takes_globs_namespaces_and_names():
    every = ops.matching(["suite_tests"])
    assert "suite_tests::double" in every
    assert every == sorted(every)
    assert ops.matching(["suite_tests::sev*"]) == ["suite_tests::several.Scalar", "suite_tests::several.Tensor"]
    assert ops.matching(["suite_tests::several"]) == ops.matching(["suite_tests::sev*"])
    assert ops.matching(["suite_tests::double", "suite_tests::doubl*"]) == ["suite_tests::double"]


def test_a_pattern_that_matches_no_op_is_told_with_the_nearest():
    with pytest.raises(UsageError, match="no registered op matches 'suite_test'; did you mean 'suite_tests'"):
        ops.matching(["suite_test"])


def test_names_are_of_ops_that_are_not_torch_s():
    names = ops.names()
    assert "suite_tests::double" in names
    assert not any(name.startswith("aten::") for name in names)


def test_a_kernel_at_autograd_serves_all_devices_only_where_there_is_no_other():
    lib = torch.library.Library("suite_tests_steered", "DEF")
    try:
        lib.define("op(Tensor x) -> Tensor")
        lib.impl("op", lambda x: x.clone(), "Autograd")
        assert ops.info("suite_tests_steered::op").serves("cuda")
        lib.impl("op", lambda x: x.clone(), "CPU")
        found = ops.info("suite_tests_steered::op")
        assert found.serves("cpu")
        assert not found.serves("cuda")
    finally:
        lib._destroy()


def test_a_backend_from_outside_of_torch_has_a_dispatch_key():
    assert ops.backend("cuda") == "CUDA"
    assert ops.backend(torch._C._get_privateuse1_backend_name()) == "PrivateUse1"
