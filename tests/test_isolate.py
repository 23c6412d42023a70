"""Whatever a child does, the parent learns of it."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import psutil
import pytest

from opcheck_suite import isolate

PATIENCE = 20.0


def _events(child: isolate.Child) -> list[dict]:
    """Everything a child says until it is gone."""
    found = []
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            event = child.receive(timeout=0.05)
        except EOFError:
            return found
        if event is not None:
            found.append(event)
    raise AssertionError(f"the child is still there; it said {found}")


def _fate(serve, *, memory_limit: int = 0) -> tuple[list[dict], isolate.Death]:
    child = isolate.Child(serve, memory_limit=memory_limit)
    return _events(child), child.bury()


def _limited(serve, *, timeout: float = 0.0, memory_limit: int = 0) -> isolate.Death:
    """How a child ends whose limits are looked after, as the engine does it."""
    child = isolate.Child(serve, memory_limit=memory_limit)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            child.receive(timeout=0.02)
        except EOFError:
            return child.bury()
        child.check_limits(timeout=timeout)
    child.kill()
    raise AssertionError("the child was not killed")


def _gone(pid: int) -> bool:
    """Whether a process is gone, or dead and only waiting for init to collect it; looks for a while."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def test_commands_go_in_and_events_come_out():
    def serve(commands, send):
        for command in commands:
            send({"twice": command["n"] * 2})

    child = isolate.Child(serve, memory_limit=0)
    for n in (1, 2, 3):
        child.send({"n": n})
        assert child.receive(timeout=PATIENCE) == {"twice": n * 2}
    child.close()
    assert not psutil.pid_exists(child.pid)


def test_events_larger_than_a_pipe_arrive_whole_and_in_order():
    def serve(commands, send):
        for n in range(50):
            send({"n": n, "text": "é" * 10_000})

    events, death = _fate(serve)
    assert [e["n"] for e in events] == list(range(50))
    assert {len(e["text"]) for e in events} == {10_000}
    assert death.how == "it ended the process with exit status 0"


def test_nothing_to_read_is_none_and_not_the_end():
    child = isolate.Child(lambda commands, send: [None for _ in commands], memory_limit=0)
    assert child.receive(timeout=0.01) is None
    assert not child.gone()
    child.close()


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (signal.SIGSEGV, "it died of SIGSEGV (Segmentation fault)"),
        (signal.SIGABRT, "it died of SIGABRT (Aborted)"),
        (signal.SIGKILL, "it died of SIGKILL (Killed)"),
    ],
    ids=["SIGSEGV", "SIGABRT", "SIGKILL"],
)
def test_death_by_a_signal_is_told_by_name(number, told):
    def serve(commands, send):
        send({"at": "the brink"})
        os.kill(os.getpid(), number)
        time.sleep(PATIENCE)

    events, death = _fate(serve)
    assert events == [{"at": "the brink"}]
    assert death.how == told
    assert not death.timed_out


@pytest.mark.parametrize("status", [0, 7])
def test_an_exit_is_told_with_its_status(status):
    _, death = _fate(lambda commands, send: os._exit(status))
    assert death.how == f"it ended the process with exit status {status}"


def test_an_exception_of_the_child_is_in_its_output():
    def serve(commands, send):
        raise LookupError("no such thing")

    _, death = _fate(serve)
    assert death.how == "it ended the process with exit status 70"
    assert "LookupError: no such thing" in death.output


def test_a_system_exit_does_not_run_the_parent_s_clean_up(tmp_path):
    """A forked copy of pytest must not run atexit handlers and finally clauses of the parent."""
    marker = tmp_path / "ran"
    pid = os.getpid()
    try:
        _, death = _fate(lambda commands, send: sys.exit(3))
    finally:
        if os.getpid() != pid:
            marker.touch()
            os._exit(0)
    assert death.how == "it ended the process with exit status 70"
    assert not marker.exists()


def test_a_silent_child_is_killed_after_the_timeout():
    death = _limited(lambda commands, send: time.sleep(PATIENCE * 2), timeout=0.3)
    assert death.timed_out
    assert death.how == "it did not finish within 0.3 s"


def test_a_child_that_keeps_talking_is_not_timed_out():
    def serve(commands, send):
        for n in range(12):
            time.sleep(0.1)
            send({"n": n})

    death = _limited(serve, timeout=1.0)
    assert not death.timed_out
    assert death.how == "it ended the process with exit status 0"


def test_a_child_that_takes_too_much_memory_is_killed():
    def serve(commands, send):
        held = bytearray(b"x") * (400 << 20)
        time.sleep(PATIENCE * 2)
        send({"size": len(held)})

    death = _limited(serve, memory_limit=100 << 20)
    assert death.how.startswith("it took 0.")
    assert death.how.endswith(" GiB of memory (limit 0.1 GiB)")
    assert not death.timed_out


def test_memory_that_the_parent_holds_is_not_counted():
    held = bytearray(b"x") * (300 << 20)

    def serve(commands, send):
        time.sleep(0.3)

    death = _limited(serve, memory_limit=100 << 20)
    assert death.how == "it ended the process with exit status 0"
    del held


def test_a_child_that_closes_low_descriptors_can_still_be_heard():
    def serve(commands, send):
        os.closerange(0, 150)
        send({"still": "here"})

    events, death = _fate(serve)
    assert events == [{"still": "here"}]
    assert death.how == "it ended the process with exit status 0"


def test_a_child_that_closes_every_descriptor_and_goes_on_is_ended():
    def serve(commands, send):
        os.closerange(0, 4096)
        time.sleep(PATIENCE * 2)

    _, death = _fate(serve)
    assert death.how == "it closed its connection to the parent"


def test_a_grandchild_that_keeps_the_pipe_open_does_not_hide_a_death(tmp_path):
    left = tmp_path / "pid"

    def serve(commands, send):
        pid = os.fork()
        if pid == 0:
            time.sleep(PATIENCE * 2)
            os._exit(0)
        left.write_text(str(pid))
        os._exit(5)

    start = time.monotonic()
    _, death = _fate(serve)
    assert death.how == "it ended the process with exit status 5"
    assert time.monotonic() - start < PATIENCE / 2
    assert _gone(int(left.read_text()))


def test_what_a_killed_child_started_ends_with_it(tmp_path):
    left = tmp_path / "pid"

    def serve(commands, send):
        process = subprocess.Popen(["sleep", "60"])
        left.write_text(str(process.pid))
        send({"started": process.pid})
        time.sleep(PATIENCE * 2)

    child = isolate.Child(serve, memory_limit=0)
    assert child.receive(timeout=PATIENCE) is not None
    child.kill()
    assert _gone(int(left.read_text()))


def test_a_child_does_not_hold_its_siblings_pipes():
    """Else the first would never see its commands end."""

    def serve(commands, send):
        for _ in commands:
            pass
        send({"end": True})

    first = isolate.Child(serve, memory_limit=0)
    second = isolate.Child(serve, memory_limit=0)
    first.close()
    assert os.waitstatus_to_exitcode(first._status) == 0, "it was killed after having heard nothing"
    assert not second.gone()
    second.close()
    assert os.waitstatus_to_exitcode(second._status) == 0


def test_output_of_the_child_is_captured_and_its_end_is_kept(capfd):
    def serve(commands, send):
        print("the beginning " + "x" * 8000)
        print("from Python")
        os.write(2, b"from below\n")
        os.abort()

    _, death = _fate(serve)
    assert "from Python\nfrom below" in death.output
    assert "the beginning" not in death.output
    assert len(death.output) <= 4000
    assert "Fatal Python error: Aborted" in death.output
    assert capfd.readouterr() == ("", "")


def test_the_stack_of_a_death_ends_where_the_op_was_called_from():
    stack = "\n".join(
        [
            "last words",
            "Fatal Python error: Aborted",
            "",
            "Current thread 0x01 (most recent call first):",
            '  File "/home/me/my_ops.py", line 3 in op',
            '  File "/site/opcheck_suite/context.py", line 9 in call',
            '  File "/site/pytest/main.py", line 1 in main',
            "",
            "Extension modules: numpy",
        ]
    )
    assert isolate._readable(stack).splitlines() == [
        "last words",
        "Fatal Python error: Aborted",
        "",
        "Current thread 0x01 (most recent call first):",
        '  File "/home/me/my_ops.py", line 3 in op',
    ]


def test_standard_input_of_a_child_is_empty():
    events, _ = _fate(lambda commands, send: send({"read": sys.stdin.read()}))
    assert events == [{"read": ""}]


def test_ending_a_child_twice_is_harmless_and_frees_its_descriptors():
    before = len(os.listdir("/proc/self/fd"))
    child = isolate.Child(lambda commands, send: [None for _ in commands], memory_limit=0)
    child.close()
    child.close()
    child.kill()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_command_to_a_dead_child_is_no_error():
    child = isolate.Child(lambda commands, send: os._exit(1), memory_limit=0)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    child.send({"n": 1})
    with pytest.raises(EOFError):
        child.receive(timeout=PATIENCE)
    assert child.bury().how == "it ended the process with exit status 1"


@pytest.mark.parametrize(
    ("number", "status", "told"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_an_interrupt_leaves_no_child_behind_and_a_report_that_says_so(fixtures, scratch, number, status, told):
    opcheck = str(pathlib.Path(sys.executable).with_name("opcheck"))
    words = ["run", str(fixtures / "hanging_specs.py"), "--checks", "values.runs", "--report", "report.json"]
    (scratch / "report.json").write_text("an older report")
    process = subprocess.Popen(
        [opcheck, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # a shell lets its background jobs ignore the interrupt, and what they start inherits that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    children: list[int] = []
    deadline = time.monotonic() + 3 * PATIENCE
    while time.monotonic() < deadline and not children:
        # not the child that only makes the samples before the run
        children = [c.pid for c in psutil.Process(process.pid).children() if c.name() == "op-hangs-now"]
        time.sleep(0.05)
    assert children, "the op was never called"
    begun = json.loads((scratch / "report.json").read_text())
    assert (begun["complete"], begun["stopped"]) == (False, "the run has begun, and not ended")
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == status
    assert out == ""
    assert err.splitlines()[-1] == f"opcheck: {told} after 0 of 1 checks; wrote report.json: incomplete"
    assert "Traceback" not in err
    assert all(_gone(pid) for pid in children)
    left = json.loads((scratch / "report.json").read_text())
    assert (left["complete"], left["stopped"]) == (False, f"{told} after 0 of 1 checks")
    assert left["environment"]["torch"]


# -- aside


def test_what_is_done_aside_is_sent_and_changes_nothing_here():
    here = [0]

    def work(send):
        here[0] = 1
        print("nobody hears this")
        send({"pid": os.getpid()})
        send({"large": "x" * 200_000})

    first, second = isolate.aside(work, seconds=PATIENCE, waiting=lambda: None)
    assert here == [0]
    assert first["pid"] != os.getpid()
    assert len(second["large"]) == 200_000
    assert not psutil.pid_exists(first["pid"])


@pytest.mark.parametrize("end", [os.abort, lambda: os._exit(3), lambda: 1 / 0])
def test_what_was_sent_aside_before_an_end_is_kept(end, capfd):
    def work(send):
        send({"n": 1})
        end()
        send({"n": 2})

    assert isolate.aside(work, seconds=PATIENCE, waiting=lambda: None) == [{"n": 1}]
    assert capfd.readouterr() == ("", "")


def test_what_takes_too_long_aside_is_ended():
    pids, waited = [], []

    def work(send):
        send({"pid": os.getpid()})
        time.sleep(600)

    start = time.monotonic()
    pids = [event["pid"] for event in isolate.aside(work, seconds=0.5, waiting=lambda: waited.append(1))]
    assert time.monotonic() - start < 5
    assert len(waited) > 2
    assert not psutil.pid_exists(pids[0])
