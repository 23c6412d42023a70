"""Strategies: everything drawn is what was asked for, and a failing example shrinks to the smallest that fails."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import time

import pytest
import torch
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import InvalidArgument

from opcheck_suite.inputs import drawing, strategies, tensors
from opcheck_suite.inputs.strategies import (
    broadcastable_with,
    constant,
    depends_on,
    device_of,
    devices,
    dim_of,
    dims_of,
    dtype_of,
    dtypes,
    floats,
    generators,
    index_into,
    ints,
    layouts,
    length_of,
    like,
    lists,
    memory_formats,
    optional,
    sample,
    scalars,
    shape_of,
    shapes,
    size_of,
    sizes,
    sorted_offsets,
    strings,
    sums_to,
    uniform,
    value_of,
)
from opcheck_suite.registry import UsageError

DRAW = settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
X = strategies.tensors(shapes(0, 3, min_size=0, max_size=5))


def every(strategy, holds) -> None:
    """A condition holds for all that a strategy draws."""

    @given(strategy)
    @DRAW
    def property_(value):
        assert holds(value)

    property_()


def minimum(strategy, condition=lambda _: True):
    return find(strategy, condition, settings=DRAW)


# -- relations


def _within(index: torch.Tensor, low: int, high: int) -> bool:
    return not index.numel() or (int(index.min()) >= low and int(index.max()) < high)


def _size(x: torch.Tensor, dim: int) -> int:
    return x.shape[dim] if x.dim() else 1


RELATIONS = {
    "shape": ({"y": shape_of("x")}, lambda x, y: y == tuple(x.shape)),
    "dtype": ({"y": dtype_of("x")}, lambda x, y: y == x.dtype),
    "device": ({"y": device_of("x")}, lambda x, y: y == x.device),
    "like": ({"y": like("x")}, lambda x, y: (y.shape, y.dtype, y.device) == (x.shape, x.dtype, x.device)),
    "like, other dtype": (
        {"y": like("x", dtype=torch.int64)},
        lambda x, y: (y.shape, y.dtype) == (x.shape, torch.int64),
    ),
    "size by number": ({"n": size_of("x", -1)}, lambda x, n: n == _size(x, -1)),
    "size by argument": ({"d": dim_of("x"), "n": size_of("x", "d")}, lambda x, d, n: n == _size(x, d)),
    "dim": ({"d": dim_of("x")}, lambda x, d: -max(x.dim(), 1) <= d < max(x.dim(), 1)),
    "dim from the front": ({"d": dim_of("x", negative=False)}, lambda x, d: 0 <= d < max(x.dim(), 1)),
    "dims": ({"d": dims_of("x")}, lambda x, d: len({n % x.dim() for n in d}) == len(d) <= x.dim()),
    "some dims": ({"d": dims_of("x", min_size=1)}, lambda x, d: 0 < len(d) <= x.dim()),
    "broadcastable": (
        {"y": like("x", shape=broadcastable_with("x"))},
        lambda x, y: torch.broadcast_shapes(x.shape, y.shape) is not None,
    ),
    "broadcastable to": (
        {"y": like("x", shape=broadcastable_with("x", to=True))},
        lambda x, y: torch.broadcast_shapes(x.shape, y.shape) == x.shape,
    ),
    "broadcastable with two": (
        {"y": like("x", shape=broadcastable_with("x")), "z": like("x", shape=broadcastable_with("x", "y"))},
        lambda x, y, z: torch.broadcast_shapes(x.shape, y.shape, z.shape) is not None,
    ),
    "index": ({"i": index_into("x")}, lambda x, i: i.dtype == torch.int64 and _within(i, 0, _size(x, 0))),
    "index along an argument": (
        {"d": dim_of("x"), "i": index_into("x", dim="d", dtype=torch.int32)},
        lambda x, d, i: i.dtype == torch.int32 and _within(i, 0, _size(x, d)),
    ),
    "index from the back": (
        {"i": index_into("x", negative=True)},
        lambda x, i: _within(i, -_size(x, 0), _size(x, 0)),
    ),
    "index of a shape": (
        {"d": dim_of("x"), "i": index_into("x", dim="d", shape=shape_of("x"))},
        lambda x, d, i: i.shape == x.shape and _within(i, 0, _size(x, d)),
    ),
    "offsets": (
        {"o": sorted_offsets("x")},
        lambda x, o: int(o[0]) == 0 and int(o[-1]) == _size(x, 0) and bool((o.diff() >= 0).all()),
    ),
    "offsets without end": (
        {"o": sorted_offsets("x", end=False)},
        lambda x, o: int(o[0]) == 0 and _within(o, 0, _size(x, 0) + 1) and bool((o.diff() >= 0).all()),
    ),
    "parts": ({"p": sums_to(size_of("x"))}, lambda x, p: sum(p) == _size(x, 0) and min(p) >= 0 and len(p) <= 4),
    "parts of an argument": (
        {"n": sizes(4, 9), "p": sums_to("n", min_parts=2, min_size=1)},
        lambda x, n, p: sum(p) == n and min(p) >= 1 and 2 <= len(p) <= 4,
    ),
    "lengths": (
        {"xs": lists(like("x")), "w": lists(floats(), size=length_of("xs"))},
        lambda x, xs, w: len(xs) == len(w) and all(t.shape == x.shape for t in xs),
    ),
    "a list of one kind": (
        {"xs": lists(strategies.tensors(dtype=dtypes()), rest=like), "y": like("xs[0]")},
        lambda x, xs, y: len({(t.shape, t.dtype) for t in [*xs, y]}) == 1,
    ),
    "a value": ({"y": value_of("x")}, lambda x, y: y is x),
    "an own rule": (
        {"n": depends_on("x", make=lambda x: st.integers(0, x.dim()))},
        lambda x, n: 0 <= n <= x.dim(),
    ),
    "mapped": ({"y": shape_of("x").map(len)}, lambda x, y: y == x.dim()),
    "filtered": ({"d": dim_of("x").filter(lambda d: d >= 0)}, lambda x, d: d >= 0),
    "perhaps": ({"y": optional(like("x"))}, lambda x, y: y is None or y.shape == x.shape),
    "memory format": (
        {"f": memory_formats("x")},
        lambda x, f: x.contiguous(memory_format=f) is not None or f == torch.preserve_format,
    ),
}


@pytest.mark.parametrize("name", RELATIONS)
def test_what_is_drawn_satisfies_its_relation(name):
    parts, holds = RELATIONS[name]
    every(sample(**parts, x=X), lambda drawn: holds(**drawn.kwargs))
    every(sample(**parts, x=torch.rand(3, 4)), lambda drawn: holds(**drawn.kwargs))


def test_a_relation_to_a_tensor_at_hand_is_a_strategy():
    x = torch.rand(2, 5)
    every(dim_of(x), lambda d: -2 <= d < 2)
    every(index_into(x, 1), lambda i: _within(i, 0, 5))
    every(like(x), lambda y: y.shape == x.shape)


@given(st.data())
@DRAW
def test_relations_can_be_drawn_one_by_one(data):
    x = data.draw(X)
    d = data.draw(dim_of(x))
    assert _within(data.draw(index_into(x, d)), 0, _size(x, d))


def test_a_relation_is_no_strategy():
    @given(dim_of("x"))
    def property_(d):
        pass

    with pytest.raises(InvalidArgument, match=r"dim_of\('x'\)"):
        property_()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"y": like("z")}, r"y=like\('z'\) refers to 'z', which is no argument of the call"),
        ({"inputs": X, "y": like("input")}, "'input', which is no argument of the call; did you mean 'inputs'"),
        ({"x": like("y"), "y": like("x")}, "the arguments .* refer to each other"),
        ({"x": like("x")}, "refer to each other"),
    ],
)
def test_a_call_that_cannot_be_drawn_is_refused_when_it_is_written(arguments, told):
    with pytest.raises(UsageError, match=told):
        sample(**arguments)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: like("x y"), "'x y' is not the name of an argument"),
        (lambda: dtypes("float"), "unknown kind 'float'; did you mean 'float8'|'floating'"),
        (lambda: strategies.tensors(strides="contigous"), "unknown strides 'contigous'; did you mean 'contiguous'"),
        (lambda: ints(3, 2), "must not exceed"),
        (lambda: floats(3, 2), "must not exceed"),
    ],
)
def test_wrong_arguments_are_refused_with_the_nearest(make, told):
    with pytest.raises(UsageError, match=told):
        make()


@pytest.mark.parametrize(
    ("part", "told"),
    [
        (dim_of("n"), r"dim_of\('n'\) needs a tensor, got 3"),
        (like("n"), r"like\('n'\) needs a tensor, got 3"),
        (size_of("x", 7), "has no dimension 7"),
        (strategies.tensors(shape_of("x"), strides=(1,)), "the shape .* has 2 dimensions"),
    ],
)
def test_a_relation_to_the_wrong_kind_of_argument_says_so(part, told):
    with pytest.raises(UsageError, match=told):
        minimum(sample(x=torch.rand(2, 2), n=3, y=part))


# -- tensors


def test_a_tensor_has_what_was_asked_for():
    drawn = strategies.tensors(
        (2, sizes(3, 5)), dtypes("complex"), strides="transposed", offset=4, requires_grad=True, device="meta"
    )

    def holds(t):
        rows, columns = t.shape
        given = (t.dtype.is_complex, t.stride(), t.storage_offset(), t.requires_grad, t.is_leaf, t.device.type)
        return rows == 2 and 3 <= columns <= 5 and given == (True, (1, 2), 4, True, True, "meta")

    every(drawn, holds)


def _order(t: torch.Tensor) -> list[int]:
    return sorted(range(t.dim()), key=lambda dim: (-t.stride(dim), dim))


@pytest.mark.parametrize(
    ("name", "holds"),
    [
        ("contiguous", lambda t: t.is_contiguous()),
        ("transposed", lambda t: t.permute(tuple(reversed(range(t.dim())))).is_contiguous()),
        ("permuted", lambda t: t.permute(_order(t)).is_contiguous()),
        ("padded", lambda t: t.dim() < 2 or t.stride(-1) == 1),
        ("gapped", lambda t: t.dim() == 0 or t.stride(-1) == 2),
        ("channels_last", lambda t: t.is_contiguous() if t.dim() != 4 else t[:0].shape[0] == 0 and t.stride(1) == 1),
        ("expanded", lambda t: 0 in t.stride() or all(size < 2 for size in t.shape)),
        ("writable", lambda t: 0 not in t.stride()),
        (("contiguous", "gapped")[1], lambda t: True),
    ],
)
def test_strides_are_what_their_name_says(name, holds):
    every(strategies.tensors(shapes(0, 4, max_size=4), strides=name), holds)


def test_given_strides_are_taken():
    t = minimum(strategies.tensors((3, 4), strides=(8, 2), offset=1))
    assert (t.stride(), t.storage_offset()) == ((8, 2), 1)


@pytest.mark.parametrize("kind", ["floating", "integer", "complex", "bool", "float8"])
def test_layout_does_not_change_the_values(kind):
    def values(strides, offset):
        found = []

        @given(strategies.tensors((3, 4), dtypes(kind), strides=strides, offset=offset))
        @settings(DRAW, max_examples=5)
        def gather(t):
            found.append((t.dtype, t.to(torch.complex64).tolist()))

        gather()
        return found

    assert values("contiguous", 0) == values("gapped", 3)


def test_memory_that_a_tensor_skips_holds_what_no_result_should_depend_on():
    t = minimum(strategies.tensors((3, 4), strides="padded", offset=2))
    hidden = torch.empty(0).set_(t.untyped_storage())[~tensors.visible_bytes(t).reshape(-1, 4).all(1)]
    assert hidden.numel() >= 4
    assert hidden.isnan().all()


def test_values_are_like_those_of_a_normal_distribution():
    found = []
    every(strategies.tensors((50,)), lambda t: found.append(t) is None)
    every_value = torch.cat(found)
    assert abs(float(every_value.mean())) < 0.1
    assert abs(float(every_value.std()) - 1) < 0.1
    assert every_value.isfinite().all()


def test_fillings():
    every(strategies.tensors(values=uniform(2.0, 3.0)), lambda t: bool(((t >= 2) & (t <= 3)).all()))
    every(strategies.tensors(dtype=torch.int64, values=uniform(2, 5)), lambda t: _within(t, 2, 5))
    every(strategies.tensors(values=constant(2.5)), lambda t: bool((t == 2.5).all()))
    every(strategies.tensors(dtype=dtypes("integer")), lambda t: _within(t, -9, 10))


@pytest.mark.parametrize("kind", ["floating", "integer", "complex", "bool", "float8"])
def test_special_values_come_on_demand(kind):
    special = strategies.tensors((4,), dtypes(kind), special=True)
    every(special, lambda t: t.shape == (4,))
    if kind == "floating":
        assert minimum(special, lambda t: bool(t.isnan().any())).isnan().sum() == 1
        assert minimum(special, lambda t: bool(t.isinf().any())).isinf().sum() == 1
    given_ones = strategies.tensors((4,), special=(7.5,))
    every(given_ones, lambda t: 1 <= int((t == 7.5).sum()) <= 3)


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support is in beta")
def test_sparse_layouts():
    every(
        sample(layout=layouts(), x=strategies.tensors(shapes(2, 2), layout=value_of("layout"))),
        lambda drawn: drawn.kwargs["x"].layout == drawn.kwargs["layout"],
    )


def test_only_what_can_require_grad_does():
    drawn = strategies.tensors(dtype=dtypes("floating", "integer", "complex", "bool"), requires_grad=True)
    every(drawn, lambda t: t.requires_grad == (t.is_floating_point() or t.is_complex()))


# -- arguments that are no tensors


@pytest.mark.parametrize(
    ("low", "high"), [(0, 0), (-8, 8), (3, 9), (-9, -3), (0, 5000), (-300, 20), (1000, 1010), (2**40, 2**40 + 200)]
)
def test_integers_are_in_their_interval_and_shrink_to_the_one_nearest_to_zero(low, high):
    every(ints(low, high), lambda n: low <= n <= high)
    assert minimum(ints(low, high)) == min(max(low, 0), high)


def test_every_integer_of_a_wide_interval_can_be_drawn():
    digits = itertools.product(range(100), repeat=2)
    found = {strategies.plain._from_digits(given, -300, 20, 0) for given in digits}
    assert found == set(range(-300, 21))


@pytest.mark.parametrize(("low", "high"), [(-4.0, 4.0), (0.0, 1.0), (0.5, 0.75), (100.0, 100.0), (-1000.0, -10.0)])
def test_floats_are_in_their_interval_and_exact_in_half_precision(low, high):
    every(floats(low, high), lambda v: low <= v <= high and torch.tensor(v, dtype=torch.float16).item() == v)
    assert minimum(floats(low, high)) == (0.0 if low <= 0 else low) if high > 0 else high
    assert len(set(strategies.plain._grid(low, high))) in ((1,) if low == high else range(40, 101))


def test_special_floats_come_on_demand():
    assert minimum(floats(special=True), lambda v: v != v) != 0
    every(floats(), lambda v: v == v and abs(v) <= 4)


def test_other_types():
    every(scalars(), lambda v: isinstance(v, int | float))
    every(strings("a", "b"), lambda v: v in ("a", "b"))
    every(strings(), lambda v: v == "" or v.isidentifier())
    every(dtypes("integer", "bool"), lambda v: not v.is_floating_point)
    every(devices(), lambda v: isinstance(v, torch.device))
    every(devices("meta"), lambda v: v.type == "meta")
    every(memory_formats(), lambda v: isinstance(v, torch.memory_format))
    every(optional(ints()), lambda v: v is None or isinstance(v, int))
    every(generators(), lambda v: torch.rand(1, generator=v).item() >= 0)


def test_every_example_has_a_generator_of_its_own():
    first, second = minimum(generators()), minimum(generators())
    assert first is not second
    assert torch.rand(3, generator=first).tolist() == torch.rand(3, generator=second).tolist()


# -- shrinking


@pytest.mark.parametrize(
    ("strategy", "condition", "smallest"),
    [
        (strategies.tensors(), lambda t: True, "float32[1]"),
        (strategies.tensors(), lambda t: t.numel() >= 3, "float32[3]"),
        (strategies.tensors(), lambda t: t.dim() == 3, "float32[1, 1, 1]"),
        (strategies.tensors(), lambda t: t.dim() > 1 and t.shape[-1] > 4, "float32[1, 5]"),
        (strategies.tensors(shapes(0, 3, min_size=0)), lambda t: t.numel() != 1, "float32[0]"),
        (X, lambda t: True, "float32[]"),
        (strategies.tensors(dtype=dtypes("floating", "integer")), lambda t: not t.is_floating_point(), "int64[1]"),
        (strategies.tensors(strides="any"), lambda t: not t.is_contiguous(), "float32[2] stride (2,)"),
        (strategies.tensors(strides="any", offset=ints(0, 5)), lambda t: t.storage_offset() > 1, "float32[1] offset 2"),
        (sizes(2, 9), lambda n: n % 3 == 0, "3"),
        (lists(ints()), lambda xs: sum(xs) > 5, "[6]"),
    ],
)
def test_shrinking_reaches_the_minimum(strategy, condition, smallest):
    assert tensors.describe_value(minimum(strategy, condition)) == smallest


def test_a_call_shrinks_to_the_minimum_of_all_its_arguments():
    calls = sample(
        x=strategies.tensors(dtype=dtypes()),
        dim=dim_of("x"),
        index=index_into("x", dim="dim"),
        bias=optional(like("x")),
    )
    found = minimum(calls, lambda s: s.kwargs["index"].numel() and s.kwargs["x"].dim() > 1).kwargs
    assert {name: tensors.describe_value(value) for name, value in found.items()} == {
        "x": "float32[1, 1]",
        "dim": "0",
        "index": "int64[1]",
        "bias": "None",
    }
    assert found["index"].tolist() == [0]


# -- speed and determinism


def test_a_thousand_examples_of_three_tensors_take_less_than_five_seconds():
    """In processor time, and at most twice what Hypothesis needs for as many draws that make no tensor."""
    size = st.lists(st.integers(1, 8), min_size=1, max_size=3)
    plain = st.tuples(size, st.integers(0, 99), st.integers(0, 99), st.integers(0, 99))
    drawn = sample(x=strategies.tensors(), y=like("x"), z=like("x"))
    some = settings(DRAW, max_examples=300)

    def seconds(strategy) -> float:
        count = itertools.count()

        @given(strategy)
        @some
        def run(_):
            next(count)

        start = time.process_time()
        run()
        return (time.process_time() - start) / next(count) * 1000

    baseline, ours = seconds(plain), seconds(drawn)
    assert ours < 5 or ours < 2 * baseline, f"{ours:.1f} s, Hypothesis alone {baseline:.1f} s"


FINGERPRINTS = """
import json, sys
from opcheck_suite.inputs import drawing, strategies
from opcheck_suite.inputs.strategies import *
calls = sample(x=tensors(shapes(1, 3, max_size=200), dtypes(), strides="any", offset=ints(0, 300)), dim=dim_of("x"),
               index=index_into("x", dim="dim"), f=floats(-1000, 1000), n=ints(-5000, 5000), s=strings())
print(json.dumps([repr(drawing.fingerprint(d.value)) for d in drawing.draw(calls, count=25, seed=3)]))
"""


def test_the_same_is_drawn_whatever_else_is_loaded():
    """Hypothesis takes constants from the source of loaded modules: a hundred of ours make no difference."""
    bare = subprocess.run([sys.executable, "-c", FINGERPRINTS], capture_output=True, text=True, check=True)
    alone = json.loads(bare.stdout)
    import reference_ops.broken.faults  # noqa: F401
    from opcheck_suite import registry

    registry.all_checks()
    output: list[str] = []
    exec(FINGERPRINTS, {"print": output.append})
    assert json.loads(output[0]) == alone


def test_derandomized_examples_are_the_same_each_time():
    def drawn() -> list[object]:
        found = []
        every(sample(x=X, d=dim_of("x")), lambda s: found.append(drawing.fingerprint(s)) is None)
        return found

    assert drawn() == drawn()
