"""Whatever an op does to its process, it is one bad result that says what, and the ops after it are tested."""

from __future__ import annotations

import pytest

from tests.checks import planted

#: Op -> what its one bad result says.
MESSAGES = {
    "segfaults": "the op, called on matrix: it died of SIGSEGV",
    "segfaults_on_one_row": "the op, called on matrix, size 1(x dim 0): it died of SIGSEGV",
    "aborts": "the op, called on matrix: it died of SIGABRT",
    "leaves": "the op, called on matrix: it ended the process with exit status 0",
    "exits": "the op raised SystemExit: 0",
    "hangs": "the op, called on matrix: it did not finish within 20 s",
    # on the sample, or on a larger input made of it: where two threads meet first is chance
    "locks_crosswise": ("the op, called from several threads at once on matrix", ": it did not finish within 20 s"),
    "recurses": "the op raised RecursionError: maximum recursion depth exceeded",
    "overflows_stack": "the op, called on matrix: it died of SIGSEGV",
    "eats_memory": "GiB of memory (limit 2.0 GiB)",
    "prints_much": "the call leaves the process changed: wrote 1,048,577 bytes to stdout and stderr",
    "closes_stdout": "the call leaves the process changed: stdout was open, is closed",
    "closes_descriptor": "the call leaves the process changed: stdout was open, is closed",
    "closes_everything": "the call leaves the process changed: stdout was open, is closed; stderr was open, is closed",
}


@pytest.fixture(scope="module")
def seen() -> planted.Walk:
    # Long enough, and enough, for a compiler on a busy machine; two ops hang for so long, one takes so much.
    return planted.walk(["process"], timeout=20, memory=2.0, good="process")


def test_the_table_is_true(seen):
    wrong = planted.disagreements(seen, "process")
    assert not wrong, "\n".join(wrong)


def test_the_messages_are_of_all_ops(seen):
    assert {f"broken_process::{name}" for name in MESSAGES} == {fault["op"] for fault in seen.faults}


@pytest.mark.parametrize("name", MESSAGES)
def test_the_bad_result_is_one_and_says_what_happened(seen, name):
    op = f"broken_process::{name}"
    (fault,) = [fault for fault in seen.faults if fault["op"] == op]
    results = [r for r in seen.of(op, fault["check"]) if r["outcome"] == fault["outcome"]]
    assert len(results) == 1
    told = MESSAGES[name]
    for part in (told,) if isinstance(told, str) else told:
        assert part in results[0]["message"]


def test_the_ops_after_them_are_tested(seen):
    for op in set(seen.good.values()):
        assert seen.noticed(op) == {}
        assert {r["outcome"] for r in seen.of(op, "values.runs")} == {"pass"}


def test_every_unit_has_a_result(seen):
    assert set(map(tuple, seen.units)) == {(r["op"], r["check"]) for r in seen.results}
