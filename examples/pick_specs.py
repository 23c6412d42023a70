"""An op whose samples are drawn: a fault that shows only where a dimension is counted from the back.

    opcheck run examples/pick_specs.py

docs/strategies.md shows what that prints.
"""

import torch
from torch import Tensor

from opcheck_suite import OpSpec
from opcheck_suite.inputs import strategies
from opcheck_suite.inputs.strategies import dim_of, index_into, tensors


@torch.library.custom_op("demo::pick", mutates_args=())
def pick(x: Tensor, dim: int, index: Tensor) -> Tensor:
    return x.index_select(dim, index)


@pick.register_fake
def _(x: Tensor, dim: int, index: Tensor) -> Tensor:
    return x.new_empty(x.shape[:dim] + index.shape + x.shape[dim + 1 :])


CALLS = strategies.sample(x=tensors(), dim=dim_of("x"), index=index_into("x", dim="dim"))

SPECS = [OpSpec(pick, samples=CALLS, reference=torch.index_select)]
