"""`zero_bubble`: 1F1B with backward passes in two halves, so that weight gradients fill idle times;
`zero_bubble_h2`: the same with more slices in flight."""

from __future__ import annotations

from functools import partial

from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import offer_slice_pipelines
from situate.solvers.slice_pipelines.passes import Pass, PassOrder


def h1(search: Search) -> None:
    """ZB-H1 of P. Qi et al., *Zero Bubble Pipeline Parallelism*, ICLR 2024, Section 2.1.

    Raises:
        SituateError: the step takes its batch whole.
    """
    offer_slice_pipelines(search, H1)


def h2(search: Search) -> None:
    """ZB-H2, Section 2.2 of the same paper.

    Raises:
        SituateError: the step takes its batch whole.
    """
    offer_slice_pipelines(search, H2)


def passes(devices: int, slices: int, device: int, ahead: int) -> list[Pass]:
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


H1 = (PassOrder(partial(passes, ahead=1)),)
H2 = (PassOrder(partial(passes, ahead=2)),)
