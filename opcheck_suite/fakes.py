"""Run an op on fake tensors: metadata without data.

Private names of torch used, all in this module: ``torch._subclasses.fake_tensor``, ``torch._dispatch.python``,
``torch._dynamo.source`` and ``torch.fx.experimental.symbolic_shapes``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import re
import traceback
from collections.abc import Callable
from typing import Any
from unittest import mock

import sympy
import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, UnsupportedFakeTensorException
from torch.fx.experimental.symbolic_shapes import DimDynamic, GuardOnDataDependentSymNode, ShapeEnv
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from opcheck_suite import places
from opcheck_suite.inputs import tensors
from opcheck_suite.inputs.cases import Case
from opcheck_suite.ops import OpInfo


@dataclasses.dataclass(frozen=True, eq=False)
class FakeRun:
    """One call on fake tensors."""

    case: Case
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    out: Any
    error: BaseException | None
    unsupported: str = ""
    """Why fake tensors cannot stand for these inputs at all (a limit of torch), or empty."""
    env: ShapeEnv | None = None
    """Where symbols in the outputs come from."""

    @property
    def outputs(self) -> list[Any]:
        """The returned values as a list."""
        return tensors.listed(self.out)


def new_mode() -> FakeTensorMode:
    """A mode for several calls with the sizes that they have. Making one costs as much as a call."""
    return FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=False)


def run(
    op: Any, case: Case, *, symbolic: bool = False, device: str | None = None, mode: FakeTensorMode | None = None
) -> FakeRun:
    """Call ``op`` on fake copies of a case's arguments.

    Sizes are those of the case, or with ``symbolic`` one symbol for all that are equal, arguments declared SymInt among
    them. With a ``device``, tensors and device arguments are moved there, whether or not there is one. The mode has a
    ShapeEnv, so that data-dependent sizes come out as unbacked symbols and not as an error.
    """
    args, kwargs = case.inputs()
    mode = new_mode() if mode is None or symbolic else mode
    env = mode.shape_env

    def fake(t: torch.Tensor) -> torch.Tensor:
        if device is not None:
            with mode:
                return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=device)
        return mode.from_tensor(t, static_shapes=not symbolic)

    def move(value: Any) -> Any:
        return torch.device(device) if device is not None and isinstance(value, torch.device) else value

    try:
        fake_args, fake_kwargs = tensors.map_tensors(fake, (args, kwargs))
        if device is not None:
            fake_args, fake_kwargs = pytree.tree_map(move, (fake_args, fake_kwargs))
        if symbolic and env is not None:
            fake_args, fake_kwargs = _symbolic_numbers(case, env, fake_args, fake_kwargs)
    except (UnsupportedFakeTensorException, NotImplementedError, RuntimeError) as error:
        return FakeRun(case, args, kwargs, None, error, unsupported=str(error).splitlines()[0])
    # As compilers do: it keeps composite ops inside of a Meta kernel from asking for plain sizes.
    symbols_kept = enable_python_dispatcher() if symbolic else contextlib.nullcontext()
    try:
        with mode, symbols_kept:
            out = op(*fake_args, **fake_kwargs)
    except (KeyboardInterrupt, MemoryError):
        raise
    except UnsupportedFakeTensorException as error:
        return FakeRun(case, fake_args, fake_kwargs, None, error, unsupported=str(error).splitlines()[0])
    except BaseException as error:
        return FakeRun(case, fake_args, fake_kwargs, None, error, env=env)
    return FakeRun(case, fake_args, fake_kwargs, out, None, env=env)


def _symbolic_numbers(case: Case, env: ShapeEnv, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tensors.Args:
    """The arguments with symbols for the numbers above one that the schema declares as sizes, alone or in lists."""
    from torch._dynamo.source import ConstantSource  # imports Dynamo, which static checks do without

    declared = declared_sizes(case.info)

    def symbol(name: str, value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool) or value < 2:
            return value  # compilers make constants of zero and one
        source = ConstantSource(f"__{name}_{value}")
        made = env.create_symbol(value, source, dynamic_dim=DimDynamic.DUCK)
        return env.create_symintnode(made, hint=value, source=source)

    def new(name: str, value: Any) -> Any:
        if name not in declared:
            return value
        return [symbol(name, v) for v in value] if isinstance(value, list | tuple) else symbol(name, value)

    bound = {name: new(name, value) for name, value in case.bound(args, kwargs).items()}
    names = list(bound)
    return tuple(bound[n] for n in names[: len(args)]), {n: bound[n] for n in names[len(args) :]}


def declared_sizes(info: OpInfo) -> set[str]:
    """Names of the arguments that are SymInt in the schema, alone or in lists: symbols to a compiler."""
    return {a.name for a in info.schema.arguments if _symint(a.real_type)} if info.is_operator else set()


def _symint(kind: Any) -> bool:
    """Whether a type is SymInt, or a list of it, or either and optional."""
    while kind.kind() in ("OptionalType", "ListType"):
        kind = kind.getElementType()
    return bool(kind.kind() == "SymIntType")


def unbacked(op: Any, case: Case) -> FakeRun:
    """Call ``op`` on packed fake copies of a case's arguments whose sizes only data would tell, as after nonzero.

    Sizes of zero and one stay; equal sizes get one symbol.
    """
    env = ShapeEnv()
    mode = FakeTensorMode(shape_env=env)
    mode.cache_enabled = False  # to look every output over for the cache takes longer than the call
    sizes: dict[int, Any] = {}

    def unknown(size: int) -> Any:
        if size not in sizes:
            sizes[size] = env.create_unbacked_symint()
            torch._check(sizes[size] >= 0)
        return sizes[size]

    def fake(t: torch.Tensor) -> torch.Tensor:
        return torch.empty([unknown(s) if s > 1 else s for s in t.shape], dtype=t.dtype, device=t.device)

    with mode, enable_python_dispatcher():
        args, kwargs = tensors.map_tensors(fake, case.raw())
        try:
            out = op(*args, **kwargs)
        except (KeyboardInterrupt, MemoryError):
            raise
        except BaseException as error:
            return FakeRun(case, args, kwargs, None, error, env=env)
    return FakeRun(case, args, kwargs, out, None, env=env)


def mixes_devices(
    func: Callable[..., Any], args: Any, kwargs: Any, place: Callable[[torch.Tensor], torch.device | None]
) -> bool:
    """Whether torch refuses a call of one of its functions because of the devices that ``place`` says tensors are on.

    Nothing is computed. Other errors are no answer: a build of torch without a device cannot do all there.
    """

    def fake(t: torch.Tensor) -> torch.Tensor:
        return torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=place(t) or t.device)

    with FakeTensorMode(allow_non_fake_inputs=True):
        try:
            fake_args, fake_kwargs = tensors.map_tensors(fake, (tuple(args), kwargs))
            func(*fake_args, **fake_kwargs)
        except Exception as error:
            return bool(re.search("on the same device|two different devices", str(error)))
    return False


@dataclasses.dataclass(frozen=True)
class Branch:
    """Where Python code asked for the truth or value of an expression in symbols."""

    condition: str
    """The expression, in sizes such as ``x.shape[0]``."""
    where: str
    """``file:line`` and the line."""


def branch(run: FakeRun) -> Branch | None:
    """What a call stopped at because only data could decide it; None where torch's own code asked for that."""
    error = run.error
    if not isinstance(error, GuardOnDataDependentSymNode):
        return None
    frames = traceback.extract_tb(error.__traceback__)
    for frame, after in itertools.pairwise(frames):
        # A kernel in C++ and an operator that a fake kernel calls ask without a step through a symbol's own methods.
        if after.name in ("__bool__", "__int__", "__index__") and not places.between(frame.filename):
            return Branch(in_words(error.cond, run), f"{frame.filename}:{frame.lineno}: {frame.line}")
    return None


def is_fake(value: Any) -> bool:
    """Whether a value is a fake tensor."""
    return isinstance(value, FakeTensor)


def known(value: Any) -> bool:
    """Whether a size, stride or number is a plain value and not a symbol that only data would decide."""
    return isinstance(value, int | float | bool)


def sizes(tensor: torch.Tensor) -> list[int | None]:
    """The sizes of a fake tensor, None where data decides."""
    return [int(s) if known(s) else None for s in tensor.shape]


def strides(tensor: torch.Tensor) -> list[int | None]:
    """The strides of a fake tensor, None where data decides."""
    return [int(s) if known(s) else None for s in tensor.stride()]


def share(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two fake tensors are one, or views of one storage with an element in common; where data decides a size,
    only whether they are one.
    """
    if a is b:
        return True
    if a.layout != torch.strided or b.layout != torch.strided:
        return False
    numbers = [n for t in (a, b) for n in (*t.shape, *t.stride(), t.storage_offset(), t.untyped_storage().nbytes())]
    if a.untyped_storage()._cdata != b.untyped_storage()._cdata or not all(map(known, numbers)):
        return False
    if a.untyped_storage().nbytes() > 1 << 22:
        return a.storage_offset() == b.storage_offset()
    return bool((tensors.visible_bytes(a) & tensors.visible_bytes(b)).any())


def constraints(run: FakeRun) -> list[Any]:
    """The conditions on symbolic sizes that a call relied on, as sympy expressions in the symbols of `symbols`."""
    assert run.env is not None
    found = [guard.expr for guard in run.env.guards]
    for symbol, value in run.env.replacements.items():
        if value.is_number:
            found.append(sympy.Eq(symbol, value))
    return [expr for expr in dict.fromkeys(found) if expr not in (sympy.true, True)]


def symbols(run: FakeRun) -> dict[Any, tuple[str, int]]:
    """Symbol -> name of the argument and dimension whose size it is; one place for each symbol."""
    found: dict[Any, tuple[str, int]] = {}
    for name, tensor in run.case.leaves((run.args, run.kwargs)):
        for dim, size in enumerate(tensor.shape):
            if isinstance(size, torch.SymInt) and (expr := size.node._expr).is_symbol:
                found.setdefault(expr, (name, dim))
    return found


def in_words(condition: Any, run: FakeRun) -> str:
    """A condition on symbols, with sizes such as ``x.shape[0]`` in their place."""
    text = str(condition)
    for symbol, (name, dim) in symbols(run).items():
        text = re.sub(rf"\b{symbol}\b", f"{name}.shape[{dim}]", text)
    return text


def bounds(run: FakeRun, size: Any) -> tuple[int, int | None]:
    """Least and greatest value that a symbolic size is promised to have; None where there is no greatest."""
    assert run.env is not None
    limits = run.env.bound_sympy(size.node.expr)
    upper = int(limits.upper) if limits.upper.is_number and limits.upper.is_finite and limits.upper < 2**62 else None
    return int(limits.lower) if limits.lower.is_finite else 0, upper


def backward(op: Any, case: Case, names: list[str]) -> tuple[BaseException | None, dict[str, Any]]:
    """Forward and backward on fake copies, for gradients of the named arguments: what it raised, and the gradients."""
    args, kwargs = case.inputs()
    mode = FakeTensorMode(shape_env=ShapeEnv())
    fake_args, fake_kwargs = tensors.map_tensors(lambda t: mode.from_tensor(t, static_shapes=True), (args, kwargs))
    leaves = {n: t for n, t in case.leaves((fake_args, fake_kwargs)) if n in names}
    try:
        with mode:
            for leaf in leaves.values():
                leaf.requires_grad_()
            out = op(*fake_args, **fake_kwargs)
            roots = [t for t in tensors.tensors(out) if t.requires_grad]
            seeds = [torch.ones_like(t) for t in roots]
            found = torch.autograd.grad(roots, list(leaves.values()), seeds, allow_unused=True)
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:
        return error, {}
    return None, dict(zip(leaves, found, strict=True))


class _Asked(TorchFunctionMode):
    """Remembers the tensors whose device was asked for by name, and what is made of these."""

    def __init__(self) -> None:
        super().__init__()
        self.tensors: list[torch.Tensor] = []

    def holds(self, value: Any) -> bool:
        """Whether a value is one of these tensors."""
        return any(value is t for t in self.tensors)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        named = kwargs.get("device") is not None or getattr(func, "__name__", "") == "cpu"
        named = named or any(
            isinstance(a, torch.device) or a == "cpu" for a in args if isinstance(a, str | torch.device)
        )
        if named or any(self.holds(t) for t in tensors.tensors([args, kwargs])):
            self.tensors += tensors.tensors(out)
        return out


def asked_for(info: OpInfo, case: Case, device: str) -> list[bool]:
    """Call the Python fake kernel with all tensors on a device: which outputs are where they are because it said so.

    One bool for each tensor among the outputs; empty where the fake kernel is not in Python or raises.
    """
    holder = info.fake_holder
    if holder is None:
        return []
    asked, function = _Asked(), holder.func

    def watched(*args: Any, **kwargs: Any) -> Any:
        with asked:
            return function(*args, **kwargs)

    with mock.patch.object(holder, "func", watched):
        done = run(info.op, case, device=device)
    return [asked.holds(t) for t in tensors.tensors(done.outputs)] if done.error is None else []
