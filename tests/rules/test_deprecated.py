"""Deprecated names of torch: each row of `opcheck_suite.deprecated` against the torch that is installed.

A torch that a row's versions do not cover passes by lacking the name; one that they cover fails without it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import pathlib
import warnings
from collections.abc import Callable

import pytest
import torch
from packaging.specifiers import SpecifierSet

from opcheck_suite import OpSpec, Sample, check_op
from opcheck_suite.deprecated import DEPRECATED, Api, find
from tests.rules.deprecated_ops import PAIRS, PARTS, fresh, functional, nonzero_with, optests_sample

ROWS = {api.path: api for api in DEPRECATED}
VERSION = torch.__version__.partition("+")[0]


def expected_here(api: Api, version: str = VERSION) -> bool:
    return SpecifierSet(api.there, prereleases=True).contains(version)


def is_there(path: str) -> bool:
    """Whether torch has a name. Other errors than that it is not there go through."""
    if "::" in path:
        header = pathlib.Path(torch.__file__).parent / "include" / "torch" / "library.h"
        return f" {path.rpartition('::')[2]}(" in header.read_text()
    owner, made, method = path.partition("().")
    if made:
        kind = {"torch.library.Library": torch.library.Library, "torch.library.get_ctx": _context_class()}[owner]
        return hasattr(kind, method)
    parts, at = path.split("."), torch
    for n, part in enumerate(parts[1:], 2):
        if not hasattr(at, part):
            with contextlib.suppress(ModuleNotFoundError):
                importlib.import_module(".".join(parts[:n]))
        if not hasattr(at, part):
            return False
        at = getattr(at, part)
    return True


def _context_class() -> type:
    found: list[type] = []
    nonzero_with(lambda ctx: found.append(type(ctx)) or ctx.new_dynamic_size())
    return found[0]


@pytest.mark.parametrize("path", ROWS)
def test_a_name_is_there_just_when_its_row_says_so(path):
    assert is_there(path) == expected_here(ROWS[path])


def test_a_torch_that_lacks_what_a_row_promises_is_noticed():
    """What the test above compares: either side is wrong for a row that is."""
    gone = dataclasses.replace(ROWS["torch.library.impl_abstract"], path="torch.library.impl_abstract_no_more")
    assert expected_here(gone)
    assert not is_there(gone.path)
    over = dataclasses.replace(ROWS["torch.library.impl_abstract"], there="<2.2")
    assert not expected_here(over)
    assert is_there(over.path)
    assert not is_there("torch._custom_op_no_more.impl.custom_op")


COMPARED = [(">=2.2", "2.15.0a0", True), (">=2.2,<2.15", "2.15.0a0", False), (">=2.2,<2.15", "2.14.1", True)]


@pytest.mark.parametrize(("there", "version", "says"), COMPARED)
def test_versions_are_compared_as_versions(there, version, says):
    api = dataclasses.replace(DEPRECATED[0], there=there)
    assert expected_here(api, version) == says
    assert expected_here(dataclasses.replace(api, there="<2.15"), "2.15.0") is False


# warnings


def _use_first(name: str) -> None:
    _old("impl").custom_op(f"suite_deprecated::{name}")(functional(name))


def _use_second(name: str) -> None:
    _old("ops").custom_op(f"suite_deprecated::{name}")(functional(name))


def _second(name: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _use_second(name)
    return f"suite_deprecated::{name}"


def _old(which: str):
    return importlib.import_module({"impl": "torch._custom_op.impl", "ops": "torch._custom_ops"}[which])


def _library() -> torch.library.Library:
    return torch.library.Library("suite_deprecated", "FRAGMENT")


def _register_fake() -> None:
    library, name = _library(), fresh()
    library.define(f"{name}(Tensor x) -> Tensor")
    library._register_fake(name, torch.empty_like)


def _impl_abstract() -> None:
    library, name = _library(), fresh()
    library.define(f"{name}(Tensor x) -> Tensor")
    torch.library.impl_abstract(f"suite_deprecated::{name}", torch.empty_like, lib=library)


def _in_a_fake_kernel(module: str) -> None:
    get_ctx = importlib.import_module(module).get_ctx
    nonzero_with(lambda ctx: get_ctx().new_dynamic_size())


#: Path -> how to use it once. Names that are only imported are looked up.
USES: dict[str, Callable[[], object]] = {
    "torch._custom_op.impl.custom_op": lambda: _use_first(fresh()),
    "torch._custom_op.impl.CustomOp": lambda: _old("impl").CustomOp(
        _library(), "suite_deprecated", None, fresh(), None, _private_access=True
    ),
    "torch._custom_op.impl.get_ctx": lambda: _in_a_fake_kernel("torch._custom_op.impl"),
    "torch._custom_op.impl.infer_schema": lambda: _old("impl").infer_schema(functional("f"), mutates_args=()),
    "torch._custom_ops.custom_op": lambda: _use_second(fresh()),
    "torch._custom_ops.impl": lambda: _old("ops").impl(_second(fresh()), device_types="cpu")(torch.clone),
    "torch._custom_ops.impl_abstract": lambda: _old("ops").impl_abstract(_second(fresh()), func=torch.empty_like),
    "torch._custom_ops.impl_save_for_backward": lambda: _old("ops").impl_save_for_backward(_second(fresh()))(len),
    "torch._custom_ops.impl_backward": lambda: _old("ops").impl_backward(_second(fresh()))(len),
    "torch._custom_ops.get_ctx": lambda: _in_a_fake_kernel("torch._custom_ops"),
    "torch.library.impl_abstract": _impl_abstract,
    "torch.library.get_ctx().create_unbacked_symint": lambda: nonzero_with(lambda ctx: ctx.create_unbacked_symint()),
    "torch._library.custom_ops.custom_op": lambda: torch._library.custom_ops.custom_op(
        f"suite_deprecated::{fresh()}", torch.clone, mutates_args=(), schema="(Tensor x) -> Tensor"
    ),
    "torch._library.infer_schema.infer_schema": lambda: torch._library.infer_schema.infer_schema(
        functional("f"), mutates_args=()
    ),
    "torch.library.Library()._register_fake": _register_fake,
    "torch.library.Library()._register_torch_dispatch_rule": lambda: _library()._register_torch_dispatch_rule(
        "f", type("Mode", (torch.utils._python_dispatch.TorchDispatchMode,), {}), len
    ),
    "torch.testing._internal.optests.opcheck": lambda: importlib.import_module(
        "torch.testing._internal.optests"
    ).opcheck(*optests_sample()),
}
LOOKED_UP = [
    path for path in ROWS if path not in USES and "::" not in path
]  # modules, what needs Triton, and second paths


def told(use: Callable[[], object]) -> list[warnings.WarningMessage]:
    """The deprecations that a use is told of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        use()
    return [w for w in seen if issubclass(w.category, DeprecationWarning | FutureWarning)]


def warns_as_it_says(api: Api, use: Callable[[], object]) -> None:
    seen = told(use)
    assert {w.category.__name__ for w in seen} == ({api.warns} if api.warns else set())
    assert all((w.filename == __file__) == api.at_caller for w in seen)
    assert all("deprecated" in str(w.message) or "renamed" in str(w.message) for w in seen)


@pytest.mark.parametrize("path", [path for path in USES if expected_here(ROWS[path])])
def test_it_warns_as_its_row_says(path):
    warns_as_it_says(ROWS[path], USES[path])


@pytest.mark.parametrize("path", [path for path in LOOKED_UP if expected_here(ROWS[path])])
def test_looking_a_name_up_does_not_warn(path):
    assert ROWS[path].warns is None
    assert told(lambda: is_there(path)) == []


@pytest.mark.parametrize("path", [path for path in USES if expected_here(ROWS[path])])
def test_a_change_of_what_a_row_says_of_warnings_is_seen(path):
    api = ROWS[path]
    other = "UserWarning" if api.warns else "DeprecationWarning"
    wrong = [dataclasses.replace(api, warns=other)]
    wrong += [dataclasses.replace(api, at_caller=not api.at_caller)] if api.warns else []
    for row in wrong:
        with pytest.raises(AssertionError):
            warns_as_it_says(row, USES[path])


@pytest.mark.parametrize("path", ROWS)
def test_what_is_deprecated_and_does_not_tell_its_user_is_pinned(path):
    api = ROWS[path]
    quiet = api.deprecated is not None and not (api.warns and api.at_caller)
    assert bool(api.pinned) == quiet
    assert not quiet or ("2.13: " in api.pinned and "https://github.com/pytorch/pytorch/blob/v2.13.0/" in api.pinned)


def test_a_path_falls_under_its_own_row_or_its_modules():
    assert find("torch._custom_op.impl.custom_op").instead == "torch.library.custom_op"
    assert find("torch._custom_op.impl.parse_qualname").path == "torch._custom_op"
    assert find("torch._custom_operators") is None
    assert find("torch.library") is None


def test_impl_of_an_operator_that_another_api_made_warns_after_all():
    if not expected_here(ROWS["torch._custom_ops"]):
        assert not is_there("torch._custom_ops")
        return
    library, name = _library(), fresh()
    library.define(f"{name}(Tensor x) -> Tensor")
    seen = told(lambda: _old("ops").impl(f"suite_deprecated::{name}", device_types="cpu")(torch.clone))
    assert [w.category for w in seen] == [DeprecationWarning]


# what the first API refuses


@dataclasses.dataclass(frozen=True)
class Refused:
    """A use that the first API refuses, and one beside it that it takes."""

    use: Callable[[str], object]
    """Takes the name of an operator that is not there yet."""
    error: str
    right: Callable[[str], object]


def _impl(devices: str | tuple[str, ...]) -> Callable[[str], object]:
    return lambda name: _old("impl").custom_op(f"suite_deprecated::{name}")(functional(name)).impl(devices)(torch.clone)


def _impl2(devices: str | tuple[str, ...]) -> Callable[[str], object]:
    return lambda name: _old("ops").impl(_second(name), device_types=devices)(torch.clone)


def _schema(schema: str) -> Callable[[str], object]:
    return lambda name: _old("ops").custom_op(f"suite_deprecated::{name}", schema)


def _manual(schema: str) -> Callable[[str], object]:
    def use(name: str) -> object:
        def plain(x): ...

        plain.__name__ = name
        return _old("impl").custom_op(f"suite_deprecated::{name}", schema)(plain)

    return use


def _in(namespace: str, which: str) -> Callable[[str], object]:
    return lambda name: _old(which).custom_op(f"{namespace}::{name}")(functional(name))


def _named(which: str, other: str) -> Callable[[str], object]:
    return lambda name: _old(which).custom_op(f"suite_deprecated::{name}")(functional(other or name))


REFUSED = {
    **{
        f"namespace {namespace!r} by {which}": Refused(_in(namespace, which), error, _in("suite_deprecated", which))
        for namespace, error in (("aten", "reserved"), ("pytorch", "reserved"), ("with.dot", r"not contain any \."))
        for which in ("impl", "ops")
    },
    **{
        f"another name by {which}": Refused(_named(which, "other"), "expected `func` to have name", _named(which, ""))
        for which in ("impl", "ops")
    },
    **{
        f"device {device!r} by {which}": Refused(impl(device), "we only support device_type", impl(("cpu", "cuda")))
        for device in ("meta", "xpu", "mps", "CPU", "cuda:0")
        for which, impl in (("impl", _impl), ("ops", _impl2))
    },
    **{
        f"schema {schema!r} by {which}": Refused(by(schema), error, by("(Tensor x) -> Tensor"))
        for schema, error in (
            ("(Tensor(a!) x) -> Tensor", "functional"),
            ("(Tensor(a!) x) -> Tensor(a!)", "to not be returned"),
            ("(Tensor(a) x) -> Tensor(a)", "functional"),
            ("(Tensor x) -> ()", "functional"),
            ("(Tensor self) -> Tensor", "arguments named 'self'"),
        )
        for which, by in (("impl", _manual), ("ops", _schema))
    },
}


def refuses(row: Refused) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        with pytest.raises((ValueError, AssertionError), match=row.error):
            row.use(fresh())
        row.right(fresh())


@pytest.mark.parametrize("title", REFUSED)
def test_the_first_api_still_refuses_what_it_did(title):
    if not expected_here(ROWS["torch._custom_op"]):
        assert not is_there("torch._custom_op")
        return
    refuses(REFUSED[title])


@pytest.mark.parametrize("title", REFUSED)
def test_a_change_of_what_is_refused_is_seen(title):
    if not expected_here(ROWS["torch._custom_op"]):
        return
    row = REFUSED[title]
    for wrong in (
        dataclasses.replace(row, use=row.right),
        dataclasses.replace(row, right=row.use),
        dataclasses.replace(row, error="no such words"),
    ):
        with pytest.raises((AssertionError, pytest.fail.Exception, ValueError)):
            refuses(wrong)


# an op made either way is the same op


def verdicts(make: Callable[..., str], parts: str, claims: dict[str, object]) -> set[tuple[str, str, str]]:
    """Check, sample and outcome, of every check but those of family deprecated, and those that compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spec = OpSpec(
            make(*PARTS[parts]),
            samples=[Sample(args=(torch.linspace(-3, 3, 12, dtype=torch.float64).reshape(3, 4),), name="matrix")],
            **claims,
        )
        report = check_op(spec, tier="standard", checks=["!compile", "!export", "!deprecated"], isolate="never")
    return {(r.check, r.sample, r.outcome.value) for r in report.results}


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("path", PAIRS)
def test_an_op_and_its_twin_get_the_same_verdicts(path, parts):
    old, new, claims = PAIRS[path]
    if not expected_here(ROWS[path]):
        assert not is_there(path)
        return
    found, twin = verdicts(old, parts, claims), verdicts(new, parts, claims)
    assert found == twin
    outcomes = {check: outcome for check, _, outcome in found if outcome != "skip"}
    assert {"fake.dtype", "values.repeatable", "schema.mutation"} <= set(outcomes)
    assert ("fail" in outcomes.values()) == (parts == "wrong")


def test_verdicts_tell_ops_apart():
    """The comparison above can fail."""
    assert verdicts(PAIRS["torch.library.impl_abstract"][1], "right", {}) != verdicts(
        PAIRS["torch.library.impl_abstract"][1], "wrong", {}
    )
