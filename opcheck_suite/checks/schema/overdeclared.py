"""Arguments declared as mutated are mutated."""

from opcheck_suite.registry import check


@check(
    id="schema.overdeclared",
    title="An argument is declared as mutated and never written",
    what="Looks, over all samples and their variants, for arguments declared as mutated whose bytes never change.",
    why=(
        "Functionalization copies every argument that is declared as mutated: memory and time for nothing, and "
        "gradients through the argument are refused."
    ),
    fix="Take the argument out of mutates_args, or the (a!) out of the schema.",
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.custom_op",
    tier="quick",
    scope="op",
    severity="warn",
    applies=lambda ctx: None if ctx.info.mutated else "the schema declares no argument as mutated",
)
def overdeclared(ctx):
    seen, changed = set(), set()
    for sample in ctx.samples:
        for group in ("sample", "resized"):
            for case in [sample] if group == "sample" else ctx.variants(sample, group):
                run = ctx.attempt(case)
                if run is None:
                    continue
                for before in run.before:
                    name = before.name.partition("[")[0]
                    if name in ctx.info.mutated and before.tensor.numel():
                        seen.add(name)
                        if before.changed_bytes().any():
                            changed.add(name)
    if not seen:
        ctx.not_exercised("no sample that the op accepts gives an argument that it declares as mutated")
    idle = [name for name in ctx.info.mutated if name in seen - changed]
    if idle:
        ctx.fail(f"argument {', '.join(map(repr, idle))} is declared as mutated, but no call changes it")
