"""What the checks of family transform leave alone, and how they word what they find."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import Tensor

from opcheck_suite import OpSpec, Sample, check_op
from opcheck_suite.model import Outcome

X = torch.arange(6.0).reshape(2, 3)
SEEDED = (torch.Tag.nondeterministic_seeded,)


def vmap(op, *args, **claims):
    """The result of the check on one sample."""
    report = check_op(OpSpec(op, samples=[Sample(args)], **claims), checks=["transform.vmap"], isolate="never")
    (found,) = [r for r in report.results if r.check == "transform.vmap"]
    return found


def rows(x: Tensor, dim: int | None, size: int) -> Tensor:
    """The batch in front, for an argument that may have none."""
    return x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)


@torch.library.custom_op("suite_transform::beside", mutates_args=())
def beside(xs: Sequence[Tensor], y: Tensor) -> Tensor:
    return torch.cat([*xs, y], -1)


@beside.register_vmap
def _(info, in_dims, xs, y):
    dims, dim = in_dims
    moved = [rows(x, d, info.batch_size) for x, d in zip(xs, dims, strict=True)]
    return beside(moved, rows(y, dim, info.batch_size)), 0


@torch.library.custom_op("suite_transform::double_all", mutates_args=("xs",))
def double_all(xs: Sequence[Tensor]) -> None:
    for x in xs:
        x.mul_(2)


double_all.register_vmap(lambda _info, _dims, xs: (double_all(xs), None))


@torch.library.custom_op("suite_transform::forgets_list", mutates_args=())
def forgets_list(xs: Sequence[Tensor], y: Tensor) -> Tensor:
    return torch.stack([*xs, y]).sum(0)


@forgets_list.register_vmap
def _(info, in_dims, xs, y):
    return forgets_list([x.contiguous() for x in xs], rows(y, in_dims[1], info.batch_size)), 0


class TestLists:
    def test_a_rule_for_a_list_is_compared_with_a_loop(self):
        assert vmap(beside, [X, X + 1, X + 2], X).outcome is Outcome.PASS
        assert vmap(beside, (X,), X).outcome is Outcome.PASS

    def test_members_that_the_op_writes_are_compared(self):
        assert vmap(double_all, [X, X + 1]).outcome is Outcome.PASS

    def test_a_rule_that_overlooks_the_dimensions_of_members_is_found(self):
        found = vmap(forgets_list, [X, X + 1], X)
        assert found.outcome is Outcome.FAIL
        assert found.message.startswith("vmap over ")

    def test_an_op_that_writes_to_a_list_and_has_no_rule_is_left_alone(self):
        op = torch.library.custom_op("suite_transform::no_rule", mutates_args=("xs",), schema="(Tensor(a!)[] xs) -> ()")
        assert vmap(op(lambda xs: [x.mul_(2) for x in xs] and None), [X]).outcome is Outcome.SKIP


def noise(x: Tensor) -> Tensor:
    return x + torch.randn(x.shape)


def coin(x: Tensor) -> Tensor:
    """One number of two: batches of three are often equal by chance."""
    return x.sum() + torch.randint(2, ())


def constant(x: Tensor) -> Tensor:
    return x * 1


def by_numpy(x: Tensor) -> Tensor:
    return x + torch.from_numpy(np.random.rand(*x.shape)).float()


def of_random_size(x: Tensor) -> Tensor:
    return x.new_zeros(int(torch.randint(1, 9, ())))


def random_op(name, kernel, rule):
    op = torch.library.custom_op(
        f"suite_transform::{name}", kernel, mutates_args=(), schema="(Tensor x) -> Tensor", tags=SEEDED
    )
    op.register_vmap(lambda info, dims, x: rule(op, info, rows(x, dims[0], info.batch_size)))
    return op


def faithful(op, info, x):
    """One draw for all, or one for each; the order of random numbers in a kernel decides nothing here."""
    if info.randomness == "error":
        raise RuntimeError("random")
    state = torch.get_rng_state()
    found = []
    for one in x:
        if info.randomness == "same":
            torch.set_rng_state(state)
        found.append(op(one))
    return torch.stack(found), 0


def careless(op, _info, x):
    return op(x), 0


def unbatched(op, _info, x):
    return op(x[0]), None


def refusing(_op, _info, _x):
    raise RuntimeError("this op is random")


def refusing_same(op, info, x):
    return refusing(op, info, x) if info.randomness == "same" else careless(op, info, x)


class TestRandomOps:
    @pytest.mark.parametrize("kernel", [noise, coin])
    def test_a_rule_that_heeds_the_mode_passes(self, kernel):
        assert vmap(random_op(f"heeds_{kernel.__name__}", kernel, faithful), X).outcome is Outcome.PASS

    def test_a_rule_may_refuse_one_mode(self):
        assert vmap(random_op("refuses_same", noise, refusing_same), X).outcome is Outcome.PASS

    def test_a_rule_that_refuses_both_gets_a_warning(self):
        found = vmap(random_op("refuses", noise, refusing), X)
        assert found.outcome is Outcome.WARN
        assert found.message.splitlines()[0].endswith("it raises RuntimeError: this op is random")

    def test_equal_elements_must_be_equal_with_same(self):
        found = vmap(random_op("ignores", noise, careless), X)
        assert found.outcome is Outcome.FAIL
        assert "with randomness='same': equal elements 0 and 1 of the batch" in found.message

    def test_elements_must_differ_with_different(self):
        found = vmap(random_op("one_draw", coin, unbatched), X)
        assert found.outcome is Outcome.FAIL
        assert "with randomness='different': equal elements of the batch all get the same" in found.message

    def test_shapes_must_be_those_of_a_loop(self):
        found = vmap(random_op("adds_dimension", noise, lambda op, _info, x: (op(x)[:, None], 0)), X)
        assert found.outcome is Outcome.FAIL
        assert "the output is float32[3, 1, 2, 3], expected 3 of float32[2, 3]" in found.message

    @pytest.mark.parametrize("kernel", [constant, by_numpy, of_random_size])
    def test_nothing_is_claimed_of_numbers_that_torchs_seeds_do_not_decide(self, kernel):
        found = vmap(random_op(f"other_{kernel.__name__}", kernel, careless), X)
        assert found.outcome is Outcome.SKIP
        assert "torch's generators" in found.message

    def test_an_op_without_a_rule_is_torchs_business(self):
        op = torch.library.custom_op(
            "suite_transform::ruleless", noise, mutates_args=(), schema="(Tensor x) -> Tensor", tags=SEEDED
        )
        assert vmap(op, X).outcome is Outcome.SKIP
