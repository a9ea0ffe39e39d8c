"""Functions of `torch.cuda` and its like, in a program whose ops run wherever a plan puts them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from situate.torch_capture.patches.named_devices import NamedDevices
from situate.torch_capture.patches.patched import replaced

IDLE = {
    "cuda": ("synchronize", "set_device", "reset_peak_memory_stats"),
    "xpu": ("synchronize", "set_device"),
    "mps": ("synchronize",),
    "accelerator": ("synchronize", "set_device_index"),
    "cuda.nvtx": ("range_push", "range_pop", "mark"),
}
"""By module of PyTorch, what there is nothing to do for."""

FIRST = {"cuda": "current_device", "xpu": "current_device", "accelerator": "current_device_index"}
"""By module, what tells the number of the only device that a program seems to have."""


@contextlib.contextmanager
def accelerators_idle(named: NamedDevices) -> Iterator[None]:
    """Calls that wait for a device, or choose one, do nothing within. PyTorch raises an error where
    it has no such device, and waits or switches where it has one, which no captured op does."""
    import torch

    inside = True

    def giving(value: object, kind: str, before: Callable[..., Any]) -> Callable[..., Any]:
        def give(*given: Any, **by_name: Any) -> Any:
            if not inside:  # what was imported within has kept it
                return before(*given, **by_name)
            named.add(kind)
            return value

        return give

    with contextlib.ExitStack() as stack:
        for value, path, name in (
            *((None, path, name) for path, names in IDLE.items() for name in names),
            *((0, path, name) for path, name in FIRST.items()),
        ):
            owner: Any = torch
            for part in path.split("."):
                owner = getattr(owner, part)
            give = giving(value, path.partition(".")[0], getattr(owner, name))
            stack.enter_context(replaced(owner, name, give))
        for edge in ("__enter__", "__exit__"):
            before = getattr(torch.cuda.device, edge)
            stack.enter_context(replaced(torch.cuda.device, edge, giving(None, "cuda", before)))
        try:
            yield
        finally:
            inside = False
