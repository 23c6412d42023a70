"""The custom operator that is written for a break: it runs, and passes the suite's own checks."""

from __future__ import annotations

import functools

import expecttest
import pytest
import torch

from opcheck_suite import ConformanceError, breaks
from opcheck_suite.model import Sample
from tests.fixtures import wrappable


def matrix() -> torch.Tensor:
    return torch.linspace(-3.0, 3.0, 12).reshape(3, 4)


def skeleton(fn, *args, every: bool = False) -> str:
    found = breaks.examine(fn, [Sample(args or (matrix(),))], skeletons="all" if every else "outside")
    (text,) = (f.skeleton for f in found.findings if f.skeleton)
    return text


def run(text: str, *, tier: str = "quick") -> dict:
    """Define the operator, and run the test that comes with it, up to a tier."""
    names: dict = {}
    exec(text, names)
    names["check_op"] = functools.partial(names["check_op"], tier=tier)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    test()
    return names


def test_an_assignment_becomes_an_operator():
    text = skeleton(wrappable.assigned)
    expecttest.assert_expected_inline(
        text,
        """\
import numpy as np
import torch
from opcheck_suite import Sample, check_op
from tests.fixtures.wrappable import KNOTS


@torch.library.custom_op("tests::interp", mutates_args=())
def interp(x: torch.Tensor, scale: float) -> torch.Tensor:
    y = torch.from_numpy(np.interp(x.numpy(), KNOTS, [0.0, scale, 3.0])).to(x.dtype)
    return y.contiguous()


@interp.register_fake
def _(x, scale):
    # check: right for the example, but for all inputs?
    #   x float32[3, 4] -> float32[3, 4]
    return x.new_empty(x.shape)


def test_interp():
    sample = Sample(args=(torch.randn(3, 4), 2.0))
    check_op(interp, samples=[sample]).raise_if_bad()


# then wrappable.py:14 becomes
#     y = interp(x, scale)""",
    )
    made = run(text, tier="standard")["interp"]
    assert torch.equal(made(matrix(), 2.0) + 1, wrappable.assigned(matrix()))


def test_a_return_becomes_an_operator():
    text = skeleton(wrappable.returned)
    assert text.endswith("becomes\n#     return interp(x)")
    assert torch.equal(run(text)["interp"](matrix()), wrappable.returned(matrix()))


def test_a_statement_may_have_several_results():
    text = skeleton(wrappable.two_results)
    assert "-> tuple[torch.Tensor, torch.Tensor]:" in text
    assert "a, b = interp(x)" in text
    run(text)


def test_code_whose_statements_hand_on_arrays_is_wrapped_as_a_whole_function():
    text = skeleton(wrappable.over_two_lines)
    assert "from tests.fixtures.wrappable import over_two_lines" in text
    assert "out = over_two_lines(x)" in text
    made = run(text)["over_two_lines_op"]
    assert torch.equal(made(matrix()), wrappable.over_two_lines(matrix()))


def test_a_statement_may_go_over_many_lines():
    text = skeleton(wrappable.over_many_lines)
    assert "y = torch.from_numpy(np.interp(x.numpy(), KNOTS, [0.0, 1.0, 3.0])).to(x.dtype) + x\n" in text
    assert torch.equal(run(text)["interp"](matrix()) + 1, wrappable.over_many_lines(matrix()))


def test_a_module_that_is_imported_within_the_function_is_imported():
    text = skeleton(wrappable.imports_within)
    assert "import numpy as local\n" in text
    assert "def interp(x: torch.Tensor) -> torch.Tensor:" in text
    run(text)


def test_a_number_becomes_a_tensor():
    text = skeleton(wrappable.number)
    assert "return torch.tensor(n)" in text
    assert "x.new_empty((), dtype=torch.int64)" in text
    assert "with n as a tensor" in text
    run(text)


def test_an_operator_is_named_after_the_call_that_encloses_the_others():
    assert 'custom_op("tests::crc32"' in skeleton(wrappable.number)


def test_an_augmented_assignment_does_not_write_to_its_input():
    text = skeleton(wrappable.augmented)
    assert "mutates_args=()" in text
    assert "y = y * torch.from_numpy" in text
    run(text)


def test_a_write_is_declared():
    text = skeleton(wrappable.in_place)
    assert 'mutates_args={"y"}' in text
    assert ") -> None:" in text
    run(text)


def test_a_result_in_the_memory_of_an_input_is_copied():
    text = skeleton(wrappable.aliased)
    assert "return z.clone(memory_format=torch.contiguous_format)" in text
    run(text)


def test_a_list_of_tensors_is_taken():
    text = skeleton(wrappable.of_a_list, [torch.ones(3), torch.ones(3)])
    assert "(xs: Sequence[torch.Tensor]) -> torch.Tensor:" in text
    assert "return xs[0].new_empty(xs[0].shape, dtype=torch.float64)" in text
    run(text)


def test_a_size_that_depends_on_data_is_unknown_to_the_fake_kernel():
    text = skeleton(wrappable.data_dependent_size, every=True)
    assert "size = torch.library.get_ctx().new_dynamic_size()" in text
    run(text)


def test_an_attribute_of_a_module_is_an_argument():
    text = skeleton(wrappable.net)
    assert "def interp(h: torch.Tensor, scale: float) -> torch.Tensor:" in text
    assert "h = interp(h, self.scale)" in text
    assert "# fill in: h requires grad" in text
    run(text)


def test_what_cannot_be_inferred_is_to_be_filled_in():
    """And the test that comes with it fails until it is."""
    text = skeleton(wrappable.nothing_fits, matrix(), {"knots": wrappable.KNOTS})
    assert "no operator takes or returns codec (dict)" in text
    assert "raise NotImplementedError" in text
    with pytest.raises(ConformanceError, match="NotImplementedError"):
        run(text)


def test_two_operators_of_a_report_have_two_names():
    def twice(x):
        a = torch.from_numpy(wrappable.np.interp(x.numpy(), wrappable.KNOTS, [0.0, 1.0, 3.0]))
        b = torch.from_numpy(wrappable.np.interp(a.numpy(), wrappable.KNOTS, [0.0, 1.0, 3.0]))
        return a + b

    found = breaks.examine(twice, [Sample((matrix(),))]).findings
    assert ["tests::interp" in f.skeleton for f in found] == [True, True]
    assert "tests::interp_2" in found[1].skeleton
    assert 'tests::interp"' in found[0].skeleton


def test_the_function_is_run_once_more_only_where_an_operator_is_written():
    ran = []

    def branching(x):
        ran.append(torch.compiler.is_compiling())
        return x + 1 if x.sum() > 0 else x - 1

    breaks.examine(branching, [Sample((matrix(),))])
    once = len(ran)
    ran.clear()
    breaks.examine(branching, [Sample((matrix(),))], skeletons="all")
    assert len(ran) == once
