"""Where graphs of a device come from. What is done with them is proved in tests/checks/test_device.py."""

from __future__ import annotations

import types

from opcheck_suite import captured, devices


class Own:
    """A graph of a backend."""


def test_a_backend_names_its_own_graphs(monkeypatch):
    monkeypatch.setattr(devices, "module", lambda device: types.SimpleNamespace(CUDAGraph=Own))
    assert isinstance(captured._new("cuda:0"), Own)


def test_a_backend_without_graphs_has_none(monkeypatch):
    monkeypatch.setattr(devices, "module", lambda device: types.SimpleNamespace())
    assert captured._new("mps") is None  # torch.accelerator.Graph refuses where nothing is registered
