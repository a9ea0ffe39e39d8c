"""Modules that `torch.compile` wraps, called by PyTorch's tracer like any other."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from situate.torch_capture.patches.patched import replaced


@contextlib.contextmanager
def compiled_modules_called() -> Iterator[None]:
    """A wrapper calls its module as the tracer sees calls, so that the module's own ops belong to
    it: by default the wrapper keeps the module's call of the time before the trace."""
    from torch._dynamo.eval_frame import OptimizedModule

    call = OptimizedModule.__call__

    def called(wrapper: Any, *inputs: Any, **named: Any) -> Any:
        if wrapper._forward_hooks or wrapper._forward_pre_hooks:
            return call(wrapper, *inputs, **named)
        return wrapper._orig_mod(*inputs, **named)

    with replaced(OptimizedModule, "__call__", called):
        yield
