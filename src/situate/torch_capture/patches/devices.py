"""Devices that a program names: a plan decides where its ops run, so all stand for that."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from situate.torch_capture.modes.autocast import autocast_of_the_cpu
from situate.torch_capture.patches.accelerators import accelerators_idle
from situate.torch_capture.patches.named_devices import HERE, NamedDevices, is_here
from situate.torch_capture.patches.patched import dispatched, replaced
from situate.torch_capture.refusals.remedies import DEVICE, GENERATOR, Unsupported

if TYPE_CHECKING:
    import torch

MOVES = ("cuda", "xpu", "ipu", "mtia", "hpu")
"""Methods of a tensor that copy it to a device of that kind."""


@contextlib.contextmanager
def devices_stand(named: NamedDevices) -> Iterator[None]:
    """Each device that a program names is the CPU within, and is noted in `named`: in factory
    functions, moves, contexts and defaults, autocast, and what waits for a device. PyTorch refuses
    devices that it does not have, and would write copies between those that it has into the
    graph."""
    with names_stand(named), accelerators_idle(named):
        yield


@contextlib.contextmanager
def names_stand(named: NamedDevices) -> Iterator[None]:
    """The same without functions of `torch.cuda` and its like, which whatever is imported within
    may keep."""
    from torch.utils._device import DeviceContext, _device_constructors

    def made(context: Any, func: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _device_constructors() and kwargs.get("device") is None:
            kwargs["device"] = named.here(context.device)
        return func(*args, **kwargs)

    here = replaced(DeviceContext, "__torch_function__", made)
    with _standing(named), here, autocast_of_the_cpu(named):
        yield


def lie_here(tensors: Iterable[torch.Tensor]) -> bool:
    """True if none of the tensors is on a GPU, where a program may name it."""
    return all(tensor.device.type in HERE for tensor in tensors)


def _standing(named: NamedDevices) -> Any:
    """A mode in which PyTorch's functions take the CPU for whatever device they are given."""
    import torch
    from torch.overrides import TorchFunctionMode

    moves = {getattr(torch.Tensor, name, None): name for name in MOVES}

    class Standing(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
        ) -> Any:
            if func in moves:
                named.add(_moved_to(moves[func], *args[1:], **(kwargs or {})))
                # A move to where the tensor is taken to be already.
                return args[0]
            if func is torch.Tensor.pin_memory:
                return args[0]
            if func is torch.Tensor.to:
                args = (args[0], *map(named.here, args[1:2]), *args[2:])
            elif func is torch.Tensor.type:
                args = (args[0], *(_type_here(kind, named) for kind in args[1:2]), *args[2:])
            return func(*args, **_named_here(kwargs, named))

    return Standing()


def _moved_to(kind: str, device: Any = None, *_: Any, **__: Any) -> Any:
    return kind if device is None else f"{kind}:{device}" if isinstance(device, int) else device


def _type_here(kind: Any, named: NamedDevices) -> Any:
    """`torch.FloatTensor` for `torch.cuda.FloatTensor`, by name or as it is."""
    name = f"{kind.__module__}.{kind.__name__}" if isinstance(kind, type) else str(kind)
    package, _, rest = name.removeprefix("torch.").partition(".")
    if package not in MOVES:
        return kind
    named.add(package)
    return f"torch.{rest}"


def _named_here(kwargs: Mapping[str, Any] | None, named: NamedDevices) -> dict[str, Any]:
    """Arguments by name, with the CPU as their device.

    Raises:
        Unsupported: a generator of another device.
    """
    if not kwargs:
        return {}
    given = dict(kwargs)
    if not is_here(getattr(given.get("generator"), "device", None)):
        raise Unsupported(GENERATOR)
    if "device" in given:
        given["device"] = named.here(given["device"])
    if given.get("pin_memory"):
        del given["pin_memory"]
    return given


@contextlib.contextmanager
def devices_here() -> Iterator[None]:
    """Refuse an operator that makes a fake tensor on a device that PyTorch was not built for, which
    a function that PyTorch calls may ask for unseen: the process would be aborted later."""

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
