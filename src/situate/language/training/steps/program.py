"""The ops of one device in the order in which its program runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from situate.language.training.layout import Layout
from situate.language.training.steps.division import Block, parts_of
from situate.language.training.steps.pipeline import StagePass, stage_passes

EMBEDDING = -1
"""Number of the embedding among blocks; the head's is the number of blocks."""

EVERY = -1
"""Number of the micro-batch of ops that run once a step."""


class Slot(NamedTuple):
    """An op of a device.

    Attributes:
        action: its part of the block and its direction, such as `attention.forward`.
        block: its number.
        micro: the micro-batch.
    """

    action: str
    block: int
    micro: int


class BlockPass(NamedTuple):
    """A pass of a micro-batch through a block."""

    direction: str
    block: int
    micro: int


def block_ops(layout: Layout) -> dict[str, tuple[str, ...]]:
    """Ops of a pass through a block in order, by direction."""
    parts = parts_of(layout)
    return {
        "forward": tuple(f"{part}.forward" for part in parts),
        "backward": tuple(f"{part}.backward" for part in reversed(parts)),
        "weight": tuple(f"{part}.weight" for part in reversed(parts)),
    }


class DeviceProgram:
    """The program of a stage's devices that run `count` micro-batches.

    Args:
        layout: degrees and schedule.
        blocks: of all chunks.
        stage: from 0.
        count: micro-batches.
        often: True if every micro-batch gathers weights and reduces gradients.

    Attributes:
        slots: ops in their order.
        place: number of each slot.
        waits: for each op that gathers weights, the op after which it starts.
        parts: numbers of the stage's blocks, the ends included.
    """

    def __init__(
        self, layout: Layout, blocks: Sequence[Block], stage: int, count: int, often: bool
    ) -> None:
        self._blocks = blocks
        self._block_ops = block_ops(layout)
        self._often = often
        self._reduces_often = often or layout.zero == 2
        own = [i for i, block in enumerate(blocks) if layout.stage(block.chunk) == stage]
        self._by_chunk = {
            chunk: [i for i in own if blocks[i].chunk // layout.pp == chunk]
            for chunk in range(layout.vp)
        }
        self._first = stage == 0
        self._last = stage == layout.last_stage
        self._chunks = layout.vp
        self.parts = [
            *([EMBEDDING] if self._first else []),
            *own,
            *([len(blocks)] if self._last else []),
        ]
        self.waits: dict[Slot, Slot] = {}
        passes = [
            block_pass
            for stage_pass in stage_passes(layout, stage, count)
            for block_pass in self._block_passes(stage_pass)
        ]
        self.slots = list(self._slots(passes))
        self.place: dict[tuple[str, int, int], int] = {slot: i for i, slot in enumerate(self.slots)}

    def _block_passes(self, stage_pass: StagePass) -> Iterator[BlockPass]:
        """The passes through the blocks of a chunk, and through the ends."""
        direction, chunk, micro = stage_pass.direction, stage_pass.chunk, stage_pass.micro
        blocks = self._by_chunk[chunk]
        begins, ends = self._first and chunk == 0, self._last and chunk == self._chunks - 1
        if direction == "forward":
            if begins:
                yield BlockPass(direction, EMBEDDING, micro)
            for block in blocks:
                yield BlockPass(direction, block, micro)
            if ends:
                yield BlockPass(direction, len(self._blocks), micro)
            return
        for block in reversed(blocks):
            yield BlockPass(direction, block, micro)
        if begins and direction == "backward":
            yield BlockPass(direction, EMBEDDING, micro)

    def _slots(self, passes: Sequence[BlockPass]) -> Iterator[Slot]:
        """All ops: weights first, the passes, gradients as soon as they are whole, updates last."""
        remaining = Counter(block_pass.block for block_pass in passes)
        for part in self.parts:
            yield Slot("weights", part, EVERY)
        yield from self._gathers(passes, 0)
        for i, block_pass in enumerate(passes):
            yield from self._gathers(passes, i + 1)
            yield from self._compute(block_pass)
            remaining[block_pass.block] -= 1
            if remaining[block_pass.block] == 0:
                yield Slot("gradients", block_pass.block, EVERY)
        for part in self.parts:
            yield Slot("update", part, EVERY)

    def _gathers(self, passes: Sequence[BlockPass], index: int) -> Iterator[Slot]:
        """The op that gathers a pass's weights, which starts when the pass before the last ends."""
        if not self._often or index >= len(passes):
            return
        block_pass = passes[index]
        if block_pass == BlockPass("backward", EMBEDDING, block_pass.micro):
            return
        slot = Slot(f"gather.{block_pass.direction}", block_pass.block, block_pass.micro)
        if index >= 2:
            before = passes[index - 2]
            self.waits[slot] = Slot(self._actions(before)[-1], before.block, before.micro)
        yield slot

    def _compute(self, block_pass: BlockPass) -> Iterator[Slot]:
        """The ops of a pass through a block or an end; the head has both directions in one."""
        for action in self._actions(block_pass):
            yield Slot(action, block_pass.block, block_pass.micro)
        is_last = block_pass.direction == "backward" or block_pass.block == len(self._blocks)
        if is_last and self._reduces_often:
            yield Slot("scatter", block_pass.block, block_pass.micro)

    def _actions(self, block_pass: BlockPass) -> tuple[str, ...]:
        if block_pass.block == EMBEDDING:
            return (f"embedding.{block_pass.direction}",)
        return (
            self._block_ops[block_pass.direction]
            if block_pass.block < len(self._blocks)
            else ("head.forward",)
        )
