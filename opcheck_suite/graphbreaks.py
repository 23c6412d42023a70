"""Graph breaks and given-up frames of a compilation, as Dynamo reports them.

Private names of torch used: ``InstructionTranslatorBase.log_graph_break``, through which every break goes that Dynamo
gets over, and attributes of the exception that it is handed. Where a torch has no such method, breaks are those that
graphs and counters tell of.
"""

from __future__ import annotations

import contextlib
import dataclasses
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any
from unittest import mock

from opcheck_suite import places

#: The method that Dynamo calls once for each break.
HOOK = "log_graph_break"

_RESUMED = re.compile(r"torch_dynamo_resume_in_(\w+?)_at_\d+")
_ANOTHER = "*** While handling this graph break, another graph break occurred: ***"
#: What Dynamo writes before the text of a break, to say what it does about it.
_PREAMBLE = re.compile(r"\A(Encountered graph break|Failed to handle graph break).*?:\n\n", re.DOTALL)
#: Beginnings of the preamble where the rest of the function runs in eager.
_GIVEN_UP = ("Failed to handle graph break", "Encountered graph break that we cannot resume from")


@dataclasses.dataclass(frozen=True)
class Frame:
    """A line of the user's code."""

    file: str
    line: int
    function: str

    @property
    def location(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"


@dataclasses.dataclass(frozen=True)
class Break:
    """One graph break: a place in the code where Dynamo cannot go on, for one reason."""

    reason: str
    """What Dynamo could not trace, on one line."""
    location: str
    """``file:line`` of the user's code, or empty."""
    hint: str
    """What torch proposes first, or empty."""
    kind: str = ""
    """Torch's title of this kind of break, such as ``Data-dependent branching``."""
    context: str = ""
    """What torch notes for developers: the values or names it met, on one line, or empty."""
    link: str = ""
    """Torch's page about this kind, or empty."""
    hints: tuple[str, ...] = ()
    """All that torch proposes, except to report an issue."""
    stack: tuple[Frame, ...] = ()
    """The calls that lead to the place, outermost first, without frames of torch and of the standard library."""
    consequence: str = ""
    """Why Dynamo did not go on behind the break, such as ``graph break in loop``, on one line, or empty."""
    skips: bool = False
    """Whether Dynamo gave up on the rest of the function, which then runs in eager."""
    times: int = 1
    """How often Dynamo broke there, also in the standard library's code below the place."""


@dataclasses.dataclass(frozen=True)
class Skip:
    """A frame that Dynamo gave up on as a whole."""

    function: str
    location: str
    """``file:line`` of the function's beginning, or empty."""
    reason: str
    """Why, on one line."""


@dataclasses.dataclass(frozen=True)
class _Event:
    found: Break
    below: bool
    """Whether the code that was being traced is not the user's: it ran because of an earlier break."""


class Recorder:
    """Collects the breaks of compilations inside of ``with recorder.recording()``."""

    def __init__(self) -> None:
        self._events: list[_Event] = []
        self.hooked = False

    @contextlib.contextmanager
    def recording(self) -> Iterator[None]:
        """Note every break that Dynamo logs until the block ends."""
        from torch._dynamo.symbolic_convert import InstructionTranslatorBase

        original = getattr(InstructionTranslatorBase, HOOK, None)
        if original is None:
            yield
            return

        def hook(translator: Any, *args: Any, **kwargs: Any) -> Any:
            self._note(list(args) + list(kwargs.values()))
            return original(translator, *args, **kwargs)

        self.hooked = True
        with mock.patch.object(InstructionTranslatorBase, HOOK, hook):
            yield

    def _note(self, given: list[Any]) -> None:
        """``given`` are the arguments of the hook, whose order and names differ between versions of torch."""
        error = next((v for v in given if isinstance(v, BaseException)), None) or sys.exc_info()[1]
        if getattr(error, "logged", False):
            return
        text = next((v for v in given if isinstance(v, str)), "") or str(error)
        traced = getattr(error, "real_stack", None) or next((v for v in given if isinstance(v, list)), [])
        message = str(getattr(error, "msg", "")) or _PREAMBLE.sub("", text)
        skips = text.startswith(_GIVEN_UP) or bool(getattr(error, "skip_frame", False))
        inside = user_frames((f.filename, f.lineno, f.name) for f in traced)
        stack = _collapsed([*user_frames(_running()), *inside])
        self._events.append(_Event(parse(message, stack, skips=skips), below=bool(traced) and not inside))

    def add(self, reason: str, traced: Any) -> None:
        """Note a break that a graph tells of, on a torch that has no hook."""
        stack = _collapsed(user_frames((f.filename, f.lineno, f.name) for f in traced or ()))
        self._events.append(_Event(parse(reason, stack), below=False))

    def breaks(self, counted: Iterable[str] = (), unhandled: Iterable[str] = ()) -> tuple[Break, ...]:
        """One break for each place and kind, in order.

        ``counted`` are the texts of breaks that torch's counters know, of which those that were not noted are added;
        ``unhandled`` are texts that count only where nothing else says why a frame was given up.
        """
        found: dict[tuple[str, str], Break] = {}
        for event in self._events:
            new = event.found
            key = (new.location, new.kind)
            # The standard library's code is compiled by itself once the call of it broke the graph.
            if event.below and new.location:
                key = next((k for k in found if k[0] == new.location), key)
            known = found.get(key)
            found[key] = new if known is None else _again(known, new, below=event.below)
        kinds = {event.found.kind for event in self._events}
        for text in [*counted, *([] if found else unhandled)]:
            only = parse(text, ())
            if only.kind not in kinds:
                found[text, only.kind] = only
        return tuple(found.values())


def _again(known: Break, new: Break, *, below: bool) -> Break:
    """A break that was met once more; what happens in the standard library says nothing of the user's function."""
    if below:
        return dataclasses.replace(known, times=known.times + 1)
    return dataclasses.replace(
        known,
        times=known.times + 1,
        skips=known.skips or new.skips,
        consequence=known.consequence or new.consequence,
    )


def parse(text: str, stack: tuple[Frame, ...], *, skips: bool = False) -> Break:
    """A break from torch's text of it: title, explanation, hints, context and link, each on lines of its own."""
    first, *later = text.split(_ANOTHER)
    details = text if not later else first
    hints = _hints(details) or _hints(text)
    return Break(
        reason=headline(first),
        location=stack[-1].location if stack else "",
        hint=next(iter(hints), ""),
        kind=_title(first),
        context=_context(details),
        link=next(iter(re.findall(r"please visit: (https://\S+)", details)), ""),
        hints=hints,
        stack=stack,
        consequence=headline(later[-1]) if later else "",
        skips=skips,
    )


def headline(text: str) -> str:
    """Title and explanation of a break's text, which in torch has a line for each, on one line."""
    lines = [line.strip() for line in text.strip().splitlines()] or [""]
    explanation = next((line.removeprefix("Explanation: ") for line in lines if line.startswith("Explanation: ")), "")
    return f"{lines[0]}: {explanation}" if explanation else lines[0]


def _title(text: str) -> str:
    return headline(text.partition("\n  Explanation:")[0])


def _hints(text: str) -> tuple[str, ...]:
    hints = re.findall(r"^\s*Hint: (.*)$", text, flags=re.MULTILINE)
    return tuple(h.strip() for h in hints if "report an issue" not in h)


def _context(text: str) -> str:
    found = re.search(r"^\s*Developer debug context:(.*?)(?:\n\s*\n|\Z)", text, flags=re.MULTILINE | re.DOTALL)
    return " ".join(found.group(1).split()) if found else ""


# -- stacks


def user_frames(frames: Iterable[tuple[str, int | None, str]]) -> list[Frame]:
    """The frames that are neither torch's, the standard library's, nor this package's."""
    return [Frame(file, line or 0, name) for file, line, name in frames if _users(file)]


def _users(file: str) -> bool:
    return places.users(file) and not file.startswith(("<frozen ", "<eval_with_key>", "<string>"))


def _running() -> list[tuple[str, int | None, str]]:
    """The Python frames between the call of the compiled function and Dynamo, outermost first."""
    found: list[tuple[str, int | None, str]] = []
    frame = sys._getframe(2)
    while frame.f_code.co_filename.startswith(places.OWN) and frame.f_back is not None:  # the hook's own
        frame = frame.f_back
    running: Any = frame
    while running is not None and not running.f_code.co_filename.startswith(places.OWN):
        found.append((running.f_code.co_filename, running.f_lineno, running.f_code.co_name))
        running = running.f_back
    return found[::-1]


def _collapsed(frames: list[Frame]) -> tuple[Frame, ...]:
    """Frames in which a function, and the functions that Dynamo resumes it with, are one."""
    found: list[Frame] = []
    for frame in frames:
        name = resumed_name(frame.function)
        if name != frame.function:
            frame = dataclasses.replace(frame, function=name)
            if found and found[-1].file == frame.file and found[-1].function == frame.function:
                found.pop()
        found.append(frame)
    return tuple(found)


def resumed_name(name: str) -> str:
    """The name of the function that a function made by Dynamo goes on with; other names are returned as they are."""
    resumed = _RESUMED.fullmatch(name)
    return resumed.group(1) if resumed else name


def skips(metrics: Iterable[Any]) -> tuple[Skip, ...]:
    """The frames that torch's metrics of compilations call failed."""
    found: dict[tuple[str, str], Skip] = {}
    for one in metrics:
        if getattr(one, "fail_type", None):
            skip = Skip(
                resumed_name(str(one.co_name)),
                place(one),
                headline(_PREAMBLE.sub("", str(one.fail_reason or one.fail_type))),
            )
            found[(skip.function, skip.location)] = skip
    return tuple(found.values())


def place(metric: Any) -> str:
    """``file:line`` of the function that a metric is about, or empty."""
    file, line = getattr(metric, "co_filename", None), getattr(metric, "co_firstlineno", None)
    return f"{file}:{line}" if file and line else ""
