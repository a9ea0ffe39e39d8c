"""A layout of a language model on a home's devices, as the flags of llama.cpp can say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HOST = -1
"""Stands for the CPU and its memory, among numbers of GPUs."""


@dataclass(frozen=True)
class Layout:
    """Where the parts of a model lie, and how it runs.

    GPUs are numbered as in the cluster file, from 0. Layers on GPUs are contiguous: first those of
    the host, then those of each GPU in `order`.

    Attributes:
        order: GPUs in use, in the order of their layers; the first one runs offloaded ops.
        layers: (layers,) the GPU of each layer, or `HOST`.
        experts: (layers,) the GPU of the experts of each layer, or `HOST`; as `layers` in a layer
            without experts, or where they stay with their layer.
        output: the GPU of the output matrix, or `HOST`.
        host_cache: True to keep all keys and values in host memory (`-nkvo`).
        split: `layer` or `tensor` (`-sm`): devices in turn, or every matrix divided.
        ubatch: tokens of a prompt that pass through the model at once (`-ub`).
        op_offload: True if a GPU computes with the host's weights in long batches.
        moved: (name, GPU or `HOST`) of tensors away from the rest of their part.
    """

    order: tuple[int, ...]
    layers: tuple[int, ...]
    experts: tuple[int, ...]
    output: int
    host_cache: bool = False
    split: Literal["layer", "tensor"] = "layer"
    ubatch: int = 512
    op_offload: bool = True
    moved: tuple[tuple[str, int], ...] = ()

    @property
    def split_output(self) -> int:
        """The device that a split by layers (`-ts`) gives the output, which follows the last layer;
        the output's matrix is elsewhere if a flag of its own moves it."""
        last = self.layers[-1]
        if last == HOST:
            return self.output
        behind = self.order[self.order.index(last) :]
        return self.output if self.output in behind else last
