"""Interpolation as the kernels that eager PyTorch runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from situate.readers.torch.patched import replaced

KERNELS = ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d")


@contextlib.contextmanager
def interpolation_whole() -> Iterator[None]:
    """Trace linear and cubic interpolation as one op each way. Where it traces, PyTorch makes many
    small ops of them, a hundred of a bicubic one, which take longer and round otherwise."""
    from torch.ops import aten

    with contextlib.ExitStack() as stack:
        for name in KERNELS:
            kernel = getattr(aten, name)
            for overload in (kernel.vec, kernel.default):
                stack.enter_context(_whole(overload))
        yield


@contextlib.contextmanager
def _whole(overload: Any) -> Iterator[None]:
    """Without what Python puts in place of the kernel and of its gradient."""
    from torch._C import DispatchKey

    instead = (DispatchKey.Autograd, DispatchKey.CompositeImplicitAutograd)
    kernels = {key: of for key, of in overload.py_kernels.items() if key not in instead}
    try:
        with replaced(overload, "py_kernels", kernels):
            overload._dispatch_cache.clear()
            yield
    finally:
        overload._dispatch_cache.clear()
