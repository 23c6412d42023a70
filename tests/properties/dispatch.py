"""What the dispatcher must do with a call of an op, as functions that raise AssertionError where it does not."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any

import torch

from opcheck_suite import fakes
from opcheck_suite.inputs import tensors
from reference_ops.python import lowlevel
from tests.properties import metadata
from tests.properties.calls import MODE, Call

MODES: dict[str, Callable[[], Any]] = {
    "plain": contextlib.nullcontext,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
}

#: Kernels of the ops that `torch.library.custom_op` did not make.
_KERNELS: dict[str, Callable[..., Any]] = {
    "reference::soft_limit": lowlevel.soft_limit,
    "reference::shift.Scalar": lowlevel.shift_scalar,
    "reference::shift.Tensor": lowlevel.shift_tensor,
    "reference::gated_opaque": lowlevel.gated_opaque,
}

#: How the functions of torch are called that are the kernels at keys above the backend -> the key.
_ABOVE = {".autograd_impl": "Autograd", ".register_autocast.<locals>.kernel": "Autocast"}


def _steps(call: Call) -> dict[CodeType, str]:
    """The Python functions that a call of the op may run -> what running them means."""
    kernel = call.info.function or _KERNELS.get(call.info.name)
    found = {} if call.info.fake_function is None else {call.info.fake_function.__code__: "fake"}
    return found | ({kernel.__code__: "kernel"} if kernel else {})


def has_python_kernel(call: Call) -> bool:
    """Whether the kernel of the op is a Python function, so that `entered` sees it."""
    return "kernel" in _steps(call).values()


@contextlib.contextmanager
def entered(call: Call) -> Iterator[list[str]]:
    """The kernels that run inside of this, in order, named by their keys: Autocast, Autograd, kernel, fake."""
    steps, seen = _steps(call), list[str]()

    def look(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            code = frame.f_code
            above = (key for end, key in _ABOVE.items() if code.co_qualname.endswith(end))
            if name := steps.get(code) or next(above, None):
                seen.append(name)

    was = sys.getprofile()
    sys.setprofile(look)
    try:
        yield seen
    finally:
        sys.setprofile(was)


def differentiable(call: Call) -> list[str]:
    """The tensors among the arguments that can require grad."""
    return [n for n, t in call.case.leaves() if t.is_floating_point() or t.is_complex()]


def inputs(call: Call, *, requires_grad: list[str] | None = None) -> tensors.Args:
    """Fresh arguments of which some require grad."""
    args, kwargs = call.case.inputs()
    for name, tensor in call.case.leaves((args, kwargs)):
        if name in (requires_grad or ()):
            tensor.requires_grad_()
    return args, kwargs


def same(actual: Any, expected: Any, what: str) -> None:
    """Two results agree in every bit."""
    for a, b in zip(metadata.flat(actual), metadata.flat(expected), strict=True):
        if isinstance(b, torch.Tensor):
            torch.testing.assert_close(a.detach(), b, rtol=0, atol=0, equal_nan=True, msg=lambda m: f"{what}: {m}")
        else:
            assert a == b, what


def runs_in_order(call: Call, mode: str, wanted: list[str]) -> None:
    """The kernel runs once, below Autograd, which takes part unless the mode is inference; the result is the same, and
    requires grad where an argument does and the mode allows it.
    """
    expected = _called(call, inputs(call))
    with MODES[mode]():
        args, kwargs = inputs(call, requires_grad=wanted if mode != "inference" else [])
        with entered(call) as seen:
            out = _called(call, (args, kwargs))
    above = [] if mode == "inference" or not call.case.leaves() else ["Autograd"]  # the keys are those of the tensors
    if has_python_kernel(call):
        assert [s for s in seen if s != "fake"] == [*above, "kernel"], f"{call} in mode {mode} ran {seen}"
    same(out, expected, f"{call} in mode {mode}")
    for value in metadata.flat(out):
        if isinstance(value, torch.Tensor):
            tracked = mode == "plain" and bool(wanted) and (value.is_floating_point() or value.is_complex())
            assert value.requires_grad == tracked, f"{call} in mode {mode}: requires_grad is {value.requires_grad}"
            assert value.is_inference() == (mode == "inference"), f"{call} in mode {mode}: is_inference"


def fake_runs_no_kernel(call: Call) -> None:
    """With fake tensors the fake kernel runs, and the kernel does not."""
    with entered(call) as seen:
        run = fakes.run(call.op, call.case, mode=MODE)
    assert run.error is None, f"{call}: {run.error}"
    assert "kernel" not in seen, f"{call} with fake tensors ran {seen}"
    assert "fake" in seen, f"{call} with fake tensors ran {seen}"


def stays_on(call: Call, device: str) -> None:
    """Outputs of inputs on a device, real or fake, are there."""
    if device == "fake cuda":
        run = fakes.run(call.op, call.case, device="cuda", mode=MODE)
        assert run.error is None, f"{call}: {run.error}"
        out, kind = run.out, "cuda"
    else:
        args, kwargs = tensors.fresh((call.case.args, call.case.kwargs), device=device)
        move = {n: torch.device(device) for n, v in kwargs.items() if isinstance(v, torch.device)}
        out, kind = call.op(*args, **kwargs | move), device
    for value in metadata.flat(out):
        if isinstance(value, torch.Tensor):
            assert value.device.type == kind, f"{call} on {device}: an output is on {value.device}"


def refuses_mixed(call: Call, moved: str, device: str) -> None:
    """One tensor on another device, real or fake, is refused with an exception."""
    case = call.case
    if device == "fake cuda":
        mode: Any = MODE
        with mode:
            made = {
                name: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cuda" if name == moved else "cpu")
                for name, t in case.leaves()
            }
    else:
        mode = contextlib.nullcontext()
        made = {name: t.to(device) if name == moved else t for name, t in case.leaves()}
    args, kwargs = case.replace(made, variant="mixed", group="mixed").raw()
    try:
        with mode:
            call.op(*args, **kwargs)
    except (RuntimeError, ValueError):
        return
    raise AssertionError(f"{call} accepts {moved} on {device} beside tensors on the CPU")


def autocasts(call: Call, dtype: torch.dtype) -> None:
    """Under autocast, an op with a rule computes in the rule's dtype, one without as it always does."""
    with torch.autocast("cpu", dtype=torch.bfloat16), entered(call) as seen:
        actual = _called(call, inputs(call))
    ruled = "AutocastCPU" in call.info.kernels
    args, kwargs = inputs(call)
    if ruled:
        args, kwargs = tensors.map_tensors(lambda t: t.to(dtype) if _cast(t) else t, (args, kwargs))
    expected = _called(call, (args, kwargs))
    if ruled and has_python_kernel(call):
        assert [s for s in seen if s != "fake"][:1] == ["Autocast"], f"{call} under autocast ran {seen}"
    for a, b in zip(metadata.flat(actual), metadata.flat(expected), strict=True):
        if isinstance(b, torch.Tensor):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{call} under autocast: {a.dtype}, expected {b.dtype}"
    if ruled:
        same(actual, expected, f"{call} under autocast")


def _cast(tensor: torch.Tensor) -> bool:
    """Whether autocast converts a tensor: it leaves double precision and all that is not floating-point alone."""
    return tensor.is_floating_point() and tensor.dtype != torch.float64


def _called(call: Call, given: tensors.Args) -> Any:
    """The outputs of a call, or what it wrote where it returns nothing; random ops begin with one seed."""
    args, kwargs = given
    state = torch.default_generator.get_state()
    torch.default_generator.manual_seed(0)
    try:
        out = call.op(*args, **kwargs)
    finally:
        torch.default_generator.set_state(state)
    return [t for n, t in call.case.leaves(given) if n.partition("[")[0] in call.info.mutated] if out is None else out
