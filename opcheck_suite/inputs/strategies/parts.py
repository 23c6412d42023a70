"""Parts of a call: what is fixed, what is drawn, and what depends on other arguments.

Every strategy of this package takes parts where others take values: a plain value, a Hypothesis strategy, or a
`Relation`, which is drawn once the arguments that it names are known. A list or tuple of parts is a part.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from opcheck_suite.registry import UsageError

#: What Hypothesis hands to a composite strategy: draws from a strategy.
Draw = Callable[[SearchStrategy[Any]], Any]

#: How a part is drawn, given the arguments that are known.
Pick = Callable[[Draw, Mapping[str, Any]], Any]

_MEMBER = re.compile(r"(?P<name>\w+)(?:\[(?P<index>\d+)\])?")

#: How often a filter is tried before the example is given up, as Hypothesis's own filters do it.
_TRIES = 3


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """Drawn for an argument that a call leaves to its default."""

    default: Any


class Relation:
    """A part that depends on other arguments of the call, such as an index into one of them.

    ``needs`` holds the names of these arguments. It is drawn by `sample` or `from_schema`, which know them; it is no
    Hypothesis strategy of its own.
    """

    def __init__(self, pick: Pick, needs: frozenset[str], text: str) -> None:
        self.pick = pick
        self.needs = needs
        self._text = text

    def map(self, fn: Callable[[Any], Any]) -> Relation:
        """The part with a function applied to what is drawn, as for strategies."""
        return Relation(lambda draw, known: fn(self.pick(draw, known)), self.needs, f"{self!r}.map({_name(fn)})")

    def filter(self, fn: Callable[[Any], Any]) -> Relation:
        """The part restricted to what a condition holds for, as for strategies: it should hold for most."""

        def pick(draw: Draw, known: Mapping[str, Any]) -> Any:
            for _ in range(_TRIES):
                if fn(value := self.pick(draw, known)):
                    return value
            return reject()

        return Relation(pick, self.needs, f"{self!r}.filter({_name(fn)})")

    def __repr__(self) -> str:
        return self._text


def related(pick: Pick, *parts: Any, text: str) -> Any:
    """A strategy that draws with ``pick``, or a `Relation` where one of the parts that it uses is one.

    ``text`` is how error messages call it.
    """
    relation = Relation(pick, needed(parts), text)
    return relation if relation.needs else drawn(relation)


@st.composite
def drawn(draw: Draw, part: Relation) -> Any:
    """A strategy for a part that depends on nothing. One function for all: making composites is slow."""
    return part.pick(draw, {})


def needed(part: Any) -> frozenset[str]:
    """The names of the arguments that a part depends on."""
    if isinstance(part, Relation):
        return part.needs
    if type(part) in (list, tuple):
        return frozenset().union(*map(needed, part))
    return frozenset()


def resolve(part: Any, draw: Draw, known: Mapping[str, Any]) -> Any:
    """The value of a part."""
    if isinstance(part, SearchStrategy):
        return draw(part)
    if isinstance(part, Relation):
        return part.pick(draw, known)
    if type(part) in (list, tuple):
        return type(part)([resolve(item, draw, known) for item in part])
    return part


def value_of(name: Any) -> Any:
    """The value of another argument: ``value_of("n")``, or ``value_of("xs[0]")`` for a member of a list.

    What is no string is returned as it is, so that relations hold between drawn values, too.

    Raises UsageError when the text is no name.
    """
    if not isinstance(name, str):
        return name
    match = _MEMBER.fullmatch(name)
    if match is None:
        raise UsageError(f"{name!r} is not the name of an argument, such as 'x' or 'xs[0]'")
    argument, index = match["name"], match["index"]

    def pick(_: Draw, known: Mapping[str, Any]) -> Any:
        value = known[argument]
        if isinstance(value, LeftOut):
            value = value.default
        if index is None:
            return value
        return value[int(index)] if int(index) < len(value) else reject()

    return Relation(pick, frozenset({argument}), f"value_of({name!r})")


def depends_on(*names: Any, make: Callable[..., Any]) -> Any:
    """What a function makes of other arguments: a value, or a strategy to draw from.

    ``depends_on("x", "dim", make=lambda x, dim: st.integers(1, x.shape[dim]))``
    """
    parts = tuple(map(value_of, names))

    def pick(draw: Draw, known: Mapping[str, Any]) -> Any:
        return resolve(make(*resolve(parts, draw, known)), draw, known)

    return related(pick, *parts, text=shown("depends_on", *names, make=_name(make)))


def shown(constructor: str, *args: Any, **kwargs: Any) -> str:
    """A call in words, for error messages. Parts are shown as they were written."""
    words = [repr(a) for a in args] + [f"{k}={v!r}" for k, v in kwargs.items()]
    return f"{constructor}({', '.join(words)})"


def _name(fn: Any) -> str:
    return getattr(fn, "__name__", repr(fn))
