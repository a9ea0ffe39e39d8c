"""PyTorch on one thread, so that a policy's numbers do not depend on how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def one_thread() -> Iterator[None]:
    """Within it PyTorch computes on one thread; afterwards on as many as before.

    A sum that two threads share is rounded differently, and a policy's next draw may turn on the
    last bit. The matrices of a policy are so small that more threads save little.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
