"""Test and conformance harness for PyTorch custom operators.

The public names below are loaded on first use: importing the package imports no torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opcheck_suite.api import check_op, parametrize_with_checks
    from opcheck_suite.breaks import assert_no_graph_breaks, count_graph_breaks
    from opcheck_suite.guarding import ReservedNamespaceError, guard
    from opcheck_suite.model import ConformanceError, OpSpec, Outcome, Report, Result, Sample, Tier
    from opcheck_suite.registrations import RegistrationWarning
    from opcheck_suite.registry import UsageError, check

__version__ = "0.1.0"

_HOME = {
    "ConformanceError": "model",
    "KnownFailure": "known",
    "OpSpec": "model",
    "Outcome": "model",
    "RegistrationWarning": "registrations",
    "Report": "model",
    "ReservedNamespaceError": "guarding",
    "Result": "model",
    "Sample": "model",
    "Tier": "model",
    "UsageError": "registry",
    "assert_no_graph_breaks": "breaks",
    "check": "registry",
    "check_op": "api",
    "count_graph_breaks": "breaks",
    "guard": "guarding",
    "parametrize_with_checks": "api",
}

__all__ = [
    "ConformanceError",
    "KnownFailure",
    "OpSpec",
    "Outcome",
    "RegistrationWarning",
    "Report",
    "ReservedNamespaceError",
    "Result",
    "Sample",
    "Tier",
    "UsageError",
    "assert_no_graph_breaks",
    "check",
    "check_op",
    "count_graph_breaks",
    "guard",
    "parametrize_with_checks",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
