"""Parts of a training step that run in inference mode, which export does not write down."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from situate.torch_capture.patches.patched import replaced


@contextlib.contextmanager
def inference_without_gradients() -> Iterator[None]:
    """Trace `torch.inference_mode` as `torch.no_grad`: no gradient passes through either, and
    export writes down the latter alone."""
    import torch

    mode = torch.inference_mode

    def enter(self: Any) -> None:
        # `__exit__` leaves whatever context stands in this attribute.
        self._inference_mode_context = torch.set_grad_enabled(not self.mode)

    with replaced(mode, "__enter__", enter):
        yield
