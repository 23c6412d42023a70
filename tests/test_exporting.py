"""What is read from an exported program, and that making one leaves nothing behind."""

from __future__ import annotations

import logging
import os
import time

import pytest
import torch
import torch._dynamo
import torch._functorch.config
import torch.export
from torch import Tensor

from opcheck_suite import OpSpec, Sample, exporting, specs
from opcheck_suite.context import Context, NotExercised, Skipped
from opcheck_suite.inputs.cases import Case

LIBRARY = torch.library.Library("suite_exporting", "FRAGMENT")


def define(name: str, schema: str, kernel, fake) -> None:
    LIBRARY.define(name + schema)
    LIBRARY.impl(name, kernel, "CPU")
    torch.library.register_fake(f"suite_exporting::{name}", fake, lib=LIBRARY)


def _fixed_fake(x: Tensor) -> Tensor:
    return x.new_empty((int(x.shape[0]), x.shape[1]))


def _repeat_fake(x: Tensor, times: int, more: list[int]) -> Tensor:
    return x.new_empty((times, *more))


def _recalled_fake(x: Tensor) -> Tensor:
    return x.new_empty((2, x.shape[1])) if isinstance(x.shape[0], torch.SymInt) else torch.empty_like(x)


define("double", "(Tensor x) -> Tensor", lambda x: x * 2, torch.empty_like)
LIBRARY.impl("double", lambda x: x * 2, "SparseCPU")
define("add_", "(Tensor(a!) x, Tensor y) -> ()", lambda x, y: x.add_(y).sum() and None, lambda x, y: None)
define("fixed", "(Tensor x) -> Tensor", lambda x: x * 2, _fixed_fake)
define("recalled", "(Tensor x) -> Tensor", lambda x: x * 2, _recalled_fake)
define("noise", "(Tensor x) -> Tensor", torch.rand_like, torch.empty_like)
define("many", "(Tensor[] xs, float factor) -> Tensor", lambda xs, factor: xs[0] * factor, lambda xs, f: xs[0] * 1)
define(
    "repeat", "(Tensor x, SymInt times, SymInt[] more) -> Tensor", lambda x, n, more: x.new_ones(n, *more), _repeat_fake
)
define("plain", "(Tensor x, int times) -> Tensor", lambda x, n: x * n, lambda x, n: torch.empty_like(x))
define(
    "shape_of",
    "(Tensor x) -> (Tensor, Tensor, SymInt)",
    lambda x: (x * 2, x * 3, x.shape[0]),
    lambda x: (torch.empty_like(x), torch.empty_like(x), x.shape[0]),
)
define("word", "(Tensor x) -> (Tensor, str)", lambda x: (x * 2, "a"), lambda x: (torch.empty_like(x), "a"))


def context(name: str, *args, **claims) -> tuple[Context, Case]:
    """A context for an op of this module, and its one sample; without arguments, a matrix."""
    spec = OpSpec(f"suite_exporting::{name}", samples=[Sample(args or (torch.ones(2, 3),))], **claims)
    (entry,) = specs.entries([spec])
    assert entry.info is not None
    ctx = Context(entry.spec, entry.info, device="cpu")
    return ctx, ctx.samples[0]


# -- programs


@pytest.mark.parametrize("strict", [False, True])
def test_a_program_calls_the_op_and_computes_what_it_does(strict):
    ctx, case = context("double")
    program = exporting.program(ctx, case, strict=strict)
    assert program.error is None
    assert program.targets().count("suite_exporting::double") == 1
    assert program.fixed(case) == []
    seen = exporting.observe(ctx, case, program.call)
    assert torch.equal(seen.results[0], torch.full((2, 3), 2.0))
    assert [list(sizes) for sizes in seen.sizes] == [[2, 3]]
    assert exporting.difference(ctx, case, seen) is None


def test_programs_are_made_once_for_all_checks():
    ctx, case = context("double")
    assert exporting.program(ctx, case) is exporting.program(ctx, case)
    assert exporting.program(ctx, case) is not exporting.program(ctx, case, strict=True)


@pytest.mark.parametrize("change", [lambda p, ctx: p, lambda p, ctx: exporting.decomposed(ctx, p)])
def test_a_mutated_argument_is_a_result(change):
    ctx, case = context("add_", torch.ones(2, 3), torch.ones(2, 3))
    program = change(exporting.program(ctx, case), ctx)
    assert "suite_exporting::add_" in program.targets()
    seen = exporting.observe(ctx, case, program.call)
    assert [t.tolist() for t in seen.results] == [[[2.0] * 3] * 2]
    assert exporting.difference(ctx, case, seen) is None


def test_lists_of_tensors_and_constants_are_passed_on():
    ctx, case = context("many", [torch.ones(2, 3), torch.ones(2, 3)], 0.5)
    seen = exporting.observe(ctx, case, exporting.program(ctx, case).call)
    assert torch.equal(seen.results[0], torch.full((2, 3), 0.5))


def test_what_export_raises_is_in_the_program(monkeypatch):
    ctx, case = context("double")

    def fail(*args, **kwargs):
        raise ValueError("no export today")

    monkeypatch.setattr(torch.export, "export", fail)
    program = exporting.program(ctx, case)
    assert program.text == "ValueError: no export today"
    with pytest.raises(NotExercised, match="cannot be exported"):
        exporting.settled(ctx, case)


def test_an_interrupt_is_not_swallowed(monkeypatch):
    ctx, case = context("double")

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.export, "export", interrupt)
    with pytest.raises(KeyboardInterrupt):
        exporting.program(ctx, case)


# -- sizes


def test_a_size_that_became_a_constant_is_named():
    ctx, case = context("fixed")
    assert exporting.program(ctx, case).fixed(case) == [("x", 0)]
    assert exporting.program(ctx, case, dynamic=False).fixed(case) == [("x", 0), ("x", 1)]


def test_a_size_that_the_fake_kernel_made_up_is_a_difference():
    ctx, case = context("recalled")
    program = exporting.program(ctx, case)
    call = program.call
    assert exporting.difference(ctx, case, exporting.observe(ctx, case, call)) is None
    found = [
        exporting.difference(ctx, made, exporting.observe(ctx, made, call))
        for made in exporting.other_sizes(ctx, case, program)
    ]
    assert "the output has shape [7, 3], and the program computes with [2, 3]" in found


def test_integers_that_equal_a_size_are_taken_from_it():
    args = torch.ones(3, 4), 3, [4, 5]
    ctx, case = context("repeat", *args)
    assert exporting.tied_arguments(case) == ["times", "more"]
    assert exporting.other_sizes(ctx, case, exporting.program(ctx, case)) == []
    tied = exporting.program(ctx, case, tied=True)
    others = exporting.other_sizes(ctx, case, tied)
    assert [made.args[1:] for made in others] == [(7, [4, 5]), (3, [7, 5]), (7, [11, 5])]
    call = tied.call
    assert [exporting.difference(ctx, m, exporting.observe(ctx, m, call)) for m in others] == [None] * 3


def test_integers_that_the_schema_calls_int_are_constants():
    _, case = context("plain", torch.ones(3, 4), 3)
    assert exporting.tied_arguments(case) == []


def test_random_values_are_not_compared():
    ctx, case = context("noise", deterministic=False)
    seen = exporting.Seen([torch.zeros(2, 3)], [[2, 3]], [])
    assert exporting.difference(ctx, case, seen) is None
    assert "shape" in str(exporting.difference(ctx, case, exporting.Seen([torch.zeros(3, 2)], [[3, 2]], [])))
    ctx, case = context("noise")
    assert "wrong values" in str(exporting.difference(ctx, case, seen))


def test_outputs_that_export_has_no_place_for_end_the_check():
    with pytest.raises(Skipped, match="a str that an op returns"):
        exporting.ready(*context("word"))


def test_sparse_arguments_end_the_check():
    with pytest.raises(Skipped, match="sparse"):
        exporting.ready(*context("double", torch.eye(3).to_sparse()))


# -- files


def test_a_saved_program_is_loaded_again():
    ctx, case = context("add_", torch.ones(2, 3), torch.ones(2, 3))
    back = exporting.loaded(exporting.program(ctx, case))
    assert back.targets() == ["suite_exporting::add_"]
    assert exporting.difference(ctx, case, exporting.observe(ctx, case, back.call)) is None


def test_what_cannot_be_saved_says_why():
    ctx, case = context("shape_of")
    with pytest.raises(exporting.Unsaveable, match="Unhandled output type"):
        exporting.loaded(exporting.program(ctx, case))


# -- packages


def test_without_a_compiler_there_is_no_package(monkeypatch):
    import torch._inductor.config

    ctx, case = context("double")
    with (
        torch._inductor.config.patch({"cpp.cxx": ("no-such-compiler",)}),
        pytest.raises(exporting.NoCompiler),
        exporting.packaged(ctx, [case]),
    ):
        pass


def test_what_the_compiler_raises_is_reported_and_nothing_is_left_behind(monkeypatch):
    import torch._inductor

    ctx, case = context("double")
    folders = []

    def fail(program, package_path):
        folders.append(os.path.dirname(package_path))
        assert os.environ["TORCHINDUCTOR_CACHE_DIR"].startswith(folders[0])
        raise RuntimeError("out of registers")

    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", fail)
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "as it was")
    with pytest.raises(exporting.NotPackaged, match="out of registers"), exporting.packaged(ctx, [case]):
        pass
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == "as it was"
    assert not os.path.exists(folders[0])


def test_a_package_holds_the_calls_of_all_cases(monkeypatch):
    """The compiler is stood in for: the real one is at work in the tests of the planted faults."""
    import torch._inductor

    kept = {}
    monkeypatch.setattr(
        torch._inductor, "aoti_compile_and_package", lambda program, package_path: kept.update(p=program) or "path"
    )
    monkeypatch.setattr(torch._inductor, "aoti_load_package", lambda path: kept["p"].module())
    spec = OpSpec("suite_exporting::double", samples=[Sample((torch.ones(2, 3),)), Sample((torch.ones(4),))])
    (entry,) = specs.entries([spec])
    ctx = Context(entry.spec, entry.info, device="cpu")
    with exporting.packaged(ctx, ctx.samples) as calls:
        for case, call in zip(ctx.samples, calls, strict=True):
            seen = exporting.observe(ctx, case, call)
            assert exporting.difference(ctx, case, seen) is None
            assert torch.equal(seen.doubled[0], seen.results[0] * 2)


def test_a_compiler_at_work_shows_signs_of_life(monkeypatch):
    monkeypatch.setattr(exporting, "_BEAT", 0.01)
    ctx, case = context("double")
    heard = []
    ctx._announce = lambda *event: heard.append(event)
    with exporting._signs_of_life(ctx, case):
        deadline = time.monotonic() + 20
        while len(heard) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
    count = len(heard)
    assert count >= 2
    assert heard[0] == ("check", case.key, "sample", "")
    assert len(heard) == count


# -- what is left behind


def _state() -> dict:
    return {
        "capture": torch._dynamo.config.capture_dynamic_output_shape_ops,
        "aliasing": torch._functorch.config.error_on_custom_op_aliasing,
        "levels": [logging.getLogger(name).level for name in ("torch.export", "torch._export", "torch._dynamo")],
        "grad": torch.is_grad_enabled(),
        "random": torch.get_rng_state().sum().item(),
        "cache": os.environ.get("TORCHINDUCTOR_CACHE_DIR"),
        "exporting": torch.compiler.is_exporting(),
    }


def test_settings_are_put_back_after_an_exception():
    before = _state()
    with exporting.settings():
        assert logging.getLogger("torch.export").level == logging.CRITICAL
    with pytest.raises(ZeroDivisionError), exporting.settings():
        raise ZeroDivisionError
    assert _state() == before


def test_programs_leave_settings_and_caches_as_they_were():
    before = _state()
    ctx, case = context("double")
    program = exporting.program(ctx, case, strict=True)
    exporting.loaded(exporting.decomposed(ctx, program))
    assert _state() == before
    graphs = []

    def count(module, inputs):
        graphs.append(module)
        return module

    torch.compile(torch.ops.suite_exporting.double, backend=count)(torch.ones(3))
    torch._dynamo.reset()
    assert len(graphs) == 1
