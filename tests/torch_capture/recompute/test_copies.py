"""Ops that run a second time."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests.torch_capture.recompute.models import graph  # noqa: E402


def readers(steps, op):
    """Names of the ops that read an op's outputs."""
    consumers = {c for t in steps.tensors if steps.ops[t.producer].name == op for c in t.consumers}
    return {steps.ops[c].name for c in consumers}


# Recomputed ops replace saved values, and repeat no write.
def test_the_backward_pass_reads_what_is_made_again():
    plain = graph()
    recomputed = graph("layers.1")
    plain_readers = readers(plain, "layers.1/gelu")
    assert plain_readers == {"layers.1.drop/native_dropout"}
    first = readers(recomputed, "layers.1.first/addmm")
    assert first == {"layers.1.norm/native_batch_norm_legit_functional"}
    again = readers(recomputed, "recompute/layers.1.first/addmm")
    assert "layers.1.norm/native_batch_norm_backward" in again


def test_buffers_are_written_once():
    plain, recomputed = graph(), graph("layers.*")
    kinds = ("buffer", "parameter", "update.copy", "update.sgd")
    ours, theirs = (sorted(o.name for o in g.ops if o.kind in kinds) for g in (recomputed, plain))
    assert ours == theirs


def test_ops_that_draw_again_share_a_device():
    recomputed = graph("layers.*")
    groups = [op.group for op in recomputed.ops if op.kind == "aten.native_dropout"]
    assert len(groups) == 6
    assert len({*groups}) == 3


def test_an_op_that_runs_again_costs_what_the_first_one_costs():
    recomputed = graph("layers.1")
    ops = {op.name: op for op in recomputed.ops}
    for first, again in (
        ("layers.1.first/addmm", "recompute/layers.1.first/addmm"),
        (
            "layers.1.norm/native_batch_norm_legit_functional",
            "recompute/layers.1.norm/native_batch_norm_legit",
        ),
    ):
        assert ops[first].signature == ops[again].signature
        assert ops[first].flops == ops[again].flops


AT = torch.ops.aten


@pytest.mark.parametrize("shape", [(8, 5, 7, 7), (6, 4), (3, 6, 4)])
def test_one_without_running_statistics_makes_the_same_numbers(shape):
    x, channels = torch.randn(shape), shape[1]
    weight, bias = torch.randn(channels), torch.randn(channels)
    running = torch.zeros(channels), torch.ones(channels)
    first = AT._native_batch_norm_legit_functional(x, weight, bias, *running, True, 0.1, 1e-5)
    again = AT._native_batch_norm_legit.no_stats(x, weight, bias, True, 0.1, 1e-5)
    assert all(map(torch.equal, first[:3], again))
