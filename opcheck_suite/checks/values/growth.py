"""Memory does not grow with the number of calls."""

from opcheck_suite.registry import check

#: Calls over which memory must have grown for a failure: caches of up to 128 or 256 entries are filled by then.
_ENOUGH = 300

#: Bytes of arguments above which a smaller variant stands in for the sample.
_LARGE = 1 << 16


def _applies(ctx):
    if ctx.info.effect or (not ctx.info.schema.returns and not ctx.info.mutated):
        return "the op is there for its effect, which may be to keep what it is given"
    return None


@check(
    id="values.growth",
    title="Memory grows with every call",
    what=(
        "Calls the op many times on equal copies, and looks whether the memory that the process has in use grows in "
        "every window of calls, after caches have filled up and Python's collector has run."
    ),
    why="A training run or a server makes millions of calls: it runs out of memory hours later, far from the cause.",
    fix=(
        "Free what the call allocates (std::unique_ptr, an at::Tensor as scratch memory), and give caches a bound. A "
        "cache keyed by tensors or their addresses has a new key for every call."
    ),
    docs="https://docs.pytorch.org/docs/stable/notes/faq.html#my-model-reports-cuda-runtime-error-2-out-of-memory",
    tier="full",
    scope="signature",
    applies=_applies,
)
def growth(ctx, case):
    from opcheck_suite import memory
    from opcheck_suite.inputs import tensors

    if ctx.require(case).left_behind:
        ctx.skip("a call changes the state of the process: see values.state")

    small = _small(ctx, case)

    def call():
        args, kwargs = small.inputs()
        return args, kwargs, ctx.call(ctx.info.op, *args, what="the op, called again on equal inputs,", **kwargs)

    size = sum(t.numel() * t.element_size() for t in tensors.tensors(call()))
    ctx.announce("many calls", small)
    found = memory.growth(call, memory.gauges(ctx.device), size=size)
    ctx.announce("check", case)
    if found is None:
        return
    whose = f" of {small.label}" if small.variant else ""
    text = (
        f"{found.gauge.name} grows by {found.per_call:,.0f} bytes with every call, steadily over {found.calls:,} calls "
        f"(arguments and results{whose} take {size:,} bytes)"
    )
    if owners := memory.holders(call):
        text += f"\nheld    tensors of finished calls are held by {', '.join(owners)}"
    if found.calls < _ENOUGH:
        ctx.warn(f"{text}\nnote    a cache may be full after more calls than were made")
    ctx.fail(text)


def _small(ctx, case):
    """The case, or the smallest variant that the op accepts where the case is large: calls can be many then."""
    if _bytes(case) <= _LARGE:
        return case
    return min([case, *(one for one in ctx.variants(case, "resized") if ctx.attempt(one) is not None)], key=_bytes)


def _bytes(case):
    return sum(t.numel() * t.element_size() for _, t in case.leaves())
