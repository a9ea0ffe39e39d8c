"""Autocast's cache of casts, which PyTorch leaves out where it traces."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.patched import kernels_replaced, replaced

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def cache_as_written() -> Iterator[None]:
    """Export regions of autocast with the cache that the program gives them: PyTorch turns the
    cache off while it traces, and regions take that as their default."""
    from torch.fx.experimental import proxy_tensor

    with replaced(proxy_tensor, "disable_autocast_cache", contextlib.nullcontext):
        yield


class CastCache:
    """One cast of each parameter in a region of autocast, as eager PyTorch has it: the gradients of
    a weight that is used again add up in the type of the cast.

    PyTorch's own cache takes leaves of autograd alone, which no parameter is while AOTAutograd
    traces.
    """

    def __init__(self) -> None:
        self._parameters: dict[int, torch.Tensor] = {}
        self._casts: dict[int, torch.Tensor] = {}

    def begin(self, parameters: Sequence[torch.Tensor]) -> None:
        """Begin a trace with these parameters that take a gradient."""
        self._parameters = {id(parameter): parameter for parameter in parameters}
        self.clear()

    def clear(self) -> None:
        """Drop all casts, as PyTorch does at the end of the outermost region."""
        self._casts.clear()

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """Trace with this cache."""
        import torch

        overload, key = torch.ops.aten.to.dtype, torch._C.DispatchKey.AutogradCPU
        try:
            with kernels_replaced(overload, {**overload.py_kernels, key: self._to}):
                yield
        finally:
            self.begin(())

    def _to(self, tensor: torch.Tensor, dtype: torch.dtype, *given: Any, **named: Any) -> Any:
        """`tensor.to(dtype)`, which autocast calls too."""
        import torch

        to = torch.ops.aten.to.dtype.decompose
        if not self._is_kept(tensor, dtype):
            return to(tensor, dtype, *given, **named)
        if id(tensor) not in self._casts:
            with torch.enable_grad():
                self._casts[id(tensor)] = to(tensor, dtype, *given, **named)
        return self._casts[id(tensor)]

    def _is_kept(self, tensor: torch.Tensor, dtype: torch.dtype) -> bool:
        """True for a cast that autocast makes and keeps."""
        import torch

        # Autocast's kernels exclude its own key while they cast.
        by_autocast = torch._C._dispatch_tls_is_dispatch_key_excluded(
            torch._C.DispatchKey.AutocastCPU
        )
        return (
            by_autocast
            and id(tensor) in self._parameters
            and tensor.dtype is torch.float32
            and dtype is torch.get_autocast_dtype("cpu")
            and torch.is_autocast_cache_enabled()
        )
