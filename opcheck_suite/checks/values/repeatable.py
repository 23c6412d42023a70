"""Equal inputs give equal outputs."""

from opcheck_suite.registry import check


@check(
    id="values.repeatable",
    title="Equal inputs give different outputs",
    what=(
        "Calls the op twice on equal copies, with fresh memory filled with other bytes in between, and compares "
        "outputs and mutated arguments: bitwise on the CPU, within tolerance elsewhere. A difference within tolerance "
        "is a warning, unless the spec claims that the op is deterministic. Where both agree, calls the op once more "
        "after another seed: an op whose result then "
        "differs draws random numbers, which its tags must say."
    ),
    why=(
        "Compilers reuse and reorder calls of ops that are not tagged as random. Outputs that are not fully written "
        "show whatever was in memory; state kept between calls makes training irreproducible."
    ),
    fix=(
        "Write every element of the output and keep no state; tag ops that draw random numbers "
        "torch.Tag.nondeterministic_seeded."
    ),
    docs="https://docs.pytorch.org/docs/stable/notes/randomness.html",
    tier="quick",
    variants=("sample", "noncontiguous"),
    applies=lambda ctx: None if ctx.deterministic else "the op's values are random",
)
def repeatable(ctx, case):
    if case.uncertain:
        ctx.skip("the op may rely on what was changed")
    first = ctx.require(case)
    ctx.dirty_memory(first)
    second = ctx.again(case)
    if second.error is not None:
        ctx.fail(f"the op accepts an input once and refuses an equal one: {ctx.describe_error(second.error)}")
    exact = ctx.device == "cpu" and ctx.spec.tolerances is None
    difference = ctx.compare(second.results(), first.results(), exact=exact)
    if difference and not ctx.spec.deterministic and ctx.compare(second.results(), first.results()) is None:
        ctx.warn(f"a second call on equal inputs rounds otherwise, as sums in any order do: {difference}")
    if difference:
        ctx.fail(f"a second call on equal inputs gives another result: {difference}")
    if not case.variant and (difference := _after_another_seed(ctx, case, first)):
        ctx.fail(f"the op draws random numbers and is not tagged as random: with another seed, {difference}")


def _after_another_seed(ctx, case, first):
    """How the result differs when torch's, Python's and NumPy's generators are elsewhere."""
    from opcheck_suite.inputs import tensors

    args, kwargs = case.inputs()
    with ctx.seeded(ctx.seed + 1):
        try:
            out = ctx.info.op(*args, **kwargs)
        except Exception:
            return None  # where it raises by chance, other checks say so
    results = tensors.map_tensors(lambda t: t.detach(), case.results(out, case.leaves((args, kwargs))))
    return ctx.compare(results, first.results())
