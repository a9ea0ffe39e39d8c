from __future__ import annotations

import numpy as np
import pytest

from situate import zoo
from situate.cluster import Cluster
from situate.grouping import group, heavy_edge, make_groups
from situate.problem import Problem
from situate.solvers.scales import scales
from tests.solvers.families import chain, devices

PROBLEMS = {
    "chain": (Problem(chain(200), devices(1, 1)), 100),
    "network": (Problem(zoo.load("inception_v3"), Cluster.preset("k80-2")), 384),
}


@pytest.fixture(params=PROBLEMS)
def found(request):
    problem, count = PROBLEMS[request.param]
    groups = group(problem, "heavy-edge", count)
    return groups, scales(problem, groups)


def test_every_group_is_in_one_block_of_every_scale(found):
    groups, of = found
    for scale in of:
        assert sorted(np.concatenate(scale).tolist()) == list(range(len(groups)))


def test_every_scale_has_about_twice_the_blocks_of_the_one_before_up_to_the_groups(found):
    groups, of = found
    sizes = np.array([len(scale) for scale in of])
    assert sizes[0] == 12
    assert sizes[-1] == len(groups)
    assert (1.5 * sizes[:-2] < sizes[1:-1]).all()
    assert (sizes[1:-1] <= 2 * sizes[:-2]).all()


def test_a_chain_is_cut_into_stretches():
    problem = Problem(chain(96), devices(1, 1))
    groups = group(problem, "none")
    for block in scales(problem, groups)[0]:
        assert np.ptp(groups.first[block]) == len(block) - 1


def test_few_groups_have_one_scale():
    problem = Problem(chain(5), devices(1, 1))
    assert [len(scale) for scale in scales(problem, group(problem, "none"))] == [5]


def test_a_group_is_in_the_block_that_has_most_of_its_seconds(monkeypatch):
    problem = Problem(chain(26, seconds=[1.0, 9.0] * 13), devices(1, 1))
    pairs = make_groups(problem, np.arange(26) // 2)
    shifted = (np.arange(26) + 1) // 2
    monkeypatch.setattr(heavy_edge, "labels", lambda problem, count: shifted)
    coarse = scales(problem, pairs)[0]
    assert [block.tolist() for block in coarse] == [[pair] for pair in range(13)]
    assert problem.seconds[pairs.of_op == 4, 0].tolist() == [1.0, 9.0]
