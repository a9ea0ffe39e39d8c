"""Features of groups, on a graph small enough to write down."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.graph import Graph, Op, Tensor  # noqa: E402
from situate.data.problem import Problem  # noqa: E402
from situate.grouping import make_groups  # noqa: E402
from situate.policies.embeddings import (  # noqa: E402
    OUTPUTS,
    TYPE_WIDTH,
    GroupEmbedding,
    features,
)
from tests.solvers.families import devices  # noqa: E402

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
KNOWN = features(PROBLEM, GROUPS)


def test_kinds_are_shares_of_the_groups_ops():
    np.testing.assert_array_equal(KNOWN.kinds, [[0.5, 0.5, 0], [1, 0, 0], [0, 0, 1]])


def test_outputs_are_those_that_leave_the_group_the_largest_first():
    np.testing.assert_allclose(KNOWN.outputs[:, :2] * 32, [[3, 2], [32, 0], [0, 0]], rtol=1e-6)
    assert not KNOWN.outputs[:, 3:].any()


def test_more_outputs_than_are_listed_are_left_out():
    count = OUTPUTS + 3
    ops = tuple(Op(f"op{i}", seconds=SECONDS) for i in range(count + 1))
    tensors = tuple(Tensor(f"t{i}", i, 2**i - 1, (count,)) for i in range(count))
    many = Problem(Graph("many", ops, tensors), devices(1, 1))
    outputs = features(many, make_groups(many, [0] * count + [1])).outputs[0]
    np.testing.assert_allclose(outputs * 32, range(count - 1, 2, -1), rtol=1e-6)


def test_adjacency_has_what_is_read_and_then_what_reads():
    reads = [[0, 0, 0], [1, 0, 0], [1, 1, 0]]
    read_by = [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    np.testing.assert_array_equal(KNOWN.adjacency, np.hstack((reads, read_by)))


def test_a_group_begins_with_the_mean_embedding_of_its_kinds():
    embedding = GroupEmbedding(KNOWN, torch.Generator().manual_seed(0))
    whole = embedding()
    assert whole.shape == (3, embedding.width)
    mean = (embedding.types[0] + embedding.types[1]) / 2
    torch.testing.assert_close(whole[0, :TYPE_WIDTH], mean)
    rest = np.hstack((KNOWN.outputs, KNOWN.adjacency))
    np.testing.assert_array_equal(whole[:, TYPE_WIDTH:].detach().numpy(), rest)


def test_kinds_can_be_learnt():
    embedding = GroupEmbedding(KNOWN, torch.Generator().manual_seed(0))
    embedding().sum().backward()
    torch.testing.assert_close(embedding.types.grad[:, 0], torch.tensor([1.5, 0.5, 1.0]))
