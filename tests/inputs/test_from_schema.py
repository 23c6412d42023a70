"""Calls drawn from nothing but a schema."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, Phase, find, given, settings

from opcheck_suite import Sample, ops, specs
from opcheck_suite.inputs.strategies import dtypes, from_schema, index_into, ints, like, shape_of, strings, tensors
from opcheck_suite.registry import UsageError

DRAW = settings(
    max_examples=25,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)

#: A schema type -> what must hold of every value that is drawn for it, beside a tensor x.
TYPES = {
    "Tensor": lambda v, x: (v.shape, v.dtype, v.device) == (x.shape, x.dtype, x.device),
    "Tensor(a!)": lambda v, x: v.shape == x.shape and 0 not in v.stride(),
    "Tensor?": lambda v, x: v is None or v.shape == x.shape,
    "Tensor[]": lambda v, x: v and all(t.shape == x.shape for t in v),
    "Tensor?[]": lambda v, x: v and all(t is None or t.shape == x.shape for t in v),
    "int": lambda v, x: type(v) is int,
    "SymInt": lambda v, x: type(v) is int,
    "SymInt?": lambda v, x: v is None or type(v) is int,
    "int[3]": lambda v, x: len(v) == 3 and all(type(n) is int for n in v),
    "SymInt[]": lambda v, x: v and all(type(n) is int for n in v),
    "int[2]?": lambda v, x: v is None or len(v) == 2,
    "float": lambda v, x: type(v) is float and v == v,
    "float[]?": lambda v, x: v is None or all(type(n) is float for n in v),
    "bool": lambda v, x: type(v) is bool,
    "Scalar": lambda v, x: isinstance(v, int | float),
    "Scalar?": lambda v, x: v is None or isinstance(v, int | float),
    "complex": lambda v, x: type(v) is complex,
    "ScalarType": lambda v, x: isinstance(v, torch.dtype),
    "ScalarType?": lambda v, x: v is None or isinstance(v, torch.dtype),
    "Layout": lambda v, x: v == torch.strided,
    "MemoryFormat": lambda v, x: isinstance(v, torch.memory_format),
    "Device": lambda v, x: v == x.device,
    "str": lambda v, x: type(v) is str,
    "str[]": lambda v, x: v and all(type(w) is str for w in v),
    "Generator?": lambda v, x: v is None or isinstance(v, torch.Generator),
}

NAMED = {
    "int dim": lambda v, x: -x.dim() <= v < x.dim(),
    "int? axis": lambda v, x: v is None or -x.dim() <= v < x.dim(),
    "int[] dims": lambda v, x: v and all(-x.dim() <= d < x.dim() for d in v),
    "Tensor index": lambda v, x: not v.numel() or 0 <= int(v.min()) <= int(v.max()) < x.shape[0],
    "Tensor offsets": lambda v, x: int(v[0]) == 0 and int(v[-1]) == x.shape[0],
    "Tensor? mask": lambda v, x: v is None or (v.dtype, v.shape) == (torch.bool, x.shape),
    "float eps": lambda v, x: 0 < v < 0.01,
    "float p": lambda v, x: 0 <= v <= 1,
}


@pytest.fixture(scope="module")
def library():
    with torch.library._scoped_library("suite_schemas", "DEF") as library:
        for n, kind in enumerate(TYPES):
            library.define(f"typed{n}(Tensor x, {kind} value) -> ()")
        for n, argument in enumerate(NAMED):
            library.define(f"named{n}({argument}, Tensor x) -> ()")
        library.define("alone(Tensor[] xs, Device where, MemoryFormat format, Generator? generator=None) -> Tensor")
        library.define("factory(int[] size, ScalarType dtype, Device device) -> Tensor")
        library.define("gather(Tensor x, int dim=0, *, Tensor index, float scale=2.0) -> Tensor")
        library.define("strange(Tensor x, QScheme scheme) -> Tensor")
        library.define("overloaded.a(Tensor x) -> Tensor")
        library.define("overloaded.b(Tensor x, Tensor y) -> Tensor")
        yield library


def drawn(strategy) -> list[Sample]:
    found: list[Sample] = []

    @given(strategy)
    @DRAW
    def gather(sample):
        found.append(sample)

    gather()
    return found


@pytest.mark.parametrize("kind", TYPES)
def test_there_is_a_strategy_for_every_type(library, kind):
    name = f"suite_schemas::typed{list(TYPES).index(kind)}"
    for sample in drawn(from_schema(name)):
        x, value = sample.args
        assert (x.dtype, x.dim() > 0, x.is_contiguous()) == (torch.float32, True, True)
        assert TYPES[kind](value, x), value
        assert specs.bind(ops.info(name), sample)


@pytest.mark.parametrize("argument", NAMED)
def test_arguments_with_a_usual_name_are_drawn_as_what_they_are(library, argument):
    for sample in drawn(from_schema(f"suite_schemas::named{list(NAMED).index(argument)}")):
        value, x = sample.args
        assert NAMED[argument](value, x), value


def test_without_a_single_tensor_there_are_strategies_too(library):
    for sample in drawn(from_schema("suite_schemas::alone")):
        xs, where, form, *rest = sample.args
        assert len({(t.shape, t.dtype) for t in xs}) == 1
        assert isinstance(where, torch.device)
        assert isinstance(form, torch.memory_format)
        assert rest in ([], [None]) or isinstance(rest[0], torch.Generator)
    assert all(isinstance(s.args[0], list) for s in drawn(from_schema("suite_schemas::factory")))


def test_arguments_with_a_default_are_left_out_or_given(library):
    found = drawn(from_schema("suite_schemas::gather"))
    assert {len(s.args) for s in found} == {1, 2}
    assert {tuple(s.kwargs) for s in found} == {("index",), ("index", "scale")}
    for sample in found:
        x, *dim = sample.args
        index = sample.kwargs["index"]
        assert not index.numel() or int(index.max()) < x.shape[dim[0] if dim else 0]


def test_parts_replace_what_the_schema_does_not_tell(library):
    calls = from_schema(
        "suite_schemas::gather",
        x=tensors(dtype=dtypes("integer")),
        index=index_into("x", dim="dim", shape=shape_of("x")),
        scale=0.5,
    )
    for sample in drawn(calls):
        assert not sample.args[0].is_floating_point()
        assert sample.kwargs["index"].shape == sample.args[0].shape
        assert sample.kwargs["scale"] == 0.5


def test_a_relation_may_go_from_the_first_tensor_to_another(library):
    calls = from_schema("suite_schemas::overloaded.b", x=like("y", dtype=torch.float64))
    assert all(s.args[0].shape == s.args[1].shape and s.args[0].dtype == torch.float64 for s in drawn(calls))


def test_a_type_without_a_strategy_needs_a_part(library):
    told = r"no strategy for argument 'scheme' of type QScheme; give one as from_schema\(op, scheme=\.\.\.\)"
    with pytest.raises(UsageError, match=told):
        from_schema("suite_schemas::strange")
    assert drawn(from_schema("suite_schemas::strange", scheme=torch.per_tensor_affine))


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: from_schema("suite_schemas::gathr"), "there is no op 'suite_schemas::gathr'; did you mean"),
        (lambda: from_schema("suite_schemas::overloaded"), "has 2 overloads; name one of"),
        (lambda: from_schema("suite_schemas::gather", idx=ints()), "has no argument 'idx'"),
        (lambda: from_schema("suite_schemas::gather", indx=ints()), "has no argument 'indx'; did you mean 'index'"),
        (lambda: from_schema(strings), "needs an operator, .* is a plain function"),
    ],
)
def test_what_cannot_be_drawn_is_refused_when_it_is_written(library, make, told):
    with pytest.raises(UsageError, match=told):
        make()


def test_an_op_is_named_or_given_as_an_object():
    for op in ("aten::mul.Tensor", torch.ops.aten.mul.Tensor):
        smallest = find(from_schema(op), lambda _: True, settings=DRAW)
        assert [tuple(t.shape) for t in smallest.args] == [(1,), (1,)]
