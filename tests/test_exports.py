"""The public names."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pytest

import opcheck_suite

PUBLIC = {
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
}

MODULES = sorted(
    m.name
    for m in pkgutil.walk_packages(opcheck_suite.__path__, "opcheck_suite.")
    if not m.name.startswith("opcheck_suite.checks.")
)


def test_all_names_are_there_and_no_others():
    assert set(opcheck_suite.__all__) == PUBLIC == set(dir(opcheck_suite))
    assert opcheck_suite.__all__ == sorted(opcheck_suite.__all__)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_name_is_what_its_module_has_and_is_documented(name):
    value = getattr(opcheck_suite, name)
    home = importlib.import_module(f"opcheck_suite.{opcheck_suite._HOME[name]}")
    assert value is getattr(home, name)
    assert (inspect.getdoc(value) or "").strip()
    assert inspect.getdoc(value) != inspect.getdoc(value.__mro__[1] if inspect.isclass(value) else object)


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'chek_op'"):
        opcheck_suite.chek_op  # noqa: B018


def test_the_version_is_that_of_the_distribution():
    assert importlib.metadata.version("opcheck-suite") == opcheck_suite.__version__


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_of_a_module_is_documented(name):
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip()
    lacking = []
    for attribute, value in vars(module).items():
        own = getattr(value, "__module__", None) == name and (inspect.isclass(value) or inspect.isfunction(value))
        if attribute.startswith("_") or not own:
            continue
        if not (value.__doc__ or "").strip() or (value.__doc__ or "").startswith(f"{attribute}("):
            lacking.append(attribute)
        if inspect.isclass(value):
            lacking += [
                f"{attribute}.{n}"
                for n, member in vars(value).items()
                if not n.startswith("_") and inspect.isroutine(member) and not (inspect.getdoc(member) or "").strip()
            ]
    assert lacking == []
