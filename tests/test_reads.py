"""What a function reads that is not given to it, by its bytecode."""

from __future__ import annotations

import collections
import functools
import types

import pytest
import torch

from opcheck_suite import reads

W = torch.ones(2)


class Slots:
    __slots__ = ("filled", "unset")

    def __init__(self):
        self.filled = W


class Config:
    weight = W
    lazy = W
    filled_by_helper = W
    nested = types.SimpleNamespace(members=[3, {"first": W}])

    @property
    def computed(self):
        raise AssertionError("a property was called")

    def __getattr__(self, name):
        raise AssertionError("__getattr__ was called")

    @classmethod
    def fill(cls):
        _deeper()


def _deeper():
    Config.filled_by_helper = W


class Loud(dict):
    def __getitem__(self, key):
        raise AssertionError("__getitem__ was called")


CONFIG, SLOTS, LAYER, LOUD = Config(), Slots(), torch.nn.Linear(2, 2), Loud(first=W)
PAIR = collections.namedtuple("PAIR", "left right")(1, W)
TABLES, LIST, CACHE, BY_DEVICE = {"a": W, 1: W}, [W, 2], {"a": W}, {torch.device("cpu"): W}
MODULE = types.ModuleType("constants")
MODULE.TABLE = W


def found(function, kept=False):
    behind, bound = reads.unbound(function)
    seen = reads.outside(behind, bound, ends=lambda value: isinstance(value, torch.Tensor))
    return [read.path for read in seen if read.kept == kept]


@pytest.mark.parametrize(
    ("function", "path"),
    [
        (lambda x: x * W, "W"),
        (lambda x: [W * row for row in x], "W"),
        (lambda x: x * Config.weight, "Config.weight"),
        (lambda x: x * CONFIG.weight, "CONFIG.weight"),
        (lambda x: x * CONFIG.nested.members[1], ""),
        (lambda x: CONFIG.nested.members[1]["first"], ""),
        (lambda x: Config.nested.members, ""),
        (lambda x: SLOTS.filled + x, "SLOTS.filled"),
        (lambda x: SLOTS.unset + x, ""),
        (lambda x: x @ LAYER.weight, "LAYER.weight"),
        (lambda x: x + PAIR.right, "PAIR.right"),
        (lambda x: x + PAIR[1], "PAIR[1]"),
        (lambda x: x + PAIR[7], ""),
        (lambda x: x * TABLES["a"], "TABLES['a']"),
        (lambda x: x * TABLES[1], "TABLES[1]"),
        (lambda x: x * TABLES["none"], ""),
        (lambda x: x * LIST[0], "LIST[0]"),
        (lambda x: x * LIST[1], ""),
        (lambda x: x * MODULE.TABLE, "MODULE.TABLE"),
        (lambda x: x * LOUD["first"], "LOUD['first']"),
        (lambda x: x * CONFIG.computed, ""),
        (lambda x: x * CONFIG.missing, ""),
        (lambda x: x * BY_DEVICE[x.device], ""),
        (lambda x: x.W, ""),
        (lambda x: torch.sin(x), ""),
        (lambda x: undefined * x, ""),  # noqa: F821
    ],
)
def test_attributes_and_elements_are_followed_without_running_code(function, path):
    assert found(function) == ([path] if path else [])


def test_three_steps_are_followed():
    one = types.SimpleNamespace(two={"three": types.SimpleNamespace(four=W)}, three=[{"four": W}])

    def far(x):
        return one.two["three"].four, one.three[0]["four"]

    assert found(far) == ["one.two['three'].four", "one.three[0]['four']"]


def test_closures_are_read_where_they_are_used():
    table = {"a": W}

    def outer(x):
        return [table["a"] * row for row in x]

    assert found(outer) == ["table['a']"]


def test_variables_without_a_value_are_none():
    def outer(x):
        return later * x

    assert found(outer) == []
    later = W
    assert found(outer) == ["later"]


def stores(x):
    if Config.lazy is None:
        Config.lazy = x
    return Config.lazy * x


def stores_element(x):
    if "a" not in CACHE:
        CACHE["a"] = x
    return CACHE["a"] * x


def stores_under_a_name(x):
    key = "a"
    CACHE[key] = CACHE.get(key, x)
    return CACHE["a"] * x


def fills(x):
    Config.fill()
    return Config.filled_by_helper * x


@pytest.mark.parametrize("function", [stores, stores_element, stores_under_a_name, fills])
def test_what_a_function_stores_itself_is_kept(function):
    assert found(function) == []
    assert found(function, kept=True)


def test_storing_elsewhere_makes_no_cache():
    def kernel(x):
        out = [0, 0]
        for n in range(2):
            out[n] = x[n] * TABLES["a"]
        x.a = TABLES["a"]
        return out

    assert found(kernel) == ["TABLES['a']", "TABLES['a']"]


def test_what_is_asked_of_a_tensor_is_told():
    function, _ = reads.unbound(lambda x: x.reshape(W.shape))
    (read,) = reads.outside(function, {}, ends=lambda value: value is W)
    assert (read.path, read.asked) == ("W", "shape")


class Layer:
    def __init__(self):
        self.weight, self.cached = W, W

    def kernel(self, x, *, bias=None):
        self.build()
        return [self.weight * row for row in x], self.cached, bias

    def build(self):
        self.cached = W

    def __call__(self, x):
        return x * self.weight


def plain(table, x):
    return table * x


@pytest.mark.parametrize(
    ("function", "paths"),
    [
        (Layer().kernel, ["self.weight"]),
        (Layer(), ["self.weight"]),
        (functools.partial(Layer().kernel, bias=W), ["self.weight", "bias"]),
        (functools.partial(plain, W), ["table"]),
        (functools.partial(functools.partial(plain), table=W), ["table"]),
        (plain, []),
    ],
)
def test_values_bound_to_parameters_are_read(function, paths):
    assert sorted(found(function)) == sorted(paths)


@pytest.mark.parametrize("function", [torch.sin, len, None, Layer])
def test_what_is_no_python_function_is_none(function):
    assert reads.unbound(function) == (None, {})


def test_defaults_have_the_names_of_their_parameters():
    def function(a, b=1, *, c, d=2):
        return a, b, c, d

    assert reads.defaults(function) == {"b": 1, "d": 2}
    assert reads.defaults(plain) == {}
