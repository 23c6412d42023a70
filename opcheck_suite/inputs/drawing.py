"""Draw samples from a Hypothesis strategy, and find the smallest one on which something fails.

Hypothesis is imported only when a strategy is at hand. Its database is not used, and everything follows from a seed, so
that a sample called "example 3" is the same in every process.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from opcheck_suite import ops
from opcheck_suite.inputs import tensors
from opcheck_suite.model import Sample

#: How many examples Hypothesis may make. It is the same however many are wanted, since it decides how they are made: so
#: a small number of examples is the beginning of a larger one.
_EXAMPLES = 200


#: Bytes from which on the content of a tensor is not looked at.
_LARGE = 1 << 16


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A value drawn from a strategy."""

    value: Any
    turn: int
    """How many examples Hypothesis had made before it."""


class _Enough(BaseException):
    """Ends a run of Hypothesis, which would take an `Exception` for a failing example."""


class _Found(Exception):
    """Tells Hypothesis that an example fails."""


def is_strategy(value: Any) -> bool:
    """Whether a value is a Hypothesis strategy."""
    if "hypothesis" not in sys.modules:
        return False
    from hypothesis.strategies import SearchStrategy

    return isinstance(value, SearchStrategy)


def draw(strategy: Any, *, count: int, seed: int) -> list[Drawn]:
    """At most ``count`` different values: the simplest first, then what Hypothesis makes of the seed.

    Raises whatever the strategy raises; Hypothesis's ``Unsatisfiable`` where it draws nothing.
    """
    found: list[Drawn] = []
    seen: set[Any] = set()
    turn = 0

    def visit(value: Any) -> None:
        nonlocal turn
        turn += 1
        if (mark := fingerprint(value)) not in seen:
            seen.add(mark)
            found.append(Drawn(value, turn - 1))
        if len(found) == count:
            raise _Enough

    _run(strategy, visit, seed=seed)
    return found


def smallest(
    strategy: Any,
    fails: Callable[[Any], bool],
    *,
    start: Drawn,
    seed: int,
    most: int,
    seconds: float,
) -> Any:
    """The simplest value that Hypothesis finds on which ``fails``, beginning with one of `draw`; None if there is none.

    ``seed`` is that which the value was drawn with. At most ``most`` values are tried, and none once ``seconds`` have
    passed: the best until then is returned.
    """
    turn = tried = 0
    best: Any = None
    deadline = time.monotonic() + seconds

    def visit(value: Any) -> None:
        nonlocal turn, tried, best
        turn += 1
        if turn <= start.turn:
            return
        if tried == most or time.monotonic() > deadline:
            raise _Enough
        tried += 1
        if fails(value):
            best = Drawn(value, turn - 1)
            raise _Found
        if best is None:  # it does not fail when it is run by itself
            raise _Enough

    _run(strategy, visit, seed=seed)
    return None if best is None else best.value


def _run(strategy: Any, visit: Callable[[Any], None], *, seed: int) -> None:
    import hypothesis
    from hypothesis import HealthCheck, Phase, Verbosity

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=_EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        print_blob=False,
        verbosity=Verbosity.quiet,
    )
    @hypothesis.given(strategy)
    def example(value: Any) -> None:
        visit(value)

    with contextlib.suppress(_Enough, _Found):
        example()


def fingerprint(value: Any) -> Any:
    """What tells two drawn values apart: dtypes, shapes, strides and bytes of tensors, and the text of all else."""
    if isinstance(value, torch.Tensor):
        return (tensors.describe(value), value.requires_grad, _content(value))
    if isinstance(value, list | tuple):
        return (type(value).__name__, *map(fingerprint, value))
    if isinstance(value, dict):
        return tuple((key, fingerprint(item)) for key, item in value.items())
    if isinstance(value, torch.Generator):
        return (str(value.device), value.initial_seed())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return fingerprint({f.name: getattr(value, f.name) for f in dataclasses.fields(value)})
    return repr(value)


def _content(tensor: torch.Tensor) -> Any:
    if not tensors.strided(tensor):
        return repr(tensor)
    small = tensor.device.type != "meta" and tensor.untyped_storage().nbytes() < _LARGE
    return bytes(tensors.raw(tensor).tolist()) if small else None


def arranged(info: ops.OpInfo, values: Mapping[str, Any]) -> Sample:
    """The sample with these arguments: by position as far as the schema has them so and none is left out."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    positional = True
    for argument in info.schema.arguments:
        if argument.name not in values:
            positional = False
        elif positional and not argument.kwarg_only:
            args.append(values[argument.name])
        else:
            kwargs[argument.name] = values[argument.name]
    return Sample(tuple(args), kwargs)
