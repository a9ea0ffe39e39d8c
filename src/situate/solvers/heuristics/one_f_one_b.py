"""`one_f_one_b`: slices through stages, one per accelerator, which alternate forward and backward
passes."""

from __future__ import annotations

from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import offer_slice_pipelines
from situate.solvers.slice_pipelines.passes import Pass, PassOrder


def run(search: Search) -> None:
    """PipeDream-Flush (D. Narayanan et al., *Memory-Efficient Pipeline-Parallel DNN Training*, ICML
    2021), which Megatron-LM calls 1F1B without interleaving (SC 2021, Section 2.2.1).

    Raises:
        SituateError: the step does not slice its batch.
    """
    offer_slice_pipelines(search, ORDERS)


def passes(devices: int, slices: int, device: int) -> list[Pass]:
    """The passes of a device, in the order it runs them: a forward pass for each device behind it,
    then forward and backward passes in turn, then the remaining backward passes."""
    ahead = min(devices - device - 1, slices)
    turn = [Pass("F", part, device) for part in range(ahead)]
    for part in range(slices):
        if ahead + part < slices:
            turn.append(Pass("F", ahead + part, device))
        turn.append(Pass("B", part, device))
    return turn


ORDERS = (PassOrder(passes),)
