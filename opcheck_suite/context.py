"""What a check is handed: fresh inputs, memoised runs of the op, and the ways to say what was found.

Runs are memoised by sample and variant and shared by all checks of an op, so that an input goes through the op once
however many checks look at what came of it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import random
import sys
import traceback
import warnings
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NoReturn, TypeVar

import torch

from opcheck_suite import compare, devices, fakes, ops, specs, state
from opcheck_suite.inputs import cases, tensors, variants
from opcheck_suite.inputs.cases import Case
from opcheck_suite.model import OpSpec, Tier

T = TypeVar("T")

#: What AOTAutograd says of such ops, and with it the backends above.
NOT_FUNCTIONAL = "torch does not functionalize ops whose outputs alias arguments"

#: (what is about to run, key of the case, its group, with a question mark if the call may be invalid, the call in
#: words). From the last one the parent knows what a dead child was doing.
Announce = Callable[[str, str, str, str], None]


#: Told of a device that is of no use any more, and why. It may end the process; where it returns, checks fail.
Lost = Callable[[str], None]


def silent(what: str, key: str, group: str, call: str) -> None:
    """Announce nothing: there is no parent."""


class Verdict(Exception):
    """Ends a check on a case. Raised by the methods of `Context` only."""


class Failed(Verdict):
    """The op does not have the property."""


class Warned(Verdict):
    """The op has the property, with something its author should know."""


class Noted(Verdict):
    """The op has the property; there is something to tell of it that is no judgement, such as what it costs."""


class Skipped(Verdict):
    """The check does not apply to the op or case."""


class NotExercised(Verdict):
    """The check applies, but nothing ran that could have failed."""


class Refused(Verdict):
    """The op refuses the case with a Python exception, or is known to die of it."""

    def __init__(self, message: str, *, deadly: bool = False) -> None:
        super().__init__(message)
        self.deadly = deadly


class OpRaised(Exception):
    """An exception that came out of the op, not out of the check. ``error`` is the original."""

    def __init__(self, error: BaseException, what: str) -> None:
        super().__init__(f"{what} raised {describe_error(error)}")
        self.error = error


def describe_error(error: BaseException) -> str:
    """Type and first lines of an exception, on one line."""
    text = " ".join(line.strip() for line in str(error).strip().splitlines()[:3] if line.strip())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
    """One eager call: what went in, what came out, what it left behind."""

    case: Case
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    before: list[tensors.Snapshot]
    out: Any
    error: BaseException | None
    left_behind: list[str]
    trace: str = ""
    kept: tuple[Any, ...] = ()
    """Copies of the results as they were when the call returned: an op that reuses a buffer overwrites them later."""

    @property
    def outputs(self) -> list[Any]:
        """The returned values as a list."""
        return tensors.listed(self.out)

    def leaves(self) -> list[tuple[str, torch.Tensor]]:
        """The tensors among the arguments, as they are after the call."""
        return self.case.leaves((self.args, self.kwargs))

    def results(self) -> list[Any]:
        """What a caller sees when the call returns: the outputs, then the mutated arguments."""
        if self.kept:
            return list(self.kept)
        return self.case.results(self.out, self.leaves())


class Context:
    """One op on one device (and dtype), for the checks that look at it."""

    def __init__(
        self,
        spec: OpSpec,
        info: ops.OpInfo,
        *,
        device: str,
        dtype: Any = None,
        seed: int = 0,
        only: tuple[str, ...] = (),
        announce: Announce = silent,
        lost: Lost = lambda _: None,
        tier: Tier = Tier.FULL,
        large: bool = False,
    ) -> None:
        self.spec = spec
        self.info = info
        self.device = device
        self.dtype = dtype
        self.seed = seed
        self.tier = tier
        self.large = large
        """Whether the op may be called on tensors of gigabytes."""
        self.only = only
        """Names or globs of the samples that are looked at; all, if there are none."""
        self.deadly: dict[str, str] = {}
        """What killed an earlier child, as ``eager:``, ``fake:`` or ``threads:`` and a case's key -> how."""
        self._announce = announce
        self._lost = lost
        self._memo: dict[Hashable, Any] = {}

    # -- what there is to look at

    @property
    def source(self) -> Any:
        """What the spec gives as samples: a list, or a strategy to draw from. Raises as `specs.source`."""
        return self.memo("source", lambda: specs.source(self.spec, device=self.device, dtype=self.dtype))

    @property
    def samples(self) -> list[Case]:
        """The spec's samples on this device. Raises `specs.SpecError` when they cannot be made."""

        def make() -> list[Case]:
            found = specs.made(self.source, info=self.info, tier=self.tier, seed=self.seed, only=self.only)
            return [cases.of_sample(self.info, sample, self.device) for sample in found]

        return self.memo("samples", make)

    def alone(self, samples: list[Case]) -> Context:
        """A context for the same op in which nothing has been run, with other cases for samples.

        Runs are remembered by the names of sample and variant, which smaller versions of a sample share with it.
        """
        own = Context(self.spec, self.info, device=self.device, dtype=self.dtype, seed=self.seed, tier=self.tier)
        own.memo("samples", lambda: samples)
        return own

    @property
    def given_for_cpu(self) -> bool:
        """Whether the spec holds samples as they are, on the CPU, and not a function that makes them for a device."""
        given = self.spec.samples
        if callable(given) or hasattr(given, "example"):
            return False
        return any(t.device.type == "cpu" for case in self.samples for t in tensors.tensors([case.args, case.kwargs]))

    def sample_of(self, case: Case) -> Case:
        """The sample that a case is or is derived from."""
        return next(sample for sample in self.samples if sample.sample == case.sample)

    def variants(self, case: Case, group: str) -> list[Case]:
        """The variants of a sample in one group."""
        return self.memo(("variants", case.key, group), lambda: variants.derive(case, group, tier=self.tier))

    @property
    def deterministic(self) -> bool:
        """The claim, or what the op's tags say."""
        if self.spec.deterministic is not None:
            return self.spec.deterministic
        return "nondeterministic_seeded" not in self.info.tags

    @property
    def differentiable(self) -> bool:
        """The claim, or whether an autograd formula is registered."""
        if self.spec.differentiable is not None:
            return self.spec.differentiable
        return self.info.autograd is not None

    def no_gradients(self) -> str | None:
        """Why no check of gradients applies to the op, or None."""
        if not self.differentiable:
            return "the op has no autograd formula, and its spec claims none"
        if self.info.mutated:
            return "torch supports no autograd formula for ops that write to arguments"
        if self.info.autograd is None:
            return "no autograd formula is registered: see registration.autograd"
        return None

    def not_functional(self) -> str | None:
        """Why no check of functionalized programs applies to the op, or None."""
        return NOT_FUNCTIONAL if self.info.returns_alias else None

    @property
    def opaque(self) -> bool:
        """The claim; unclaimed, an op is meant to be opaque."""
        return self.spec.opaque is not False

    def memo(self, key: Hashable, make: Callable[[], T]) -> T:
        """``make()``, remembered for the other checks of this op. Exceptions are remembered too."""
        if key not in self._memo:
            try:
                self._memo[key] = (make(), None)
            except Exception as error:
                self._memo[key] = (None, error)
        value, raised = self._memo[key]
        if raised is not None:
            raise raised
        return value  # type: ignore[no-any-return]

    # -- running the op

    def eager(self, case: Case) -> Run:
        """Call the op on copies of the case's arguments, once for all checks. Exceptions of the op are in
        ``.error``.
        """
        return self.memo(("eager", case.key), lambda: self.call_eager(case))

    def call_eager(self, case: Case) -> Run:
        """As `eager`, not memoised."""
        self._not_deadly("eager", case)
        args, kwargs = case.inputs()
        before = tensors.snapshot(case.leaves((args, kwargs)))
        was = state.read()
        self.announce("eager", case)
        out, error, trace = None, None, ""
        try:
            with self.seeded():
                out = self.info.op(*args, **kwargs)
        except KeyboardInterrupt:
            raise
        except BaseException as raised:  # an op may raise SystemExit: that is its fault, not the end of the run
            error, trace = raised, _own_traceback(raised)
        self.synchronize()
        error = error or devices.unasked_error(self.device)
        self.announce("check", case)
        run = Run(case, args, kwargs, before, out, error, state.changes(was), trace)
        if error is not None:
            return run
        kept = tensors.map_tensors(lambda t: t.detach().clone(), run.results())
        return dataclasses.replace(run, kept=tuple(kept))

    def require(self, case: Case) -> Run:
        """The eager run of a case that the op must accept for a check to look at it. Raises `Refused` otherwise."""
        run = self.eager(case)
        if run.error is not None:
            raise Refused(describe_error(run.error))
        return run

    def attempt(self, case: Case) -> Run | None:
        """The eager run of a case, or None where the op refuses it."""
        try:
            return self.require(case)
        except Refused:
            return None

    def again(self, case: Case) -> Run:
        """A second eager run on equal inputs, once for all checks."""
        return self.memo(("again", case.key), lambda: self.call_eager(case))

    def poisoned(self, case: Case) -> Run:
        """An eager run in which torch fills memory that it allocates, once for all checks."""

        def run() -> Run:
            deterministic: Any = torch.utils.deterministic  # a module whose attributes are set by name
            was = (
                torch.are_deterministic_algorithms_enabled(),
                torch.is_deterministic_algorithms_warn_only_enabled(),
                deterministic.fill_uninitialized_memory,
            )
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.use_deterministic_algorithms(True, warn_only=True)
                deterministic.fill_uninitialized_memory = True
                try:
                    return self.call_eager(case)
                finally:
                    torch.use_deterministic_algorithms(was[0], warn_only=was[1])
                    deterministic.fill_uninitialized_memory = was[2]

        return self.memo(("poisoned", case.key), run)

    def reference(self, case: Case) -> list[Any] | None:
        """What the spec's reference makes of a case: outputs, then mutated arguments; None where it raises.

        Raises `SpecError` when it raises on a sample, since the samples are what it is a reference for.
        """

        def run() -> list[Any] | None:
            try:
                return self.call_reference(case)
            except Exception as error:
                if case.variant:
                    return None
                raise specs.SpecError(f"the reference raised {describe_error(error)}") from error

        return self.memo(("reference", case.key), run)

    def call_reference(self, case: Case) -> list[Any]:
        """As `reference`, not memoised, and with the exception where the reference raises one."""
        assert self.spec.reference is not None
        args, kwargs = case.inputs()
        with self.seeded():
            out = self.spec.reference(*args, **kwargs)
        return case.results(out, case.leaves((args, kwargs)))

    @staticmethod
    def dirty_memory(run: Run) -> None:
        """Fill memory of the outputs' sizes with odd bytes and free it, so that the allocator hands it out next.

        Caching allocators of devices do, too: what an earlier call left there may be the right result. Where outputs
        are small, there is enough for the copies of arguments that are made before the call.
        """
        held = []
        for out in tensors.tensors(run.outputs):
            if tensors.strided(out):
                size = out.untyped_storage().nbytes()
                blocks = 4 + 3 * len(run.leaves()) if size < 1 << 20 else 4
                held += [torch.full((size,), 0xA5, dtype=torch.uint8, device=out.device) for _ in range(blocks)]
        del held

    @staticmethod
    def describe_error(error: BaseException) -> str:
        """Type and first lines of an exception, on one line."""
        return describe_error(error)

    def call(self, fn: Callable[..., T], *args: Any, what: str = "the op", **kwargs: Any) -> T:
        """``fn(*args, **kwargs)`` with the seed set; an exception becomes `OpRaised`, so that it counts as the op's."""
        try:
            with self.seeded():
                return fn(*args, **kwargs)
        except (KeyboardInterrupt, Verdict):
            raise
        except BaseException as error:
            raise OpRaised(error, what) from error

    def fake(self, case: Case, *, symbolic: bool = False, device: str | None = None) -> fakes.FakeRun:
        """Call the op on fake copies of the case's arguments, once for all checks. See `fakes.run`."""

        def run() -> fakes.FakeRun:
            self._not_deadly("fake", case)
            self.announce("fake", case)
            try:
                mode = self.memo("fake mode", fakes.new_mode)
                return fakes.run(self.info.op, case, symbolic=symbolic, device=device, mode=mode)
            finally:
                self.announce("check", case)

        # Fake tensors have no values: variants of these alone are one call.
        key = case.sample if case.group == "content" else case.key
        return self.memo(("fake", key, symbolic, device), run)

    def _not_deadly(self, what: str, case: Case) -> None:
        # Where fake tensors of a sample itself are deadly, those of its variants are not tried.
        for key in (case.key, f"{case.sample}|") if what == "fake" else (case.key,):
            if (how := self.deadly.get(f"{what}:{key}")) is not None:
                raise Refused(how, deadly=True)

    @contextlib.contextmanager
    def seeded(self, seed: int | None = None) -> Iterator[None]:
        """Seed torch, Python and NumPy, with the run's seed or another, and put torch's CPU generator back afterwards.

        ``torch.manual_seed`` would also queue a seed for every device that is not there, with a stack trace each: more
        than half of the time of a quick run.
        """
        seed = self.seed if seed is None else seed
        rng = torch.default_generator.get_state()
        torch.default_generator.manual_seed(seed)
        if (module := devices.module(self.device)) is not None and hasattr(module, "manual_seed_all"):
            module.manual_seed_all(seed)
        random.seed(seed)
        if (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed(seed)
        try:
            yield
        finally:
            torch.default_generator.set_state(rng)

    def synchronize(self, index: int | None = None) -> None:
        """Wait for the device, the current one or that of an index, so that its errors are told here and not later.

        After such an error no call on the device can be relied on: a child that runs checks ends here. Elsewhere it is
        raised, as `OpRaised`.
        """
        if (module := devices.module(self.device)) is None:
            return
        try:
            module.synchronize() if index is None else module.synchronize(index)
        except RuntimeError as error:
            self._lost(describe_error(error))
            raise OpRaised(error, "the device, asked whether all kernels have done well,") from error

    def announce(self, what: str, case: Case) -> None:
        """Tell the parent what is about to run."""
        call = self.memo(("described", case.key), case.describe) if what != "check" else ""
        self._announce(what, case.key, (case.group or "sample") + ("?" if case.uncertain else ""), call)

    # -- verdicts

    def compare(
        self,
        actual: Any,
        expected: Any,
        *,
        names: str = "output",
        exact: bool = False,
        tolerances: tuple[float, float] | None = None,
        growth: float = 1.0,
        coarse: Any = None,
    ) -> str | None:
        """How two nests of outputs differ, with the given tolerances or the spec's; None when they agree.

        See `compare.values` for ``growth`` and ``coarse``.
        """
        tolerances = (0.0, 0.0) if exact else tolerances or self.spec.tolerances
        return compare.values(actual, expected, tolerances=tolerances, names=names, growth=growth, coarse=coarse)

    def fail(self, message: str) -> NoReturn:
        """End the check on this case: the op is at fault. The message's first line says how, with values."""
        raise Failed(message)

    def warn(self, message: str) -> NoReturn:
        """End the check on this case with something the op's author should know."""
        raise Warned(message)

    def note(self, message: str) -> NoReturn:
        """End the check on this case: the op passes. The message is kept with the result: figures, what was seen."""
        raise Noted(message)

    def skip(self, reason: str) -> NoReturn:
        """End the check on this case: it does not apply."""
        raise Skipped(reason)

    def not_exercised(self, reason: str) -> NoReturn:
        """End the check on this case: it applies, but nothing that could fail was run."""
        raise NotExercised(reason)


def _own_traceback(error: BaseException) -> str:
    """The traceback of an exception, without the frames of this package."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/opcheck_suite/" not in f.filename]
    return "".join(traceback.format_list(frames[-12:])) + "".join(traceback.format_exception_only(error))
