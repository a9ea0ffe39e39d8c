"""`metis` gives every accelerator a part of its share, and the CPU none."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.cluster import Cluster
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers import solve
from situate.zoo import load
from tests.solvers.families import devices, layered
from tests.solvers.programs import needs_metis

pytestmark = needs_metis


def busy(problem: Problem, method: str) -> list[float]:
    """The seconds (d,) that each device computes, as a part of all."""
    placement = solve(problem, method).placement
    seconds = problem.seconds[np.arange(problem.n), placement]
    return list(np.bincount(placement, seconds, problem.d) / seconds.sum())


@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_every_gpu_gets_its_part_of_a_network(gpus: int) -> None:
    problem = Problem(load("inception_v3"), Cluster.preset(f"k80-{gpus}"))
    assert busy(problem, "metis") == pytest.approx([1 / gpus] * gpus + [0], abs=0.02)


def test_a_device_of_half_the_speed_gets_half_the_work() -> None:
    """Work, not time: all take equally long."""
    assert busy(Problem(layered(40, 20, 1), devices(1, 2)), "metis") == pytest.approx(
        [0.5, 0.5], abs=0.02
    )


def test_ops_that_exchange_most_bytes_stay_together() -> None:
    """Two chains side by side, with light edges across."""
    ops = tuple(Op(f"op{j}", seconds={"*": 1.0}) for j in range(20))
    heavy = [Tensor(f"h{j}", j, 1000, (j + 2,)) for j in range(18)]
    light = [Tensor(f"l{j}", j, 1, (j + 1,)) for j in range(0, 18, 2)]
    result = solve(Problem(Graph("g", ops, (*heavy, *light)), devices(1, 1)), "metis")
    chains = result.placement.reshape(10, 2)
    assert (chains == chains[0]).all()
    assert sorted(chains[0]) == [0, 1]
