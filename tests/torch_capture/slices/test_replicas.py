"""Copies of parameters in the graph of a step of slices."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import situate  # noqa: E402
from situate.data.graph import Graph  # noqa: E402
from situate.data.slices import Slices  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from tests.runtime.models import MODELS  # noqa: E402
from tests.torch_capture.slices.steps import captured  # noqa: E402


def mse(model, x, y):
    return F.mse_loss(model(x), y)


def readers(graph: Graph, name: str) -> set[str]:
    """The names of the ops that read an op's outputs."""
    return {
        graph.ops[op].name
        for tensor in graph.tensors
        for op in tensor.consumers
        if graph.ops[tensor.producer].name == name
    }


# Each replica has copies of parameters with updates, and its slices read them.
def test_each_replica_has_its_parameters_its_state_and_its_updates():
    graph = captured(mse, optimizer="adam", shares=(1, 1, 1, 1), replicas=(2, 2))
    ops = {op.name: op for op in graph.ops}
    for r in (0, 1):
        parameter, update = ops[f"replica{r}/weight"], ops[f"replica{r}/weight/adam"]
        assert (parameter.replica, update.replica) == (r, r)
        assert parameter.persistent == 3 * 6 * 3 * 4
        assert parameter.group == update.group
    assert ops["replica0/weight"].group != ops["replica1/weight"].group
    assert {op.module for op in graph.ops if op.kind == "parameter"} == {""}


def test_a_slice_reads_its_own_replica():
    graph = captured(mse, shares=(1, 1, 1, 1), replicas=(3, 1))
    assert graph.slices.replica == (0, 1, 0, 0)
    assert {name.partition("/")[0] for name in readers(graph, "replica1/weight")} == {"slice1"}
    of_first = {name.partition("/")[0] for name in readers(graph, "replica0/weight")}
    assert of_first == {"slice0", "slice2", "slice3"}


def test_what_is_to_be_there_once_is():
    graph = captured(mse, replicas=(1, 1), once=("b*",))
    names = {op.name for op in graph.ops if op.kind == "parameter"}
    assert names == {"replica0/weight", "replica1/weight", "bias"}
    assert graph.slices.once == ("bias",)
    assert captured(mse, replicas=(1, 1), once=graph.slices.once).hash == graph.hash


def test_a_name_of_no_parameter_is_refused():
    with pytest.raises(SituateError, match=r"no parameter is called 'bais'; did you mean 'bias'"):
        captured(mse, replicas=(1, 1), once=("bais",))


@pytest.mark.parametrize("once", [("auto",), ("auto", "bias")])
def test_a_choice_that_is_not_made_yet_is_refused(once):
    with pytest.raises(SituateError, match=r"by plan, compare and explain, and stands alone"):
        captured(mse, replicas=(1, 1), once=once)


# Frozen, tied and partly read parameters, and buffers, follow rules of their own.
def test_frozen_parameters_are_copied_and_not_updated():
    model = nn.Linear(6, 3)
    model.weight.requires_grad_(False)
    graph = captured(mse, model=model, replicas=(1, 1))
    assert {op.name for op in graph.ops if op.phase == "update"} == {
        "replica0/bias/sgd",
        "replica1/bias/sgd",
    }
    assert {op.name for op in graph.ops if op.kind == "parameter" and op.group is None} == {
        "replica0/weight",
        "replica1/weight",
    }


def test_a_parameter_of_many_names_has_one_copy_a_replica():
    graph = situate.capture(MODELS["tied"], slices=Slices((1, 1, 1), replicas=(2, 1)))
    updated = [op.name for op in graph.ops if op.name.endswith("table.weight/sgd")]
    assert updated == ["replica0/table.weight/sgd", "replica1/table.weight/sgd"]


def test_a_parameter_that_not_every_slice_reads_is_there_once():
    """Else the model's own might be one that no slice of its replica reads."""

    class Looking(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.all, self.some = nn.Linear(6, 3), nn.Linear(6, 3)

        def forward(self, x, mask):
            return self.all(x) if mask.all() else self.some(x)

    mask = torch.ones(8, dtype=torch.bool)
    mask[6] = False

    def loss(model, x, y, mask):
        return F.mse_loss(model(x, mask), y)

    graph = captured(loss, mask, model=Looking(), loss="mean", replicas=(1, 1))
    assert graph.slices.once == ("all.weight", "all.bias", "some.weight", "some.bias")


def test_buffers_are_handed_on_within_a_replica_and_the_first_stay():
    model = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3))
    graph = captured(mse, model=model, shares=(1, 1, 1, 1), replicas=(2, 2))
    names = [f"slice{s}/1/native_batch_norm_legit_functional" for s in range(4)]
    norms = {name: readers(graph, name) for name in names}
    assert [s for s in range(4) if names[s] in readers(graph, "1.running_mean")] == [0, 1]
    assert [[t for t in range(4) if names[t] in norms[names[s]]] for s in range(4)] == [
        [2],
        [3],
        [],
        [],
    ]
    assert "1.running_mean/copy" in norms[names[2]]
    assert "1.running_mean/copy" not in norms[names[3]]
    assert any("buffers, '1.running_mean' the first of 3," in line for line in graph.warnings)


def test_gradients_are_clipped_once():
    graph = captured(mse, optimizer="sgd:clip=1.0", replicas=(1, 1))
    assert sum(op.kind == "aten.linalg_vector_norm" for op in graph.ops) == 3
    (clipped,) = (
        op.name
        for op in graph.ops
        if readers(graph, op.name)
        == {
            "replica0/weight/sgd",
            "replica1/weight/sgd",
        }
    )
    assert clipped.startswith("mul")
