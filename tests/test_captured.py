"""Where graphs of a device come from. What is done with them is proved in tests/checks/test_device.py."""

from __future__ import annotations

import types

import torch

from opcheck_suite import captured, devices


class Own:
    """A graph of a backend."""


def test_a_backend_names_its_own_graphs(monkeypatch):
    monkeypatch.setattr(devices, "module", lambda device: types.SimpleNamespace(CUDAGraph=Own))
    assert isinstance(captured._new("cuda:0"), Own)


def test_a_backend_without_graphs_has_none(monkeypatch):
    monkeypatch.setattr(devices, "module", lambda device: types.SimpleNamespace())
    assert captured._new("mps") is None  # torch.accelerator.Graph refuses where nothing is registered


def test_the_pool_of_a_capture_that_failed_is_let_go(monkeypatch):
    ended = []

    class Graph:
        def capture_begin(self, pool=None):
            self.pool = pool

    module = types.SimpleNamespace(CUDAGraph=Graph, graph_pool_handle=lambda: (0, 7))
    monkeypatch.setattr(devices, "module", lambda device: module)
    graph = captured._new("cuda")
    pool = captured._begin(graph, "cuda")
    assert graph.pool == pool == (0, 7)

    def end(index, pool):
        ended.append((index, pool))
        raise RuntimeError("not currently recording to mempool_id")

    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", end, raising=False)
    captured._let_go("cuda:1", 1, pool)
    assert ended == [(1, (0, 7))]
    captured._let_go("cuda:1", 1, None)
    captured._let_go("mps", 0, (0, 1))  # knows of no pools
    assert len(ended) == 1
