"""Devices that a model asks for and that are not where it is captured."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from situate.readers.torch.errors import DEVICE, Unsupported
from situate.readers.torch.patched import dispatched


@contextlib.contextmanager
def devices_here() -> Iterator[None]:
    """Refuse an operator that makes a fake tensor on a device that PyTorch was not built for: it
    would make it, and later abort the process."""

    def checked(
        run: Any, _: Any, func: Any, args: Sequence[object], kwargs: Mapping[str, Any]
    ) -> Any:
        if not _is_here(kwargs.get("device")):
            raise Unsupported(DEVICE)
        return run(func, args, kwargs)

    with dispatched(checked):
        yield


def _is_here(device: Any) -> bool:
    import torch

    if device is None or torch.device(device).type in ("cpu", "meta"):
        return True
    accelerator = torch.accelerator.current_accelerator()
    return accelerator is not None and accelerator.type == torch.device(device).type
