"""Passes of slices through stages, told from ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from situate.report.slices.stages import slice_stages
from situate.writers.slices.passes import Pass, passes_of_ops
from situate.writers.slices.stage_of_ops import stage_of_ops
from tests.writers.slices.staged import SPLIT, on, planned, staged, weights_last


def passes(key: Any, devices: Sequence[int] = SPLIT, halves: bool = True) -> dict[str, str]:
    """The text of each op's pass, by the op's name."""
    problem = on(staged(2))
    plan = planned(problem, devices, key)
    stage = stage_of_ops(problem.graph, slice_stages(problem, plan))
    found = passes_of_ops(problem, stage, plan if halves else None)
    names = (op.name for op in problem.graph.ops)
    return {name: str(each) for name, each in zip(names, found, strict=True)}


def test_passes_are_called_as_torch_calls_them():
    assert [str(Pass(2, kind, 3)) for kind in "FBIW"] == ["2F3", "2B3", "2I3", "2W3"]


def test_a_backward_pass_in_the_programs_order_is_whole():
    found = passes(None)
    assert found["slice1/layers.2/mm"] == "1F1"
    assert found["slice1/layers.2/mm#2"] == found["slice1/layers.2/mm#3"] == "1B1"
    assert found["slice0/loss/mean_backward"] == "1B0"
    assert found["head.weight/add1"] == "None"


def test_gradients_of_weights_that_run_later_are_apart():
    found = passes(weights_last)
    assert found["slice1/layers.2/mm#2"] == found["slice1/loss/mean_backward"] == "1I1"
    assert {found[f"slice1/{path}/mm#3"] for path in ("layers.2", "layers.3", "head")} == {"1W1"}
    assert passes(weights_last, halves=False)["slice1/head/mm#3"] == "1B1"


def test_what_makes_gradients_of_weights_alone_is_no_part_of_i():
    """The first part hands nothing on, so its backward pass is W."""
    found = passes(weights_last, (0, 1, 1, 1, 1, 1))
    assert found["slice0/embed/mm#3"] == "0B0"
