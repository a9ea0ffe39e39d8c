"""Losses of margins as the kernels that eager PyTorch runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from situate.torch_capture.patches.patched import whole


@contextlib.contextmanager
def margins_whole() -> Iterator[None]:
    """Trace the losses of margins over classes as one op each way. Where it traces, PyTorch makes
    many small ops of them, which for several labels give other numbers, and else round
    otherwise."""
    from torch.ops import aten

    labels, label = aten.multilabel_margin_loss_forward.default, aten.multi_margin_loss.default
    with whole(labels), whole(label):
        yield
