"""Features of groups, on a graph small enough to write down, and the policy over them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec import structs

torch = pytest.importorskip("torch")

from situate.data.graph import Graph, Op, Tensor  # noqa: E402
from situate.data.problem import Problem  # noqa: E402
from situate.grouping import make_groups  # noqa: E402
from situate.policies.group_policy import (  # noqa: E402
    MAX_OUTPUTS,
    TYPE_WIDTH,
    GroupEmbedding,
    GroupPolicy,
    group_features,
)
from situate.policies.shapes import Shape  # noqa: E402
from tests.solvers.families import (  # noqa: E402
    devices,
    fork,
)

SECONDS = {"x1": 1.0}
GRAPH = Graph(
    "small",
    tuple(Op(f"op{i}", kind, seconds=SECONDS) for i, kind in enumerate(["a", "b", "a", "c"])),
    (
        Tensor("t0", 0, 7, (1, 2)),
        Tensor("t1", 1, 3, (2,)),
        Tensor("t2", 2, 2**32 - 1, (3,)),
        Tensor("unread", 3, 5, output=True),
    ),
    control=((0, 3),),
)
PROBLEM = Problem(GRAPH, devices(1, 1))
GROUPS = make_groups(PROBLEM, [0, 0, 1, 2])
FEATURES = group_features(PROBLEM, GROUPS)


# Each block of the features, by hand.
def test_kinds_are_shares_of_the_groups_ops():
    np.testing.assert_array_equal(FEATURES.kinds, [[0.5, 0.5, 0], [1, 0, 0], [0, 0, 1]])


def test_outputs_are_those_that_leave_the_group_the_largest_first():
    np.testing.assert_allclose(FEATURES.outputs[:, :2] * 32, [[3, 2], [32, 0], [0, 0]], rtol=1e-6)
    assert not FEATURES.outputs[:, 3:].any()


def test_more_outputs_than_are_listed_are_left_out():
    count = MAX_OUTPUTS + 3
    ops = tuple(Op(f"op{i}", seconds=SECONDS) for i in range(count + 1))
    tensors = tuple(Tensor(f"t{i}", i, 2**i - 1, (count,)) for i in range(count))
    many = Problem(Graph("many", ops, tensors), devices(1, 1))
    outputs = group_features(many, make_groups(many, [0] * count + [1])).outputs[0]
    np.testing.assert_allclose(outputs * 32, range(count - 1, 2, -1), rtol=1e-6)


def test_adjacency_has_what_is_read_and_then_what_reads():
    reads = [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    read_by = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    np.testing.assert_array_equal(FEATURES.adjacency, np.hstack((reads, read_by)))


# The trainable embedding of kinds.
def test_a_group_begins_with_the_mean_embedding_of_its_kinds():
    embedding = GroupEmbedding(FEATURES, torch.Generator().manual_seed(0))
    whole = embedding()
    assert whole.shape == (3, embedding.width)
    mean = (embedding.types[0] + embedding.types[1]) / 2
    torch.testing.assert_close(whole[0, :TYPE_WIDTH], mean)
    rest = np.hstack((FEATURES.outputs, FEATURES.adjacency))
    np.testing.assert_array_equal(whole[:, TYPE_WIDTH:].detach().numpy(), rest)


def test_kinds_can_be_learnt():
    embedding = GroupEmbedding(FEATURES, torch.Generator().manual_seed(0))
    embedding().sum().backward()
    torch.testing.assert_close(embedding.types.grad[:, 0], torch.tensor([1.5, 0.5, 1.0]))


SHAPES = (Shape(4, 2), Shape(4, 1, "general", aligned=True))


def pinned(pins):
    """A fork of eight ops, some of them pinned."""
    free = fork(8)
    ops = tuple(structs.replace(op, device=pins.get(i)) for i, op in enumerate(free.ops))
    return Problem(dataclasses.replace(free, ops=ops), devices(1, 1, 2))


# The policy on a problem with pins.
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_sample_keeps_to_pins_and_every_device_is_tried(shape):
    problem = pinned({2: "d1", 5: "d2"})
    groups = make_groups(problem, np.arange(problem.units))
    draws = torch.Generator().manual_seed(0)
    devices_drawn = GroupPolicy(problem, groups, shape, draws).sample(200, draws).numpy()
    placements = groups.expand(devices_drawn)
    assert (placements[:, 2] == 1).all()
    assert (placements[:, 5] == 2).all()
    assert all(len(np.unique(placements[:, op])) == 3 for op in (0, 1, 3, 4, 6, 7))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_all_parameters_take_part_once_the_policy_is_not_uniform(shape):
    problem = pinned({})
    groups = make_groups(problem, np.arange(problem.units))
    draws = torch.Generator().manual_seed(0)
    policy = GroupPolicy(problem, groups, shape, draws)
    torch.nn.init.normal_(policy.placer.head.weight, generator=draws)
    policy.log_probs(policy.sample(4, draws))[:, :, 0].sum().backward()
    assert all(bool(p.grad.abs().sum() > 0) for p in policy.parameters())
