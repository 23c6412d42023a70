"""Hypothesis strategies for the calls of operators.

::

    from opcheck_suite.inputs import strategies
    from opcheck_suite.inputs.strategies import dim_of, index_into, shapes, tensors

    calls = strategies.sample(x=tensors(shapes(1, 3)), dim=dim_of("x"), index=index_into("x", dim="dim"))

    OpSpec("my_ops::pick", samples=calls)     # the suite draws samples, and shrinks one that fails

    @given(calls)                             # or your own property
    def test_pick(call):
        torch.ops.my_ops.pick(*call.args, **call.kwargs)

Values are realistic and come from one drawn seed; what is unusual is asked for. See docs/strategies.md. Importing this
package imports torch and Hypothesis; nothing else of opcheck_suite does before a strategy is used.
"""

from opcheck_suite.inputs.strategies.calls import sample
from opcheck_suite.inputs.strategies.fills import constant, normal, uniform
from opcheck_suite.inputs.strategies.parts import Relation, depends_on, value_of
from opcheck_suite.inputs.strategies.plain import (
    bools,
    devices,
    dtypes,
    floats,
    generators,
    ints,
    layouts,
    lists,
    memory_formats,
    optional,
    scalars,
    strings,
)
from opcheck_suite.inputs.strategies.relations import (
    broadcastable_with,
    device_of,
    dim_of,
    dims_of,
    dtype_of,
    index_into,
    length_of,
    shape_of,
    size_of,
    sorted_offsets,
    sums_to,
)
from opcheck_suite.inputs.strategies.schemas import from_schema
from opcheck_suite.inputs.strategies.tensors import like, shapes, sizes, tensors

__all__ = [
    "Relation",
    "bools",
    "broadcastable_with",
    "constant",
    "depends_on",
    "device_of",
    "devices",
    "dim_of",
    "dims_of",
    "dtype_of",
    "dtypes",
    "floats",
    "from_schema",
    "generators",
    "index_into",
    "ints",
    "layouts",
    "length_of",
    "like",
    "lists",
    "memory_formats",
    "normal",
    "optional",
    "sample",
    "scalars",
    "shape_of",
    "shapes",
    "size_of",
    "sizes",
    "sorted_offsets",
    "strings",
    "sums_to",
    "tensors",
    "uniform",
    "value_of",
]
