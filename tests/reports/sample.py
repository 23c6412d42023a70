"""A small report by hand, with every outcome in it."""

from __future__ import annotations

from opcheck_suite import Outcome, Report, Result

ENVIRONMENT = {
    "torch": "2.13.0+cpu",
    "python": "3.11.7",
    "platform": "Linux x86_64",
    "device": "cpu",
    "opcheck_suite": "0.1.0",
}


def row(op: str, check: str, outcome: str, message: str = "", **more) -> Result:
    given = {"sample": "small", "seconds": 0.25, "cases": 1, "device": "cpu"} | more
    return Result(op=op, check=check, outcome=Outcome(outcome), message=message, **given)


DIFFERS = """\
the result differs from the reference: output has wrong values: 1 of 6 elements differ; at [0, 1] got 3, expected 2
input   small, size 1(x dim 0)
call    wrong(x=float32[1, 3])
also    the sample itself"""

STACK = """\
Fatal Python error: Aborted

Current thread 0x01 (most recent call first):
  File "/home/me/my_ops.py", line 7 in dies"""

RESULTS = (
    row("my::good", "namespace.reserved", "pass", sample="", cases=0),
    row("my::good", "values.runs", "pass", cases=5),
    row("my::good", "values.runs", "pass", sample="large", cases=5),
    row("my::good", "values.reference", "skip", "the spec has no reference", sample="", cases=0),
    row("my::good", "schema.mutation", "warn", "something to know\nand its second line"),
    row("my::good", "fake.runs", "pass"),
    row("my::wrong", "namespace.reserved", "pass", sample="", cases=0),
    row("my::wrong", "values.runs", "pass"),
    row("my::wrong", "values.reference", "fail", DIFFERS),
    row("my::wrong", "schema.mutation", "xfail", "issue 7: known\nargument 'x' is written"),
    row("my::wrong", "fake.runs", "xpass", "expected to fail (issue 8), but passes: remove it from expected_failures"),
    row("my::dies", "namespace.reserved", "pass", sample="", cases=0),
    row("my::dies", "values.runs", "crash", "the op, called on small: it died of SIGABRT (Aborted)", detail=STACK),
    row("my::dies", "values.reference", "not_exercised", "the op fails on this sample: see values.runs", cases=0),
    row("my::dies", "schema.mutation", "not_exercised", "the op fails on this sample: see values.runs", cases=0),
    row("my::dies", "fake.runs", "timeout", "the op, called with fake tensors, on small: it did not finish within 9 s"),
    row("my::odd", "namespace.reserved", "pass", sample="", cases=0),
    row(
        "my::odd", "values.runs", "error", "the spec is at fault: samples('cpu', None) raised KeyError: 'x'", sample=""
    ),
    row("my::odd", "fake.foreign", "pass", "of a package that is not installed"),
    row("my::absent", "values.runs", "skip", "no C++ compiler", sample="", cases=0),
    row("my::absent", "fake.runs", "skip", "no C++ compiler", sample="", cases=0),
)

EVERY = Report(
    results=RESULTS,
    environment=ENVIRONMENT,
    options={"source": "my_ops.specs", "strict": False, "seed": 0},
    ops={"my::good": "doubles", "my::wrong": "", "my::dies": "", "my::odd": "", "my::absent": "needs a compiler"},
    seconds=12.34,
)

CLEAN = Report(
    results=(
        row("my::good", "values.runs", "pass", dtype="float32"),
        row("my::good", "values.runs", "pass", dtype="float64"),
        row("my::good", "values.runs", "pass", dtype="float32", device="cuda"),
    ),
    environment=ENVIRONMENT | {"device": "cpu, cuda (NVIDIA H200)"},
    options={"source": "my ops/specs.py", "strict": False, "seed": 3},
    ops={"my::good": ""},
    seconds=1.0,
)

NOTHING = Report(results=(), environment=ENVIRONMENT, options={}, ops={})
