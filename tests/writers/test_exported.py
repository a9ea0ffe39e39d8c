"""The plan that a file holds, beside the plan it was made of."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs

from situate.data.problem import Problem
from situate.simulation.simulator import Simulator
from situate.writers.exported import (
    device_names,
    differences,
    distance,
    exported,
    placement_by_module,
    script,
)
from tests.oracle.problems import random_decision, random_problem
from tests.report.handmade import HOSTILE, chain, schedule
from tests.writers.layered import network


# Other tools' names of devices.
def test_accelerators_are_numbered_past_cpus_and_disks():
    kinds = ("cpu", "gpu", "disk", "npu", "gpu")
    assert device_names(network(kinds=kinds).cluster) == ["cpu", 0, "disk", 1, 2]


def test_the_plans_own_placement_is_the_plan():
    problem = chain()
    plan = schedule(problem, [0, 0, 1])
    result = exported(problem, plan, [0, 0, 1])
    assert result is not None
    assert result.makespan == plan.makespan
    assert list(differences(problem, plan, result, "map")) == []
    assert distance(problem, plan, result) == 0


@pytest.mark.parametrize("seed", range(5))
def test_so_it_is_where_blocking_transfers_have_an_urgency_of_their_own(seed):
    sample = random_problem(seed)
    roomy = tuple(structs.replace(device, memory=None) for device in sample.cluster.devices)
    problem = Problem(sample.graph, replace(sample.cluster, devices=roomy), rules="regal")
    decision = random_decision(problem, seed)
    urgent = np.random.default_rng(seed).random((len(problem.size), problem.d), np.float32)
    plan = Simulator(problem).schedule(decision.placement, decision.priority, urgent, "serial")
    result = exported(problem, plan, plan.placement.tolist())
    assert result is not None
    assert result.makespan == plan.makespan


def test_another_one_is_told_with_both_figures():
    problem = chain()
    plan = schedule(problem, [0, 0, 0])
    lines = list(differences(problem, plan, exported(problem, plan, [0, 0, 1]), "map"))
    assert lines == [
        "of the map: predicted step 4.00 s (the plan's 3.00 s); "
        "memory gpu0 221 B (231 B), gpu1 111 B (0 B)"
    ]


def test_one_that_does_not_fit_says_by_how_much():
    problem = chain(memory=225)
    plan = schedule(problem, [0, 0, 1])
    lines = list(differences(problem, plan, exported(problem, plan, [0, 0, 0]), "script"))
    assert lines[1:] == ["the script does not fit: gpu0 by 6 B"]


def test_of_a_pipeline_in_steady_operation_the_time_between_steps_is_told():
    problem = chain(objective="throughput")
    plan = schedule(problem, [0, 1, 1])
    [line] = differences(problem, plan, exported(problem, plan, [0, 0, 1]), "map")
    assert line.startswith("of the map: time between steps 2.00 s (the plan's 2.00 s); memory")


def test_an_op_that_cannot_run_there_is_told():
    problem = chain(device_names=("gpu0", "gpu1"))
    problem.seconds[1, 1] = float("inf")
    plan = schedule(problem, [0, 0, 0])
    result = exported(problem, plan, [0, 1, 0])
    assert result is None
    assert list(differences(problem, plan, result, "map")) == [
        "the map has no schedule: an op cannot run where it is, or calls wait for others"
    ]


def test_the_innermost_path_places_an_op():
    problem = chain()
    plan = schedule(problem, [0, 0, 0])
    assert placement_by_module(problem, plan, {"layer1": 1}) == [0, 1, 0]


def test_distance_counts_bytes_and_seconds_that_are_elsewhere_and_what_is_slower():
    problem = chain(4)
    plan = schedule(problem, [0, 0, 0, 0])
    result = exported(problem, plan, [0, 0, 0, 1])
    assert result is not None
    assert distance(problem, plan, result) == pytest.approx(0.25 + 0.25 + 1 / 4)


# Scripts run a command with a plan's settings.
PRINT = ["sh", "-c", 'printf "%s\\n" "$A" "$@"', "sh"]


def run(path: Path, command: list[str]) -> list[str]:
    process = subprocess.run(["sh", path, *command], capture_output=True, text=True, check=True)
    return process.stdout.splitlines()


def test_the_command_gets_environment_and_arguments_as_they_are(tmp_path: Path):
    path = tmp_path / "run.sh"
    path.write_bytes(script(network(), ["gpu0"], {"A": "1,2"}, ["--layout", "Et*3|t*3L", "a b"]))
    assert run(path, [*PRINT, "its own"]) == ["1,2", "its own", "--layout", "Et*3|t*3L", "a b"]


def test_hostile_names_stay_in_the_comment(tmp_path: Path):
    path = tmp_path / "run.sh"
    path.write_bytes(script(network(), HOSTILE, {}, ["x"]))
    assert path.read_text().count("\n") == 3
    assert run(path, ["echo"]) == ["x"]


def test_a_launcher_stands_before_the_command(tmp_path: Path):
    path = tmp_path / "run.sh"
    path.write_bytes(script(network(), ["gpu0"], {}, launcher=["echo", "a b"], note="two\nlines"))
    assert run(path, ["train.py"]) == ["a b train.py"]
    assert "# two\\nlines\n" in path.read_text()
