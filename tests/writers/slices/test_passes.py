"""Passes of slices through stages, told from ops."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest

from situate.data.graph import Graph, Op, Tensor
from situate.report.slices.stages import NotAPipeline, slice_stages
from situate.writers.slices.passes import ONCE, Pass, jumps, passes_of_ops, stage_of_ops
from tests.writers.slices.staged import SPLIT, on, staged, staged_plan, weights_last


# The stage of every op of a slice.
def stages(graph: Graph, devices: tuple[int, ...]) -> dict[str, int]:
    problem = on(graph, max(devices) + 1)
    result = stage_of_ops(graph, slice_stages(problem, staged_plan(problem, devices)))
    return {op.name: stage for op, stage in zip(graph.ops, result, strict=True)}


def test_ops_in_no_part_are_beside_what_they_read_or_what_reads_them():
    result = stages(staged(2), (0, 0, 1, 1, 0, 0))
    assert result["slice1/input/0"] == 0
    assert result["slice1/loss/mean"] == result["slice1/loss/mean_backward"] == 2
    assert result["slice0/loss/full"] == 2


def test_an_op_without_neighbours_is_in_the_first_stage():
    graph = staged(2)
    counter = Op("slice0/count", seconds={"*": 0.0}, phase="forward", slice=0)
    graph = dataclasses.replace(graph, ops=(*graph.ops, counter))
    assert stages(graph, (0, 0, 0, 1, 1, 1))["slice0/count"] == 0


def test_what_runs_once_is_in_none():
    result = stages(staged(2), (0, 0, 0, 1, 1, 1))
    assert {result[f"embed.weight{end}"] for end in ("", "/add1", "/sgd")} == {ONCE}


def with_edge(graph: Graph, producer: str, consumer: str) -> Graph:
    names = [op.name for op in graph.ops]
    edge = Tensor("more", names.index(producer), 1, (names.index(consumer),))
    return dataclasses.replace(graph, tensors=(*graph.tensors, edge))


def test_what_a_stage_reads_from_before_the_last_is_found():
    graph = with_edge(staged(2), "slice0/embed/mm", "slice0/head/mm")
    stage = list(stages(graph, (0, 0, 1, 1, 2, 2)).values())
    assert [graph.ops[j].name for j, _ in jumps(graph, stage)] == ["slice0/embed/mm"]
    assert jumps(staged(2), list(stages(staged(2), (0, 0, 1, 1, 2, 2)).values())) == []


def test_a_stage_that_reads_from_a_later_one_is_refused():
    graph = staged(2)
    stage = [5 - s if s != ONCE else s for s in stages(graph, (0, 1, 2, 3, 4, 5)).values()]
    with pytest.raises(NotAPipeline, match=r"'slice0/layers\.0/mm' is in stage 4 and reads what"):
        jumps(graph, stage)


def passes(key: Any, devices: Sequence[int] = SPLIT, halves: bool = True) -> dict[str, str]:
    """The text of each op's pass, by the op's name."""
    problem = on(staged(2))
    plan = staged_plan(problem, devices, key)
    stage = stage_of_ops(problem.graph, slice_stages(problem, plan))
    result = passes_of_ops(problem, stage, plan if halves else None)
    names = (op.name for op in problem.graph.ops)
    return {name: str(item) for name, item in zip(names, result, strict=True)}


def test_passes_are_called_as_torch_calls_them():
    assert [str(Pass(2, kind, 3)) for kind in "FBIW"] == ["2F3", "2B3", "2I3", "2W3"]


def test_a_backward_pass_in_the_programs_order_is_whole():
    result = passes(None)
    assert result["slice1/layers.2/mm"] == "1F1"
    assert result["slice1/layers.2/mm#2"] == result["slice1/layers.2/mm#3"] == "1B1"
    assert result["slice0/loss/mean_backward"] == "1B0"
    assert result["head.weight/add1"] == "None"


def test_gradients_of_weights_that_run_later_are_apart():
    result = passes(weights_last)
    assert result["slice1/layers.2/mm#2"] == result["slice1/loss/mean_backward"] == "1I1"
    assert {result[f"slice1/{path}/mm#3"] for path in ("layers.2", "layers.3", "head")} == {"1W1"}
    assert passes(weights_last, halves=False)["slice1/head/mm#3"] == "1B1"


def test_what_makes_gradients_of_weights_alone_is_no_part_of_i():
    """The first part hands nothing on, so its backward pass is W."""
    result = passes(weights_last, (0, 1, 1, 1, 1, 1))
    assert result["slice0/embed/mm#3"] == "0B0"
