"""Counts, sizes and positions are held in 64 bits."""

from opcheck_suite.registry import check

#: An output of more bytes is not asked for, memory beyond that is not given, and no call may take longer (seconds).
_OUTPUT, _MEMORY, _SECONDS = 1 << 26, 1 << 30, 15.0


@check(
    id="values.wide",
    title="A number is cut to 32 bits",
    what=(
        "Calls the op on an expanded tensor of more than 2**31 elements, which takes no memory, and with 2**32 added "
        "to integer arguments; compares with the reference. Smaller inputs are tried first: an op is not asked for "
        "what would take long or more than a gigabyte."
    ),
    why=(
        "Long sequences times large batches pass 2**31 elements. An int that holds their count wraps round: elements "
        "are left out, or memory that is not the tensor's is read."
    ),
    fix="Hold counts, sizes, strides and positions in int64_t, from the schema down to the index of each thread.",
    docs="https://docs.pytorch.org/cppdocs/api/classat_1_1_tensor.html",
    tier="full",
    scope="signature",
    variants=("huge",),
    applies=lambda ctx: (
        "the spec has no reference"
        if ctx.spec.reference is None
        else "the op's values are random"
        if not ctx.deterministic
        else "the op writes to arguments, which must not be expanded, and takes no integer"
        if ctx.info.mutated and not ctx.info.takes_integers
        else None
        if ctx.info.fake in ("python", "meta")
        else "without a fake kernel the size of the output is not known beforehand"
    ),
)
def wide(ctx, case):
    from opcheck_suite import state
    from opcheck_suite.inputs import huge

    def growth(larger):
        return huge.growth(ctx.sample_of(case), larger)

    with state.limited_memory(_MEMORY):
        before, made = 0.0, 0
        for small, next_factor in huge.smaller(ctx.sample_of(case), case):
            seconds, output = _seconds(ctx, small), _output(ctx.fake(small))
            if seconds is None:
                ctx.skip(f"it is refused, or its output large, where it is smaller ({small.variant})")
            if not before and ctx.compare(ctx.require(small).results(), ctx.reference(small), growth=growth(small)):
                ctx.skip(f"the result is wrong where it is smaller already ({small.variant}): see values.noncontiguous")
            if before and output + (output - made) * next_factor > _OUTPUT:
                ctx.skip("judged by smaller inputs, its output would be large")
            coming = seconds + max(0.0, seconds - before) * next_factor  # what does not grow is the cost of any call
            if before and coming > _SECONDS:
                ctx.skip(f"judged by smaller inputs, it would take more than {_SECONDS:.0f} s")
            before, made = seconds, output
        if _output(ctx.fake(case)) > _OUTPUT:
            ctx.skip("the fake kernel does not tell that the output is small")
        expected = ctx.reference(case)
        if expected is None:
            ctx.skip("the reference refuses this input, or needs more memory than it may take")
        run = ctx.require(case)
        difference = ctx.compare(run.results(), expected, growth=growth(case))
    if difference:
        ctx.fail(f"the result differs from the reference: {difference}")


def _output(fake):
    """The bytes that the fake kernel says an output takes; more than is asked for where it does not know."""
    from opcheck_suite.inputs import tensors

    if fake.error is not None or fake.unsupported:
        return _OUTPUT + 1
    made = tensors.tensors(fake.outputs)
    known = all(isinstance(size, int) for t in made for size in t.shape)
    return sum(t.numel() * t.element_size() for t in made) if known else _OUTPUT + 1


def _seconds(ctx, case):
    """What the op, its fake kernel and its reference take together; None where one of them refuses."""
    import time

    if ctx.attempt(case) is None or ctx.reference(case) is None:  # the first calls, which warm up
        return None
    start = time.perf_counter()
    if _output(ctx.fake(case)) > _OUTPUT:
        return None
    shape_only = time.perf_counter() - start
    taken = []
    while len(taken) < 5 and sum(taken) < 0.5:  # the least of some: a busy machine makes a call long, never short
        args, kwargs = case.inputs()
        start = time.process_time()
        try:
            with ctx.seeded():
                ctx.info.op(*args, **kwargs)
                ctx.spec.reference(*args, **kwargs)
        except (RuntimeError, MemoryError):  # of memory, which calls may use up one after the other
            return None
        taken.append(time.process_time() - start)
    return min(taken) + (shape_only if shape_only > 0.1 else 0.0)
