"""Several chunks a device."""

from __future__ import annotations

import pytest

from situate.solvers.heuristics.interleaved import ORDERS, passes
from situate.solvers.search import Search
from situate.solvers.slice_pipelines.offering import offer_slice_pipelines
from situate.solvers.slice_pipelines.passes import ranks
from tests.solvers.slice_pipelines.uniform import drawn, uniform


def test_the_passes_are_those_of_megatron():
    """The last of two devices, with two chunks and four slices: two go through a chunk together."""
    assert drawn(passes(2, 4, 1, 2)) == "F0 F1 F0 B0 F1 B1 F2 B0 F3 B1 F2 B2 F3 B3 B2 B3"
    stages = [stage for _, _, stage in passes(2, 4, 1, 2)]
    assert stages == [1, 1, 3, 3, 3, 3, 1, 1, 1, 1, 3, 3, 3, 3, 1, 1]


@pytest.mark.parametrize("order", ORDERS, ids=lambda order: f"{order.chunks} chunks")
@pytest.mark.parametrize(("devices", "slices"), [(2, 4), (4, 8), (4, 16), (8, 16)])
def test_the_bubble_is_that_of_one_chunk_over_the_chunks(devices, slices, order):
    """In units of a chunk's forward pass."""
    search = Search(uniform(devices, slices, chunks=order.chunks))
    offer_slice_pipelines(search, [order])
    assert search.incumbent.value == 3 * slices * order.chunks + 3 * (devices - 1)


@pytest.mark.parametrize("devices", range(1, 6))
@pytest.mark.parametrize("slices", range(1, 12))
def test_no_pass_waits_for_one_that_waits_for_it(devices, slices):
    for chunks in (2, 3):
        turns = [passes(devices, slices, device, chunks) for device in range(devices)]
        assert (
            ranks(turns, slices, devices * chunks)["W"].max() == 2 * slices * devices * chunks - 1
        )
