"""Elements are counted and found in 64 bits."""

from opcheck_suite.registry import check

#: Seconds that a call may take, judged by a smaller one, and the part of the free memory that may be used.
_SECONDS, _PART = 60.0, 0.8

#: Elements of the smaller call, of a piece in which outputs are compared, and at the end, where they are not: what is
#: done in blocks may rightly be different in the last one.
_MIDDLE, _PIECE, _END = 1 << 22, 1 << 24, 1 << 16


def _applies(ctx):
    if not ctx.large:
        return "it takes gigabytes: opcheck run --large, or --opcheck-large in pytest"
    if not ctx.deterministic:
        return "the op's values are random"
    return None if ctx.info.takes_tensors else "the op takes no tensor"


@check(
    id="values.large",
    title="Elements beyond 2**31 are wrong",
    what=(
        "With --large: calls the op on a tensor of more than 2**31 elements, which holds a sample over and over, in "
        "the smallest dtype in which the op computes the same. For ops whose result is then the sample's result over "
        "and over, it must be so at that size. The op may refuse it."
    ),
    why=(
        "An int that counts elements or holds an offset wraps round at 2**31: elements are not written, or others than "
        "the tensor's are read. A batch of activations in half precision is that large at 4 GB."
    ),
    fix="Hold counts, strides and offsets in int64_t, also in each thread of a kernel, or refuse such tensors.",
    docs="https://docs.pytorch.org/cppdocs/api/classat_1_1_tensor.html",
    tier="full",
    scope="signature",
    applies=_applies,
    shrinks=False,
)
def large(ctx, case):
    import contextlib
    import gc

    from opcheck_suite import memory, state

    ctx.require(case)
    usable = int(memory.free(ctx.device) * _PART)
    # beyond a limit allocations raise, where Linux would end a process; a device with memory of its own does so itself
    limit = contextlib.nullcontext() if memory.own(ctx.device) else state.limited_memory(usable)
    with limit:
        try:
            _look(ctx, case, usable)
        finally:
            gc.collect()


def _look(ctx, case, bytes_free):
    import time

    from opcheck_suite.inputs import repeated

    size = next((n for n in repeated.repeatable(case) if _over_and_over(ctx, case, n)), None)
    if size is None:
        ctx.skip("where rows of the input are repeated, the op refuses it, or the result is not the same over and over")
    small = next(one for one in repeated.narrower(case) if _as_good(ctx, case, one) and _over_and_over(ctx, one, size))
    elements = _elements(small)
    middle, times = _times(elements)
    needed = _bytes(ctx, small, size, times)
    if needed > bytes_free:
        ctx.skip(f"it takes {needed / 2**30:.1f} GiB of memory at least, and {bytes_free / 2**30:.1f} GiB can be used")
    clock = time.process_time if ctx.device == "cpu" else time.perf_counter  # what a busy machine takes is not counted
    taken = []
    for _ in range(2):  # the first call warms up
        start = clock()
        if (difference := _difference(ctx, small, size, middle)) is not None:
            ctx.skip(f"the result is another at {elements * middle:,} elements: {difference}")
        taken.append(clock() - start)
    if (seconds := min(taken) * times / middle) > _SECONDS:
        ctx.skip(f"judged by smaller inputs, it would take {seconds:,.0f} s")
    ctx.announce("large", small)
    difference = _difference(ctx, small, size, times)
    ctx.announce("check", small)
    if difference:
        ctx.fail(f"on {elements * times:,} elements ({small.label}, {times:,} times) the result is wrong: {difference}")


def _times(elements):
    """How often to repeat so many elements for the smaller call, and for one of more than 2**31.

    They differ by a power of two, so that blocks which do not fit end alike.
    """
    from opcheck_suite.inputs import huge

    middle = max(3, _MIDDLE // elements)
    step = 1 << max(0, min(20, (huge.BEYOND // 32 // elements).bit_length() - 1))
    enough = huge.BEYOND + 4 * _END - elements * middle
    return middle, middle + step * -(-enough // (elements * step))


def _elements(case):
    return max(t.numel() for _, t in case.leaves())


def _bytes(ctx, case, size, times):
    """What arguments and results take when a case is repeated."""
    from opcheck_suite.inputs import repeated, tensors

    def taken(n):
        made = repeated.repeated(case, size, n)
        found = tensors.tensors([*made.raw(), _call(ctx, made)])
        return sum({t.untyped_storage()._cdata: t.untyped_storage().nbytes() for t in found}.values())

    one, two = taken(2), taken(3)
    return one + (two - one) * times


def _as_good(ctx, case, narrow):
    """Whether the op takes a narrower dtype and computes in it what it computes in its own."""
    import torch

    from opcheck_suite.inputs import repeated, tensors

    if narrow is case:
        return True
    dtype = max((t for _, t in case.leaves()), key=lambda t: t.numel()).dtype
    run, own = ctx.attempt(narrow), ctx.attempt(repeated.widened(narrow, dtype))
    if run is None or own is None:
        return False
    made, expected = (tensors.map_tensors(torch.Tensor.double, r.results()) for r in (run, own))
    return ctx.compare(made, expected, coarse=None, tolerances=(1e-2, 1e-2)) is None


def _over_and_over(ctx, case, size):
    from opcheck_suite import context

    try:
        return all(_difference(ctx, case, size, n) is None for n in (2, 3, 5))
    except context.Skipped:
        return False


def _call(ctx, made):
    """Outputs and written arguments. The arguments are not copied: the case is made for one call."""
    args, kwargs = made.raw()
    with ctx.seeded():
        out = ctx.info.op(*args, **kwargs)
    ctx.synchronize()
    return made.results(out, made.leaves((args, kwargs)))


def _difference(ctx, case, size, times):
    """Where the result for a case that is repeated is not the case's result over and over; None if it is.

    Ends the check where there is no memory for it, or the op refuses it.
    """
    from opcheck_suite.inputs import repeated

    expected = ctx.require(case).results()
    elements = _elements(case) * times
    try:
        made = repeated.repeated(case, size, times)
        if made is None:
            return "the input cannot be repeated"
        found = _call(ctx, made)
        ctx.announce("check", case)
    except (RuntimeError, MemoryError, ValueError, OverflowError, IndexError, TypeError) as error:
        ctx.skip(f"{elements:,} elements are refused: {ctx.describe_error(error)}")
    del made
    if len(found) != len(expected):
        return f"{len(found)} outputs, expected {len(expected)}"
    for n, (a, b) in enumerate(zip(found, expected, strict=True)):
        if difference := _differs(ctx, a, b, times, f"output {n}" if len(found) > 1 else "output"):
            return difference
    return None


def _differs(ctx, found, one, times, name):
    import torch

    if not isinstance(found, torch.Tensor) or found.dim() != one.dim():
        return ctx.compare(found, one, names=name)
    longer = [d for d, (new, old) in enumerate(zip(found.shape, one.shape, strict=True)) if new != old]
    if any(found.shape[d] != one.shape[d] * times for d in longer) or not longer:
        return ctx.compare(found, one, names=name)
    dim, rows = longer[0], one.shape[longer[0]]
    row = found.numel() // times
    last = times - min(times - 1, _END // max(1, row) + 1 if found.numel() > _MIDDLE * 2 else 0)
    step = min(last, max(1, _PIECE // max(1, row)))
    expected = one.repeat([step if d == dim else times if d in longer else 1 for d in range(one.dim())])
    for start in range(0, last, step):
        count = min(step, last - start)
        piece, right = found.narrow(dim, start * rows, count * rows), expected.narrow(dim, 0, count * rows)
        if not torch.equal(piece, right) and (difference := ctx.compare(piece, right, names=name)):
            return f"from index {start * rows:,} of dimension {dim} on, {difference}"
    return None
