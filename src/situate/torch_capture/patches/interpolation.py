"""Interpolation as the kernels that eager PyTorch runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from situate.torch_capture.patches.patched import whole

KERNELS = (
    *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d"),
    *("_upsample_nearest_exact1d", "_upsample_nearest_exact2d", "_upsample_nearest_exact3d"),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
)


@contextlib.contextmanager
def interpolation_whole() -> Iterator[None]:
    """Trace interpolation as one op each way. Where it traces, PyTorch makes many small ops of it,
    a hundred of a bicubic one, which take longer, round otherwise, and do not keep the memory
    format of a gradient."""
    from torch.ops import aten

    with contextlib.ExitStack() as stack:
        for name in KERNELS:
            kernel = getattr(aten, name)
            for overload in (kernel.vec, kernel.default):
                stack.enter_context(whole(overload))
        yield
