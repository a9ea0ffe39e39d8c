"""Distributions of torch.distributions, which are checked by looking at values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from situate.torch_capture.patches.patched import replaced


@contextlib.contextmanager
def arguments_unchecked() -> Iterator[None]:
    """Distributions take parameters and samples as they are, but where a program says
    `validate_args=True`. PyTorch reads the values by default; fake tensors have none."""
    from torch.distributions import Distribution

    with replaced(Distribution, "_validate_args", False):
        yield
