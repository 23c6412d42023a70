"""Find operators, and read what torch's registries know about one. Nothing here calls an operator.

torch has no public interface for its registration table. The private names used are, all in this module:
``torch._C._dispatch_dump``, ``_dispatch_get_all_op_names``, ``_dispatch_has_kernel_for_dispatch_key``,
``_get_privateuse1_backend_name``,
``torch._library.simple_registry`` and ``torch._library.custom_ops``.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch._library import custom_ops, simple_registry
from torch._library.utils import can_generate_trivial_fake_impl

from opcheck_suite.registry import UsageError, did_you_mean

#: ``CPU: registered at file:line :: (Tensor _0) -> Tensor _0 [ boxed ]``, or ``... :: (none) [ fallthrough boxed ]``
#: torch's registration API: what it defines for others is not PyTorch's own.
_API = ("torch/library.py", "torch/_library/", "torch/_custom_op")
_KERNEL = re.compile(r"(?P<key>\w+)(?:\[alias\])?: registered at (?P<where>.*?) :: ")
_FALLTHROUGH = "[ fallthrough"

#: Device type -> dispatch key of its kernels.
BACKENDS = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "xpu": "XPU",
    "mps": "MPS",
    "hpu": "HPU",
    "mtia": "MTIA",
}

#: What stands before a backend's name in the dispatch keys of its tensors that are not plain and dense.
_KINDS = ("", "Sparse", "SparseCsr", "Quantized", "NestedTensor", "Mkldnn")


def backends() -> dict[str, str]:
    """Device type -> dispatch key of its kernels, with the name that a backend from outside of torch has taken."""
    return BACKENDS | {torch._C._get_privateuse1_backend_name(): "PrivateUse1"}


def backend(device: str) -> str:
    """The dispatch key of the kernels for a device type."""
    return backends().get(device, device.upper())


#: Namespaces of the operators that PyTorch itself is made of.
TORCHS_OWN = ("aten", "prim", "prims")


@dataclasses.dataclass(frozen=True, eq=False)
class OpInfo:
    """What the registries say about one operator, or that a callable is none."""

    name: str
    """``ns::name`` or ``ns::name.overload``; for a plain function its qualified name."""
    op: Any
    """The OpOverload, or the plain function."""
    kernels: dict[str, str]
    """Dispatch key -> ``file:line`` of the registration. Fallthroughs are in `fallthroughs`."""
    where: str
    """``file:line`` where the op was defined."""
    definition: Any = None
    """The CustomOpDef, for ops made by ``torch.library.custom_op``."""
    fallthroughs: frozenset[str] = frozenset()
    """Dispatch keys that the op asks the dispatcher to pass by."""

    @property
    def is_operator(self) -> bool:
        """Whether this is a registered operator and not a plain function."""
        return isinstance(self.op, torch._ops.OpOverload)

    @property
    def schema(self) -> Any:
        """The ``torch.FunctionSchema``."""
        return self.op._schema

    @property
    def namespace(self) -> str:
        """The part of the name before ``::``."""
        return self.name.partition("::")[0]

    @property
    def from_torch(self) -> bool:
        """Whether PyTorch itself defines the op."""
        inside = "/aten/src/" in self.where or self.where.startswith(("torch/", "aten/"))
        return inside and not self.where.startswith(_API)

    @property
    def tags(self) -> tuple[str, ...]:
        """Names of the op's tags, sorted."""
        return tuple(sorted(str(tag).removeprefix("Tag.") for tag in self.op.tags))

    @property
    def composite(self) -> str | None:
        """Which composite key the op has a kernel at, if any."""
        keys = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
        return next((key for key in keys if key in self.kernels), None)

    @property
    def transparent(self) -> bool:
        """Whether torch decomposes the op into the ops that it calls."""
        return self.composite == "CompositeImplicitAutograd"

    def kernel_for(self, device: str) -> str | None:
        """The dispatch key whose kernel runs for tensors of a device type, or None."""
        return next((key for kind in _KINDS if (key := kind + backend(device)) in self.kernels), self.composite)

    def serves(self, device: str) -> bool:
        """Whether a call with tensors of a device type finds a kernel, be it one for autograd that does the work."""
        # one for all devices calls the kernel of the device, where there are such kernels
        every = "Autograd" in self.kernels and self.definition is None and not self.devices
        own = self.definition is None and f"Autograd{backend(device)}" in self.kernels
        return own or every or self.kernel_for(device) is not None

    @property
    def devices(self) -> tuple[str, ...]:
        """Device types that have a kernel of their own, or ``("cpu",)`` for composite ops."""
        own = tuple(d for d, key in backends().items() if any(kind + key in self.kernels for kind in _KINDS))
        return own or (("cpu",) if self.composite else ())

    @property
    def fake(self) -> str | None:
        """Where fake outputs come from: ``python``, ``meta``, ``composite``, ``trivial`` (nothing to infer) or None."""
        if self.transparent:
            return "composite"
        if self.definition is not None:
            if self.definition._abstract_fn is not None:
                return "python"
            return "trivial" if can_generate_trivial_fake_impl(self.op) else None
        if self.fake_holder is not None:
            return "python"
        if "Meta" in self.kernels:
            return "meta"
        if can_generate_trivial_fake_impl(self.op):
            return "trivial"
        return "composite" if self.composite else None

    @property
    def fake_function(self) -> Callable[..., Any] | None:
        """The Python function registered as fake kernel, without torch's wrappers."""
        if self.definition is not None and self.definition._abstract_fn is not None:
            return self.definition._abstract_fn  # type: ignore[no-any-return]
        if self.definition is not None:
            return None
        return None if self.fake_holder is None else _unwrap(self.fake_holder.func)

    @property
    def fake_holder(self) -> Any:
        """The registry's object whose ``func`` is the Python fake kernel, or None."""
        return simple_registry.singleton.find(self.name).fake_impl.kernel

    @property
    def fake_source(self) -> str | None:
        """``file:line`` of the call that registered the Python fake kernel."""
        return None if self.fake_holder is None else str(self.fake_holder.source)

    @property
    def function(self) -> Callable[..., Any] | None:
        """The Python function that ``custom_op`` decorated, if the op was made so."""
        return None if self.definition is None else self.definition._init_fn

    def function_for(self, device: str) -> Callable[..., Any] | None:
        """The Python kernel that ``custom_op`` runs for a type of device; None for other ops."""
        if self.definition is None:
            return None
        functions: dict[str | None, Callable[..., Any]] = self.definition._backend_fns
        return functions.get(device) or functions.get(None)

    @property
    def autograd(self) -> str | None:
        """How the op is differentiated: ``formula`` (registered), ``composite`` (through its parts), or None.

        The kernel that ``custom_op`` puts at the Autograd key of every op does not count: it only raises.
        """
        if self.definition is not None:
            if self.definition._backward_fn is not None:
                return "formula"
            own = [key for key in self.kernels if key.startswith("Autograd") and key != "Autograd"]
            return "formula" if own else None
        if any(key.startswith("Autograd") for key in self.kernels):
            return "formula"
        return "composite" if self.transparent else None

    @property
    def meets_lazy_views(self) -> bool:
        """Whether a kernel of the op may be handed a tensor with the conj or neg bit set.

        For most ops the dispatcher computes such tensors first. It comes to that only below autograd, so that composite
        kernels and those at an Autograd key see them as they are; and an op can ask to be called with them.
        """
        own = {"Conjugate", "Negative"} & (set(self.kernels) | self.fallthroughs)
        above = self.definition is None and any(key.startswith("Autograd") for key in self.kernels)
        return bool(own) or self.transparent or above

    @property
    def autograd_devices(self) -> tuple[str, ...]:
        """Device types with an autograd kernel of their own, as at the key AutogradCPU."""
        return tuple(device for device, key in backends().items() if f"Autograd{key}" in self.kernels)

    def autograd_for(self, device: str) -> str | None:
        """The dispatch key of the formula for a device type, or None; of transparent ops that of the kernel."""
        own = f"Autograd{backend(device)}"
        if own in self.kernels:
            return own
        # custom_op puts a kernel at Autograd that only raises, until a formula is registered
        if "Autograd" in self.kernels and (self.definition is None or self.definition._backward_fn is not None):
            return "Autograd"
        return self.composite if self.transparent else None

    @property
    def vmap(self) -> str | None:
        """``rule`` if the op has a batching rule; None where torch loops over it, as it does over composite ops."""
        return "rule" if any(key.startswith("FuncTorchBatched") for key in self.kernels) else None

    @property
    def autocast(self) -> tuple[str, ...]:
        """Device types with an autocast rule."""
        return tuple(
            sorted(k.removeprefix("Autocast").lower() or "cuda" for k in self.kernels if k.startswith("Autocast"))
        )

    def autocasts_on(self, device: str) -> bool:
        """Whether the op has an autocast rule for a device type."""
        return f"Autocast{backend(device)}" in self.kernels

    def casts_to_one_dtype(self, device: str) -> bool:
        """Whether the rule comes from ``torch.library.register_autocast``, which casts to one dtype in every region."""
        by_device = getattr(self.definition, "_autocast_dtype", {})
        if device in by_device or getattr(self.definition, f"_autocast_{device}_dtype", None):  # torch 2.9: the latter
            return True
        key = getattr(torch._C.DispatchKey, f"Autocast{backend(device)}", None)
        rule = self.op.py_kernels.get(key) if key is not None else None
        return getattr(rule, "__module__", "") == "torch.library"

    @property
    def mutated(self) -> tuple[str, ...]:
        """Names of the arguments that the schema declares written."""
        return tuple(a.name for a in self.schema.arguments if a.alias_info is not None and a.alias_info.is_write)

    @property
    def effect(self) -> str | None:
        """The effect registered for the op, which keeps compilers from dropping its calls, or None."""
        from torch._higher_order_ops import effects

        get = getattr(effects, "_get_effect", None)
        found = get(self.op) if get is not None else getattr(effects, "SIDE_EFFECTS", {}).get(self.op)
        return None if found is None else str(found)

    @property
    def returns_alias(self) -> bool:
        """Whether the schema declares that an output aliases an argument."""
        return any(r.alias_info is not None for r in self.schema.returns)

    @property
    def returns_lists(self) -> bool:
        """Whether an output is a list, whose length may depend on the inputs."""
        return any("[]" in str(r.type) or "List" in str(r.type) for r in self.schema.returns)

    @property
    def takes_tensors(self) -> bool:
        """Whether any argument is a tensor or holds tensors."""
        return any("Tensor" in str(a.type) for a in self.schema.arguments)

    @property
    def takes_integers(self) -> bool:
        """Whether any argument is an integer or a symbolic one."""
        return any(str(a.real_type) in ("int", "SymInt") for a in self.schema.arguments)


def _unwrap(func: Callable[..., Any]) -> Callable[..., Any]:
    """The user's function inside the closure that ``register_fake`` or ``triton_op`` makes of it."""
    if getattr(func, "__module__", "") not in ("torch.library", "torch._library.triton"):
        return func
    names = func.__code__.co_freevars
    cells = func.__closure__ or ()
    held = {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}
    return held.get("func", held.get("fn", func))  # type: ignore[no-any-return]


def canonical(op: Any) -> str:
    """``ns::name`` for the default overload, else ``ns::name.overload``."""
    name = str(op._schema.name)
    overload = str(op._schema.overload_name)
    return f"{name}.{overload}" if overload else name


def dump(name: str) -> str:
    """The dispatcher's table of an operator; empty for one that is deregistered, or whose name it cannot spell."""
    try:
        return torch._C._dispatch_dump(name)
    except (RuntimeError, UnicodeDecodeError):
        return ""


def info(op: Any) -> OpInfo:
    """Read the registration of an operator given as `resolve` takes it."""
    overload = resolve(op)
    if not isinstance(overload, torch._ops.OpOverload):
        name = f"{overload.__module__}.{getattr(overload, '__qualname__', type(overload).__qualname__)}"
        return OpInfo(name=name, op=overload, kernels={}, where=_source(overload))
    name = canonical(overload)
    kernels: dict[str, str] = {}
    passed: set[str] = set()
    where = ""
    for line in dump(name).splitlines():
        if line.startswith("debug: registered at "):
            where = _short(line.removeprefix("debug: registered at "))
        elif (match := _KERNEL.match(line)) and _FALLTHROUGH in line:
            passed.add(match["key"])
        elif match:
            kernels.setdefault(match["key"], _short(match["where"]))
    definition = custom_ops._maybe_get_opdef(overload)
    if definition is not None:  # the dispatcher only knows that torch.library made it
        where = _short(_source(_unwrap(definition._init_fn))) or where
    return OpInfo(
        name=name,
        op=overload,
        kernels=kernels,
        where=where,
        definition=definition,
        fallthroughs=frozenset(passed),
    )


def registered(info: OpInfo) -> bool:
    """Whether an operator is the one that is registered under its name. Calling another runs memory that was freed."""
    if not info.is_operator:
        return True
    try:
        return resolve(info.name) is info.op
    except UsageError:
        return False


def _source(fn: Any) -> str:
    try:
        return f"{inspect.getsourcefile(fn)}:{inspect.getsourcelines(fn)[1]}"
    except (OSError, TypeError):
        return ""


def _short(where: str) -> str:
    """A registration's place, with torch's own folder cut off."""
    return re.sub(r"^.*/site-packages/", "", where.strip())


def resolve(op: Any) -> Any:
    """The OpOverload meant by a name, a packet, an overload or a CustomOpDef; a plain callable is returned as it is.

    Raises UsageError, with the nearest name, when there is no such operator or a packet has several overloads.
    """
    if isinstance(op, torch._ops.OpOverload):
        return op
    if isinstance(op, custom_ops.CustomOpDef):
        return op._opoverload
    if isinstance(op, torch._ops.OpOverloadPacket):
        return _of_packet(op)
    if isinstance(op, str):
        return _of_name(op)
    if callable(op):
        inner = getattr(op, "_opoverload", None)  # torch._custom_op.impl.CustomOp has no such attribute
        return op if inner is None else inner
    raise UsageError(f"an op must be a name such as 'ns::name', or an operator; got {type(op).__name__}")


def _of_packet(packet: Any) -> Any:
    overloads = packet.overloads()
    if len(overloads) == 1:
        return getattr(packet, overloads[0])
    names = ", ".join(f"{packet._qualified_op_name}.{o}" for o in overloads)
    raise UsageError(f"{packet._qualified_op_name} has {len(overloads)} overloads; name one of {names}")


def _of_name(name: str) -> Any:
    namespace, colons, rest = name.partition("::")  # a namespace may have dots, though no one can write it
    base, _, overload = rest.partition(".")
    qualified = f"{namespace}::{base}"
    if not colons or not base:
        raise UsageError(f"op {name!r} is not of the form 'ns::name' or 'ns::name.overload'")
    packet = getattr(getattr(torch.ops, namespace), base, None) if _packet_exists(qualified) else None
    if packet is None:
        raise UsageError(f"there is no op {name!r}{did_you_mean(qualified, _registered())}")
    if overload in ("", "default"):
        if "default" in packet.overloads():
            return packet.default
        return _of_packet(packet)
    if overload not in packet.overloads():
        raise UsageError(f"{qualified} has no overload {overload!r}{did_you_mean(overload, packet.overloads())}")
    return getattr(packet, overload)


def _registered() -> set[str]:
    return {n.partition(".")[0] for n in torch._C._dispatch_get_all_op_names()}


def _packet_exists(qualified: str) -> bool:
    return bool(torch._C._jit_get_schemas_for_operator(qualified))


def names() -> set[str]:
    """Every registered operator that is not one of torch's built-in ones, as ``ns::name[.overload]``."""
    return {n for n in torch._C._dispatch_get_all_op_names() if n.partition("::")[0] not in TORCHS_OWN}


def matching(patterns: Iterable[str]) -> list[str]:
    """Registered operators that match a glob, lie in a namespace, or are overloads of a name; sorted.

    Raises UsageError, with the nearest name, for a pattern that matches nothing.
    """
    known = torch._C._dispatch_get_all_op_names()
    found: set[str] = set()
    for pattern in patterns:
        hit = [
            n
            for n in known
            if fnmatch.fnmatchcase(n, pattern) or pattern in (n.partition("::")[0], n.partition(".")[0])
        ]
        if not hit:
            near = did_you_mean(pattern, {n.partition("::")[0] for n in known} | set(known))
            raise UsageError(f"no registered op matches {pattern!r}{near}")
        found.update(hit)
    return sorted(found)
