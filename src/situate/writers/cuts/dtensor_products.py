"""Products of a file for torch.distributed.tensor that its own styles do not cut: fused products,
and those of Conv1D. `situate.writers.dtensor` copies the text below the mark where a plan has
such products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Placement, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ParallelStyle

# Products.


class ProductParallel(ParallelStyle):
    """A product whose outputs, or whose inputs, are in parts.

    A fused product has several ranges of outputs, each of which is cut alike. Its weight and its
    bias get a dimension for the ranges, before that of their outputs, and its result is `Ranges`.

    Args:
        columns: true for outputs in parts, false for inputs.
        between: the layout of activations between modules.
        stays_cut: false to bring outputs in parts into that layout.
        ranges: of outputs.
        transposed: true for a weight (inputs, outputs), as of Conv1D in transformers.
    """

    def __init__(
        self,
        *,
        columns: bool,
        between: Placement,
        stays_cut: bool = True,
        ranges: int = 1,
        transposed: bool = False,
    ) -> None:
        super().__init__()
        self.columns, self.between, self.stays_cut = columns, between, stays_cut
        self.ranges, self.transposed = ranges, transposed

    def _apply(self, module: nn.Module, device_mesh: DeviceMesh) -> nn.Module:
        for name, parameter in list(module.named_parameters(recurse=False)):
            value, layout = self._divided(parameter.detach())
            part = distribute_tensor(value, device_mesh, [layout])
            module.register_parameter(name, nn.Parameter(part, parameter.requires_grad))
        module.forward = partial(self._forward, module, device_mesh)
        return module

    def _divided(self, value: torch.Tensor) -> tuple[torch.Tensor, Placement]:
        """A parameter with a dimension for the ranges, and its layout."""
        outputs = value.dim() - 1 if self.transposed else 0
        if self.columns:
            sizes = list(value.shape)
            sizes[outputs : outputs + 1] = [self.ranges, sizes[outputs] // self.ranges]
            return value.reshape(sizes), Shard(outputs + 1)
        return value, Replicate() if value.dim() == 1 else Shard(1 - outputs)

    def _forward(self, module: Any, mesh: DeviceMesh, x: Any) -> Any:
        if not isinstance(x, DTensor):
            x = DTensor.from_local(x, mesh, [self.between], run_check=False)
        layout = Replicate() if self.columns else Shard(x.dim() - 1)
        x = x.redistribute(placements=[layout])
        weight, bias = module.weight, getattr(module, "bias", None)
        if not self.columns:
            y = x @ (weight if self.transposed else weight.t())
            y = y.redistribute(placements=[self.between])
            return y if bias is None else y + bias
        weights = weight.unbind(1 if self.transposed else 0)
        results = [x @ (w if self.transposed else w.t()) for w in weights]
        if bias is not None:
            results = [y + b for y, b in zip(results, bias.unbind(0), strict=True)]
        if not self.stays_cut:
            results = [y.redistribute(placements=[self.between]) for y in results]
        return results[0] if len(results) == 1 else Ranges(results)


class Ranges:
    """The result of a fused product: a tensor for each range of its last dimension.

    A model takes the ranges apart by `split`, `chunk`, slices, or a view with a dimension for them.
    """

    def __init__(self, parts: Sequence[torch.Tensor]) -> None:
        self._parts = list(parts)

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        method = getattr(cls, getattr(function, "__name__", ""), None)
        if method is None:
            raise cls._refusal(function)
        return method(*args, **(kwargs or {}))

    def __getattr__(self, name: str) -> Any:
        if name in ("device", "dtype", "requires_grad"):
            return getattr(self._parts[0], name)
        raise AttributeError(f"a fused product in parts has no {name!r}: split it first")

    @staticmethod
    def _refusal(detail: Any) -> TypeError:
        return TypeError(
            f"a fused product in parts is taken apart at its ranges alone, not by {detail}: give "
            "each range a module of its own"
        )

    @property
    def shape(self) -> torch.Size:
        *rest, last = self._parts[0].shape
        return torch.Size([*rest, last * len(self._parts)])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def dim(self) -> int:
        return self.ndim

    def size(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def split(self, split_size: Any, dim: int = 0) -> tuple[torch.Tensor, ...]:
        length, count = self._parts[0].shape[-1], len(self._parts)
        sizes = [split_size] * count if isinstance(split_size, int) else list(split_size)
        if dim % self.ndim != self.ndim - 1 or sizes != [length] * count:
            raise self._refusal(f"split({split_size}, {dim})")
        return tuple(self._parts)

    def chunk(self, chunks: int, dim: int = 0) -> tuple[torch.Tensor, ...]:
        return self.split(self.shape[-1] // chunks, dim)

    def __getitem__(self, index: Any) -> torch.Tensor:
        *rest, last = index if isinstance(index, tuple) else (index,)
        length = self._parts[0].shape[-1]
        is_last = Ellipsis in rest or len(rest) == self.ndim - 1
        if is_last and isinstance(last, slice) and all(i in (..., slice(None)) for i in rest):
            begin, end, step = last.indices(self.shape[-1])
            if step == 1 and begin % length == 0 and end - begin == length:
                return self._parts[begin // length]
        raise self._refusal(f"[{index}]")

    def view(self, *sizes: Any) -> torch.Tensor:
        own = list(sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes)
        if -1 in own:
            own[own.index(-1)] = prod(self.shape) // -prod(own)
        rows = prod(self.shape[:-1])
        for d, size in enumerate(own):
            if prod(own[:d]) == rows and size == len(self._parts):
                return torch.stack([part.view(*own[:d], *own[d + 1 :]) for part in self._parts], d)
        raise self._refusal(f"view{tuple(sizes)}")

    reshape = view
