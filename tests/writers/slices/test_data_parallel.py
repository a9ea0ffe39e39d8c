"""Scripts of `accelerate launch` for plans of whole slices."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.errors import PlanError
from situate.schedule.schedule import Schedule
from situate.simulation.decoding import rescheduled
from situate.solvers import solve
from situate.writers.accelerate import write
from tests.solvers.families import devices
from tests.solvers.slices import sliced
from tests.writers.slices.staged import on, staged, staged_plan

STEPS = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"


def plan(count: int, method: str = "fsdp", *speeds: float) -> tuple[Problem, Schedule]:
    """So many equal slices on two devices."""
    problem = Problem(sliced(*[1.0] * count), devices(*(speeds or (1, 1))))
    return problem, solve(problem, method).schedule


def words(file: Path) -> list[str]:
    """The words of the command that a script runs, `train.py` among them."""
    text = file.read_text().replace("exec ", "echo ")
    process = subprocess.run(["sh", "-c", text, "sh", "train.py"], capture_output=True, check=True)
    return process.stdout.decode().split()


def test_spread_parameters_are_fsdp(tmp_path: Path):
    write(*plan(4), tmp_path / "run.sh")
    assert " ".join(words(tmp_path / "run.sh")) == (
        "accelerate launch --num_processes 2 --use_fsdp --fsdp_version 2 "
        "--fsdp_reshard_after_forward false train.py"
    )
    text = (tmp_path / "run.sh").read_text()
    assert f"export {STEPS}=2" in text
    assert "each process takes batches of 1 and adds the gradients of 2 up" in text


def test_parameters_on_one_device_are_ddp(tmp_path: Path):
    problem, schedule = plan(2)
    schedule.placement[[op.slice is None for op in problem.graph.ops]] = 0
    write(problem, schedule, tmp_path / "run.sh")
    result = words(tmp_path / "run.sh")
    assert result == ["accelerate", "launch", "--num_processes", "2", "--multi_gpu", "train.py"]


def test_one_device_accumulates(tmp_path: Path):
    write(*plan(3, "single"), tmp_path / "run.sh")
    result = words(tmp_path / "run.sh")
    assert result == ["accelerate", "launch", "--num_processes", "1", "train.py"]
    assert f"export {STEPS}=3" in (tmp_path / "run.sh").read_text()


def test_batch_norms_over_the_batch_are_said_or_refused(tmp_path: Path):
    problem, schedule = plan(2)
    cut = Slices((1, 1), batch_norm="batch")
    problem = replace(problem, graph=replace(problem.graph, slices=cut))
    with pytest.warns(UserWarning, match=r"SyncBatchNorm.convert_sync_batchnorm makes of yours"):
        write(problem, schedule, tmp_path / "run.sh")
    problem, schedule = plan(4)
    cut = Slices((1,) * 4, batch_norm="batch")
    problem = replace(problem, graph=replace(problem.graph, slices=cut))
    with pytest.raises(PlanError, match=r"one of its 2 slices at a time: plan with a slice a dev"):
        write(problem, schedule, tmp_path / "not.sh")
    assert not (tmp_path / "not.sh").exists()


def test_accelerate_takes_the_options_and_reads_the_steps(tmp_path: Path, monkeypatch: Any):
    """By its own parser, and by an accelerator of one process."""
    pytest.importorskip("accelerate")
    from accelerate import Accelerator
    from accelerate.commands.launch import launch_command_parser

    write(*plan(4), tmp_path / "run.sh")
    options = launch_command_parser().parse_args(words(tmp_path / "run.sh")[2:])
    assert (options.num_processes, options.use_fsdp, options.training_script) == (
        2,
        True,
        "train.py",
    )
    assert str(options.fsdp_reshard_after_forward) == "false"
    monkeypatch.setenv(STEPS, "2")
    assert Accelerator(cpu=True).gradient_accumulation_steps == 2


def test_unequal_shares_are_refused(tmp_path: Path):
    with pytest.raises(
        PlanError, match="unequal shares, which DDP and FSDP do not have: samples 4"
    ):
        write(*plan(6, "data_parallel", 1, 2), tmp_path / "run.sh")
    assert not (tmp_path / "run.sh").exists()


def test_a_pipeline_is_refused_with_where_it_goes(tmp_path: Path):
    problem = on(staged())
    with pytest.raises(
        PlanError, match=r"slice \d is spread over gpu., gpu..*export it to pipelini"
    ):
        write(problem, staged_plan(problem), tmp_path / "run.sh")


def test_devices_that_are_no_accelerators_are_refused(tmp_path: Path):
    problem = on(staged(2), kind="cpu")
    schedule = staged_plan(problem, [0] * 6)
    schedule.placement[["slice1" in op.name for op in problem.graph.ops]] = 1
    with pytest.raises(PlanError, match="device 'cpu0' is no accelerator"):
        write(problem, schedule, tmp_path / "run.sh")


def test_what_the_script_does_otherwise_is_said(tmp_path: Path):
    problem = on(staged(2, loss="sum"))
    schedule = staged_plan(problem, [0] * 6)
    names = [op.name for op in problem.graph.ops]
    schedule.placement[names.index("slice1/head/mm#3")] = 1
    schedule = rescheduled(problem, schedule)
    with pytest.warns(UserWarning, match=r"of the script|multiply it") as message:
        write(problem, schedule, tmp_path / "run.sh")
    lines = [str(warning.message) for warning in message]
    assert lines[0].startswith("of the script: predicted step")
    assert lines[1].endswith("multiply it by 2")
