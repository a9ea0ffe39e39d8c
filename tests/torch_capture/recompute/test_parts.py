"""The ops of modules that run again, and the ops that they wait for."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import situate  # noqa: E402
from tests.torch_capture.recompute.models import graph  # noqa: E402


# A module runs again just before its backward pass, in each slice.
def test_the_ops_of_a_module_are_there_again_before_its_backward_pass():
    recomputed = graph("layers.1")
    again = [op for op in recomputed.ops if op.recompute]
    assert [op.name for op in again] == [
        "recompute/layers.1.first/addmm",
        "recompute/layers.1.norm/native_batch_norm_legit",
        "recompute/layers.1/gelu",
        "recompute/layers.1.drop/native_dropout",
    ]
    assert {op.phase for op in again} == {"backward"}
    assert recomputed.recompute == ("layers.1",)


def test_a_module_waits_for_the_gradient_of_what_it_gave():
    recomputed = graph("layers.1")
    ((before, after),) = [
        (before, after) for before, after in recomputed.control if recomputed.ops[after].recompute
    ]
    assert recomputed.ops[after].name == "recompute/layers.1.first/addmm"
    assert recomputed.ops[before].name.startswith("layers.2")
    assert recomputed.ops[before].phase == "backward"


def test_a_module_that_the_loss_is_in_waits_for_the_end_of_the_forward_pass():
    def build():
        model = nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1), nn.Dropout())
        return nn.Sequential(model), (torch.randn(8, 6),), lambda m, x: m(x).sum()

    recomputed = situate.capture(build, recompute=["0"])
    ((before, _),) = [pair for pair in recomputed.control if recomputed.ops[pair[1]].recompute]
    assert recomputed.ops[before].phase == "forward"


def test_every_slice_runs_its_modules_again():
    recomputed = graph("layers.0", cut=True)
    again = {op.name for op in recomputed.ops if op.recompute}
    assert {name.split("/")[:2][1] for name in again} == {"slice0", "slice1"}
    assert len(again) == 8
