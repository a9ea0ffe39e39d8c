"""Autocast of any device, with a cache of casts as in eager PyTorch."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.named_devices import HERE, NamedDevices
from situate.torch_capture.patches.patched import kernels_replaced, replaced

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def autocast_of_the_cpu(devices: NamedDevices) -> Iterator[None]:
    """A block in which autocast of another device is the CPU's, with the dtype that it names or has
    by default.

    On the CPU, PyTorch casts nothing under autocast of another device, and disables autocast of a
    device that it lacks. The casts of the step would be missing.
    """
    import torch

    kind = torch.autocast
    # `torch.autocast` consults these three methods and the two functions below, nothing else.
    make, enter, leave = kind.__init__, kind.__enter__, kind.__exit__
    enabled, dtype_of = torch.is_autocast_enabled, torch.get_autocast_dtype

    # By open region of another device, whether it is enabled; the innermost one is the last.
    regions: list[bool] = []

    def is_enabled(device: str = "cuda") -> bool:
        if device in HERE:
            return enabled(device)
        return bool(regions) and regions[-1] and enabled("cpu")

    def dtype(device: str) -> torch.dtype:
        return dtype_of("cpu" if device not in HERE and is_enabled(device) else device)

    def construct(
        self: Any, device_type: str, dtype: Any = None, *positional: Any, **options: Any
    ) -> None:
        # The region computes on the CPU, with the default dtype of the device that it names.
        elsewhere = isinstance(device_type, str) and device_type not in HERE
        if elsewhere and dtype is None:
            dtype = torch.get_autocast_dtype(device_type)
        make(self, "cpu" if elsewhere else device_type, dtype, *positional, **options)
        # The program still reads the device that it named.
        self.device = device_type

    def enter_region(self: Any) -> Any:
        if self.device not in HERE and self._enabled:
            devices.add(self.device)
        if self.device not in HERE:
            # A disabled region inside an enabled one turns the casts off, so it is recorded, too.
            regions.append(self._enabled)
        with _on_cpu(self):
            return enter(self)  # type: ignore[no-untyped-call]

    def leave_region(self: Any, *raised: Any) -> Any:
        if self.device not in HERE and regions:
            regions.pop()
        with _on_cpu(self):
            return leave(self, *raised)

    with (
        replaced(kind, "__init__", construct),
        replaced(kind, "__enter__", enter_region),
        replaced(kind, "__exit__", leave_region),
        replaced(torch, "is_autocast_enabled", is_enabled),
        replaced(torch, "get_autocast_dtype", dtype),
    ):
        yield


@contextlib.contextmanager
def _on_cpu(autocast: Any) -> Iterator[None]:
    """A block in which the region is the CPU's, whatever device it names."""
    device = autocast.device
    autocast.device = device if device in HERE else "cpu"
    try:
        yield
    finally:
        autocast.device = device


@contextlib.contextmanager
def cache_as_written() -> Iterator[None]:
    """Export regions of autocast with the cache setting that the program gives them.

    PyTorch turns the cache off while it traces, and regions take that as their default.
    """
    from torch.fx.experimental import proxy_tensor

    with replaced(proxy_tensor, "disable_autocast_cache", contextlib.nullcontext):
        yield


class CastCache:
    """One cast of each parameter per autocast region, as in eager PyTorch.

    The gradients of a weight that is used again then add up in the type of the cast. PyTorch's own
    cache only takes leaves of autograd, and no parameter is a leaf while AOTAutograd traces.
    """

    def __init__(self) -> None:
        self._parameters: dict[int, torch.Tensor] = {}
        self._casts: dict[int, torch.Tensor] = {}

    def begin(self, parameters: Sequence[torch.Tensor]) -> None:
        """Begin a trace with these parameters, all of which take a gradient."""
        self._parameters = {id(parameter): parameter for parameter in parameters}
        self.clear()

    def clear(self) -> None:
        """Drop all casts, as PyTorch does at the end of the outermost region."""
        self._casts.clear()

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        """A block that traces with this cache."""
        import torch

        # Autocast casts by `aten::to`. A Python kernel under the autograd key sees each cast before
        # autograd records it.
        overload, key = torch.ops.aten.to.dtype, torch._C.DispatchKey.AutogradCPU
        try:
            with kernels_replaced(overload, {**overload.py_kernels, key: self._to}):
                yield
        finally:
            self.begin(())

    def _to(self, tensor: torch.Tensor, dtype: torch.dtype, *rest: Any, **options: Any) -> Any:
        """`tensor.to(dtype)`, which autocast calls, too."""
        import torch

        to = torch.ops.aten.to.dtype.decompose
        if not self._is_cached(tensor, dtype):
            return to(tensor, dtype, *rest, **options)
        if id(tensor) not in self._casts:
            # A first cast without gradients would otherwise serve later uses that need them.
            with torch.enable_grad():
                self._casts[id(tensor)] = to(tensor, dtype, *rest, **options)
        return self._casts[id(tensor)]

    def _is_cached(self, tensor: torch.Tensor, dtype: torch.dtype) -> bool:
        """True for a cast that autocast makes and would cache."""
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
