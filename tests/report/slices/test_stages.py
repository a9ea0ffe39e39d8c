"""The stages of a pipeline that a placement tells of."""

from __future__ import annotations

import dataclasses

import pytest
from msgspec.structs import replace

from situate.data.graph import Graph, Op
from situate.report.slices.stages import NotAPipeline, Stage, model_parts, slice_stages
from tests.writers.slices.staged import on, placement, staged, staged_plan


def test_a_device_may_have_several_stages():
    problem = on(staged(2))
    assert slice_stages(problem, staged_plan(problem, (0, 0, 1, 1, 0, 0))) == (
        Stage(0, ("embed", "layers.0")),
        Stage(1, ("layers.1", "layers.2")),
        Stage(0, ("layers.3", "head")),
    )


def test_a_part_is_where_most_of_its_seconds_are():
    problem = on(staged(2))
    plan = staged_plan(problem, (0, 0, 0, 1, 1, 1))
    names = [op.name for op in problem.graph.ops]
    plan.placement[names.index("slice1/layers.0/mm#3")] = 1
    assert [stage.device for stage in slice_stages(problem, plan)] == [0, 1]


def test_a_part_that_takes_no_time_is_with_the_one_before():
    problem = on(staged(2, paths=("embed", "layers.0", "head")))
    plan = staged_plan(problem, (0, 1, 0))
    quiet = placement(problem, (0, 1, 0)) == 1
    plan.end[quiet] = plan.start[quiet]
    assert slice_stages(problem, plan) == (Stage(0, ("embed", "layers.0", "head")),)


def test_slices_of_a_part_on_several_devices_are_named():
    problem = on(staged(3))
    plan = staged_plan(problem, [0] * 6)
    moved = [j for j, op in enumerate(problem.graph.ops) if "slice2/layers.3" in op.name]
    plan.placement[moved] = 1
    with pytest.raises(NotAPipeline, match=r"'layers\.3' runs slice 0 on 'gpu0' and slice 2 on 'g"):
        slice_stages(problem, plan)


def test_a_graph_without_modules_has_none():
    graph = staged(2)
    bare = tuple(replace(op, module="") for op in graph.ops)
    problem = on(dataclasses.replace(graph, ops=bare))
    with pytest.raises(NotAPipeline, match="graph 'staged' names no modules"):
        slice_stages(problem, staged_plan(problem, [0]))


# The parts of a model by module paths.
def parts(*modules: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Parts of a graph with an op in each of these modules, in this order."""
    ops = tuple(Op(f"op{i}", module=module) for i, module in enumerate(modules))
    result = model_parts(Graph("g", ops))
    return result.paths, result.of_op


@pytest.mark.parametrize(
    ("modules", "paths"),
    [
        (("conv1", "layer1.0.conv1", "layer1.1.bn", "fc"), ("conv1", "layer1.0", "layer1.1", "fc")),
        (("0", "1.weight", "2"), ("0", "1", "2")),
        (("model.embed", "model.layers.0.mlp", "head"), ("model.embed", "model.layers.0", "head")),
        (("h.0.experts.0.up", "h.0.experts.1.up", "h.1.experts.0.up"), ("h.0", "h.1")),
        (("stem/conv", "blocks/0/a", "blocks/10/a"), ("stem", "blocks.0", "blocks.10")),
    ],
)
def test_parts_are_numbered_modules_and_what_is_beside_them(modules, paths):
    assert parts(*modules)[0] == paths


def test_ops_of_modules_that_hold_parts_are_in_none():
    assert parts("", "a.0", "a", "a.1", "b.c") == (("a.0", "a.1", "b"), (-1, 0, -1, 1, 2))


def test_the_forward_pass_tells_their_order():
    ops = (
        Op("w", "parameter", module="last", phase="forward"),
        Op("a", module="first", phase="forward"),
        Op("b", module="last", phase="forward"),
        Op("c", module="other", phase="backward"),
    )
    result = model_parts(Graph("g", ops))
    assert result.paths == ("first", "last")
    assert result.of_op == (1, 0, 1, -1)
