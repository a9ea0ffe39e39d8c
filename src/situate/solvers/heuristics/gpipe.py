"""`gpipe`: all slices forward through stages, one an accelerator, and then all of them back."""

from __future__ import annotations

from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import offer_slice_pipelines
from situate.solvers.slice_pipelines.passes import Pass, PassOrder


def run(search: Search) -> None:
    """Y. Huang et al., *GPipe*, NeurIPS 2019, Section 2.2.

    Raises:
        SituateError: the step does not slice its batch.
    """
    offer_slice_pipelines(search, ORDERS)


def passes(devices: int, slices: int, device: int) -> list[Pass]:
    """The passes of a device, in the order it runs them."""
    forward = [Pass("F", part, device) for part in range(slices)]
    return forward + [Pass("B", part, device) for part in range(slices)]


ORDERS = (PassOrder(passes),)
