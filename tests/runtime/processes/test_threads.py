"""Threads of PyTorch's kernels."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.runtime.processes.threads import threads  # noqa: E402


def test_threads_are_as_before_afterwards():
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_none_leaves_them():
    before = torch.get_num_threads()
    with threads(None):
        assert torch.get_num_threads() == before
