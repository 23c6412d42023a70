"""The specs of all conformant reference ops: ``opcheck run reference_ops.specs``."""

from reference_ops.native.specs import SPECS as NATIVE
from reference_ops.python.specs import SPECS as PYTHON

SPECS = [*PYTHON, *NATIVE]
