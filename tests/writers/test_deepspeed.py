"""DeepSpeed's layers of each stage."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from situate.report.slices.stages import NotAPipeline
from situate.writers.deepspeed import write
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
