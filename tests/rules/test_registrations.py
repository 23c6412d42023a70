"""What `guard` reports of registrations that go against each other, and what it must not."""

from __future__ import annotations

import gc
import importlib
import inspect
import pathlib
import re
import subprocess
import sys
import textwrap
import warnings

import pytest
import torch
from torch import Tensor

from opcheck_suite import RegistrationWarning, guard

SCHEMA = "(Tensor x) -> Tensor"


def kernel(x: Tensor) -> Tensor:
    return x.clone()


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A function that imports a module of some source."""
    monkeypatch.syspath_prepend(tmp_path)
    made: list[str] = []

    def load(name: str, source: str):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        importlib.invalidate_caches()
        made.append(name)
        return importlib.import_module(name)

    yield load
    for name in made:
        sys.modules.pop(name, None)


@pytest.fixture
def watch():
    with guard() as watch:
        yield watch


@pytest.fixture
def library():
    """A function that makes a library, which is destroyed after the test."""
    made = []

    def make(namespace: str, kind: str = "FRAGMENT") -> torch.library.Library:
        made.append(torch.library.Library(namespace, kind))
        return made[-1]

    yield make
    for each in made:
        each._destroy()


def lines(*places: str) -> list[tuple[str, int]]:
    return [(pathlib.Path(file).name, int(line)) for file, _, line in (place.rpartition(":") for place in places)]


LOST = """
    import torch

    def register():
        library = torch.library.Library("suite_lost", "FRAGMENT")
        library.define("x(Tensor x) -> Tensor")
        library.impl("x", lambda x: x.clone(), "CPU")

    register()
"""


def test_a_library_that_a_module_does_not_keep(module, watch):
    with pytest.warns(RegistrationWarning, match="its ops are gone: suite_lost::x. Keep it") as warned:
        module("suite_lossy", LOST)
    (report,) = watch.reports
    assert (report.kind, report.ops) == ("collected", ("suite_lost::x",))
    assert lines(*report.places) == [("suite_lossy.py", 5)]
    assert (warned[0].filename, warned[0].lineno) == (report.places[0].rpartition(":")[0], 5)
    with pytest.raises(AttributeError) as raised:
        _ = torch.ops.suite_lost.x
    assert raised.value.__notes__ == [str(report)]


def test_kernels_that_a_module_does_not_keep(module, watch, library):
    library("suite_bare").define(f"x{SCHEMA}")
    with pytest.warns(RegistrationWarning, match="this is gone: kernel of suite_bare::x for CPU"):
        module(
            "suite_kernels",
            """
            import torch
            library = torch.library.Library("suite_bare", "IMPL")
            library.impl("x", lambda x: x.clone(), "CPU")
            library = None
            """,
        )
    assert [report.kind for report in watch.reports] == ["collected"]


def test_a_library_whose_ops_were_gone_before_anyone_asked(watch):
    with pytest.warns(RegistrationWarning, match="its ops are gone: suite_unseen::x"):
        torch.library.Library("suite_unseen", "FRAGMENT").define(f"x{SCHEMA}")


def test_an_op_that_has_gone_with_a_function_is_explained_to_who_asks_and_no_report(watch):
    def use() -> Tensor:
        library = torch.library.Library("suite_local", "FRAGMENT")
        library.define(f"x{SCHEMA}")
        library.impl("x", kernel, "CPU")
        return torch.ops.suite_local.x(torch.ones(1))

    use()
    assert watch.reports == []
    assert not hasattr(torch.ops.suite_local, "x")
    with pytest.raises(AttributeError) as raised:
        _ = torch.ops.suite_local.x
    assert re.search(
        r"the Library made at .*test_registrations.py:\d+ was garbage-collected", raised.value.__notes__[0]
    )
    with pytest.raises(AttributeError) as raised:
        _ = torch.ops.suite_local.never_was
    assert not hasattr(raised.value, "__notes__")


def test_an_op_that_custom_op_drops_for_another(watch):
    torch.library.custom_op("suite_again::x", kernel, mutates_args=())
    with pytest.warns(RegistrationWarning, match="torch has dropped the first op"):
        torch.library.custom_op("suite_again::x", kernel, mutates_args=())
    (report,) = watch.reports
    assert (report.kind, report.ops) == ("redefined", ("suite_again::x",))
    (_, first), (_, second) = lines(*report.places)
    assert second == first + 2


def test_two_files_that_define_one_op(module, watch, library):
    library("suite_two").define(f"x{SCHEMA}")
    source = """
        import torch
        library = torch.library.Library("suite_two", "FRAGMENT")
        library.define("x(Tensor x) -> Tensor")
    """
    with (
        pytest.warns(RegistrationWarning, match="suite_two::x is defined at"),
        pytest.raises(RuntimeError, match="multiple times") as raised,
    ):
        module("suite_second", source)
    (report,) = watch.reports
    assert report.kind == "defined twice"
    assert [file for file, _ in lines(*report.places)] == ["test_registrations.py", "suite_second.py"]
    assert raised.value.__notes__ == [str(report)]


def test_one_file_that_defines_an_op_twice_is_told_both_lines_with_the_error(watch, library):
    mine = library("suite_same")
    mine.define(f"x{SCHEMA}")
    with pytest.raises(RuntimeError) as raised:
        mine.define(f"x{SCHEMA}")
    (note,) = raised.value.__notes__
    assert len(set(re.findall(r"test_registrations.py:\d+", note))) == 2
    assert watch.reports == []


@pytest.mark.filterwarnings("ignore:.*other operators may also be overridden")
def test_two_kernels_of_an_op_for_one_key(watch, library):
    mine, other = library("suite_kernels"), library("suite_kernels", "IMPL")
    mine.define(f"x{SCHEMA}")
    mine.impl("x", kernel, "CPU")
    other.impl("x", kernel, "Meta")
    other.impl("suite_kernels::x", kernel, "CUDA")
    assert watch.reports == []
    overriding = inspect.signature(torch.library.Library.impl).parameters.get("allow_override")
    options = {} if overriding is None else {"allow_override": False}
    if overriding is not None:
        with pytest.warns(RegistrationWarning, match="the one that comes last wins"):
            other.impl("x", kernel, "CPU", allow_override=True)
        (report,) = watch.reports
        assert (report.kind, report.ops) == ("overridden", ("suite_kernels::x",))
        assert len(set(report.places)) == 2
    with pytest.raises(RuntimeError, match="already a kernel") as raised:
        other.impl("x", kernel, "CPU", **options)
    assert "suite_kernels::x for CPU is registered at" in raised.value.__notes__[0]


TWICE = {
    "register_kernel": ("cpu", "kernel for cpu"),
    "register_fake": (None, "fake kernel"),
    "register_autograd": (None, "gradient formula"),
    "register_vmap": (None, "batching rule"),
    "register_torch_dispatch": (torch.utils._python_dispatch.TorchDispatchMode, "rule for TorchDispatchMode"),
}


@pytest.mark.parametrize("method", TWICE)
def test_a_decorator_of_a_custom_op_that_is_used_twice(method, watch):
    first, what = TWICE[method]
    op = torch.library.custom_op("suite_twice::x", kernel, mutates_args=())
    arguments = () if first is None else (first,)
    getattr(op, method)(*arguments, kernel)
    assert watch.reports == []
    with pytest.warns(RegistrationWarning, match=f"^the {what} of suite_twice::x is registered at .*last wins"):
        getattr(op, method)(*arguments, kernel)
    (report,) = watch.reports
    assert (report.kind, report.ops) == ("overridden", ("suite_twice::x",))
    assert len(set(lines(*report.places))) == 2


@pytest.mark.parametrize("device", ["cpu", ["cuda", "cpu"]])
def test_the_kernel_that_a_custom_op_was_made_with_is_replaced(device, watch):
    op = torch.library.custom_op("suite_replaced::x", kernel, mutates_args=(), device_types="cpu")
    with pytest.warns(RegistrationWarning, match="kernel for cpu"):
        op.register_kernel(device)(kernel)
    assert len(watch.reports) == 1


def test_two_fake_kernels_of_an_op(watch, library):
    mine, other = library("suite_fakes"), library("suite_fakes", "IMPL")
    mine.define(f"x{SCHEMA}")
    torch.library.register_fake("suite_fakes::x", torch.empty_like, lib=mine)
    if "allow_override" not in inspect.signature(torch.library.register_fake).parameters:
        pytest.skip("this torch refuses a second fake kernel")
    with pytest.warns(RegistrationWarning, match="^the kernel of suite_fakes::x for Meta is registered at"):
        torch.library.register_fake("suite_fakes::x", torch.empty_like, lib=other, allow_override=True)
    (report,) = watch.reports
    assert len(set(lines(*report.places))) == 2


# -- no false alarms


@pytest.fixture
def silence(watch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield watch
    gc.collect()
    assert watch.reports == []


def test_ops_as_they_should_be(silence, module):
    module(
        "suite_proper",
        """
        import torch
        library = torch.library.Library("suite_proper", "FRAGMENT")
        library.define("x(Tensor x) -> Tensor")
        library.impl("x", lambda x: x.clone(), "CPU")
        torch.library.register_fake("suite_proper::x", torch.empty_like, lib=library)

        @torch.library.custom_op("suite_proper::y", mutates_args=("x",))
        def y(x: torch.Tensor) -> None:
            x.add_(1)

        @y.register_kernel("cuda")
        def _(x):
            x.add_(1)

        @torch.library.custom_op("suite_proper::z", mutates_args=())
        def z(x: torch.Tensor) -> torch.Tensor:
            return x * 1

        z.register_fake(torch.empty_like)
        z.register_autograd(lambda ctx, grad: grad)
        z.register_vmap(lambda info, dims, x: (x * 1, dims[0]))
        """,
    )
    torch.ops.suite_proper.y(torch.ones(1))
    torch.vmap(torch.ops.suite_proper.z)(torch.ones(2, 1))
    sys.modules["suite_proper"].library._destroy()


def test_libraries_that_are_ended_on_purpose(silence):
    for _ in range(2):
        with torch.library._scoped_library("suite_scoped", "FRAGMENT") as library:
            library.define(f"x{SCHEMA}")
            library.impl("x", kernel, "CPU")


def test_a_function_that_makes_its_op_each_time(silence):
    for _ in range(2):
        op = torch.library.custom_op("suite_each_time::x", kernel, mutates_args=())
        op.register_fake(torch.empty_like)
        op.register_kernel(["cuda", "xpu"])(kernel)


def test_a_module_that_is_unloaded_takes_its_libraries_with_it(silence, module):
    module(
        "suite_unloaded",
        """
        import torch
        library = torch.library.Library("suite_unloaded", "FRAGMENT")
        library.define("x(Tensor x) -> Tensor")
        """,
    )
    _ = torch.ops.suite_unloaded.x
    del sys.modules["suite_unloaded"]
    gc.collect()


def test_a_library_that_registers_nothing(silence, module):
    module("suite_nothing", "import torch\ntorch.library.Library('suite_nothing', 'FRAGMENT')\n")


HEAVY = """
import gc, importlib, sys, warnings
import torch
from opcheck_suite import RegistrationWarning, guard
warnings.simplefilter("error", RegistrationWarning)
with guard() as watch:
    for name in (
        "torch._dynamo", "torch._inductor.compile_fx", "torch._refs", "torch.ao.quantization.fx._decomposed",
        "torch.distributed.tensor", "torch.distributed._functional_collectives", "torch.export", "torch.func",
        "torch.nested._internal.ops", "torch.testing._internal.custom_op_db", "torch.testing._internal.optests",
    ):
        importlib.import_module(name)
    torch.compile(lambda x: x.sin() + 1, backend="aot_eager")(torch.ones(3))
    gc.collect()
    assert watch.reports == [], watch.reports
    kept = torch.library.Library("suite_exit", "FRAGMENT")
    kept.define("x(Tensor x) -> Tensor")
    watching = guard()
    watching.__enter__()
    last = torch.library.Library("suite_exit", "FRAGMENT")
    last.define("y(Tensor x) -> Tensor")
print("done")
"""


def test_torch_itself_and_the_end_of_the_interpreter():
    done = subprocess.run([sys.executable, "-c", HEAVY], capture_output=True, text=True, timeout=300)
    assert done.stdout == "done\n", done.stderr
    assert "RegistrationWarning" not in done.stderr, done.stderr


def test_torch_is_as_it_was_afterwards():
    library = torch.library.Library
    decorators = torch.library.CustomOpDef.register_kernel, torch.library.CustomOpDef.register_vmap
    before = torch._C._dispatch_library, library.define, library.impl, library._destroy
    look_up = torch._ops._OpNamespace.__getattr__
    with guard(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library("suite_before", "FRAGMENT").define(f"x{SCHEMA}")
        assert torch._ops._OpNamespace.__getattr__ is not look_up
    assert (torch._C._dispatch_library, library.define, library.impl, library._destroy) == before
    assert torch._ops._OpNamespace.__getattr__ is look_up
    assert (torch.library.CustomOpDef.register_kernel, torch.library.CustomOpDef.register_vmap) == decorators


def test_torchs_own_record_of_the_line_is_the_same(library):
    with guard():
        mine = library("suite_line")
        mine.define(f"x{SCHEMA}")
    assert re.search(r"debug: registered at \S*test_registrations.py:\d+", torch._C._dispatch_dump("suite_line::x"))
