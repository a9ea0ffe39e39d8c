"""Parameters and buffers that share memory with one another."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from situate.errors import SituateError

if TYPE_CHECKING:
    import torch


def check_apart(state: Mapping[str, torch.Tensor], written: Collection[str]) -> None:
    """Raises SituateError for two tensors of a model that are not one, and of whose common memory
    the step writes a part: each would be written alone."""
    spans: dict[int, list[tuple[int, int, str]]] = {}
    for name, tensor in state.items():
        if tensor.numel():
            spans.setdefault(tensor.untyped_storage()._cdata, []).append((*_span(tensor), name))
    for shared in spans.values():
        reached, last = 0, ""
        for begin, end, name in sorted(shared):
            apart = begin >= reached or state[name] is state[last]
            if not apart and not {name, last}.isdisjoint(written):
                raise SituateError(
                    f"the model's {last!r} and {name!r} share memory, which the step writes: make "
                    "them one tensor and take its parts in the step, or clone one"
                )
            reached, last = max((reached, last), (end, name))


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """The bytes of its storage between which it lies."""
    steps = zip(tensor.shape, tensor.stride(), strict=True)
    extent = 1 + sum((int(length) - 1) * int(step) for length, step in steps)
    begin = int(tensor.storage_offset())
    return begin * tensor.itemsize, (begin + extent) * tensor.itemsize
