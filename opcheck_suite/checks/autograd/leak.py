"""Memory is freed when the last user lets go of it."""

from opcheck_suite.registry import check


@check(
    id="autograd.leak",
    title="The graph keeps its own output alive",
    what="Drops the output of a forward run with the garbage collector off, and asks whether its memory is freed.",
    why=(
        "An output that is an attribute of ctx is a reference cycle: activations stay in memory until Python's "
        "collector happens to run, which looks like a leak and ends in out-of-memory errors."
    ),
    fix="Use ctx.save_for_backward for inputs and outputs; attributes of ctx are for numbers.",
    docs="https://docs.pytorch.org/docs/stable/notes/extending.html",
    tier="quick",
    scope="signature",
    applies=lambda ctx: ctx.no_gradients(),
)
def leak(ctx, case):
    import gc

    import torch

    from opcheck_suite import gradients
    from opcheck_suite.inputs import tensors

    run = gradients.forward(ctx, case)
    refs = [t.untyped_storage()._weak_ref() for t in tensors.tensors(run.outputs) if tensors.strided(t) and t.numel()]
    collecting = gc.isenabled()
    gc.disable()
    try:
        del run
        alive = [n for n, ref in enumerate(refs) if not torch.UntypedStorage._expired(ref)]
    finally:
        if collecting:
            gc.enable()
        for ref in refs:
            torch.UntypedStorage._free_weak_ref(ref)
    if alive:
        ctx.fail(f"output {', '.join(map(str, alive))} stays in memory after its last reference is gone")
