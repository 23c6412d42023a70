"""The report for a pull request."""

# ruff: noqa: E501 - goldens are as long as what they hold

from __future__ import annotations

import dataclasses

import expecttest
import pytest

from opcheck_suite.reports import markdown
from tests.reports.sample import CLEAN, EVERY, NOTHING, row

pytestmark = pytest.mark.usefixtures("few_checks")


def test_a_report_with_every_outcome():
    expecttest.assert_expected_inline(
        markdown.render(EVERY),
        """\
# Conformance: 5 bad results

opcheck_suite 0.1.0, torch 2.13.0+cpu, Python 3.11.7, cpu

- ops      5 in the run, 4 with samples, 4 tested, 1 conformant
- results  9 pass, 1 fail, 1 warn, 1 xfail, 1 xpass, 3 skip, 2 not exercised, 1 error, 1 crash, 1 timeout in 12.3 s
- nothing exercised  my::absent

| op           | namespace   | values                                        | schema                      | fake              |
|--------------|-------------|-----------------------------------------------|-----------------------------|-------------------|
| `my::good`   | 1 ok        | 1 ok                                          | **mutation: warn**          | 1 ok              |
| `my::wrong`  | 1 ok        | **reference: fail**                           | **mutation: xfail**         | **runs: xpass**   |
| `my::dies`   | 1 ok        | **runs: crash**, **reference: not exercised** | **mutation: not exercised** | **runs: timeout** |
| `my::odd`    | 1 ok        | **runs: error**                               | -                           | 1 ok              |
| `my::absent` | -           | -                                             | -                           | -                 |

## What is wrong

```text
values.reference  my::wrong  cpu  sample 'small'  FAIL
  the result differs from the reference: output has wrong values: 1 of 6 elements differ; at [0, 1] got 3, expected 2
  input   small, size 1(x dim 0)
  call    wrong(x=float32[1, 3])
  also    the sample itself
  fix     How to fix what values.reference finds.
  rerun   opcheck run my_ops.specs --ops my::wrong --checks values.reference
  more    opcheck explain values.reference
```

```text
fake.runs  my::wrong  cpu  sample 'small'  XPASS
  expected to fail (issue 8), but passes: remove it from expected_failures
  rerun   opcheck run my_ops.specs --ops my::wrong --checks fake.runs
  more    opcheck explain fake.runs
```

```text
values.runs  my::dies  cpu  sample 'small'  CRASH
  the op, called on small: it died of SIGABRT (Aborted)
  fix     How to fix what values.runs finds.
  rerun   opcheck run my_ops.specs --ops my::dies --checks values.runs
  more    opcheck explain values.runs

  | Fatal Python error: Aborted
  |
  | Current thread 0x01 (most recent call first):
  |   File "/home/me/my_ops.py", line 7 in dies
```

```text
fake.runs  my::dies  cpu  sample 'small'  TIMEOUT
  the op, called with fake tensors, on small: it did not finish within 9 s
  fix     How to fix what fake.runs finds.
  rerun   opcheck run my_ops.specs --ops my::dies --checks fake.runs
  more    opcheck explain fake.runs
```

```text
values.runs  my::odd  cpu  ERROR
  the spec is at fault: samples('cpu', None) raised KeyError: 'x'
  rerun   opcheck run my_ops.specs --ops my::odd --checks values.runs
  more    opcheck explain values.runs
```

## Notes

```text
warn  schema.mutation: something to know
  my::good
expected failure  schema.mutation: issue 7: known
  my::wrong
not exercised  values.reference, schema.mutation: the op fails on this sample: see values.runs
  my::dies
skip  values.reference: the spec has no reference
  my::good
skip  values.runs, fake.runs: no C++ compiler
  my::absent
```
""",
    )


def test_a_clean_report():
    expecttest.assert_expected_inline(
        markdown.render(CLEAN),
        """\
# Conformance: clean

opcheck_suite 0.1.0, torch 2.13.0+cpu, Python 3.11.7, cpu, cuda (NVIDIA H200)

- ops      1 in the run, 1 with samples, 1 tested, 1 conformant
- results  3 pass in 1.0 s

| op                        | values   |
|---------------------------|----------|
| `my::good [cpu/float32]`  | 1 ok     |
| `my::good [cpu/float64]`  | 1 ok     |
| `my::good [cuda/float32]` | 1 ok     |
""",
    )


def test_a_report_of_nothing():
    assert "# Conformance: nothing was run" in markdown.render(NOTHING)


def test_a_message_cannot_end_its_fence():
    evil = dataclasses.replace(EVERY, results=(row("my::good", "fake.runs", "fail", "a\n```\n# title"),))
    lines = markdown.render(evil).splitlines()
    assert [line for line in lines if line.startswith("```")] == ["```text", "```"]
    assert "# title" not in lines
