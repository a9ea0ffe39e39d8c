"""Lines of the loss in what a graph keeps of the program: PyTorch keeps those of modules alone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from situate.torch_capture.patches.patched import replaced

ANCHORS = "_STACK_TRACE_ANCHORS"
"""The name of PyTorch's set of functions, by file and name, whose lines are kept."""


@contextlib.contextmanager
def loss_lines(loss: Any) -> Iterator[None]:
    """A block in which the lines of a loss function are kept, where PyTorch can."""
    from torch.fx import proxy

    code = getattr(loss, "__code__", None)
    anchors = getattr(proxy, ANCHORS, None)
    if code is None or anchors is None:
        yield
        return
    with replaced(proxy, ANCHORS, anchors | {(code.co_filename, code.co_name)}):
        yield
