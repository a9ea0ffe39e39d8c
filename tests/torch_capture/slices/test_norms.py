"""The graph of batch norms that take their statistics over all slices."""

from __future__ import annotations

from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from situate.data.slices import Slices  # noqa: E402
from tests.torch_capture.slices.steps import captured  # noqa: E402


def loss(model, x, y):
    return F.mse_loss(model(x), y)


def normed(**more):
    model = nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3), nn.BatchNorm1d(3))
    return captured(loss, model=model, batch_norm="batch", **more)


# The slices of a norm share one op for statistics, and the running averages belong to it.
def test_one_op_makes_the_statistics_of_all_slices():
    graph = normed(shares=(3, 1))
    assert graph.slices == Slices((6, 2), loss="mean", batch_norm="batch")
    kinds = Counter((op.kind.partition(".")[2], op.slice) for op in graph.ops)
    assert kinds["var_mean", 0] == kinds["var_mean", 1] == 2
    assert kinds["batch_norm_statistics", None] == 2
    # No gradient is asked for of what the first norm is given.
    assert kinds["batch_norm_gradients", None] == 1
    assert kinds["native_batch_norm_backward", 1] == 2
    assert not any("legit_functional" in op.kind for op in graph.ops)


def test_running_averages_belong_to_that_op_and_are_counted_once():
    graph = normed(shares=(1, 1, 1, 1))
    persistent_bytes = {op.name: op.persistent for op in graph.ops if op.phase == "forward"}
    assert persistent_bytes["0/batch_norm_statistics"] == 2 * 6 * 4
    assert persistent_bytes["slice0/0/var_mean"] == 8
    assert [persistent_bytes[f"slice{s}/0/var_mean"] for s in (1, 2, 3)] == [0, 0, 0]


def test_gradients_add_up_slice_after_slice():
    graph = normed(shares=(1, 1, 2))
    names = [op.name for op in graph.ops]
    adds = [i for i, name in enumerate(names) if name.startswith("1.weight/add")]
    reads = [{graph.ops[t.producer].slice for t in graph.tensors if i in t.consumers} for i in adds]
    assert reads == [{0, 1}, {None, 2}]


def test_replicas_share_the_running_averages():
    graph = normed(shares=(1, 1, 1, 1), replicas=(2, 2))
    assert not any("written by" in text for text in graph.warnings)
    assert sum(op.kind == "situate.batch_norm_statistics" for op in graph.ops) == 2
