"""Whether memory grows with the number of calls: what leaks is found, what only looks like it is not."""

from __future__ import annotations

import ctypes
import functools
import gc
import subprocess
import sys
import types
from collections.abc import Callable

import psutil
import pytest
import torch
from torch import Tensor

from opcheck_suite import memory

_held: list[Tensor] = []
_held_by_key: dict[int, tuple[str, Tensor]] = {}


@pytest.fixture(autouse=True)
def nothing_held():
    yield
    _held.clear()
    _held_by_key.clear()


def grows(call: Callable[[], object], gauges: list[memory.Gauge] | None = None) -> memory.Growth | None:
    return memory.growth(call, gauges or memory.gauges("cpu"), size=64)


def small() -> Tensor:
    return torch.ones(4) * 2


def test_the_most_exact_gauge_comes_first():
    assert [g.name for g in memory.gauges("cpu")] == ["memory from malloc", "resident memory"]


def test_a_gauge_reads_the_memory_of_tensors():
    gauge = memory.gauges("cpu")[0]
    kept = torch.ones(1000)  # the first one makes torch allocate for itself
    before = gauge.read()
    kept = [kept, torch.ones(1000)]
    assert 4000 <= gauge.read() - before < 8000
    del kept
    assert gauge.read() < before


def test_a_call_that_keeps_nothing_does_not_grow():
    assert grows(small) is None


def test_a_list_of_results_grows():
    found = grows(lambda: _held.append(small()))
    assert found is not None
    assert found.gauge.name == "memory from malloc"
    assert found.per_call >= 16
    assert found.calls > 300


@pytest.mark.parametrize("size", [1, 16, 4096])
def test_memory_that_c_code_does_not_free_grows(size):
    malloc = ctypes.CDLL(None).malloc
    found = grows(lambda: (malloc(size), small()))
    assert found is not None
    assert size <= found.per_call <= size + 64


def test_a_table_with_a_bound_does_not_grow_once_it_is_full():
    @functools.lru_cache(maxsize=128)
    def cached(key: object) -> Tensor:
        return small()

    assert grows(lambda: cached(object())) is None


def test_reference_cycles_are_freed_by_the_collector():
    def call() -> None:
        cycle: list[object] = [small()]
        cycle.append(cycle)

    assert grows(call) is None


def test_garbage_does_not_hide_a_leak():
    malloc = ctypes.CDLL(None).malloc

    def call() -> None:
        cycle: list[object] = [torch.ones(1000)]
        cycle.append(cycle)
        malloc(64)

    found = grows(call)
    assert found is not None
    assert found.per_call < 1000


def test_a_record_of_numbers_does_not_count():
    log: list[float] = []
    table: dict[int, int] = {}

    def call() -> None:
        log.append(float(small().sum()))
        table[len(table)] = 1

    assert grows(call) is None


def test_where_malloc_cannot_be_asked_large_leaks_are_found_all_the_same():
    """In a process of its own: here, what other tests have freed would be filled first."""
    program = """
import torch
from opcheck_suite import memory
memory._mallinfo = lambda: None
gauges, held = memory.gauges("cpu"), []
found = memory.growth(lambda: held.append(torch.ones(10_000)), gauges, size=64)
print([g.name for g in gauges], found is not None and found.per_call >= 40_000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "['resident memory'] True\n", done.stderr


def test_large_leaks_are_stopped_before_they_fill_the_machine():
    size = 1 << 23
    found = memory.growth(lambda: _held.append(torch.empty(size, dtype=torch.uint8)), memory.gauges("cpu"), size=size)
    assert found is not None
    assert found.calls * size <= 1 << 29


def test_exceptions_come_out_and_the_collector_runs_again():
    def call() -> None:
        raise ValueError("the op is not in the mood")

    with pytest.raises(ValueError, match="mood"):
        grows(call)
    assert gc.isenabled()
    assert grows(small) is None
    assert gc.isenabled()


def test_the_holder_of_a_result_is_named():
    assert memory.holders(small) == []

    def into_list() -> Tensor:
        _held.append(small())
        return _held[-1]

    def into_table() -> Tensor:
        out = small()
        _held_by_key[len(_held_by_key)] = ("out", out)
        return out

    assert memory.holders(into_list) == [f"{__name__}._held"]
    assert memory.holders(into_table) == [f"{__name__}._held_by_key"]


def test_free_memory_is_the_devices_where_it_tells_and_else_the_hosts(monkeypatch):
    assert 0 < memory.free("cpu") <= psutil.virtual_memory().total
    assert not memory.own("cpu")
    module = types.SimpleNamespace(mem_get_info=lambda: (5, 8))
    monkeypatch.setattr(memory.devices, "module", lambda device: module)
    assert memory.own("cuda")
    assert memory.free("cuda") == 5
