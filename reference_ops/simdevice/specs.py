"""The specs of all reference ops, unchanged, with the simulated device: ``opcheck run reference_ops.simdevice.specs
--device sim``.

Any device that torch does not know by itself can be brought in like this: a spec module imports what registers it.
"""

from reference_ops import simdevice

simdevice.register()

from reference_ops.specs import SPECS  # noqa: E402 - the registrations that it reads include the device's

__all__ = ["SPECS"]
