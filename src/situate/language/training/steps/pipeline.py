"""The order in which a stage of a pipeline runs its passes.

1F1B is of Narayanan et al. (arXiv:2006.09503), interleaved 1F1B of arXiv:2104.04473, section 2.2,
and zero bubbles of Qi et al. (arXiv:2401.10241); all as in
`torch.distributed.pipelining.schedules`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from situate.language.training.layout import Layout, group_size

Direction = Literal["forward", "backward", "weight"]


@dataclass(frozen=True)
class StagePass:
    """A pass of one micro-batch through one chunk of a stage.

    Attributes:
        direction: forwards, backwards, or late gradients of weights.
        chunk: of the stage, from 0.
        micro: number of the micro-batch.
    """

    direction: Direction
    chunk: int
    micro: int


def stage_passes(layout: Layout, stage: int, count: int) -> Iterator[StagePass]:
    """The passes of a stage in the order of its program.

    Args:
        layout: with its stages, chunks and schedule.
        stage: from 0.
        count: micro-batches of a step.
    """
    total, late = count * layout.vp, layout.zero_bubble
    warm = min(_warm_up(layout, stage, count), total)
    for i in range(warm):
        yield _pass(layout, "forward", i, count)
    for i in range(total):
        if warm + i < total:
            yield _pass(layout, "forward", warm + i, count)
        yield _pass(layout, "backward", i, count)
        if late and i >= stage:
            yield _pass(layout, "weight", i - stage, count)
    if late:
        for i in range(max(total - stage, 0), total):
            yield _pass(layout, "weight", i, count)


def _warm_up(layout: Layout, stage: int, count: int) -> int:
    """Forward passes of a stage before its first backward pass."""
    later = layout.pp - 1 - stage
    if layout.vp == 1:
        return later
    # Megatron-LM's interleaved schedule begins with two passes for each later stage.
    chunks = (layout.vp - 1) * group_size(count, layout.pp)
    return chunks + (later if layout.zero_bubble else 2 * later)


def _pass(layout: Layout, direction: Direction, number: int, count: int) -> StagePass:
    """Pass `number` of its direction."""
    if layout.vp == 1:
        return StagePass(direction, 0, number)
    group = group_size(count, layout.pp)
    # A turn takes `group` micro-batches through all chunks, one chunk after the other.
    turn, place = divmod(number, group * layout.vp)
    chunk, offset = divmod(place, group)
    if direction != "forward":
        chunk = layout.vp - 1 - chunk
    return StagePass(direction, chunk, turn * group + offset)
