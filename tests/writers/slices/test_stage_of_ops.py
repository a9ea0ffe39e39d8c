"""The stage of every op of a slice."""

from __future__ import annotations

import dataclasses

import pytest

from situate.data.graph import Graph, Op, Tensor
from situate.report.slices.stages import NotAPipeline, slice_stages
from situate.writers.slices.stage_of_ops import ONCE, jumps, stage_of_ops
from tests.writers.slices.staged import on, planned, staged


def stages(graph: Graph, devices: tuple[int, ...]) -> dict[str, int]:
    problem = on(graph, max(devices) + 1)
    found = stage_of_ops(graph, slice_stages(problem, planned(problem, devices)))
    return {op.name: stage for op, stage in zip(graph.ops, found, strict=True)}


def test_ops_in_no_part_are_beside_what_they_read_or_what_reads_them():
    found = stages(staged(2), (0, 0, 1, 1, 0, 0))
    assert found["slice1/input/0"] == 0
    assert found["slice1/loss/mean"] == found["slice1/loss/mean_backward"] == 2
    assert found["slice0/loss/full"] == 2


def test_an_op_without_neighbours_is_in_the_first_stage():
    graph = staged(2)
    counter = Op("slice0/count", seconds={"*": 0.0}, phase="forward", slice=0)
    graph = dataclasses.replace(graph, ops=(*graph.ops, counter))
    assert stages(graph, (0, 0, 0, 1, 1, 1))["slice0/count"] == 0


def test_what_runs_once_is_in_none():
    found = stages(staged(2), (0, 0, 0, 1, 1, 1))
    assert {found[f"embed.weight{end}"] for end in ("", "/add1", "/sgd")} == {ONCE}


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
