"""An op with an autocast rule gives in a region what it gives on arguments that are cast."""

from opcheck_suite.registry import check


@check(
    id="dispatch.autocast_rule",
    title="The autocast rule fails, or gives something else",
    what=(
        "Calls an op that has an autocast rule for the device in an autocast region of every dtype that torch supports "
        "there: with all arguments in float32, all in the region's dtype, and mixtures of the two as they meet in a "
        "region. Where the op works outside on these arguments, or on all of them cast, it must work in the region. "
        "Results may be computed in the region's dtype, in float32 or in what the rule casts to, and must be right but "
        "for rounding, written arguments included. Fake tensors must do in the region what real ones do. A rule that "
        "casts to the other half precision than the region's, where the op takes the region's, is a warning, unless it "
        "is one of torch.library.register_autocast, which takes one dtype for all regions."
    ),
    why=(
        "A rule that casts some of the arguments makes the op fail in every region, or for every layer that gets a "
        "parameter and an activation; one that casts what the op writes to writes to a copy. Nothing but a call in a "
        "region runs a rule."
    ),
    fix=(
        "Cast all floating-point arguments that must agree, to torch.get_autocast_dtype(device) or a dtype of the op's "
        "own, leave written ones alone, and call the op with the key excluded: in Python with "
        "torch.library.register_autocast, in C++ with cached_cast and ExcludeDispatchKeyGuard."
    ),
    docs="https://docs.pytorch.org/docs/stable/library.html#torch.library.register_autocast",
    tier="standard",
    scope="signature",
    applies=lambda ctx: (
        None
        if ctx.info.autocasts_on(_device(ctx))
        else f"no autocast rule is registered for {_device(ctx)}, so that autocast leaves the op alone"
    ),
)
def autocast_rule(ctx, case):
    import torch

    from opcheck_suite import casting

    device = _device(ctx)
    ctx.require(case)
    names = list(casting.eligible(case, device))
    if not names:
        ctx.skip("the sample gives no tensor that autocast casts")
    plain = casting.cast(case, dict.fromkeys(names, torch.float32))
    regions = casting.regions(device)
    if not regions:
        ctx.skip(f"torch supports no autocast on {device} here")
    judged, doubts = 0, []
    for dtype in regions:
        low = casting.cast(plain, dict.fromkeys(names, dtype))
        if casting.deadly(ctx, plain) or casting.deadly(ctx, low):
            continue
        if ctx.attempt(plain) is None and ctx.attempt(low) is None:
            continue
        region = _Region(ctx, dtype, device, names, low)
        first = region.judge(plain)
        region.judge(low)
        # A rule that leaves its arguments alone leaves it to the op which of them go together.
        for mixed in casting.mixtures(plain, dtype, names) if region.casts else ():
            region.judge(mixed)
        region.judge_fake(plain, first)
        judged += region.judged
        doubts += region.doubts
    if doubts:
        ctx.warn(doubts[0])
    if not judged:
        ctx.not_exercised("the op takes the sample neither in float32 nor in half precision")


def _device(ctx):
    import torch

    return torch.device(ctx.device).type


class _Region:
    """What is seen of an op in autocast regions of one dtype."""

    def __init__(self, ctx, dtype, device, names, low):
        from opcheck_suite import casting
        from opcheck_suite.inputs import tensors

        self.ctx, self.dtype, self.device, self.names = ctx, dtype, device, names
        self.word = tensors.dtype_name(dtype)
        self.takes_low = ctx.attempt(low) is not None
        self.casts = False
        """Whether the rule was seen to pass on other dtypes than it was given."""
        self.judged = 0
        self.doubts = []
        self.casting = casting

    def judge(self, given):
        """One call in the region, which is returned. Ends the check where it shows a fault."""
        call = self.casting.inside(self.ctx, given, self.dtype, self.device, self.names)
        told = self.casting.dtypes_of(given, self.names)
        self.casts |= call.passed is not None and call.passed != told
        if call.error is not None:
            self._judge_error(given, told, call)
            return call
        self.judged += 1
        expected = self._candidates(given, call.passed)
        self._judge_dtypes(told, call, expected)
        if self.ctx.deterministic:
            self._judge_values(given, told, call, expected)
        return call

    def _where(self, told):
        return f"in an autocast region of {self.word}, with {self.casting.in_words(told)}"

    def _judge_error(self, given, told, call):
        ctx, words = self.ctx, self.casting.in_words
        raised = f"{self._where(told)}, the op raises {ctx.describe_error(call.error)}"
        if isinstance(call.error, AssertionError) and "do not support kwargs" in str(call.error):
            ctx.skip("torch.library.register_autocast supports no keyword-only arguments")
        alone = ctx.attempt(given) is not None
        if self.casting.without_end(call.error) and (alone or self.takes_low):
            ctx.fail(
                f"{raised}\nthe rule calls the op, and so itself: the dispatcher must be told to leave out the key "
                "Autocast for that call"
            )
        passed = "" if call.passed in (None, told) else f"\nthe rule calls the op with {words(call.passed)}"
        if alone and self.takes_low:
            ctx.fail(f"{raised}\noutside of the region it works on these, and on all of them in {self.word}{passed}")
        if alone:
            self.doubts.append(f"{raised}\noutside of the region it works on these, and not on {self.word}{passed}")
        elif self.takes_low and passed:
            ctx.fail(f"{raised}{passed}\noutside of the region it works on all of them in {self.word}")
        elif self.takes_low and self.casts:
            self.doubts.append(f"{raised}\nthe rule casts other arguments, and leaves these as they are")

    def _candidates(self, given, passed):
        """Results that are right but for rounding, as lists: in low precision, in float32, as the rule calls the op."""
        import torch

        ways = [dict.fromkeys(self.names, self.dtype), dict.fromkeys(self.names, torch.float32), passed or {}]
        cases = {case.key: case for case in (self.casting.cast(given, way) for way in ways)}
        runs = [run for case in cases.values() if (run := self.ctx.attempt(case)) is not None]
        return [self.casting.flat(run.results()) for run in runs]

    def _judge_dtypes(self, told, call, expected):
        import torch

        from opcheck_suite.inputs import tensors

        outputs = self.casting.flat(call.outputs)
        halves = (torch.float16, torch.bfloat16)
        other = [n for n, d in (call.passed or {}).items() if d in halves and d not in (self.dtype, told[n])]
        fixed = self.ctx.info.casts_to_one_dtype(self.device)
        if other and self.takes_low and not fixed:
            half = tensors.dtype_name(call.passed[other[0]])
            lost = "values beyond 65504 become infinite" if half == "float16" else "three bits more are rounded off"
            self.doubts.append(
                f"{self._where(told)}, the rule casts {', '.join(other)} to {half}\n"
                f"outside of the region the op takes {self.word}; in {half}, {lost}"
            )
        for n, out in enumerate(outputs):
            name = f"output {n}" if len(outputs) > 1 else "the output"
            could = [c[n] for c in expected if n < len(c)]
            known = {c.dtype for c in could if isinstance(c, torch.Tensor)}
            if not isinstance(out, torch.Tensor) or not known:
                continue
            if any(d.is_floating_point for d in known):
                known |= {self.dtype, torch.float32}
            if out.dtype in known or (fixed and out.dtype in halves):
                continue
            shown = " or ".join(sorted(map(tensors.dtype_name, known)))
            text = f"{self._where(told)}, {name} is {tensors.dtype_name(out.dtype)}, expected {shown}"
            if out.dtype not in halves:
                self.ctx.fail(text)
            elif self.takes_low:
                self.doubts.append(text)

    def _judge_values(self, given, told, call, expected):
        results = self.casting.flat(call.results)
        before = self.casting.flat(given.results(None, given.leaves()))
        written = len(results) - len(self.casting.flat(call.outputs))
        for n, got in enumerate(results):
            candidates = [c[n] for c in expected if len(c) == len(results)]
            found = self.casting.beyond_rounding(got, candidates, self.dtype, self.ctx.spec.tolerances)
            # Where it is not known what the rule computes, a few elements may lie on a jump of the function.
            if found is None or (call.passed is None and found[1] <= 0.5):
                continue
            text = found[0]
            if n >= len(results) - written:
                leaf = [name for name, _ in given.leaves() if given.writes(name)][n - len(results) + written]
                was = before[n - len(results) + written]
                if self.ctx.compare(got, was, exact=True) is None:
                    self.ctx.fail(f"{self._where(told)}, {leaf!r} is not written: the rule passes on a copy of it")
                self.ctx.fail(f"{self._where(told)}, {leaf!r} is wrong after the call: {text}")
            name = f"output {n}" if len(results) > 1 else "the output"
            self.ctx.fail(f"{self._where(told)}, {name} is wrong: {text}")

    def judge_fake(self, given, call):
        """A call in the region on fake tensors, where these do outside what real ones do."""
        ctx = self.ctx
        if call.error is not None:
            return
        ways = [call.passed] if call.passed else [dict.fromkeys(self.names, self.dtype), {}]
        for case in (self.casting.cast(given, way) for way in ways):
            if (run := ctx.attempt(case)) is None:
                return
            fake = ctx.fake(case)
            if fake.unsupported or fake.error is not None:
                return
            if self.casting.other_metadata(run.outputs, fake.outputs):
                return
        found = self.casting.fake(ctx, given, self.dtype, self.device)
        where = self._where(self.casting.dtypes_of(given, self.names))
        if found.unsupported:
            return
        if found.error is not None:
            raised = ctx.describe_error(found.error)
            ctx.fail(
                f"{where}, fake tensors raise {raised}\nreal ones do not, and nor do fake ones outside of the region: "
                "the rule must call the op, and look at no values"
            )
        if text := self.casting.other_metadata(call.outputs, found.outputs):
            ctx.fail(f"{where}, {text}")
