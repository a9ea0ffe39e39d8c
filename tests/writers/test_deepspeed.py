"""DeepSpeed's layers of each stage."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from situate.errors import PlanError
from situate.report.slices.stages import NotAPipeline
from situate.writers.deepspeed import write
from tests.writers.cuts.planned import by_part, gpus, of_kind, products
from tests.writers.cuts.planned import on as planned_on
from tests.writers.layered import layered_plan
from tests.writers.slices.staged import on, staged, staged_plan


def export_of(problem: Any, plan: Any, folder: Path) -> dict[str, Any]:
    write(problem, plan, folder / "ds.json")
    result: dict[str, Any] = json.loads((folder / "ds.json").read_text())
    return result


def test_slices_are_micro_batches_and_parts_begin_stages(tmp_path: Path):
    problem = on(staged())
    assert export_of(problem, staged_plan(problem, (0, 0, 1, 1, 1, 1)), tmp_path) == {
        "train_batch_size": 8,
        "train_micro_batch_size_per_gpu": 2,
        "gradient_accumulation_steps": 4,
        "pipeline": {
            "stages": 2,
            "layers": ["embed", "layers.0", "layers.1", "layers.2", "layers.3", "head"],
            "parts": [0, 2, 6],
        },
    }


def test_a_plan_of_whole_batches_has_parts_alone(tmp_path: Path):
    result = export_of(*layered_plan([0, 0, 0, 0, 0, 1, 1, 1, 1]), tmp_path)
    assert list(result) == ["pipeline"]
    assert result["pipeline"]["parts"] == [0, 5, 9]
    assert result["pipeline"]["layers"][-2:] == ["model.norm", "lm_head"]


def test_several_stages_of_a_device_are_refused(tmp_path: Path):
    problem = on(staged())
    with pytest.raises(NotAPipeline, match="3 stages are on 2 devices, and DeepSpeed has one"):
        write(problem, staged_plan(problem, (0, 0, 1, 1, 0, 0)), tmp_path / "ds.json")


def test_devices_in_another_order_are_said(tmp_path: Path):
    problem = on(staged())
    with pytest.warns(UserWarning, match="CUDA_VISIBLE_DEVICES=1,0"):
        write(problem, staged_plan(problem, (1, 1, 1, 0, 0, 0)), tmp_path / "ds.json")


def test_what_its_own_order_comes_to_is_said(tmp_path: Path):
    """All forward passes of the plan go first, and DeepSpeed runs 1F1B."""
    problem = on(staged())
    plan = staged_plan(problem, key=lambda op: float(op.phase == "backward"))
    with pytest.warns(UserWarning, match="of the pipeline: predicted step"):
        write(problem, plan, tmp_path / "ds.json")


# Weights that are cut have a pattern each, by columns or rows.
def test_parts_are_partitions_of_weights(tmp_path: Path):
    graph = products(slices=2)
    parameters = [
        msgspec.structs.replace(p, kind="heads", ranges=3) if ".up." in p.name else p
        for p in graph.cut_parameters
    ]
    graph = dataclasses.replace(graph, cut_parameters=tuple(parameters))
    with pytest.warns(UserWarning, match="2 whole parameters"):
        result = export_of(*planned_on(graph, by_part, gpus(2)), tmp_path)
    specs = [
        {
            "patterns": [r"(.*\.)?layers\.\d+\.up\.weight$"],
            "partition_type": "column",
            "shape": [3, -1],
            "partition_dim": 0,
        },
        {"patterns": [r"(.*\.)?layers\.\d+\.down\.weight$"], "partition_type": "row"},
    ]
    assert result == {
        "tensor_parallel": {
            "autotp_size": 2,
            "partition_config": {"use_default_specs": False, "layer_specs": specs},
        },
        "train_batch_size": 2,
        "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 2,
    }
    assert re.fullmatch(specs[1]["patterns"][0], "model.layers.11.down.weight")


def test_a_vocabulary_stays_whole(tmp_path: Path):
    graph = of_kind("vocabulary")
    first, *others = graph.cut_parameters
    mixed = (*others, msgspec.structs.replace(first, kind="features"))
    plan = planned_on(dataclasses.replace(graph, cut_parameters=mixed), by_part, gpus(2))
    with pytest.warns(UserWarning, match=r"DeepSpeed leaves 'layers\.1\.up\.weight' whole"):
        export_of(*plan, tmp_path)
    with (
        pytest.warns(UserWarning, match="DeepSpeed leaves"),
        pytest.raises(PlanError, match="cuts no product of a layer"),
    ):
        export_of(*planned_on(graph, by_part, gpus(2)), tmp_path)


def test_weights_of_other_modules_are_refused(tmp_path: Path):
    graph = products()
    parameters = [
        msgspec.structs.replace(p, readers=((p.name, "mine.Product"),))
        for p in graph.cut_parameters
    ]
    graph = dataclasses.replace(graph, cut_parameters=tuple(parameters))
    with (
        pytest.warns(UserWarning, match="whole parameters"),
        pytest.raises(PlanError, match=r"'layers\.0\.up\.weight' is no weight of nn\.Linear"),
    ):
        export_of(*planned_on(graph, by_part, gpus(2)), tmp_path)
