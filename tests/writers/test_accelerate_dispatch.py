"""Where accelerate runs ops and holds parameters by a map."""

from __future__ import annotations

import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import PlanError
from situate.writers.accelerate_dispatch import devices_of, placement_of

OPS = (
    Op("x", "input"),
    Op("scale", "parameter", persistent=4),
    Op("base.token", "parameter", persistent=4, module="base", group="base.token"),
    Op("base.a.weight", "parameter", persistent=4, module="base.a"),
    Op("base.a/mm", "aten.mm", module="base.a"),
    Op("base/add", "aten.add", module="base"),
    Op("mul", "aten.mul"),
    Op("base.token/sgd", "update.sgd", module="base", phase="update", group="base.token"),
    Op("loss/mean", "aten.mean"),
)
"""A module's result, added to a parameter of its container, and scaled by the outermost's."""

READS = {0: (4,), 1: (6,), 2: (5, 7), 3: (4,), 4: (5,), 5: (6,), 6: (8,)}

PROBLEM = Problem(
    Graph("g", OPS, tuple(Tensor(f"t{j}", j, 8, to) for j, to in READS.items())),
    Cluster(
        "c",
        (Device("gpu0"), Device("cpu", kind="cpu"), Device("gpu1"), Device("cpu1", kind="cpu")),
        (Link("*", "*", 8.0),),
    ),
)


def dispatched_modules(devices: dict[str, int]) -> dict[str, int]:
    names = [op.name for op in OPS]
    return dict(zip(names, placement_of(PROBLEM, devices), strict=True))


def test_modules_run_where_they_are_and_what_is_around_them_where_their_results_are():
    result = dispatched_modules({"base.a": 2, "base.token": 2, "scale": 0})
    assert {result[name] for name in ("base.a.weight", "base.a/mm", "base/add", "mul")} == {2}
    assert result["loss/mean"] == 2


def test_inputs_and_what_the_outermost_module_holds_are_on_the_first_accelerator():
    result = dispatched_modules({"base.a": 2, "base.token": 0, "scale": 2})
    assert (result["x"], result["scale"]) == (0, 0)


def test_the_update_of_a_parameter_is_where_it_lies():
    result = dispatched_modules({"base.a": 2, "base.token": 0, "scale": 0})
    assert (result["base.token"], result["base.token/sgd"]) == (0, 0)


def test_modules_on_a_cpu_run_on_the_first_accelerator():
    result = dispatched_modules({"base": 1, "scale": 2})
    assert (result["base.a.weight"], result["base.token"]) == (1, 1)
    assert (result["base.a/mm"], result["base/add"], result["mul"]) == (2, 2, 2)


def test_a_map_of_cpus_alone_runs_there():
    assert set(dispatched_modules({"": 1}).values()) == {1}


def test_places_are_devices_of_the_cluster():
    assert devices_of(PROBLEM, {"a": 0, "b": 1, "c": "cpu"}) == {"a": 0, "b": 2, "c": 1}


@pytest.mark.parametrize("device_map", [{}, {"a": 2}, {"a": "disk"}])
def test_a_map_of_another_cluster_is_refused(device_map: dict[str, int | str]):
    with pytest.raises(PlanError, match=r"device map: .*(empty|place (2|'disk'))"):
        devices_of(PROBLEM, device_map)
