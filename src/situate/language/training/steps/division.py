"""The division of a step: layers among chunks of a pipeline, micro-batches among replicas."""

from __future__ import annotations

from dataclasses import dataclass

from situate.errors import SituateError
from situate.language.training.layout import Layout
from situate.language.training.transformer import Transformer
from situate.language.training.unequal import Shares

JOINED_OPS, MAX_OPS = 60_000, 200_000
"""Limits on the ops of a step's graph: above the first, layers are joined into blocks; above the
second, the step is refused. A step of 200,000 ops takes 9 CPU seconds and 1.7 GB."""


def parts_of(layout: Layout) -> tuple[str, ...]:
    """The parts of a layer, in the order of the forward pass, which exchanges come between.

    With context parallelism, the keys and values of all devices come between the products that make
    them and the core of attention.
    """
    return ("keys", "attention", "network") if layout.cp > 1 else ("attention", "network")


@dataclass(frozen=True)
class Division:
    """The layers of each chunk of a pipeline, and the micro-batches of each replica.

    Attributes:
        layout: degrees of parallelism.
        chunks: layers of each chunk, in the order in which a micro-batch passes them.
        counts: micro-batches of each replica.
        whole: the layout whose seconds and bytes the step has, if devices of the division stand for
            all of it (`representatives.py`); None if the division has all devices.
    """

    layout: Layout
    chunks: tuple[int, ...]
    counts: tuple[int, ...]
    whole: Layout | None = None

    @property
    def priced(self) -> Layout:
        """The layout whose seconds and bytes the step has."""
        return self.whole or self.layout

    @property
    def devices(self) -> int:
        """Devices of all stages."""
        return self.members * self.layout.pp

    @property
    def members(self) -> int:
        """Devices of a stage."""
        return self.layout.dp * self.layout.cp * self.layout.tp

    def replica(self, member: int) -> int:
        """The replica of a device of a stage."""
        return member // (self.layout.cp * self.layout.tp)

    def count(self, member: int) -> int:
        """Micro-batches of a device of a stage."""
        return self.counts[self.replica(member)]


@dataclass(frozen=True)
class Block:
    """Neighbouring layers whose ops are joined.

    Attributes:
        name: its layers.
        chunk: of the pipeline.
        layers: their number.
    """

    name: str
    chunk: int
    layers: int


def equal_division(model: Transformer, layout: Layout) -> Division:
    """The division among equal devices. As in training programs, the first chunks have a layer more
    if the layers do not divide evenly."""
    chunks = layout.pp * layout.vp
    least, rest = divmod(model.layers, chunks)
    sizes = tuple(least + (i < rest) for i in range(chunks))
    return Division(layout, sizes, (layout.count,) * layout.dp)


def unequal_division(model: Transformer, shares: Shares, batch: int) -> Division:
    """The division of unequal shares among all devices.

    Args:
        model: whose layers all replicas have.
        shares: samples of replicas, or layers of stages.
        batch: samples of a step.
    """
    size, micro = len(shares.shares), shares.micro
    if shares.way == "layers":
        layout = Layout(pp=size, micro=micro, count=batch // micro, recompute=shares.recompute)
        return Division(layout, shares.shares, (layout.count,))
    count = batch // (micro * size)
    layout = Layout(dp=size, micro=micro, count=count, recompute=shares.recompute)
    return Division(layout, (model.layers,), tuple(n // micro for n in shares.shares))


def blocks_of(division: Division) -> tuple[Block, ...]:
    """The blocks of all chunks in order: single layers, if the graph stays below `JOINED_OPS`.

    Raises:
        SituateError: even with a block for each chunk the graph has more than `MAX_OPS`.
    """
    most = max(division.chunks)
    choices = (_joined(division, size) for size in range(1, most + 1))
    fitting = (blocks for blocks in choices if _ops(division, blocks) <= JOINED_OPS)
    blocks = next(fitting, None) or _joined(division, most)
    if _ops(division, blocks) <= MAX_OPS:
        return blocks
    raise SituateError(
        f"--layout: the step has more than {MAX_OPS:,} ops on {division.layout.devices} GPUs: "
        "give fewer samples, or larger micro-batches"
    )


def least_ops(division: Division) -> int:
    """Ops of a step whose layers are joined as far as chunks allow."""
    return _ops(division, _joined(division, max(division.chunks)))


def _joined(division: Division, size: int) -> tuple[Block, ...]:
    """Blocks of at most `size` layers."""
    blocks, layer = [], 0
    for chunk, layers in enumerate(division.chunks):
        for first in range(0, layers, size):
            count = min(size, layers - first)
            start = layer + first
            name = f"layer{start}" if count == 1 else f"layers{start}-{start + count - 1}"
            blocks.append(Block(name, chunk, count))
        layer += layers
    return tuple(blocks)


def _ops(division: Division, blocks: tuple[Block, ...]) -> int:
    """Ops of the blocks, for all micro-batches and devices."""
    layout = division.layout
    group = layout.cp * layout.tp
    # Forward, backward, and late gradients of weights.
    ops = len(parts_of(layout)) * (3 if layout.late else 2)
    return len(blocks) * ops * group * sum(division.counts)
