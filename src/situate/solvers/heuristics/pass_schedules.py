"""Published orders of the passes of slices through a pipeline, as one table of schedules.

A schedule lists the forward (F) and backward (B) passes of each device. Zero-bubble schedules split
a backward pass into the gradients of the stage's inputs (I) and those of its weights (W).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import pairwise
from types import MappingProxyType

from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import offer_slice_pipelines
from situate.solvers.slice_pipelines.passes import Pass, PassOrder

CHUNKS = (2, 3, 4)
"""Numbers of chunks per device that `interleaved` tries."""


def gpipe_passes(devices: int, slices: int, device: int) -> list[Pass]:
    """The passes of a device, in the order it runs them: all forward, then all backward."""
    forward = [Pass("F", part, device) for part in range(slices)]
    return forward + [Pass("B", part, device) for part in range(slices)]


def one_f_one_b_passes(devices: int, slices: int, device: int) -> list[Pass]:
    """The passes of a device, in the order it runs them: a forward pass for each device behind it,
    then forward and backward passes in turn, then the remaining backward passes."""
    ahead = min(devices - device - 1, slices)
    turn = [Pass("F", part, device) for part in range(ahead)]
    for part in range(slices):
        if ahead + part < slices:
            turn.append(Pass("F", ahead + part, device))
        turn.append(Pass("B", part, device))
    return turn


def interleaved_passes(devices: int, slices: int, device: int, chunks: int) -> list[Pass]:
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
    # Warm-up passes of a device: Megatron-LM (SC 2021), Section 2.2.2.
    ahead = min(2 * (devices - device - 1) + (chunks - 1) * len(rounds[0]), len(way))
    turn = forward[:ahead]
    for number, back in enumerate(backward):
        turn += [*forward[ahead + number : ahead + number + 1], back]
    return turn


def _rounds(devices: int, slices: int) -> list[range]:
    """Slices that go through a chunk together: one per device, or a few more if the number of
    slices is no multiple of the devices."""
    count = max(1, slices // devices)
    # Rounded up, so that the first rounds are the larger ones.
    ends = [-(-slices * number // count) for number in range(count + 1)]
    return [range(begin, end) for begin, end in pairwise(ends)]


def zero_bubble_passes(devices: int, slices: int, device: int, ahead: int) -> list[Pass]:
    """The passes of a device, in the order it runs them.

    Args:
        ahead: number of slices per later device that a device starts before its first backward
            pass. It is also the number per earlier device whose weight gradients run last.
    """
    early, late = min(ahead * (devices - device - 1), slices), ahead * device
    turn = [Pass("F", part, device) for part in range(early)]
    for part in range(slices):
        if early + part < slices:
            turn.append(Pass("F", early + part, device))
        turn.append(Pass("I", part, device))
        if part >= late:
            turn.append(Pass("W", part - late, device))
    return turn + [Pass("W", part, device) for part in range(max(0, slices - late), slices)]


SCHEDULES: Mapping[str, tuple[PassOrder, ...]] = MappingProxyType(
    {
        "gpipe": (PassOrder(gpipe_passes),),
        "one_f_one_b": (PassOrder(one_f_one_b_passes),),
        "interleaved": tuple(
            PassOrder(partial(interleaved_passes, chunks=chunks), chunks) for chunks in CHUNKS
        ),
        "zero_bubble": (PassOrder(partial(zero_bubble_passes, ahead=1)),),
        "zero_bubble_h2": (PassOrder(partial(zero_bubble_passes, ahead=2)),),
    }
)
"""The orders of passes that each method offers."""

ALL_ORDERS = tuple(order for orders in SCHEDULES.values() for order in orders)
"""The orders of passes of all methods."""


def gpipe(search: Search) -> None:
    """Y. Huang et al., *GPipe*, NeurIPS 2019, Section 2.2.

    Raises:
        SituateError: the step does not slice its batch.
    """
    offer_slice_pipelines(search, SCHEDULES["gpipe"])


def one_f_one_b(search: Search) -> None:
    """PipeDream-Flush (D. Narayanan et al., *Memory-Efficient Pipeline-Parallel DNN Training*, ICML
    2021), which Megatron-LM calls 1F1B without interleaving (SC 2021, Section 2.2.1).

    Raises:
        SituateError: the step does not slice its batch.
    """
    offer_slice_pipelines(search, SCHEDULES["one_f_one_b"])


def interleaved(search: Search) -> None:
    """D. Narayanan et al., *Efficient Large-Scale Language Model Training on GPU Clusters Using
    Megatron-LM*, SC 2021, Section 2.2.2.

    Raises:
        SituateError: the step does not slice its batch.
    """
    offer_slice_pipelines(search, SCHEDULES["interleaved"])


def zero_bubble(search: Search) -> None:
    """ZB-H1 of P. Qi et al., *Zero Bubble Pipeline Parallelism*, ICLR 2024, Section 2.1: weight
    gradients fill idle times of 1F1B.

    Raises:
        SituateError: the step does not slice its batch.
    """
    offer_slice_pipelines(search, SCHEDULES["zero_bubble"])


def zero_bubble_h2(search: Search) -> None:
    """ZB-H2, Section 2.2 of the same paper: the same with more slices in flight.

    Raises:
        SituateError: the step does not slice its batch.
    """
    offer_slice_pipelines(search, SCHEDULES["zero_bubble_h2"])
