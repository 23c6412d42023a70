"""Fake outputs have the conj and neg bits of real ones."""

from opcheck_suite.registry import check


@check(
    id="fake.lazy_bits",
    title="The fake kernel does not say that an output is a conj or neg view",
    what=(
        "Compares is_conj() and is_neg() of outputs between the op and its fake kernel: a tensor with such a bit holds "
        "the conjugates or negatives of its values, which torch computes when they are needed."
    ),
    why=(
        "Inductor generates code that reads the output's memory as the fake kernel describes it. Where the bit is not "
        "known, the numbers have the wrong sign, without an error."
    ),
    fix="Return output.resolve_conj().resolve_neg() from the op.",
    docs="https://docs.pytorch.org/docs/stable/generated/torch.Tensor.is_conj.html",
    tier="quick",
    variants=("sample", "lazy"),
)
def lazy_bits(ctx, case):
    from opcheck_suite import fakepairs

    for pair in fakepairs.tensor_pairs(ctx, case):
        for word, real, fake in (
            ("conj", pair.real.is_conj(), pair.fake.is_conj()),
            ("neg", pair.real.is_neg(), pair.fake.is_neg()),
        ):
            if real != fake:
                is_view = ("is", "is not") if real else ("is not", "is")
                ctx.fail(f"{pair.name} {is_view[0]} a {word} view, with fake tensors it {is_view[1]}")
