"""Seconds and bytes of ops, against the prices of their layout."""

from __future__ import annotations

import pytest

from situate.language.training.layout import LayoutTable
from situate.language.training.memory import stage_memory
from situate.language.training.seconds import step_seconds
from situate.language.training.steps.costs import gathers_often, step_bytes, step_costs
from tests.language.training.runs import GPT, LLAMA_8B, MIXTRAL, h100, run_of

CASES = [
    (LLAMA_8B, run_of(tp=8, count=4, sp=True)),
    (LLAMA_8B, run_of(tp=4, dp=2, count=2, sp=True, recompute="selective", zero=1)),
    (LLAMA_8B, run_of(cp=8, count=2, recompute="full")),
    (MIXTRAL, run_of(dp=8, ep=8, count=2, zero=1)),
    (GPT, run_of("fsdp2", dp=8, count=2, zero=3)),
    (GPT, run_of("deepspeed", dp=8, count=2, zero=0)),
]


# The ops of a step without a pipeline add up to the parts of its price.
@pytest.mark.parametrize(("model", "run"), CASES)
def test_passes_add_up(model, run):
    costs = step_costs(model, run, h100())
    parts = step_seconds(model, run, h100(), LayoutTable.of([run.layout]))
    layer = sum(part.forward + part.backward for part in (costs.attention, costs.network))
    layer += costs.keys.forward + costs.keys.backward
    layer += sum(costs.tensor) + sum(costs.experts) + sum(costs.context)
    total = run.layout.count * (model.layers * layer + costs.head)
    rest = ("data", "update", "host", "pipeline")
    expected = sum(float(value[0]) for part, value in parts.items() if part not in rest)
    assert total == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("model", "run"), CASES)
def test_late_gradients_of_weights_are_a_part_of_backward_passes(model, run):
    costs = step_costs(model, run, h100())
    for part in (costs.attention, costs.network):
        assert 0 < part.weight < part.backward


# The states of layers and ends add up to those of a device.
@pytest.mark.parametrize(("model", "run"), CASES)
def test_states_add_up(model, run):
    sizes = step_bytes(model, run)
    table = LayoutTable.of([run.layout])
    roles = stage_memory(model, run, table, table.pp - 1).roles
    for role, names in (
        ("weights", ["weights"]),
        ("gradients", ["gradients"]),
        ("optimizer", ["masters", "moments"]),
    ):
        ends = getattr(sizes.embedding, role) + getattr(sizes.head, role)
        total = model.layers * getattr(sizes.layer, role) + ends
        assert total == pytest.approx(sum(float(roles[name][0]) for name in names), rel=1e-6)


def test_only_zero_3_without_kept_weights_gathers_often():
    assert gathers_often(run_of("fsdp2", dp=8, zero=3))
    assert not gathers_often(run_of("fsdp2", dp=4, pp=2, zero=3))
    assert not gathers_often(run_of(dp=8, zero=1))
