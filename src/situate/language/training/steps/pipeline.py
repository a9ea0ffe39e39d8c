"""The order in which a stage of a pipeline runs its passes.

1F1B is of Narayanan et al. (arXiv:2006.09503), interleaved 1F1B of arXiv:2104.04473, section 2.2,
and zero bubbles of Qi et al. (arXiv:2401.10241). All but ZB-H2 are those of
`torch.distributed.pipelining.schedules`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from situate.language.training.layout import H2, SCHEDULES, V_CHUNKS, Layout, V, group_size

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
    if layout.schedule == SCHEDULES[V]:
        yield from _v_passes(layout.pp, stage, count)
        return
    ahead = 2 if layout.schedule == SCHEDULES[H2] else 1
    total, lag = count * layout.vp, ahead * stage
    warm = min(ahead * _warm_up(layout, stage, count), total)
    for i in range(warm):
        yield _pass(layout, "forward", i, count)
    for i in range(total):
        if warm + i < total:
            yield _pass(layout, "forward", warm + i, count)
        yield _pass(layout, "backward", i, count)
        if layout.late and i >= lag:
            yield _pass(layout, "weight", i - lag, count)
    if layout.late:
        for i in range(max(total - lag, 0), total):
            yield _pass(layout, "weight", i, count)


def _warm_up(layout: Layout, stage: int, count: int) -> int:
    """Forward passes of a stage before its first backward pass."""
    later = layout.pp - 1 - stage
    if layout.vp == 1:
        return later
    # Megatron-LM's interleaved schedule begins with two passes for each later stage.
    chunks = (layout.vp - 1) * group_size(count, layout.pp)
    return chunks + (later if layout.late else 2 * later)


def _v_passes(pp: int, stage: int, count: int) -> Iterator[StagePass]:
    """ZB-V: the stage's second chunk is as far from the end of the model as its first one from the
    beginning (arXiv:2401.10241, section 6).

    Schedules of fewer micro-batches than fill the pipeline leave out passes of the others.
    """
    numbers: Counter[tuple[str, int]] = Counter()
    for direction, chunk in _v_turns(pp, stage, max(2 * pp - 1, count)):
        micro = numbers[direction, chunk]
        numbers[direction, chunk] += 1
        if micro < count:
            yield StagePass(direction, chunk, micro)


def _v_turns(pp: int, stage: int, count: int) -> Iterator[tuple[Direction, int]]:
    """(direction, chunk) of the passes of ZB-V."""
    forward, backward, weight = (
        [(direction, 0), (direction, 1)] for direction in get_args(Direction)
    )
    whole = [[backward[chunk], weight[chunk]] for chunk in range(V_CHUNKS)]
    ahead, back = 2 * (pp - stage) - 1, pp - stage
    yield from forward[:1] * ahead
    yield from [forward[1], forward[0]] * stage
    yield from [forward[1], *whole[1]] * back
    # So far `ahead + stage` forward passes of the first chunk, and `pp` of the second one.
    steady = count - ahead - stage
    yield from [forward[0], *whole[0], forward[1], *whole[1]] * steady
    yield from [*whole[0], forward[1], *whole[1]] * (count - pp - steady)
    yield from backward * stage
    yield from whole[0] * back
    yield from [weight[1]] * stage
    yield from [weight[0]] * stage


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
