"""One thread within, as many as before afterwards."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.policies.one_thread import one_thread  # noqa: E402


def test_within_there_is_one_thread_and_afterwards_as_many_as_before():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 3
        with pytest.raises(KeyError), one_thread():
            raise KeyError
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
