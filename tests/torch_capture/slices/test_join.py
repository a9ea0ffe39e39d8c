"""The graph of a step of slices."""

from __future__ import annotations

from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import situate  # noqa: E402
from situate.data.slices import Slices  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.torch_capture.slices.steps import captured  # noqa: E402


def norm_build():
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    return model, (torch.randn(8, 6), torch.randn(8, 3)), nn.MSELoss()


# The joined step has each op once per slice, and each parameter once.
def test_forward_and_backward_are_there_once_a_slice_and_updates_once():
    whole = situate.capture(norm_build)
    graph = situate.capture(norm_build, slices=Slices((1, 1, 1, 1)))
    ours, theirs = (Counter(op.kind for op in g.ops) for g in (graph, whole))
    assert ours["update.sgd"] == theirs["update.sgd"] == ours["parameter"] == 6
    assert ours["aten.addmm"] == 4 * theirs["aten.addmm"]
    assert ours["aten.native_batch_norm_backward"] == 4
    assert graph.slices == Slices((2, 2, 2, 2), loss="mean")
    assert whole.slices is None


def test_an_op_is_called_by_its_slice():
    graph = captured(lambda m, x, y: F.mse_loss(m(x), y))
    for op in graph.ops:
        name = None if op.slice is None else f"slice{op.slice}"
        assert (op.name.partition("/")[0] == name) == (name is not None)
    assert {op.slice for op in graph.ops} == {None, 0, 1}
    once = {op.kind for op in graph.ops if op.slice is None}
    assert once == {"parameter", "update.sgd", "aten.add"}


def test_ops_of_a_slice_are_as_large_as_its_share():
    graph = captured(lambda m, x, y: F.mse_loss(m(x), y), shares=(3, 1))
    flops = {op.slice: op.flops for op in graph.ops if op.kind == "aten.addmm"}
    assert flops == {0: 2 * 6 * 6 * 3, 1: 2 * 2 * 6 * 3}


# Gradients, buffers and shared inputs pass from slice to slice.
def test_gradients_are_added_as_they_come():
    graph = captured(lambda m, x, y: F.mse_loss(m(x), y), shares=(1, 1, 2))
    names = [op.name for op in graph.ops]
    adds = [name for name in names if name.startswith("weight/add")]
    assert adds == ["weight/add", "weight/add#2"]
    reads = {a: [] for a in (*adds, "weight/sgd")}
    for tensor in graph.tensors:
        for consumer in tensor.consumers:
            if names[consumer] in reads:
                reads[names[consumer]].append(names[tensor.producer])
    assert reads["weight/add"] == ["slice0/mm", "slice1/mm"]
    assert reads["weight/add#2"] == ["weight/add", "slice2/mm"]
    assert reads["weight/sgd"] == ["weight/add#2"]


def test_gradients_are_clipped_after_they_are_added():
    graph = captured(lambda m, x, y: F.mse_loss(m(x), y), optimizer="sgd:clip=1.0")
    norms = [op for op in graph.ops if op.kind == "aten.linalg_vector_norm"]
    assert len(norms) == 3
    assert {op.slice for op in norms} == {None}


def test_batch_norm_hands_its_statistics_on_and_counts_with_the_first_slice():
    graph = situate.capture(norm_build, slices=Slices((1, 1, 1, 1)))
    names = [op.name for op in graph.ops]
    norms = [f"slice{s}/1/native_batch_norm_legit_functional" for s in range(4)]
    handed = {
        (names[t.producer], names[c])
        for t in graph.tensors
        for c in t.consumers
        if names[t.producer] in norms and names[c] in norms
    }
    assert handed == {(norms[s], norms[s + 1]) for s in range(3)}
    assert not any("num_batches_tracked" in name for name in names)
    assert graph.ops[names.index(norms[0])].persistent == 8


def test_tied_parameters_are_updated_once():
    graph = situate.capture(MODELS["tied"], slices=Slices((1, 1, 1)))
    assert sum(op.kind == "update.sgd" and op.name.startswith("table") for op in graph.ops) == 1


def test_an_input_that_all_slices_read_is_there_once():
    scale = torch.ones(1, 3)
    graph = captured(lambda m, x, y, s: F.mse_loss(m(x) * s, y), scale, axes={"2": None})
    inputs = [op.name for op in graph.ops if op.kind == "input"]
    assert sorted(inputs) == [
        *("input/2", "slice0/input/0", "slice0/input/1", "slice1/input/0", "slice1/input/1")
    ]
