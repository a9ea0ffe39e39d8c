"""The number of threads that PyTorch's kernels use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let kernels use so many threads meanwhile; None leaves them as they are."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
