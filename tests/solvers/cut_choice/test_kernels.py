"""The least seconds of slices, sums and concatenations between parts."""

from __future__ import annotations

import numpy as np
import pytest

from situate import Cluster, Graph, Problem
from situate.data.cluster import Device, Link
from situate.data.graph import Op
from situate.data.letter_graph import SUM, WHOLE
from situate.solvers.cut_choice.kernels import Kernels

LAUNCH, BYTES = 1e-6, 10**6

PIECE = 1e-6
"""Seconds in which a device moves BYTES at the full bandwidth."""


def kernels(slow_launch: float = LAUNCH) -> Kernels:
    """Of two GPUs, the second of which may start kernels later."""
    gpus = tuple(
        Device(f"gpu{k}", bandwidth=1e12, launch=launch)
        for k, launch in enumerate((LAUNCH, slow_launch))
    )
    cluster = Cluster("gpus", gpus, (Link("*", "*", bandwidth=1e9),))
    problem = Problem(Graph("step", (Op("op", seconds={"*": 1.0}),)), cluster)
    return Kernels(problem, np.array([0.5, 0.5]))


def load_and_path(source: tuple, target: tuple, is_direct: bool = True) -> tuple[float, float]:
    """Launches of the load, which has half the weight on either GPU, and of the path."""
    (cost, *_) = kernels().ways(source, target, 0, is_direct)
    return round(2 * cost[0] / LAUNCH), round(cost[1] / LAUNCH)


def whole(readers: int = 1) -> tuple:
    return WHOLE, (readers, readers)


def parts(count: int, number: int = 0) -> tuple:
    return number, (count, count)


def partial(count: int) -> tuple:
    return SUM, (count, count)


# Each form of a tensor becomes another by as many ops as a cut step has.
@pytest.mark.parametrize(
    ("source", "target", "load", "path"),
    [
        pytest.param(whole(), whole(4), 0, 0, id="a whole that all parts read"),
        pytest.param(whole(), parts(4), 4, 1, id="a slice for each part"),
        pytest.param(parts(4), whole(), 1, 1, id="a concatenation"),
        pytest.param(parts(4), whole(4), 4, 1, id="all-gather"),
        pytest.param(parts(4), parts(2, 1), 8 + 2, 2, id="all-to-all"),
        pytest.param(partial(4), whole(), 3, 1, id="a sum"),
        pytest.param(partial(4), parts(4), 16 + 12, 2, id="reduce-scatter"),
        pytest.param(partial(4), whole(20), 16 + 12 + 20, 1, id="all-reduce"),
        pytest.param(parts(4), parts(4), 0, 0, id="the same parts"),
        pytest.param(partial(4), partial(4), 0, 0, id="sums that stay partial"),
    ],
)
def test_exchanges_launch_these_ops(source, target, load, path) -> None:
    assert load_and_path(source, target) == (load, path)


# A class has one number of parts, and only partial results remain partial.
@pytest.mark.parametrize(
    ("source", "target"),
    [(parts(4), parts(2)), (partial(4), partial(2)), (whole(), partial(2)), (parts(2), partial(2))],
)
def test_some_forms_do_not_follow_each_other(source, target) -> None:
    assert kernels().ways(source, target, BYTES, True) == ()


def test_a_view_may_be_of_the_whole_tensor() -> None:
    direct, through = kernels().ways(partial(4), parts(4), 0, False)
    assert round(2 * direct[0] / LAUNCH) == 28
    assert round(2 * through[0] / LAUNCH) == 3 + 4


def test_bytes_take_time() -> None:
    none, many = (kernels().ways(parts(2), whole(), size, True)[0] for size in (0, BYTES))
    assert many[1] - none[1] >= 2 * PIECE
    assert many[0] - none[0] >= PIECE


def test_the_device_with_the_shortest_launch_counts() -> None:
    (one,) = kernels(slow_launch=9 * LAUNCH).ways(whole(), parts(3), 0, True)
    assert one == pytest.approx((1.5 * LAUNCH, LAUNCH), rel=1e-6)
