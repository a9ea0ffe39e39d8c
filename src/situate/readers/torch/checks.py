"""Checks of all that is in a tensor, which look at values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from situate.readers.torch.patched import replaced


@contextlib.contextmanager
def tensors_unchecked() -> Iterator[None]:
    """What `torch._check_tensor_all` asks is taken to hold. transformers asks so whether there are
    as many placeholders in a text as there are features of images."""
    import torch

    with replaced(torch.Tensor, "_is_all_true", lambda _: _Holds()):
        yield


class _Holds:
    """In place of the tensor that says whether all of another is true."""

    @staticmethod
    def item() -> bool:
        """Its value."""
        return True
