"""`scotch` and the machine: every device its share by its speed, near ones what they exchange."""

from __future__ import annotations

import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers import solve
from situate.zoo import load
from tests.solvers.families import devices, layered
from tests.solvers.partitioners.test_metis import busy
from tests.solvers.programs import needs_scotch

pytestmark = needs_scotch


@pytest.mark.parametrize("gpus", [2, 4])
def test_gpus_and_cpu_take_equally_long(gpus: int) -> None:
    """Loads are those of units on their fastest device, so by what the CPU takes only nearly."""
    problem = Problem(load("resnet50"), Cluster.preset(f"k80-{gpus}"))
    assert busy(problem, "scotch") == pytest.approx([1 / (gpus + 1)] * (gpus + 1), abs=0.05)


def test_a_device_of_half_the_speed_gets_half_the_work() -> None:
    problem = Problem(layered(40, 20, 1), devices(1, 2, 2))
    assert busy(problem, "scotch") == pytest.approx([1 / 3] * 3, abs=0.03)


def test_what_exchanges_most_is_on_near_devices() -> None:
    """Four cliques in a row, a little between the first two and the last two, and less between:
    d0 and d2, d1 and d3 are near."""
    near, far = 100.0, 1.0
    links = (Link("*", "*", far), Link("d0", "d1", near), Link("d2", "d3", near))
    cluster = Cluster("c", tuple(Device(f"d{i}", "x1") for i in range(4)), links)
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(24))
    edges = {(a, b): 1000 for a in range(24) for b in range(a + 1, 24) if a // 6 == b // 6}
    edges |= {(5, 6): 100, (17, 18): 100, (11, 12): 1}
    tensors = tuple(Tensor(f"t{a}.{b}", a, size, (b,)) for (a, b), size in edges.items())
    placement = solve(Problem(Graph("g", ops, tensors), cluster), "scotch").placement
    cliques = placement.reshape(4, 6)
    assert (cliques == cliques[:, :1]).all()
    first, second, third, fourth = (int(device) // 2 for device in cliques[:, 0])
    assert first == second != third == fourth
    assert len(set(cliques[:, 0])) == 4
