"""A model dispatched by accelerate onto devices that are not there.

accelerate puts its hooks on, all for the CPU; hooks and tensors are then sent to the places of a
device map as fake tensors, which compute no values but refuse to meet on different devices.
Numbered CPUs stand for GPUs: without CUDA even a fake tensor could not be on one.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any


def run_on_fake_devices(
    model: Any,
    device_map: Mapping[str, int | str],
    *inputs: Any,
    step: Callable[..., Any] = lambda model, *inputs: model(*inputs),
) -> Any:
    """The model's output, or that of a step of it, as fake tensors.

    A split module's own tensors are first sent where the map has them, as docs/exports.md says: the
    hooks send only those of the outermost module.

    Raises:
        RuntimeError: an op's inputs are on different devices.
    """
    import torch
    from accelerate import dispatch_model
    from torch._subclasses.fake_tensor import FakeTensorMode

    model = copy.deepcopy(model)
    dispatched = dispatch_model(model, dict.fromkeys(device_map, "cpu"), force_hooks=True)
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    for path, module in dispatched.named_modules():
        device = _device(path, device_map)
        if hasattr(module, "_hf_hook"):
            for hook in getattr(module._hf_hook, "hooks", [module._hf_hook]):
                hook.execution_device = device
        for store in (module._parameters, module._buffers):
            for name, tensor in store.items():
                if tensor is not None:
                    own = f"{path}.{name}" if path and f"{path}.{name}" in device_map else path
                    store[name] = _fake(tensor, mode, _device(own, device_map))
    with mode, torch.no_grad():
        return step(dispatched, *(mode.from_tensor(tensor) for tensor in inputs))


def _device(path: str, device_map: Mapping[str, int | str]) -> str:
    parts = path.split(".")
    names = [".".join(parts[:i]) for i in range(len(parts), -1, -1)]
    place = next((device_map[name] for name in names if name in device_map), _main(device_map))
    return f"cpu:{place}" if isinstance(place, int) else "cpu:9"


def _main(device_map: Mapping[str, int | str]) -> int:
    """Where accelerate brings the model's inputs."""
    return min((place for place in device_map.values() if isinstance(place, int)), default=0)


def _fake(tensor: Any, mode: Any, device: str) -> Any:
    import torch

    with mode, torch.no_grad():
        moved = mode.from_tensor(tensor.detach()).to(device)
    return torch.nn.Parameter(moved) if isinstance(tensor, torch.nn.Parameter) else moved
