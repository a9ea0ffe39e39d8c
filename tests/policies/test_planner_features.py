"""Features of ops, units and sampled groups, on graphs small enough to check by hand."""

from __future__ import annotations

import numpy as np

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.policies.planner_features import (
    MAX_NEIGHBOURS,
    MAX_OUTPUTS,
    SampledGroupFeatures,
    op_features,
    unit_features,
)
from tests.solvers.families import chain, devices, layered


def op(name, kind="mul", **changes):
    return Op(name, kind=kind, seconds={"x1": 1.0}, **changes)


def problem(ops, tensors):
    return Problem(Graph("small", tuple(ops), tuple(tensors)), devices(1, 1))


# Ops and units.
def test_types_are_numbered_by_their_first_op():
    features_found = op_features(problem([op("a", "mul"), op("b", "add"), op("c", "mul")], []))
    assert features_found.kind.tolist() == [0, 1, 0]
    assert features_found.kinds == 2


def test_an_op_shows_its_largest_outputs_and_how_many_it_has():
    sizes = [1, 255, 7, 3, 15, 31, 63]
    tensors = [Tensor(f"t{i}", 0, size) for i, size in enumerate(sizes)]
    outputs = op_features(problem([op("a"), op("b")], tensors)).outputs
    np.testing.assert_allclose(outputs[0, :MAX_OUTPUTS] * 32, [8, 6, 5, 4, 3])
    np.testing.assert_allclose(outputs[:, MAX_OUTPUTS], [3, 0])
    assert (outputs[1] == 0).all()


def test_control_edges_are_no_outputs():
    ordered = Graph("small", (op("a"), op("b")), (), ((0, 1),))
    assert (op_features(Problem(ordered, devices(1, 1))).outputs == 0).all()


def test_a_unit_shows_the_mean_of_its_ops():
    ops = [op("a", "mul", group="g"), op("b", "add", group="g"), op("c", "add")]
    both = problem(ops, [Tensor("t", 0, 255)])
    features = unit_features(both, op_features(both))
    np.testing.assert_allclose(features[0, :4], [0.5, 0.5, 8 / 32 / 2, 0])
    np.testing.assert_allclose(features[1, :4], [0, 1, 0, 0])


def test_connections_are_the_places_of_neighbours_and_one_s_own_where_there_are_none():
    line = Problem(chain(4), devices(1, 1))
    places = unit_features(line, op_features(line))[:, -2 * MAX_NEIGHBOURS :]
    inputs, consumers = places[:, :MAX_NEIGHBOURS], places[:, MAX_NEIGHBOURS:]
    np.testing.assert_allclose(inputs[:, 0], [0, 0, 0.25, 0.5])
    np.testing.assert_allclose(consumers[:, 0], [0.25, 0.5, 0.75, 0.75])
    np.testing.assert_allclose(inputs[:, 1:], np.repeat([[0], [0.25], [0.5], [0.75]], 4, 1))


KINDS = ("mul", "mul", "add", "mul")
OPS = tuple(Op(f"op{j}", kind=kind, seconds={"x1": 1.0}) for j, kind in enumerate(KINDS))
EDGES = Tensor("t0", 0, 255, (1, 2)), Tensor("t1", 1, 3, (3,)), Tensor("t2", 2, 3, (3,))
PROBLEM = Problem(Graph("small", OPS, EDGES), devices(1, 1))


def embedded(group, count=3):
    groups = SampledGroupFeatures(PROBLEM, op_features(PROBLEM), count)
    rows = groups.embed(np.array(group))
    assert rows.shape == (count, groups.width)
    return rows[:, :2], rows[:, 2 : 3 + MAX_OUTPUTS], rows[:, 3 + MAX_OUTPUTS :]


# Sampled groups.
def test_a_group_has_the_shares_of_types_and_the_mean_of_outputs():
    types, outputs, _ = embedded([0, 0, 0, 1])
    np.testing.assert_allclose(types, [[2 / 3, 1 / 3], [1, 0], [0, 0]], 1e-6)
    np.testing.assert_allclose(outputs[0, [0, 1, MAX_OUTPUTS]], [12 / 32 / 3, 0, 1], 1e-6)
    assert (outputs[1:] == 0).all()


def test_adjacency_counts_edges_within_and_between_groups():
    _, _, adjacency = embedded([0, 0, 1, 1])
    out, into = adjacency[:, :3], adjacency[:, 3:]
    np.testing.assert_allclose(out, np.array([[1, 2, 0], [0, 1, 0], [0, 0, 0]]) / [[3], [3], [1]])
    np.testing.assert_allclose(into, np.array([[1, 0, 0], [2, 1, 0], [0, 0, 0]]) / [[3], [3], [1]])


def test_ops_in_no_group_count_nowhere():
    types, _, adjacency = embedded([3, 0, 3, 0])
    np.testing.assert_allclose(types[0], [1, 0])
    assert np.count_nonzero(adjacency) == 2


def test_renaming_groups_permutes_their_embeddings():
    problem = Problem(layered(5, 4, 1), devices(1, 1))
    groups = SampledGroupFeatures(problem, op_features(problem), 4)
    rng = np.random.default_rng(0)
    group, names = rng.integers(0, 4, 20), rng.permutation(4)
    before, after = groups.embed(group), groups.embed(names[group])
    fixed = groups.width - 8
    both = np.concatenate((names, 4 + names))
    np.testing.assert_allclose(after[names][:, :fixed], before[:, :fixed], 1e-6)
    np.testing.assert_allclose(after[names][:, fixed:][:, both], before[:, fixed:], 1e-6)
