"""Megatron-LM's layout."""

from __future__ import annotations

import dataclasses
import warnings
from pathlib import Path

import msgspec
import pytest

from situate.data.graph import Op
from situate.errors import PlanError
from situate.report.slices.stages import NotAPipeline
from situate.writers.megatron import layout, write
from tests.writers.cuts.planned import by_layer, by_part, gpus, of_kind, products
from tests.writers.cuts.planned import on as planned_on
from tests.writers.layered import layered_plan
from tests.writers.slices.staged import SPLIT, on, staged, staged_plan


@pytest.mark.parametrize(
    ("counts", "text"),
    [((6,), "Et*6L"), ((1, 1), "Et|tL"), ((3, 1, 2), "Et*3|t|t*2L"), ((0, 2, 0), "E|t*2|L")],
)
def test_layouts(counts: tuple[int, ...], text: str):
    assert layout(counts) == text


def test_the_layout_is_quoted_for_the_shell(tmp_path: Path):
    write(*layered_plan([0, 0, 0, 0, 0, 1, 1, 1, 1]), tmp_path / "run.sh")
    arguments = (tmp_path / "run.sh").read_text().splitlines()[-1]
    assert arguments == (
        "exec \"$@\" --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*4|t*2L'"
    )


@pytest.mark.parametrize(
    ("devices", "column"), [(SPLIT, "Et*2|t*2L"), ((0, 0, 1, 0, 1, 1), "Et|t|t|tL")]
)
def test_slices_are_micro_batches_and_stages_may_be_virtual(devices, column, tmp_path: Path):
    problem = on(staged())
    write(problem, staged_plan(problem, devices), tmp_path / "run.sh")
    assert (tmp_path / "run.sh").read_text().splitlines()[-1] == (
        'exec "$@" --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout '
        f"'{column}' --micro-batch-size 2 --global-batch-size 8"
    )


@pytest.mark.parametrize(
    ("slices", "devices", "why"),
    [
        (4, (0, 0, 1, 1, 0, 0), "on ranks 0, 1, 0, and Megatron-LM deals them out in turn"),
        (3, (0, 0, 1, 0, 1, 1), "in groups of 2, one a device, and 3 are no multiple"),
    ],
)
def test_stages_that_it_does_not_run_are_refused(slices, devices, why, tmp_path: Path):
    problem = on(staged(slices))
    with pytest.raises(NotAPipeline, match=why):
        write(problem, staged_plan(problem, devices), tmp_path / "run.sh")
    assert not (tmp_path / "run.sh").exists()


def arguments_of(graph, folder: Path, count: int = 2, device=by_part) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write(*planned_on(graph, device, gpus(count)), folder / "run.sh")
    return (folder / "run.sh").read_text().splitlines()[-1].removeprefix('exec "$@" ')


# Parts are tensor, context and expert parallelism.
@pytest.mark.parametrize(
    ("graph", "arguments"),
    [
        (products(), "--tensor-model-parallel-size 2"),
        (
            of_kind("heads", "sequence=2"),
            "--tensor-model-parallel-size 2 --sequence-parallel",
        ),
        (
            of_kind("experts", "sequence=2"),
            "--context-parallel-size 2 --expert-model-parallel-size 2 "
            "--expert-tensor-parallel-size 1",
        ),
    ],
)
def test_parts_are_degrees(graph, arguments, tmp_path: Path):
    assert arguments_of(graph, tmp_path) == arguments


def test_slices_on_teams_are_micro_batches_and_spread_states(tmp_path: Path):
    def device(op) -> int:
        team = op.slice or 0 if op.slice is not None else op.module.startswith("layers.1")
        return 2 * team + (op.part or 0)

    assert arguments_of(products(slices=2), tmp_path, 4, device) == (
        "--tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 2 "
        "--use-distributed-optimizer"
    )


def test_a_pipeline_of_teams_has_a_layout(tmp_path: Path):
    assert arguments_of(products(layers=4, slices=3), tmp_path, 4, by_layer) == (
        "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
        "--pipeline-model-parallel-layout 'Et*2|t*2L' --micro-batch-size 1 --global-batch-size 3"
    )


def test_pipelines_side_by_side_are_data_parallelism(tmp_path: Path):
    def device(op: Op) -> int:
        return by_layer(op) + 4 * ((op.slice or 0) % 2)

    assert arguments_of(products(layers=4, slices=4), tmp_path, 8, device) == (
        "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
        "--pipeline-model-parallel-layout 'Et*2|t*2L' --micro-batch-size 1 --global-batch-size 4"
    )


def test_experts_beside_tensor_parallelism_need_parts_of_the_sequence(tmp_path: Path):
    graph = of_kind("experts")
    first, *others = graph.cut_parameters
    mixed = (msgspec.structs.replace(first, kind="features"), *others)
    graph = dataclasses.replace(graph, cut_parameters=mixed)
    with pytest.raises(PlanError, match="plan with --cuts sequence=2 too"):
        arguments_of(graph, tmp_path)


# Experts may be divided along their features, in grouped products.
def test_grouped_experts_need_parts_of_the_sequence_too(tmp_path: Path):
    graph = of_kind("features")
    ops = [
        msgspec.structs.replace(op, kind="transformers.grouped_mm_fallback")
        if op.kind == "aten.mm"
        else op
        for op in graph.ops
    ]
    grouped = dataclasses.replace(graph, ops=tuple(ops))
    with pytest.raises(PlanError, match="plan with --cuts sequence=2 too"):
        arguments_of(grouped, tmp_path)
