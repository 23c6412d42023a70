"""Every planted fault of the Python ops as one table: ``opcheck run reference_ops.broken.faults``."""

from __future__ import annotations

import importlib

from reference_ops.broken.fault import Fault

#: The modules that hold faults: one for each family of checks, and one for what ops do to their process.
MODULES = (
    "namespace",
    "deprecated",
    "registration",
    "values",
    "process",
    "schema",
    "dispatch",
    "fake",
    "autograd",
    "transform",
    "opcheck",
    "compile",
    "export",
)


def all_faults() -> list[Fault]:
    """The faults of all modules, in the order of `MODULES`."""
    modules = [importlib.import_module(f"reference_ops.broken.{name}") for name in MODULES]
    return [fault for module in modules for fault in module.FAULTS]


SPECS = [fault.spec for fault in all_faults()]
