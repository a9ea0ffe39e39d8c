"""Devices that a program names. The plan decides where ops run, so capture treats all of them as
the CPU."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MethodDescriptorType
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.autocast import autocast_of_the_cpu
from situate.torch_capture.patches.named_devices import HERE, NamedDevices, is_here
from situate.torch_capture.patches.patched import dispatched, replaced
from situate.torch_capture.refusals.remedies import DEVICE, GENERATOR, Unsupported

if TYPE_CHECKING:
    import torch

MOVES = ("cuda", "xpu", "ipu", "mtia", "hpu")
"""Methods of a tensor that copy it to a device of that kind."""


@contextlib.contextmanager
def devices_stand(devices: NamedDevices) -> Iterator[None]:
    """A block in which each device that a program names is the CPU, and is recorded in `devices`.

    This covers factory functions, moves, contexts, defaults, autocast, and calls that wait for a
    device. PyTorch would refuse a device that it lacks, and write copies between existing devices
    into the graph.
    """
    with names_stand(devices), accelerators_idle(devices):
        yield


@contextlib.contextmanager
def names_stand(devices: NamedDevices) -> Iterator[None]:
    """The same block without the functions of `torch.cuda` and its like, because a module that is
    imported inside may keep references to them."""
    from torch.utils._device import DeviceContext, _device_constructors

    def on_cpu(context: Any, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # `with torch.device(...)` passes its device to constructors; here the CPU takes its place.
        if func in _device_constructors() and kwargs.get("device") is None:
            kwargs["device"] = devices.here(context.device)
        return func(*args, **kwargs)

    here = replaced(DeviceContext, "__torch_function__", on_cpu)
    with _standing(devices), here, autocast_of_the_cpu(devices):
        yield


def lie_here(tensors: Iterable[torch.Tensor]) -> bool:
    """True if none of the tensors is on a GPU, where a program may name it."""
    return all(tensor.device.type in HERE for tensor in tensors)


def _standing(devices: NamedDevices) -> Any:
    """A mode in which PyTorch's functions treat every device argument as the CPU."""
    import torch
    from torch.overrides import TorchFunctionMode

    moves = {getattr(torch.Tensor, name, None): name for name in MOVES}
    pin_memory, to, to_type = torch.Tensor.pin_memory, torch.Tensor.to, torch.Tensor.type

    class Standing(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            # Only methods may name a device by place. Operators come here most, and hash slowly.
            if type(func) is MethodDescriptorType:
                # `tensor.cuda()` would call CUDA's own initialisation before any dispatch.
                if func in moves:
                    devices.add(_moved_to(moves[func], *args[1:], **(kwargs or {})))
                    # A move to where the tensor is taken to be already.
                    return args[0]
                if func is pin_memory:
                    return args[0]
                if func is to:
                    args = (args[0], *map(devices.here, args[1:2]), *args[2:])
                elif func is to_type:
                    args = (args[0], *(_type_here(kind, devices) for kind in args[1:2]), *args[2:])
            return func(*args, **(_named_here(kwargs, devices) if kwargs else {}))

    return Standing()


def _moved_to(kind: str, device: Any = None, *_: Any, **__: Any) -> Any:
    return kind if device is None else f"{kind}:{device}" if isinstance(device, int) else device


def _type_here(kind: Any, devices: NamedDevices) -> Any:
    """`torch.FloatTensor` for `torch.cuda.FloatTensor`, by name or as a type."""
    name = f"{kind.__module__}.{kind.__name__}" if isinstance(kind, type) else str(kind)
    package, _, rest = name.removeprefix("torch.").partition(".")
    if package not in MOVES:
        return kind
    devices.add(package)
    return f"torch.{rest}"


def _named_here(kwargs: Mapping[str, Any] | None, devices: NamedDevices) -> dict[str, Any]:
    """Keyword arguments with the CPU as their device.

    Raises:
        Unsupported: a generator of another device.
    """
    if not kwargs:
        return {}
    arguments = dict(kwargs)
    if not is_here(getattr(arguments.get("generator"), "device", None)):
        raise Unsupported(GENERATOR)
    if "device" in arguments:
        arguments["device"] = devices.here(arguments["device"])
    if arguments.get("pin_memory"):
        # Pinning needs the driver of an accelerator.
        del arguments["pin_memory"]
    return arguments


@contextlib.contextmanager
def devices_here() -> Iterator[None]:
    """Refuse operators that make fake tensors on a device that PyTorch was not built for.

    A function inside PyTorch may ask for one unseen, and the process would abort later.
    """

    def checked(
        run: Any, _: Any, func: Any, args: Sequence[object], kwargs: Mapping[str, Any]
    ) -> Any:
        if not _can_be(kwargs.get("device")):
            raise Unsupported(DEVICE)
        return run(func, args, kwargs)

    with dispatched(checked):
        yield


def _can_be(device: Any) -> bool:
    import torch

    if device is None or is_here(torch.device(device)):
        return True
    accelerator = torch.accelerator.current_accelerator()
    return accelerator is not None and accelerator.type == torch.device(device).type


IDLE = {
    "cuda": ("synchronize", "set_device", "reset_peak_memory_stats"),
    "xpu": ("synchronize", "set_device"),
    "mps": ("synchronize",),
    "accelerator": ("synchronize", "set_device_index"),
    "cuda.nvtx": ("range_push", "range_pop", "mark"),
}
"""By module of PyTorch, functions that do nothing within the block."""

FIRST = {"cuda": "current_device", "xpu": "current_device", "accelerator": "current_device_index"}
"""By module, the function that returns the number of the only device that a program seems to
have."""


@contextlib.contextmanager
def accelerators_idle(devices: NamedDevices) -> Iterator[None]:
    """A block in which calls that wait for a device, or choose one, do nothing.

    PyTorch raises an error if it lacks such a device, and otherwise waits or switches, which no
    captured op does.
    """
    import torch

    inside = True

    def giving(value: object, kind: str, before: Callable[..., Any]) -> Callable[..., Any]:
        def give(*args: Any, **by_name: Any) -> Any:
            if not inside:  # a module that was imported within the block kept a reference
                return before(*args, **by_name)
            devices.add(kind)
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
