"""Features of the released planner, counted by hand on a small graph."""

from __future__ import annotations

import numpy as np

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.policies.planner_features import op_features
from situate.policies.released_features import ReleasedGroupFeatures, released_unit_features
from tests.solvers.families import devices

ANYWHERE = {"x1": 1.0, "x2": 1.0}


def diamond() -> Problem:
    """a feeds b and c, which feed d."""
    ops = tuple(
        Op(name, kind, seconds=ANYWHERE)
        for name, kind in (("a", "conv"), ("b", "relu"), ("c", "relu"), ("d", "add"))
    )
    tensors = (
        Tensor("ta", 0, 7, (1, 2)),
        Tensor("tb", 1, 3, (3,)),
        Tensor("tc", 2, 1, (3,)),
    )
    return Problem(Graph("diamond", ops, tensors), devices(1, 2))


def test_a_unit_has_its_type_its_outputs_and_its_neighbours_unscaled():
    problem = diamond()
    rows = released_unit_features(problem, op_features(problem))
    assert rows.shape == (4, 1 + 25 + 20)
    assert rows[:, 0].tolist() == [0, 1, 1, 2]
    # log2(1 + 7 bytes) is 3; all other dimensions are missing.
    assert rows[0, 1:26].tolist() == [3.0] + [-1.0] * 24
    assert (rows[3, 1:26] == -1).all()


def test_of_an_ops_producers_the_last_alone_is_listed():
    problem = diamond()
    neighbours = released_unit_features(problem, op_features(problem))[:, 26:]
    assert neighbours[0, :5].tolist() == [1, 1, 2, 1, 0]
    assert neighbours[1, :5].tolist() == [0, -1, 3, 1, 0]
    assert neighbours[3, :3].tolist() == [2, -1, 0]


def test_a_group_has_its_edges_and_the_sum_of_types_and_outputs_in_the_same_columns():
    problem = diamond()
    features = ReleasedGroupFeatures(problem, op_features(problem), 2)
    rows = features.embed(np.array([0, 0, 1, 1]))
    assert rows.shape == (2, features.width) == (2, 2 * 2 + 3 + 25)
    # Group 0 holds a and b: one edge inside, two to group 1. Its first column of types and
    # outputs has one conv, log2(8) of a's bytes and log2(4) of b's.
    raw = np.zeros(32)
    raw[[0, 1, 2]] = 1, 2, 1
    raw[4], raw[5] = 1 + 3 + 2, 1
    np.testing.assert_allclose(rows[0], raw / (raw.max() + 1), rtol=1e-6)


def test_ops_in_no_group_do_not_count():
    problem = diamond()
    features = ReleasedGroupFeatures(problem, op_features(problem), 2)
    assert not features.embed(np.full(4, 2)).any()
