"""Child processes: whatever an operator does to its process, the parent learns of it and reports it.

A child is forked from a parent that has imported torch and the specs but has run no operator, so that starting one
costs milliseconds. It announces each step on a pipe before taking it; when it dies or falls silent, the parent, never
the dying child, says so and names the step. Only JSON crosses the pipe.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import faulthandler
import gc
import json
import os
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from typing import Any, ClassVar, TextIO

import psutil

#: Descriptors of a child are moved here, so that an op that closes or reuses low ones does not cut it off.
_HIGH = 200

#: Bytes at the end of a dead child's output that are looked at, and characters of it that are kept once the frames of
#: the harness, of which there may be a hundred, are taken out.
_READ_BACK, _KEPT = 1 << 16, 4000

Send = Callable[[dict[str, Any]], None]
Serve = Callable[["Commands", Send], None]


class Commands:
    """The commands of the parent, as the child reads them."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __iter__(self) -> Commands:
        return self

    def __next__(self) -> dict[str, Any]:
        line = self._stream.readline()
        if not line:
            raise StopIteration
        return json.loads(line)  # type: ignore[no-any-return]


@dataclasses.dataclass(frozen=True)
class Death:
    """How a child ended."""

    how: str
    timed_out: bool
    by_signal: bool
    """Whether a signal ended it that this process did not send, as memory that was overwritten makes happen."""
    output: str
    """The end of what it wrote to stdout and stderr, with the stack that faulthandler printed."""


def available() -> bool:
    """Whether this platform can fork."""
    return hasattr(os, "fork")


class Child:
    """One forked process that runs ``serve(commands, send)``."""

    #: The parent's ends of all pipes: a new child closes its copies, or its siblings would never see theirs close.
    _parent_ends: ClassVar[set[int]] = set()

    def __init__(self, serve: Serve, *, memory_limit: int) -> None:
        """``memory_limit`` is in bytes of resident memory on top of what the child starts with; 0 is no limit."""
        self._capture = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        command_read, self._command_write = os.pipe()
        event_read, event_write = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            # Python warns of forks beside threads. The threads here are idle (a progress bar's, xdist's receiver),
            # and the child takes none of their locks.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            own = {self._command_write, event_read}
            _child(serve, command_read, event_write, self._capture.fileno(), own | self._parent_ends)
        self._parent_ends.update({self._command_write, event_read})
        os.close(command_read)
        os.close(event_write)
        self.events = event_read
        self._buffer = b""
        self._pending: collections.deque[dict[str, Any]] = collections.deque()
        self._status: int | None = None
        self._killed_for: str | None = None
        self._limit = memory_limit
        self._process: psutil.Process | None = None
        self._baseline = 0
        with contextlib.suppress(psutil.Error):
            self._process = psutil.Process(self.pid)
            self._baseline = self._process.memory_info().rss
        self.last_heard = time.monotonic()

    def fileno(self) -> int:
        """The descriptor that becomes readable when the child has something to say or has died."""
        return self.events

    def send(self, command: dict[str, Any]) -> None:
        """Give the child a command. A child that is gone is noticed by `receive`."""
        self.last_heard = time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            os.write(self._command_write, json.dumps(command).encode() + b"\n")

    def receive(self, *, timeout: float) -> dict[str, Any] | None:
        """The next event, or None after ``timeout`` seconds without one. Raises EOFError when the child is gone."""
        if not self._pending:
            ready, _, _ = select.select([self.events], [], [], timeout)
            if ready:
                self._read()
            elif self.gone():  # its pipe is still open where it left children of its own behind
                raise EOFError
        return self._pending.popleft() if self._pending else None

    def gone(self) -> bool:
        """Whether the process has ended, although its pipe may still be open."""
        if self._status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self._status = status
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)  # what it started ends with it
        return self._status is not None

    def _read(self) -> None:
        chunk = os.read(self.events, 1 << 16)
        if not chunk:
            raise EOFError
        self.last_heard = time.monotonic()
        *lines, self._buffer = (self._buffer + chunk).split(b"\n")
        self._pending.extend(json.loads(line) for line in lines if line)

    def check_limits(self, *, timeout: float) -> None:
        """Kill the child if it has been silent for ``timeout`` seconds or holds too much memory."""
        if self._killed_for is not None:
            return
        silent = time.monotonic() - self.last_heard
        if timeout and silent > timeout:
            self._kill(f"it did not finish within {timeout:g} s")
            return
        if self._limit and self._process is not None:
            with contextlib.suppress(psutil.Error):
                held = self._process.memory_info().rss - self._baseline
                if held > self._limit:
                    self._kill(f"it took {held / 2**30:.1f} GiB of memory (limit {self._limit / 2**30:.1f} GiB)")

    def _kill(self, why: str) -> None:
        self._killed_for = why
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def bury(self) -> Death:
        """Wait for a child that is gone, and say how it ended."""
        self._reap()
        assert self._status is not None
        code = os.waitstatus_to_exitcode(self._status)
        timed_out = self._killed_for is not None and "finish within" in self._killed_for
        if self._killed_for is not None:
            how = self._killed_for
        elif code < 0:
            how = f"it died of {signal.Signals(-code).name} ({signal.strsignal(-code)})"
        else:
            how = f"it ended the process with exit status {code}"
        size = self._capture.seek(0, os.SEEK_END)
        self._capture.seek(max(0, size - _READ_BACK))
        output = _readable(self._capture.read().decode(errors="replace"))[-_KEPT:]
        self.close()
        return Death(how, timed_out, code < 0 and self._killed_for is None, output)

    def _reap(self) -> None:
        """Wait for the child, killing it if it does not go by itself."""
        deadline = time.monotonic() + 2
        while not self.gone():
            if time.monotonic() > deadline:
                break
            time.sleep(0.001)
        else:
            return
        self._kill(self._killed_for or "it closed its connection to the parent")
        _, self._status = os.waitpid(self.pid, 0)

    def close(self) -> None:
        """End the child, if it lives, and free what it held. May be called twice."""
        if self._capture.closed:
            return
        self._parent_ends.difference_update({self._command_write, self.events})
        os.close(self._command_write)
        self._reap()
        os.close(self.events)
        self._capture.close()

    def kill(self) -> None:
        """End the child at once."""
        if self._status is None:
            self._kill("it was told to stop")
        self.close()


def can_fork_safely() -> bool:
    """Whether a child of this process can use torch: a backward run or thread pool in the parent may prevent it."""
    import torch

    if not available():
        return False

    def serve(_: Commands, send: Send) -> None:
        x = torch.ones(100_000, requires_grad=True)
        (x * 2).sum().backward()
        send({"alive": True})

    child = Child(serve, memory_limit=0)
    try:
        return child.receive(timeout=5) is not None
    except EOFError:
        return False
    finally:
        with contextlib.suppress(Exception):
            child.kill()


def aside(work: Callable[[Send], None], *, seconds: float, waiting: Callable[[], None]) -> list[dict[str, Any]]:
    """What ``work(send)`` sent in a forked copy of this process until it ended, died, or its time was up.

    Whatever the copy does to its own process, this one is as it was. ``waiting`` is called several times a second.
    """
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        _copy(work, write)
    os.close(write)
    data, deadline = b"", time.monotonic() + seconds
    try:
        while (left := deadline - time.monotonic()) > 0:
            waiting()
            if select.select([read], [], [], min(left, 0.1))[0]:
                if not (chunk := os.read(read, 1 << 16)):
                    break
                data += chunk
    finally:
        os.close(read)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    return [json.loads(line) for line in data.split(b"\n")[:-1]]


def _copy(work: Callable[[Send], None], write: int) -> None:
    """Never returns. Nothing is heard of the copy but what it sends."""
    try:
        _end_with_parent()
        faulthandler.disable()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        kept = _dup_high(write)
        work(lambda event: _write(kept, event))
    finally:  # an exception goes nowhere, either: that something was not sent says enough
        os._exit(0)


def _write(descriptor: int, event: dict[str, Any]) -> None:
    data = json.dumps(event).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


def _readable(output: str) -> str:
    """What a dead child wrote; a stack that faulthandler printed ends where the op was called from."""
    lines: list[str] = []
    in_stack = below = False
    for line in output.splitlines():
        in_stack = line.startswith("  File ") if in_stack else "(most recent call first)" in line
        below = in_stack and (below or "/opcheck_suite/" in line)
        if not below and not line.startswith("Extension modules:"):
            lines.append(line)
    return "\n".join(lines).strip()


def _child(serve: Serve, command_read: int, event_write: int, capture: int, close: set[int]) -> None:
    """Never returns: the forked copy of the parent ends here, without its clean-up handlers."""
    status, events = 70, event_write
    try:
        os.setpgid(0, 0)  # a group of its own, so that what it starts ends with it
        _end_with_parent()
        for descriptor in close:
            os.close(descriptor)
        commands, events = _move(command_read), _move(event_write)
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.dup2(capture, 1)
        os.dup2(capture, 2)
        sys.stdin = os.fdopen(os.dup(0))
        sys.stdout = os.fdopen(1, "w", buffering=1, closefd=True, errors="replace")
        sys.stderr = os.fdopen(2, "w", buffering=1, closefd=True, errors="replace")
        faulthandler.enable(file=_dup_high(capture))
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        gc.freeze()  # what the parent made is shared memory: do not touch it while collecting

        with os.fdopen(commands, "r") as stream:
            serve(Commands(stream), lambda event: _write(events, event))
        status = 0
    except BaseException:
        import traceback

        with contextlib.suppress(BaseException):
            os.write(capture, traceback.format_exc().encode())
            _write(events, {"broken": traceback.format_exc()})  # the parent cannot tell it from an exit of the op's
    finally:
        os._exit(status)


def _end_with_parent() -> None:
    """Ask Linux to end this process when its parent ends, however that comes about."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _move(descriptor: int) -> int:
    moved = _dup_high(descriptor)
    os.close(descriptor)
    return moved


def _dup_high(descriptor: int) -> int:
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _HIGH)
