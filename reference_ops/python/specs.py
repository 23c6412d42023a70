"""The specs of all Python reference ops."""

from opcheck_suite.model import OpSpec
from reference_ops.python import functional, lowlevel, mutating, partial_gradients, registrations, training, why

SPECS: list[OpSpec] = [
    *functional.SPECS,
    *registrations.SPECS,
    *mutating.SPECS,
    *training.SPECS,
    *partial_gradients.SPECS,
    *why.SPECS,
    *lowlevel.SPECS,
]
