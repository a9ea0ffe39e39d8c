"""The graph of a step whose blocks run again."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import situate  # noqa: E402
from situate.data.slices import Slices  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from tests.torch_capture.recompute.models import blocks  # noqa: E402


def readers(graph, op):
    """Names of the ops that read what an op makes, and of those that wait for it."""
    read = {c for t in graph.tensors if graph.ops[t.producer].name == op for c in t.consumers}
    wait = {after for before, after in graph.control if graph.ops[before].name == op}
    return {graph.ops[c].name for c in read}, {graph.ops[c].name for c in wait}


def test_the_ops_of_a_block_are_there_again_before_its_backward_pass():
    graph = situate.capture(blocks, recompute=["layers.1"])
    again = [op for op in graph.ops if op.recompute]
    assert [op.name for op in again] == [
        "recompute/layers.1.first/addmm",
        "recompute/layers.1.norm/native_batch_norm_legit",
        "recompute/layers.1/gelu",
        "recompute/layers.1.drop/native_dropout",
    ]
    assert {op.phase for op in again} == {"backward"}
    assert graph.recompute == ("layers.1",)


def test_the_backward_pass_reads_what_is_made_again():
    plain = situate.capture(blocks)
    graph = situate.capture(blocks, recompute=["layers.1"])
    kept, _ = readers(plain, "layers.1/gelu")
    assert kept == {"layers.1.drop/native_dropout"}
    first, _ = readers(graph, "layers.1.first/addmm")
    assert first == {"layers.1.norm/native_batch_norm_legit_functional"}
    again, _ = readers(graph, "recompute/layers.1.first/addmm")
    assert "layers.1.norm/native_batch_norm_backward" in again


def test_a_block_waits_for_the_gradient_of_what_it_gave():
    graph = situate.capture(blocks, recompute=["layers.1"])
    ((before, after),) = [
        (before, after) for before, after in graph.control if graph.ops[after].recompute
    ]
    assert graph.ops[after].name == "recompute/layers.1.first/addmm"
    assert graph.ops[before].name.startswith("layers.2")
    assert graph.ops[before].phase == "backward"


def test_a_block_that_the_loss_is_in_waits_for_the_end_of_the_forward_pass():
    def build():
        model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1), nn.Dropout())
        return nn.Sequential(model), (torch.randn(8, 6),), lambda m, x: m(x).sum()

    graph = situate.capture(build, recompute=["0"])
    ((before, _),) = [pair for pair in graph.control if graph.ops[pair[1]].recompute]
    assert graph.ops[before].phase == "forward"


def test_every_slice_runs_its_blocks_again():
    graph = situate.capture(blocks, recompute=["layers.0"], slices=Slices((1, 1)))
    again = {op.name for op in graph.ops if op.recompute}
    assert {name.split("/")[:2][1] for name in again} == {"slice0", "slice1"}
    assert len(again) == 8


def test_buffers_are_written_once():
    plain, graph = (situate.capture(blocks, recompute=r) for r in ((), ["layers.*"]))
    kinds = ("buffer", "parameter", "update.copy", "update.sgd")
    ours, theirs = (sorted(o.name for o in g.ops if o.kind in kinds) for g in (graph, plain))
    assert ours == theirs


def test_ops_that_draw_again_share_a_device():
    graph = situate.capture(blocks, recompute=["layers.*"])
    groups = [op.group for op in graph.ops if op.kind == "aten.native_dropout"]
    assert len(groups) == 6
    assert len({*groups}) == 3


def test_an_op_that_runs_again_costs_what_the_first_one_costs():
    graph = situate.capture(blocks, recompute=["layers.1"])
    ops = {op.name: op for op in graph.ops}
    for first, again in (
        ("layers.1.first/addmm", "recompute/layers.1.first/addmm"),
        (
            "layers.1.norm/native_batch_norm_legit_functional",
            "recompute/layers.1.norm/native_batch_norm_legit",
        ),
    ):
        assert ops[first].signature == ops[again].signature
        assert ops[first].flops == ops[again].flops


def test_inference_recomputes_nothing():
    with pytest.raises(SituateError, match="recompute is of a step that trains: leave it out"):
        situate.capture(blocks, training=False, recompute=["all"])


@pytest.mark.parametrize("names", ["all", [1], [""]])
def test_names_must_be_a_list_of_texts(names):
    with pytest.raises(SituateError, match="recompute: "):
        situate.capture(blocks, recompute=names)
