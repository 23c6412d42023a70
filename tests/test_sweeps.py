"""How often one compiled function is compiled again."""

from __future__ import annotations

import pytest
import torch

from opcheck_suite import sweeps
from tests.fixtures import compiled_ops as ops
from tests.test_programs import context, matrix, outcome


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (
            "0/1: tensor 'x' size mismatch at index 0. expected 3, actual 5",
            "tensor 'x' size mismatch at index 0. expected 3, actual 5",
        ),
        ("0/0: args[1] == 5       # return op(*args)  # a.py:1 in call\nUser stack trace:", "args[1] == 5"),
        (
            "1/0: ___check_type_id(k['s'], 140089391152352), type=<class 'int'>",
            "___check_type_id(k['s']), type=<class 'int'>",
        ),
    ],
)
def test_a_guard_is_told_without_numbers_places_and_addresses(text, short):
    assert sweeps.guard(text) == short


def test_a_size_is_held_when_it_is_compiled_for_again_after_it_was_seen_to_change():
    guards = [
        "tensor 'x' size mismatch at index 0. expected 3, actual 7",
        "tensor 'x' size mismatch at index 0. expected 7, actual 9",
    ]
    assert sweeps.specialised(guards[:1], dynamic=False) == []
    assert sweeps.specialised(guards, dynamic=False) == guards[1:]
    assert sweeps.specialised(guards[:1], dynamic=True) == guards[:1]
    assert sweeps.specialised(["5 <= x.size()[0]"], dynamic=True) == []


def test_other_sizes_are_all_different():
    ctx, case = context(ops.twice, matrix())
    shapes = [tuple(t.shape) for made in sweeps.resized(ctx, case) for _, t in made.leaves()]
    assert len(shapes) == 3
    sizes = [size for shape in [(2, 3), *shapes] for size in shape]
    assert len(set(sizes)) == len(sizes)


def test_other_sizes_that_the_op_refuses_are_not_tried():
    @torch.library.custom_op("suite_compiled::three_columns", mutates_args=())
    def three_columns(x: torch.Tensor) -> torch.Tensor:
        torch._check(x.shape[-1] == 3, lambda: "expected three columns")
        return x * 2

    three_columns.register_fake(torch.empty_like)
    ctx, case = context(three_columns, matrix())
    shapes = [tuple(t.shape) for made in sweeps.resized(ctx, case) for _, t in made.leaves()]
    assert len(shapes) == 3
    assert {shape[1] for shape in shapes} == {3}
    got, message = outcome(three_columns, (matrix(),), "compile.dynamic")
    assert (got, message) == ("pass", "3 other sizes: 1 recompilation")


def test_numbers_that_change_are_compiled_for_and_not_run():
    calls = []

    @torch.library.custom_op("suite_compiled::dangerous", mutates_args=())
    def dangerous(x: torch.Tensor, place: int) -> torch.Tensor:
        calls.append(place)
        return x * 2

    dangerous.register_fake(lambda x, place: torch.empty_like(x))
    ctx, case = context(dangerous, matrix(), 4)
    (change,) = sweeps.numbers(ctx, case)
    assert (change.name, change.kind, change.values, change.guards) == ("place", "SymInt", 2, ("args[1] == 4",))
    assert calls == []


def test_the_recompilations_of_each_argument_are_told():
    args = (matrix(), 2.0, 4, torch.ones(3))
    got, message = outcome(ops.scaled, args, "compile.dynamic", deterministic=False)
    assert got == "pass"
    first, *numbers = message.splitlines()
    assert first == "3 other sizes: 1 recompilation"
    assert numbers[0] == "factor (float): 2 recompilations for 2 other values; args[1] == 2.0; args[1] == 3.0"
    assert numbers[1].startswith("n (SymInt): 1 recompilation for 2 other values; ")
    assert numbers[2].startswith("bias (Optional[Tensor]): 1 recompilation for 1 other value; ")
