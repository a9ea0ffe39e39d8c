"""Device maps of models in the manner of the libraries: split, within memory, and running."""

from __future__ import annotations

import copy
import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.schedule.schedule import Schedule
from situate.solvers import solve
from situate.writers.accelerate import device_map, map_schedule
from situate.writers.module_devices import module_devices
from tests.report.handmade import schedule
from tests.writers.dispatched.fake_devices import run_on_fake_devices

torch = pytest.importorskip("torch")
pytest.importorskip("accelerate")

from situate.torch_capture import capture  # noqa: E402
from tests.writers.dispatched.split_models import MODELS  # noqa: E402


@cache
def captured(name: str, training: bool = False) -> Graph:
    """A step of the model; every op takes a second."""

    def build() -> Any:
        model, inputs = model_of(name)
        return model, inputs, lambda m, *x: m(*x).square().mean() if training else m(*x)

    return timed(capture(build, training=training, name=name))


def timed(graph: Graph) -> Graph:
    ops = tuple(msgspec.structs.replace(op, seconds={"*": 1.0}) for op in graph.ops)
    return dataclasses.replace(graph, ops=ops)


def model_of(name: str) -> Any:
    torch.manual_seed(0)
    return MODELS[name]()


def problem_of(graph: Graph, devices: int, share: float | None = None) -> Problem:
    """Devices that hold a share of the bytes that one would need for all, or anything."""
    one = Cluster("one", (Device("gpu0"),))
    need = solve(Problem(graph, one), "single").schedule.peak[0]
    memory = None if share is None else int(share * need)
    gpus = tuple(Device(f"gpu{i}", memory=memory) for i in range(devices))
    return Problem(graph, Cluster("c", gpus, (Link("*", "*", 1e9),)), "memory")


@cache
def model_plan(name: str, training: bool = False) -> tuple[Problem, Schedule]:
    """A pipeline over two devices that hold two thirds of the model each."""
    problem = problem_of(captured(name, training), 2, share=0.67)
    return problem, solve(problem, "pipeline", evaluations=100).schedule


@pytest.mark.parametrize("name", MODELS)
def test_a_pipeline_becomes_a_map_that_is_split_as_it_is_and_fits_and_runs(name: str) -> None:
    problem, plan = model_plan(name)
    result = device_map(problem, plan)
    schedule = map_schedule(problem, result, plan)
    assert plan.feasible(problem)
    assert schedule is not None
    assert schedule.feasible(problem)
    assert abs(schedule.peak - plan.peak).max() < 0.1 * plan.peak.sum()
    model, inputs = model_of(name)
    own = result.keys() - dict(model.named_modules(remove_duplicate=False)).keys()
    assert own <= model.state_dict().keys()
    assert run_on_fake_devices(model, result, *inputs).shape == model(*inputs).shape


def test_so_does_that_of_a_training_step() -> None:
    problem, plan = model_plan("image_transformer", training=True)
    result = device_map(problem, plan)
    schedule = map_schedule(problem, result, plan)
    assert schedule is not None
    assert schedule.feasible(problem)
    assert abs(schedule.peak - plan.peak).max() < 0.1 * plan.peak.sum()
    model, inputs = model_of("image_transformer")
    assert run_on_fake_devices(model, result, *inputs).shape == (2, 4)


@pytest.mark.parametrize("name", MODELS)
def test_any_plan_becomes_a_map_that_runs(name: str) -> None:
    problem = problem_of(captured(name), 3)
    model, inputs = model_of(name)
    for seed in range(2):
        of_unit = np.random.default_rng(seed).integers(3, size=problem.units)
        plan = schedule(problem, of_unit[problem.unit].tolist())
        assert not module_devices(problem, plan).loose
        run_on_fake_devices(model, device_map(problem, plan), *inputs)


@pytest.mark.parametrize("name", MODELS)
def test_the_dispatched_model_computes_the_same(name: str, tmp_path: Path) -> None:
    """Dispatched as docs/exports.md says; modules on the second device are on the disk here, except
    for tied parameters and those of split modules, which accelerate cannot have there."""
    from accelerate import dispatch_model
    from accelerate.utils import set_module_tensor_to_device

    model, inputs = model_of(name)
    result = device_map(*model_plan(name))
    expected = model(*inputs)
    stored = {*dict(model.named_parameters()), *dict(model.named_buffers())}
    moved = {
        path: "disk" if place == 1 and path not in stored else "cpu"
        for path, place in result.items()
    }
    assert set(moved.values()) == {"cpu", "disk"}
    model = copy.deepcopy(model)
    for path in stored & moved.keys():
        set_module_tensor_to_device(model, path, moved[path])
    dispatched = dispatch_model(model, moved, offload_dir=str(tmp_path))
    assert torch.equal(dispatched(*inputs), expected)


TRANSFORMERS = ("vit", "clip", "bert_with_labels", "whisper_with_labels", "t5_with_labels")


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_so_do_models_of_transformers(name: str) -> None:
    pytest.importorskip("transformers")
    from tests.writers.dispatched.transformers_models import MODELS

    def build() -> Any:
        torch.manual_seed(0)
        model, inputs, result = MODELS[name]()

        def step(model: Any, *values: Any) -> Any:
            return model(**dict(zip(inputs, values, strict=True)))[result]

        return model.eval(), tuple(inputs.values()), step

    problem = problem_of(timed(capture(build, training=False, name=name)), 2, share=0.67)
    plan = solve(problem, "pipeline", evaluations=100).schedule
    outcome = device_map(problem, plan)
    schedule = map_schedule(problem, outcome, plan)
    assert schedule is not None
    assert schedule.feasible(problem)
    assert abs(schedule.peak - plan.peak).max() < 0.1 * plan.peak.sum()
    model, inputs, step = build()
    run_on_fake_devices(model, outcome, *inputs, step=step)
