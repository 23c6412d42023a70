"""Specs: loading the modules that hold them, and turning what users write as samples into `Sample` objects."""

from __future__ import annotations

import dataclasses
import fnmatch
import hashlib
import importlib
import importlib.util
import pathlib
import pkgutil
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import torch

from opcheck_suite import ops
from opcheck_suite.inputs import drawing
from opcheck_suite.model import OpSpec, Sample, Tier
from opcheck_suite.registry import UsageError, did_you_mean

#: How many samples are drawn in a tier when a spec gives a Hypothesis strategy. Fewer are the first of more.
DRAWN_SAMPLES = {Tier.STATIC: 10, Tier.QUICK: 10, Tier.STANDARD: 25, Tier.FULL: 25}


class SpecError(Exception):
    """A spec is wrong in a way that shows only when its samples are made. The text is one line."""


@dataclasses.dataclass(frozen=True)
class Entry:
    """A spec, and the operator that it is about; ``info`` is None when the spec says that the op is unavailable."""

    name: str
    spec: OpSpec
    info: ops.OpInfo | None


@dataclasses.dataclass(frozen=True)
class Loaded:
    """What a target on the command line stands for."""

    source: str
    entries: tuple[Entry, ...]
    bare: bool = False
    """Whether the target has no specs, so that its ops have no samples."""


def load(target: str) -> Loaded:
    """Load the specs of a module (``pkg.specs``), a file (``specs.py``), or the ops a module or namespace registers.

    Raises UsageError when there is no such thing or it holds no specs and registers no ops.
    """
    if not target:
        raise UsageError("the target is empty; give a module, a file, or a namespace of ops")
    before = ops.names()
    module = imported(target)
    if module is None:
        return Loaded(target, tuple(_bare(name) for name in ops.matching([target])), bare=True)
    if hasattr(module, "SPECS"):
        return Loaded(target, entries(_specs_of(module, target)))
    new = {n for n in ops.names() - before if not ops.info(n).from_torch} or _registered_in(module)
    if not new:
        others = sorted(n for n in vars(module) if n.lower().startswith("spec"))
        hint = f"; it has {', '.join(others)}" if others else ""
        raise UsageError(f"{target} has no SPECS and registers no ops{hint}")
    return Loaded(target, tuple(_bare(name) for name in sorted(new)), bare=True)


def _bare(name: str) -> Entry:
    return Entry(name, OpSpec(op=name), ops.info(name))


def _specs_of(module: ModuleType, target: str) -> list[OpSpec]:
    try:
        given = module.SPECS() if callable(module.SPECS) else module.SPECS
        found = list(given) if isinstance(given, Iterable) else None
    except (Exception, SystemExit) as error:
        raise UsageError(f"SPECS of {target} raised {type(error).__name__}: {first_line(error)}") from error
    if found is None:
        raise UsageError(f"SPECS of {target} must be a list of OpSpec objects, found {type(given).__name__}")
    if not found:
        raise UsageError(f"SPECS of {target} is empty")
    if wrong := next((s for s in found if not isinstance(s, OpSpec)), None):
        raise UsageError(f"SPECS of {target} must hold OpSpec objects, found {type(wrong).__name__}")
    return found


def entries(specs: Iterable[OpSpec]) -> tuple[Entry, ...]:
    """Resolve the ops of specs. Raises UsageError for an op that does not exist or has two specs."""
    found: dict[str, Entry] = {}
    for spec in specs:
        entry = _entry(spec)
        if entry.name in found:
            raise UsageError(f"{entry.name} has two specs")
        found[entry.name] = entry
    return tuple(found.values())


def _entry(spec: OpSpec) -> Entry:
    if spec.unavailable:
        return Entry(spec.op if isinstance(spec.op, str) else ops.info(spec.op).name, spec, None)
    info = ops.info(spec.op)
    if info.is_operator and isinstance(spec.samples, list | tuple):
        for sample in _normalise(spec.samples, info.name):
            bind(info, sample)
    return Entry(info.name, spec, info)


def imported(target: str) -> ModuleType | None:
    """The module meant by a dotted name or a file's path; None when the target can only be ops' names.

    Raises UsageError when there is no such module or file, or it cannot be imported.
    """
    if target.endswith(".py") or "/" in target:
        return _import_file(pathlib.Path(target))
    if "::" in target or "*" in target:
        return None
    if "" not in sys.path and str(pathlib.Path.cwd()) not in sys.path:
        sys.path.insert(0, str(pathlib.Path.cwd()))
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if missing != target and not target.startswith(missing + "."):
            raise UsageError(f"{target} cannot be imported: it needs {missing!r}, which is not installed") from error
        if any(n.partition("::")[0] == target for n in torch._C._dispatch_get_all_op_names()):
            return None
        near = _near_module(target)
        hint = "" if near else "; if a module registers the ops of that namespace, name the module"
        raise UsageError(f"there is no module or op namespace {target!r}{near}{hint}") from error
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # a module that exits must not end the run as if it were clean
        raise UsageError(f"{target} cannot be imported: {type(error).__name__}: {first_line(error)}") from error


def _import_file(path: pathlib.Path) -> ModuleType:
    if not path.exists():
        near = did_you_mean(path.name, (p.name for p in path.parent.glob("*.py"))) if path.parent.is_dir() else ""
        raise UsageError(f"there is no file {str(path)!r}{near}")
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]
    name = f"{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise UsageError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    except (Exception, SystemExit) as error:
        raise UsageError(f"{path} cannot be imported: {type(error).__name__}: {first_line(error)}") from error
    finally:
        sys.path.remove(str(path.resolve().parent))
        if not hasattr(module, "SPECS"):
            sys.modules.pop(name, None)
    return module


def _near_module(target: str) -> str:
    parent, _, _ = target.rpartition(".")
    known: set[str] = set()
    try:
        if parent:
            package = importlib.import_module(parent)
            known = {f"{parent}.{m.name}" for m in pkgutil.iter_modules(getattr(package, "__path__", []))}
        else:
            # what the standard library has is never meant
            installed = {m.name for m in pkgutil.iter_modules()} - set(sys.stdlib_module_names)
            known = {n.partition("::")[0] for n in ops.names()} | installed
    except ImportError:
        return ""
    return did_you_mean(target, known)


def _registered_in(module: ModuleType) -> set[str]:
    """Ops that were registered before, by a file of this module's package or in a namespace of its name."""
    stem = module.__name__.rpartition(".")[2]
    folder = str(pathlib.Path(getattr(module, "__file__", None) or ".").resolve().parent)
    is_package = hasattr(module, "__path__")
    place = folder + "/" if is_package else str(getattr(module, "__file__", ""))
    found = set()
    for name in ops.names():
        if name.partition("::")[0] == stem:
            found.add(name)
            continue
        if f"registered at {place}" in ops.dump(name):
            found.add(name)
    return found


def samples(
    spec: OpSpec,
    *,
    device: str,
    dtype: Any,
    info: ops.OpInfo,
    tier: Tier = Tier.FULL,
    seed: int = 0,
    only: tuple[str, ...] = (),
) -> list[Sample]:
    """The samples of a spec for a device and dtype, named and checked against the schema: `source`, then `made`."""
    return made(source(spec, device=device, dtype=dtype), info=info, tier=tier, seed=seed, only=only)


def source(spec: OpSpec, *, device: str, dtype: Any) -> Any:
    """What a spec gives as samples for a device and dtype: a list, or a strategy to draw from.

    Raises SpecError when the spec's function raises.
    """
    given = spec.samples
    if not callable(given) or drawing.is_strategy(given):
        return given
    try:
        found = given(device, dtype)
        return found if drawing.is_strategy(found) else list(found)
    except Exception as error:
        raise SpecError(f"samples({device!r}, {dtype}) raised {type(error).__name__}: {first_line(error)}") from error


def made(given: Any, *, info: ops.OpInfo, tier: Tier, seed: int, only: tuple[str, ...] = ()) -> list[Sample]:
    """What a spec gives as samples, named and checked against the schema; or those named by ``only``.

    From a strategy as many are drawn as the tier says, by the seed.

    Raises SpecError when drawing fails, and UsageError when a sample does not fit the schema.
    """
    if drawing.is_strategy(given):
        found = [of_drawn(one.value, info, n) for n, one in enumerate(drawn(given, tier=tier, seed=seed))]
    else:
        found = _normalise(given, info.name)
        if info.is_operator:
            for sample in found:
                bind(info, sample)
    return [sample for sample in found if not only or chosen(sample.name, only)]


def chosen(name: str, patterns: Iterable[str]) -> bool:
    """Whether a sample's name is among some names or matches one of some globs."""
    return any(name == pattern or fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def drawn(strategy: Any, *, tier: Tier, seed: int) -> list[drawing.Drawn]:
    """What a strategy gives in a tier. Raises SpecError when drawing fails."""
    try:
        return drawing.draw(strategy, count=DRAWN_SAMPLES[tier], seed=seed)
    except UsageError:
        raise
    except Exception as error:
        text = f"drawing from the strategy raised {type(error).__name__}: {first_line(error)}"
        raise SpecError(text) from error


def of_drawn(value: Any, info: ops.OpInfo, number: int) -> Sample:
    """A drawn value as a sample. Raises UsageError when it is none, or does not fit the schema."""
    (sample,) = _normalise([value], info.name)
    name = f"example {number + 1}"
    if isinstance(value, Sample) and value.name:
        name += f" ({value.name})"
    sample = dataclasses.replace(sample, name=name)
    if not info.is_operator:
        return sample
    # by position where the schema has it so: a reference may call its arguments otherwise
    return dataclasses.replace(drawing.arranged(info, bind(info, sample)), name=name)


def _normalise(given: Iterable[Any], op: str) -> list[Sample]:
    found = []
    taken: dict[str, int] = {}
    for number, item in enumerate(given):
        sample = _as_sample(item)
        if sample is None:
            kind = type(item).__name__
            raise UsageError(f"{op}: sample {number} must be a Sample, (args, kwargs) or a tuple of args; got {kind}")
        name = sample.name or f"sample {number}"
        taken[name] = taken.get(name, 0) + 1
        if taken[name] > 1:
            name = f"{name} ({taken[name]})"
        found.append(dataclasses.replace(sample, args=tuple(sample.args), kwargs=dict(sample.kwargs), name=name))
    return found


def _as_sample(item: Any) -> Sample | None:
    if isinstance(item, Sample):
        return item
    if isinstance(item, tuple | list):
        if len(item) == 2 and isinstance(item[0], tuple | list) and isinstance(item[1], dict):
            return Sample(args=tuple(item[0]), kwargs=item[1])
        return Sample(args=tuple(item))
    if isinstance(item, torch.Tensor):
        return Sample(args=(item,))
    return None


def bind(info: ops.OpInfo, sample: Sample) -> dict[str, Any]:
    """Argument name -> value as the schema binds a sample; arguments left to their default are absent.

    Raises UsageError when the sample has too many arguments, an unknown one, or lacks one.
    """
    arguments = info.schema.arguments
    positional = [a.name for a in arguments if not a.kwarg_only]
    bound = dict(zip(positional, sample.args, strict=False))
    where = f"{info.name}: {sample.name or 'a sample'}"
    signature = str(info.schema)
    if len(sample.args) > len(positional):
        raise UsageError(
            f"{where} has {len(sample.args)} positional arguments, the schema takes {len(positional)}: {signature}"
        )
    names = [a.name for a in arguments]
    for name, value in sample.kwargs.items():
        if name not in names:
            raise UsageError(f"{where} has an unknown argument {name!r}{did_you_mean(name, names)}: {signature}")
        if name in bound:
            raise UsageError(f"{where} gives argument {name!r} twice: {signature}")
        bound[name] = value
    lacking = [a.name for a in arguments if a.name not in bound and not a.has_default_value()]
    if lacking:
        raise UsageError(f"{where} lacks argument {lacking[0]!r}: {signature}")
    return bound


def first_line(error: BaseException) -> str:
    """The first line of an exception's text, cut to 200 characters."""
    text = str(error).strip().splitlines()
    return text[0][:200] if text else "no message"
