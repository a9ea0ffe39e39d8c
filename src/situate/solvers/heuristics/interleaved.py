"""`interleaved`: 1F1B with several short stages, its chunks, on every accelerator."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import offer_slice_pipelines
from situate.solvers.slice_pipelines.passes import Pass, PassOrder

CHUNKS = (2, 3, 4)
"""Numbers of chunks per device to try."""


def run(search: Search) -> None:
    """D. Narayanan et al., *Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM*, SC 2021, Section 2.2.2.

    Raises:
        SituateError: the step does not slice its batch.
    """
    offer_slice_pipelines(search, ORDERS)


def passes(devices: int, slices: int, device: int, chunks: int) -> list[Pass]:
    """The passes of a device, in the order it runs them.

    Forward and backward passes alternate as in 1F1B, but the slices of a round go through one chunk
    before the device starts the next chunk.
    """
    rounds = _rounds(devices, slices)
    way = [
        (part, chunk) for round_slices in rounds for chunk in range(chunks) for part in round_slices
    ]
    stages = range(device, chunks * devices, devices)
    forward = [Pass("F", part, stages[chunk]) for part, chunk in way]
    backward = [Pass("B", part, stages[-1 - chunk]) for part, chunk in way]
    ahead = min(2 * (devices - device - 1) + (chunks - 1) * len(rounds[0]), len(way))
    turn = forward[:ahead]
    for number, back in enumerate(backward):
        turn += [*forward[ahead + number : ahead + number + 1], back]
    return turn


def _rounds(devices: int, slices: int) -> list[range]:
    """Slices that go through a chunk together: one per device, or a few more if the number of
    slices is no multiple of the devices."""
    count = max(1, slices // devices)
    ends = [-(-slices * number // count) for number in range(count + 1)]
    return [range(begin, end) for begin, end in pairwise(ends)]


ORDERS = tuple(PassOrder(partial(passes, chunks=chunks), chunks) for chunks in CHUNKS)
