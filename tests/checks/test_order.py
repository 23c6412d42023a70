"""What a compile check says of an op does not depend on what ran before it, and nothing is left behind."""

from __future__ import annotations

import os

import torch
import torch._dynamo.config
import torch._functorch.config
import torch._inductor.config

from opcheck_suite import engine, specs
from opcheck_suite.options import RunOptions
from reference_ops.python import mutating, training

#: One that is differentiable, and one that writes.
SPECS = [training.SPECS[0], mutating.SPECS[0]]


def rows(given) -> set[tuple]:
    """Results without times, in one process."""
    chosen = RunOptions(checks=("compile",), isolate="never").validated()
    report = engine.run(engine.plan(specs.Loaded("tests", specs.entries(given)), chosen))
    return {
        (r.op, r.check, r.device, r.dtype, r.sample, r.outcome, r.message, r.cases, r.detail) for r in report.results
    }


def state() -> dict:
    return {
        "environment": dict(os.environ),
        "dynamo": torch._dynamo.config.get_config_copy(),
        "functorch": torch._functorch.config.get_config_copy(),
        "inductor": torch._inductor.config.get_config_copy(),
        "grad": torch.is_grad_enabled(),
        "dtype": torch.get_default_dtype(),
        "rng": torch.default_generator.get_state().tolist(),
    }


def test_two_orders_give_the_same_report():
    forward = rows(SPECS)  # also loads what is loaded on first use
    before = state()
    backward = rows(SPECS[::-1])
    assert backward == forward
    assert len(forward) > 10
    after = state()
    assert {key: value for key, value in after.items() if value != before[key]} == {}


def test_an_op_alone_gives_the_same_report():
    both = rows(SPECS)
    (name,) = {row[0] for row in rows(SPECS[1:])}
    assert rows(SPECS[1:]) == {row for row in both if row[0] == name}
