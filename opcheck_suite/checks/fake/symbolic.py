"""Fake kernels hold for other sizes than the ones they were tried with."""

from opcheck_suite.registry import check

#: Sizes that are tried to violate a condition: small, odd, prime, round, and beyond usual blocks.
_SIZES = (2, 3, 5, 6, 7, 8, 12, 16, 17, 20, 32, 33, 64, 65, 100, 131, 257)


@check(
    id="fake.symbolic",
    title="The fake kernel depends on the values of sizes",
    what=(
        "Calls the fake kernel with symbols for sizes, and for arguments declared SymInt, and collects the conditions "
        "that it relied on. A condition is a "
        "failure when the op accepts sizes that violate it; conditions that the op itself demands are right."
    ),
    why=(
        "Every condition is a guard: torch.compile compiles again when it fails, or turns a dynamic size into a "
        "constant, and torch.export refuses the dimension."
    ),
    fix=(
        "Do not call int() on sizes or branch on them in the fake kernel; in C++ use sym_sizes() and empty_symint, "
        "and not sizes() or guard_int."
    ),
    docs="https://docs.pytorch.org/docs/stable/torch.compiler_dynamic_shapes.html",
    tier="quick",
    scope="signature",
)
def symbolic(ctx, case):
    import sympy

    from opcheck_suite import fakes

    ctx.require(case)
    if ctx.fake(case).error is not None:
        ctx.not_exercised("the fake kernel raises: see fake.runs")
    run = ctx.fake(case, symbolic=True)
    if run.unsupported:
        ctx.skip(f"fake tensors cannot stand for this input: {run.unsupported}")
    if run.error is not None:
        ctx.fail(f"with symbols for sizes the fake kernel raises {ctx.describe_error(run.error)}")
    places = fakes.symbols(run)
    if not places:
        ctx.skip("no argument has a size above one")
    lists = any("[]" in str(r.type) or "List" in str(r.type) for r in ctx.info.schema.returns)
    for condition in fakes.constraints(run):
        if lists and condition.func is not sympy.Eq:
            continue  # how many tensors are in the list must be decided by sizes
        made = _violate(ctx, case, condition, places)
        if made is not None:
            shown = str(condition)
            for symbol, (name, dim) in places.items():
                shown = shown.replace(str(symbol), f"{name}.shape[{dim}]")
            ctx.fail(f"the fake kernel relies on {shown}, but the op accepts {made.describe()}")


def _violate(ctx, case, condition, places):
    """A case that the op accepts although it violates a condition of its fake kernel, or None."""
    import dataclasses

    from opcheck_suite.inputs import sizes

    leaves = dict(case.leaves())
    for symbol in sorted(condition.free_symbols, key=str):
        if symbol not in places:
            continue
        name, dim = places[symbol]
        old = leaves[name].shape[dim]
        others = {s: leaves[n].shape[d] for s, (n, d) in places.items() if s != symbol}
        for new in _SIZES:
            if new == old or str(condition.subs({symbol: new, **others})) != "False":
                continue
            made = sizes.resized(case, old, new)
            if made is None:
                break
            if not _all_follow(case, made, old, new):
                break  # sizes that are equal by chance, of which the op wants one to stay
            if _numbers(ctx, made) != _numbers(ctx, case):
                break  # a number that the schema does not declare as a size: see registration.symint
            made = dataclasses.replace(made, variant=f"size {new}({name} dim {dim})", group="resized")
            if ctx.attempt(made) is not None:
                return made
    return None


def _all_follow(case, made, old, new):
    """Whether every size that was equal to the old one is the new one."""
    pairs = zip(case.leaves(), made.leaves(), strict=True)
    return all(b == new for (_, was), (_, now) in pairs for a, b in zip(was.shape, now.shape, strict=True) if a == old)


def _numbers(ctx, case):
    """The values of arguments declared int, alone or in lists: constants to a compiler."""
    from opcheck_suite import fakes

    symbolic = fakes.declared_sizes(ctx.info)
    return {n: v for n, v in case.bound().items() if n not in symbolic and _integers(v)}


def _integers(value):
    items = value if isinstance(value, list | tuple) else [value]
    return all(isinstance(v, int) for v in items)
