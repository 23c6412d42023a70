"""The central types. Nothing here imports torch or another module of the suite."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

#: Families of checks, in the order in which they run. Values come before schema and fake so that an
#: input that kills the process is reported as what it is, and not as a wrong schema.
FAMILIES = (
    "namespace",
    "deprecated",
    "registration",
    "values",
    "schema",
    "dispatch",
    "fake",
    "autograd",
    "transform",
    "device",
    "opcheck",
    "compile",
    "export",
)


class Outcome(enum.StrEnum):
    """What came of one check on one sample."""

    PASS = "pass"  # noqa: S105 - not a password
    FAIL = "fail"
    WARN = "warn"
    XFAIL = "xfail"
    XPASS = "xpass"
    SKIP = "skip"
    NOT_EXERCISED = "not_exercised"
    ERROR = "error"
    CRASH = "crash"
    TIMEOUT = "timeout"

    @property
    def bad(self) -> bool:
        """Whether the outcome makes a run fail."""
        return self in _BAD

    @property
    def strict_bad(self) -> bool:
        """Whether the outcome makes a run fail under ``--strict``."""
        return self in _BAD or self in (Outcome.WARN, Outcome.NOT_EXERCISED)


#: What is found of an op. An error is the harness's or the spec's own, and no expectation excuses it.
FOUND = (Outcome.FAIL, Outcome.CRASH, Outcome.TIMEOUT, Outcome.WARN)
_BAD = frozenset({Outcome.FAIL, Outcome.XPASS, Outcome.ERROR, Outcome.CRASH, Outcome.TIMEOUT})

#: From harmless to serious; the outcome of a cell of the matrix is the most serious of its results.
SEVERITY = (
    Outcome.SKIP,
    Outcome.NOT_EXERCISED,
    Outcome.PASS,
    Outcome.XFAIL,
    Outcome.WARN,
    Outcome.XPASS,
    Outcome.ERROR,
    Outcome.FAIL,
    Outcome.TIMEOUT,
    Outcome.CRASH,
)


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The most serious of some outcomes. Raises ValueError when there are none."""
    return max(outcomes, key=SEVERITY.index)


class Tier(enum.StrEnum):
    """How much is run. Each tier contains the ones before it."""

    STATIC = "static"
    QUICK = "quick"
    STANDARD = "standard"
    FULL = "full"

    def includes(self, other: Tier) -> bool:
        """Whether a check of tier ``other`` runs when this tier is asked for."""
        order = list(Tier)
        return order.index(other) <= order.index(self)


@dataclasses.dataclass(frozen=True, eq=False)
class Sample:
    """One valid call of an op.

    ``args`` and ``kwargs`` are what the op is called with. They are never passed to the op
    themselves: every call gets fresh copies. ``name`` appears in reports; unnamed samples are numbered.
    """

    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    name: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class OpSpec:
    """What the suite is told about one op beyond its schema.

    Only ``op`` is required. A claim left at None is inferred from the registration.
    """

    op: Any
    """``"ns::name"``, ``"ns::name.overload"``, an OpOverload, an OpOverloadPacket, or what
    ``torch.library.custom_op`` returned."""

    samples: Any = ()
    """A list of samples, or a function ``(device, dtype) -> iterable``. A sample is a `Sample`,
    a pair ``(args, kwargs)``, or a tuple of args."""

    reference: Callable[..., Any] | None = None
    """A function with the op's signature that is known to be right. It gets copies of the arguments, so it
    may mutate them as the op does."""

    devices: tuple[str, ...] | None = None
    """Device types that the op claims to support. None: those it has kernels for."""

    dtypes: tuple[Any, ...] | None = None
    """dtypes to ask ``samples(device, dtype)`` for. None: it is asked once, with None."""

    differentiable: bool | None = None
    """The op can be trained through. None: true when an autograd formula is registered."""

    deterministic: bool | None = None
    """Equal inputs give equal outputs. None: true unless tagged ``nondeterministic_seeded``."""

    requires_contiguous: bool = False
    """The op refuses strided tensors; verified: it must raise, and must not compute."""

    opaque: bool | None = None
    """The compiler must not look inside. False: a CompositeImplicitAutograd op, transparent on purpose.
    None: true unless the op is in such a composite form through C++ or ``torch.library.impl``."""

    unwrapped: Callable[..., Any] | None = None
    """The plain function that the op wraps. Verified: it breaks the graph, and the op does not."""

    tolerances: tuple[float, float] | None = None
    """``(rtol, atol)`` for comparisons of values. None: torch.testing's defaults for the dtype."""

    expected_failures: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Check id -> reason, or a `KnownFailure` that says more. Strict: one that passes all the same is an ``xpass``."""

    unavailable: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Capability -> why it is missing on this machine, such as ``{"native": "no C++ compiler"}``. A spec with an
    entry is skipped with that reason, unless ``--require`` names the capability."""

    about: str = ""
    """One line: why the op is here. Shown in reports."""


@dataclasses.dataclass(frozen=True)
class Check:
    """One property that an op must have, with its documentation."""

    id: str
    title: str
    what: str
    why: str
    fix: str
    docs: str
    tier: Tier
    severity: Outcome
    since: str
    fn: Callable[..., Any]
    variants: tuple[str, ...] = ("sample",)
    scope: str = "case"
    applies: Callable[..., str | None] | None = None
    failing_samples: bool = False
    shrinks: bool = True

    @property
    def family(self) -> str:
        """The part of the id before the dot."""
        return self.id.partition(".")[0]


@dataclasses.dataclass(frozen=True, order=True)
class Unit:
    """What is planned: one check on one op on one device (and dtype). Strings only, so that it crosses processes."""

    op: str
    check: str
    device: str
    dtype: str = ""

    def __str__(self) -> str:
        where = f"{self.device}/{self.dtype}" if self.dtype else self.device
        return f"{self.op} {self.check} {where}"

    @property
    def test_id(self) -> str:
        """The unit as the id of a test: ``my_ops::muladd-fake.strides-cpu``."""
        return "-".join(part for part in (self.op, self.check, self.device, self.dtype) if part)


@dataclasses.dataclass(frozen=True)
class Result:
    """One row of a report: a unit on a sample, and what came of it."""

    op: str
    check: str
    device: str
    sample: str
    outcome: Outcome
    message: str = ""
    seconds: float = 0.0
    dtype: str = ""
    cases: int = 0
    """How many inputs (the sample and those derived from it) the check looked at."""
    detail: str = ""
    """Traceback, captured output: what a person needs only when the message does not suffice."""

    @property
    def unit(self) -> Unit:
        """The unit that the result belongs to."""
        return Unit(self.op, self.check, self.device, self.dtype)


class ConformanceError(AssertionError):
    """Raised by `Report.raise_if_bad`; its text is the report's failures."""


@dataclasses.dataclass(frozen=True)
class Report:
    """All results of a run, with what is needed to read them later."""

    SCHEMA_VERSION = 1

    results: tuple[Result, ...]
    environment: Mapping[str, str]
    options: Mapping[str, Any]
    ops: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """Every op that was in the run -> what its spec says about it."""
    seconds: float = 0.0
    stopped: str = ""
    """Why the run did not come to its end, such as ``interrupted after 3 of 40 checks``; empty where it did."""

    @property
    def bad(self) -> tuple[Result, ...]:
        """The results that make the run fail, given its ``strict`` option."""
        strict = bool(self.options.get("strict"))
        return tuple(r for r in self.results if (r.outcome.strict_bad if strict else r.outcome.bad))

    @property
    def ok(self) -> bool:
        """Whether something was run, to its end, and nothing is bad."""
        return bool(self.results) and not self.bad and not self.stopped

    @functools.cached_property
    def by_op(self) -> Mapping[str, Sequence[Result]]:
        """Op -> its results."""
        found: dict[str, list[Result]] = {}
        for r in self.results:
            found.setdefault(r.op, []).append(r)
        return found

    def counts(self) -> Counter[Outcome]:
        """How many results there are by outcome."""
        return Counter(r.outcome for r in self.results)

    def raise_if_bad(self) -> None:
        """Raise `ConformanceError` with the failures as text, if there are any or nothing was run."""
        if not self.ok:
            raise ConformanceError(str(self))

    def __str__(self) -> str:
        from opcheck_suite.reports import text

        return text.render(self)
