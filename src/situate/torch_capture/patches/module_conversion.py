"""Casts and moves of a module whose parameters are fake tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from situate.torch_capture.patches.patched import replaced
from situate.torch_capture.refusals.remedies import Unsupported

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensorMode

CASTS = (
    "the step casts or moves a module, {} of which is {} and would be {}: do it once where the "
    "model is built, or cast in the step what is computed of the parameter (as weight.float())"
)


@contextlib.contextmanager
def modules_convertible(mode: FakeTensorMode) -> Iterator[None]:
    """Let `model.to(...)` and its like work on fake parameters.

    PyTorch swaps the old and the new tensor, and refuses a tensor that anything else refers to,
    such as a view or a record of values. Tensors without values need no sharing between processes.
    """
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    swap: Any = torch.utils.swap_tensors
    share: Any = torch.Tensor.share_memory_

    def exchange(old: Any, new: Any) -> None:
        if not (isinstance(old, FakeTensor) and isinstance(new, FakeTensor)):
            swap(old, new)
        # The same memory kind: the parameter keeps its identity and takes the new tensor's content,
        # which is what PyTorch does with real tensors by default.
        elif torch._has_compatible_shallow_copy_type(old, new):
            _replace_content(old, new, mode)
        else:
            _forget((old, new), mode)
            swap(old, new)

    def shared(tensor: Any) -> Any:
        return tensor if isinstance(tensor, FakeTensor) else share(tensor)

    with (
        replaced(torch.utils, "swap_tensors", exchange),
        replaced(torch.Tensor, "share_memory_", shared),
    ):
        yield


def _replace_content(old: Any, new: Any, mode: FakeTensorMode) -> None:
    """Put the new tensor and its known values in the place of the old, as with real tensors."""
    constant = new.constant
    old.data = new
    if constant is not None:
        old.constant = constant
        # The converter finds aliases of a constant by its storage, to invalidate them after a
        # write.
        mode.fake_tensor_converter.add_constant_storage_mapping(old)


def _forget(tensors: tuple[Any, ...], mode: FakeTensorMode) -> None:
    """Drop weak references to the tensors, because PyTorch swaps no tensor that has any."""
    converter = mode.fake_tensor_converter
    # The memo holds weak references to fake tensors, and `swap_tensors` refuses tensors with any.
    converter.tensor_memo.clear()
    for constant in [tensor.constant for tensor in tensors if tensor.constant is not None]:
        converter.invalidate_constant_aliases(constant)


@contextlib.contextmanager
def modules_stay_as_built() -> Iterator[None]:
    """Refuse a cast of a module within the step, unless it changes nothing. Later steps would
    differ from the first."""
    import torch

    def apply(module: Any, change: Any, recurse: bool = True) -> Any:
        for part in module.modules() if recurse else (module,):
            for name, tensor in (*part._parameters.items(), *part._buffers.items()):
                if tensor is not None and (changed := change(tensor)) is not tensor:
                    raise Unsupported(CASTS.format(name, _described(tensor), _described(changed)))
        return module

    # `to`, `half`, `float` and their like all go through `_apply`.
    with replaced(torch.nn.Module, "_apply", apply):
        yield


def _described(tensor: Any) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} on {tensor.device}"
