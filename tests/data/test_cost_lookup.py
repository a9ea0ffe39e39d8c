"""Which measured device stands for a device."""

from __future__ import annotations

import math

import numpy as np
import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.cost_lookup import (
    contention_of,
    coverage,
    measured_as,
    rates,
    seconds_of,
    workspace_of,
)
from situate.data.costs import Costs, Efficiency, MeasuredDevice, Timing
from situate.data.graph import Graph, Op
from situate.data.op_classes import EFFICIENCY
from situate.data.roofline import op_seconds
from situate.errors import SituateError

RELU = "aten.relu(f32[8])"


def took(seconds: float) -> dict[str, Timing]:
    return {RELU: Timing(seconds, seconds, seconds, 1)}


CPU = MeasuredDevice("cpu:0", "cpu", "Xeon", 1, seconds=took(1.0))
K80 = MeasuredDevice(
    "gpu0", "gpu", "K80", None, {"float32": 4e12}, 1e11, 1e-5, took(2.0),
    {"convolution": Efficiency(0.25, 0.5, 2.0, 3, 1.1)},
)  # fmt: skip
COSTS = Costs("here", "today", {}, [CPU, K80, MeasuredDevice("gpu1", "gpu", seconds=took(3.0))])


def measured_name(device: Device) -> str | None:
    result = measured_as(device, COSTS)
    return result and result.name


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (Device("gpu0", model="K80"), "gpu0"),
        (Device("gpu1", model="K80"), "gpu1"),
        (Device("gpu7", model="K80"), "gpu0"),
        (Device("gpu7"), "gpu0"),
        (Device("gpu0", model="H100"), "gpu1"),
        (Device("cpu:0", kind="cpu", model="Xeon", threads=1), "cpu:0"),
        (Device("cpu:1", kind="cpu", model="Xeon", threads=1), "cpu:0"),
        (Device("cpu:1", kind="cpu"), "cpu:0"),
        (Device("cpu:0", kind="cpu", model="Xeon", threads=2), None),
        (Device("cpu:0", kind="cpu", model="Opteron"), None),
        (Device("cpu:0", kind="tpu"), None),
    ],
)
def test_by_name_then_model_then_kind_but_never_one_known_to_differ(device, name):
    assert measured_name(device) == name


def seconds(op: Op, *devices: Device, costs: Costs | None = COSTS) -> list[float]:
    cluster = Cluster("c", devices, (Link("*", "*", 1e9),))
    return op_seconds(Graph("g", (op,)), cluster, costs)[0].tolist()


def test_measured_seconds_hold_as_they_are():
    op = Op("a", "aten.relu", traffic=10**9, signature=RELU)
    assert seconds(op, Device("cpu:0", kind="cpu"), Device("gpu0", model="K80")) == [1.0, 2.0]


def test_own_seconds_come_before_measured_ones():
    op = Op("a", seconds={"*": 0.5}, signature=RELU)
    assert seconds(op, Device("cpu:0", kind="cpu")) == [0.5]


def test_an_op_that_was_not_measured_runs_at_the_measured_devices_fitted_rates():
    op = Op("a", "aten.convolution", flops=10**12, traffic=8, signature="other")
    ops_device = Device("gpu0", model="K80", flops={"float32": 1.0}, bandwidth=1.0)
    assert seconds(op, ops_device) == pytest.approx([2e-5 + 1.0])
    moving = Op("a", "aten.convolution", traffic=10**11)
    assert seconds(moving, ops_device) == pytest.approx([2e-5 + 2.0])


def test_a_device_one_does_not_have_reaches_what_its_kind_does_of_its_own_peaks():
    costs = Costs("here", "today", {}, [K80])
    op = Op("a", "aten.convolution", flops=10**12)
    other = Device("gpu0", model="H100", flops={"float32": 1e13}, launch=1e-6)
    assert seconds(op, other, costs=costs) == pytest.approx([2e-6 + 0.4])
    stated = Device("gpu0", model="H100", flops={"float32": 1e13}, efficiency={"convolution": 1.0})
    assert seconds(op, stated, costs=costs) == pytest.approx([0.1])
    cpu = Device("cpu", kind="cpu", flops={"float32": 1e13})
    assert seconds(op, cpu, costs=costs) == pytest.approx([0.1 / EFFICIENCY["convolution"]])


def test_no_other_device_reaches_more_than_its_peak():
    fast = {"convolution": Efficiency(3.0, 2.0, 1.0, 3, 1.1)}
    costs = Costs("here", "today", {}, [MeasuredDevice("a", "gpu", "K80", efficiency=fast)])
    assert rates(Device("b", model="H100"), costs).reached["convolution"] == (1.0, 1.0, 1.0)
    assert rates(Device("b", model="K80"), costs).reached["convolution"] == (3.0, 2.0, 1.0)


def test_without_costs_the_rates_are_the_devices_own():
    device = Device(
        "d", flops={"float32": 1.0}, bandwidth=2.0, launch=3.0, efficiency={"matmul": 0.4}
    )
    defaults = rates(device, None)
    assert (defaults.flops, defaults.bandwidth, defaults.launch) == ({"float32": 1.0}, 2.0, 3.0)
    assert defaults.reached["matmul"] == (0.4, 0.4, 1)
    assert defaults.reached["convolution"] == (*[EFFICIENCY["convolution"]] * 2, 1)


def test_a_device_without_rates_runs_what_was_measured_on_it_and_nothing_else():
    device = Device("gpu1")
    assert seconds(Op("a", "aten.relu", traffic=8, signature=RELU), device) == [3.0]
    with pytest.raises(SituateError, match="op 'a' on device 'gpu1': no seconds and no rate"):
        seconds(Op("a", "aten.relu", traffic=8, signature="other"), device)


def test_equal_devices_that_were_measured_apart_keep_apart():
    gpus = Device("gpu0", model="K80"), Device("gpu1", model="K80")
    assert seconds(Op("a", traffic=8, signature=RELU), *gpus) == [2.0, 3.0]


def test_coverage_counts_ops_that_work_and_have_no_seconds():
    ops = (
        Op("a", traffic=8, signature=RELU),
        Op("b", traffic=8, signature="other"),
        Op("c", flops=8),
        Op("d"),
        Op("e", traffic=8, seconds={"*": 1.0}),
    )
    graph = Graph("g", ops)
    assert coverage(graph, Device("cpu:0", kind="cpu"), COSTS) == (1, 3)
    assert coverage(graph, Device("t", kind="tpu"), COSTS) == (0, 3)


def test_no_measured_time_is_ever_infinite():
    assert np.isfinite(seconds(Op("a", traffic=8, signature=RELU), Device("gpu1"))).all()
    assert math.isinf(seconds(Op("a", seconds={}, signature=RELU), Device("gpu1"))[0])


def test_workspace_is_the_most_that_was_measured_and_at_least_the_graphs_own() -> None:
    ops = [Op("a", signature=RELU, workspace=5), Op("b", signature=RELU), Op("c", workspace=7)]
    less, more = (MeasuredDevice(n, "cpu", workspace={RELU: w}) for n, w in (("x", 3), ("y", 4)))
    costs = Costs("here", "today", {}, [less, more])
    assert workspace_of(ops, costs).tolist() == [5, 4, 7]
    assert workspace_of(ops, None).tolist() == [5, 0, 7]


def test_of_devices_that_may_be_it_the_one_known_to_be_of_its_model_stands_for_it() -> None:
    costs = Costs("here", "today", {}, [MeasuredDevice("a", "gpu"), K80])
    result = measured_as(Device("gpu7", model="K80"), costs)
    assert result is not None
    assert result.name == "gpu0"


def test_an_op_without_a_signature_was_not_measured() -> None:
    nameless = MeasuredDevice("gpu0", "gpu", seconds={"": Timing(1.0, 1.0, 1.0, 1)})
    costs = Costs("here", "today", {}, [nameless])
    assert np.isnan(seconds_of([Op("a")], Device("gpu0"), costs)).all()


def test_contention_is_that_of_the_class_and_one_where_it_is_not_known() -> None:
    device = Device("cpu:0", kind="cpu")
    ops = [Op("a", "aten.mm"), Op("b", "aten.relu")]
    measured_device = MeasuredDevice("cpu:0", "cpu", contention={"matmul": 1.5})
    costs = Costs("here", "today", {}, [measured_device])
    assert contention_of(ops, device, costs).tolist() == [1.5, 1.0]
    assert contention_of(ops, Device("gpu0"), costs).tolist() == [1.0, 1.0]
    assert contention_of(ops, device, None).tolist() == [1.0, 1.0]


def test_a_measured_device_without_a_fit_has_its_own_peaks_at_what_its_kind_reaches() -> None:
    result = rates(Device("gpu1", flops={"float32": 1.0}, bandwidth=2.0, launch=3.0), COSTS)
    assert (result.flops, result.bandwidth, result.launch) == ({"float32": 1.0}, 2.0, 3.0)
    assert result.reached["convolution"] == (0.25, 0.5, 2.0)


def test_a_fit_without_peaks_is_of_those_that_the_device_states() -> None:
    fit = {"convolution": Efficiency(0.25, 0.5, 2.0, 3, 1.1)}
    costs = Costs("here", "today", {}, [MeasuredDevice("gpu0", "gpu", efficiency=fit)])
    result = rates(Device("gpu0", flops={"float32": 1.0}, bandwidth=2.0), costs)
    assert (result.flops, result.bandwidth, result.launch) == ({"float32": 1.0}, 2.0, 0.0)
