"""Buffers that a model replaces by new tensors, although capture sees only writes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from situate.errors import SituateError

if TYPE_CHECKING:
    import torch


class Assigned(Exception):
    """The model assigned buffers that were not known to be assigned: trace it again."""


class AssignedBuffers:
    """The buffers that a model assigns.

    The model reads copies of them, because autograd rejects a write to a tensor that it has saved.
    The final tensor is written into the buffer.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._paths: set[str] = set()

    @contextlib.contextmanager
    def write_back(self) -> Iterator[None]:
        """A block around a call of the model.

        Raises:
            Assigned: the model assigned a buffer for the first time.
            SituateError: the new tensor has another shape or dtype than the buffer.
        """
        import torch

        buffers = dict(self._model.named_buffers(remove_duplicate=False))
        # In the model's order: a set has another in every process, and so would the graph.
        assigned = [path for path in buffers if path in self._paths]
        copies = buffers | {path: buffers[path].clone() for path in assigned}
        self._install(copies)
        try:
            yield
            after = {path: self._store(path)[0].get(self._store(path)[1]) for path in buffers}
        finally:
            self._install(buffers)
        new = {path for path, buffer in copies.items() if after[path] is not buffer} - self._paths
        if new:
            self._paths |= new
            raise Assigned
        for path in assigned:
            value = _alike(path, buffers[path], after[path])
            # Autograd rejects an in-place write of a tensor that takes a gradient.
            with torch.no_grad():
                buffers[path].copy_(value)

    def _install(self, buffers: dict[str, torch.Tensor]) -> None:
        for path, buffer in buffers.items():
            store, name = self._store(path)
            store[name] = buffer

    def _store(self, path: str) -> tuple[dict[str, torch.Tensor | None], str]:
        owner, _, name = path.rpartition(".")
        return self._model.get_submodule(owner)._buffers, name


def _alike(path: str, buffer: torch.Tensor, tensor: torch.Tensor | None) -> torch.Tensor:
    """The tensor that replaces a buffer, if the next step may begin with it."""
    if tensor is None or (tensor.shape, tensor.dtype) != (buffer.shape, buffer.dtype):
        raise SituateError(
            f"the model puts {_described(tensor)} in the place of buffer {path!r}, which is "
            f"{_described(buffer)}: make it alike, or every step would be another"
        )
    return tensor


def _described(tensor: torch.Tensor | None) -> str:
    if tensor is None:
        return "None"
    return f"a tensor of {str(tensor.dtype).removeprefix('torch.')} and shape {tuple(tensor.shape)}"
