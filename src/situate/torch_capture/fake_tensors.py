"""Models and tensors on fake tensors: shapes without values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode

Replace = Callable[[Any], Any]


def new_mode() -> FakeTensorMode:
    """A mode of fake tensors that deep copies of a model share."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode()
    # Copied fake tensors would otherwise belong to a copied mode, and no operator takes tensors of
    # two modes.
    mode.__deepcopy__ = lambda memo: mode  # type: ignore[attr-defined]
    return mode


def fake_tensors(
    tensors: tuple[torch.Tensor, ...], mode: FakeTensorMode
) -> tuple[torch.Tensor, ...]:
    """The tensors, real ones as fake tensors of the mode."""
    from torch._subclasses.fake_tensor import FakeTensor

    return tuple(t if isinstance(t, FakeTensor) else mode.from_tensor(t) for t in tensors)


def distinct(tensors: tuple[torch.Tensor, ...], mode: FakeTensorMode) -> Iterator[torch.Tensor]:
    """The tensors, each an object of its own.

    A tensor that the inputs hold twice is two inputs, because later calls may give two tensors.
    """
    import torch

    ids = set[int]()
    for tensor in tensors:
        if id(tensor) in ids:
            with mode:
                twin = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
            yield twin.requires_grad_(tensor.requires_grad)
        else:
            ids.add(id(tensor))
            yield tensor


def tensors_of(model: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Every tensor that the model's modules hold, with those in plain attributes."""
    import torch
    from torch.utils._pytree import tree_leaves

    for module in model.modules():
        for store in (module._parameters, module._buffers, vars(module)):
            for leaf in (leaf for value in store.values() for leaf in tree_leaves(value)):
                if isinstance(leaf, torch.Tensor):
                    yield leaf


def needs_values(error: Exception) -> bool:
    """True if a model cannot be built on fake tensors, since its code reads or loads values."""
    # Most of these errors are plain RuntimeErrors or TypeErrors, which only their text tells apart.
    types = ("DataDependentOutputException", "DynamicOutputShapeException")
    words = ("numpy", "storage", "FakeTensor", "data pointer")
    return type(error).__name__ in types or any(word in str(error) for word in words)


def make_fake(model: torch.nn.Module, mode: FakeTensorMode) -> torch.nn.Module:
    """The model, with a fake tensor for every parameter and buffer. Ties stay ties."""
    for module in model.modules():
        for store in (module._parameters, module._buffers):
            for key, value in store.items():
                if value is not None:
                    # The mode's memo gives one fake tensor for one real tensor.
                    store[key] = mode.from_tensor(value)  # type: ignore[assignment]
    return model


def to_cpu(model: torch.nn.Module, mode: FakeTensorMode) -> Replace:
    """Move the model's tensors on the device `meta` to the CPU, as fake tensors.

    Returns:
        A function that does the same with any tensor, and returns all other values unchanged.
    """
    replace = _replacement(mode)
    for module in model.modules():
        for store in (module._parameters, module._buffers, vars(module)):
            # Past `setattr`, which refuses a plain tensor in place of a parameter.
            store.update({name: replace(value) for name, value in store.items()})
    return replace


def _replacement(mode: FakeTensorMode) -> Replace:
    import torch
    from torch.nn.parameter import is_lazy

    # The original stays alive beside its replacement, since its id is the key.
    replacements: dict[int, tuple[Any, torch.Tensor]] = {}

    def replace(value: Any) -> Any:
        if not isinstance(value, torch.Tensor) or value.device.type != "meta" or is_lazy(value):
            return value
        return replacements.setdefault(id(value), (value, _on_cpu(value, mode)))[1]

    return replace


def _on_cpu(tensor: torch.Tensor, mode: FakeTensorMode) -> torch.Tensor:
    import torch

    with mode:
        shape, strides = tensor.shape, tensor.stride()
        copy = torch.empty_strided(shape, strides, dtype=tensor.dtype, device="cpu")
        if isinstance(tensor, torch.nn.Parameter):
            return torch.nn.Parameter(copy, tensor.requires_grad)
        return copy.requires_grad_(tensor.requires_grad)
