"""The likely error of a predicted step."""

from __future__ import annotations

import math
import re
from pathlib import Path
from statistics import NormalDist

import pytest

from situate.data.cluster import Cluster, Device, Link
from situate.data.costs import Costs, Efficiency, MeasuredDevice, Timing
from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.report.error_bar import QUARTILES_TO_DECILES, ROOFLINE_OP, ROOFLINE_STEP, error_bar
from tests.report.handmade import chain, schedule

GPU = Device("gpu", flops={"float32": 1e9}, bandwidth=1e9)


def problem(*ops: Op, costs: Costs | None = None, devices: tuple[Device, ...] = (GPU,)) -> Problem:
    """The ops in a chain with 1,000 bytes between them, a second on a link."""
    tensors = tuple(Tensor(f"t{i}", i, 1000, (i + 1,)) for i in range(len(ops) - 1))
    cluster = Cluster("c", devices, (Link("*", "*", 1e3),))
    return Problem(Graph("g", ops, tensors), cluster, costs=costs)


def work(name: str, flops: int = 10**9, kind: str = "aten.mm", signature: str = "") -> Op:
    return Op(name, kind, flops=flops, signature=signature)


def costs_of(timing: Timing | None = None, error: float | None = None) -> Costs:
    """Costs of the GPU: of the signature `s`, and of products by a fit."""
    seconds = {} if timing is None else {"s": timing}
    fit = {} if error is None else {"matmul": Efficiency(0.5, 0.5, 1.0, 9, error)}
    device = MeasuredDevice("gpu", "gpu", seconds=seconds, efficiency=fit)
    return Costs("here", "2026-01-01", {}, [device])


# The range of a step by the source of its ops' times.
def test_times_that_the_graph_brings_have_no_error():
    step = chain()
    bar = error_bar(step, schedule(step, [0, 1, 0]))
    assert bar.low == bar.high == pytest.approx(5.0)
    assert bar.shares == {"graph": 1.0}


def test_an_op_alone_has_the_whole_range_of_the_roofline_and_its_common_error():
    step = problem(work("a"))
    plan = schedule(step, [0])
    bar = error_bar(step, plan)
    low, high = (math.hypot(math.log(side), math.log(ROOFLINE_STEP)) for side in ROOFLINE_OP)
    assert bar.low == pytest.approx(plan.makespan * math.exp(-low))
    assert bar.high == pytest.approx(plan.makespan * math.exp(high))
    assert bar.shares == {"roofline": 1.0}


def test_ops_alike_err_alike_and_others_on_their_own():
    alike = problem(*(work(f"op{i}") for i in range(8)))
    unlike = problem(*(work(f"op{i}", 10**9 + i) for i in range(8)))
    alone = problem(work("a"))
    ratios = []
    for step in (alone, alike, unlike):
        plan = schedule(step, [0] * step.n)
        ratios.append(error_bar(step, plan).high / plan.makespan)
    assert ratios[0] == pytest.approx(ratios[1])
    assert ROOFLINE_STEP < ratios[2] < 0.5 * ratios[1]


def test_a_measured_ops_range_is_that_of_its_runs():
    step = problem(work("a", signature="s"), costs=costs_of(Timing(2.0, 1.9, 2.2, 9)))
    bar = error_bar(step, schedule(step, [0]))
    assert bar.low == pytest.approx(2.0 * 0.95**QUARTILES_TO_DECILES)
    assert bar.high == pytest.approx(2.0 * 1.1**QUARTILES_TO_DECILES)
    assert bar.shares == {"measured": 1.0}


def test_a_time_that_the_clock_could_not_tell_gives_a_finite_range():
    step = problem(work("a", signature="s"), costs=costs_of(Timing(1e-9, 0.0, 1e-9, 9)))
    assert 0 < error_bar(step, schedule(step, [0])).low < 1e-9


def test_a_fitted_class_has_the_range_of_its_fit():
    step = problem(work("a"), work("b", kind="aten.relu"), costs=costs_of(error=1.2))
    plan = schedule(step, [0, 0])
    bar = error_bar(step, plan)
    assert bar.shares.keys() == {"fitted", "roofline"}
    assert sum(bar.shares.values()) == pytest.approx(1.0)
    only = problem(work("a"), costs=costs_of(error=1.2))
    plan = schedule(only, [0])
    assert error_bar(only, plan).high == pytest.approx(plan.makespan * 1.2**QUARTILES_TO_DECILES)


def test_transfers_count_as_they_are():
    devices = (GPU, Device("other", flops={"float32": 1e9}, bandwidth=1e9))
    here, apart = problem(work("a"), work("b")), problem(work("a"), work("b"), devices=devices)
    bars = error_bar(here, schedule(here, [0, 0])), error_bar(apart, schedule(apart, [0, 0]))
    assert bars[0] == bars[1]
    moved = error_bar(apart, schedule(apart, [0, 1]))
    assert moved.low > bars[1].low + 1.0 - 1e-9
    assert moved.high > 1.0


def test_a_step_that_computes_nothing_has_no_range():
    step = problem(Op("a"))
    bar = error_bar(step, schedule(step, [0]))
    assert (bar.low, bar.high, bar.shares) == (0.0, 0.0, {})


# Constants agree with docs/costs.md, and fits apply as `cost_lookup` applies them.
def test_the_rooflines_figures_are_those_of_the_page_on_costs():
    """Inception-V3's step is the worst of four."""
    page = (Path(__file__).parents[2] / "docs" / "costs.md").read_text()
    assert f"less than {ROOFLINE_OP[0]} times, a tenth more than {ROOFLINE_OP[1]} times" in page
    steps = re.findall(r"\| K80 \| (\d\.\d+).*\| (\d\.\d+) \|", page)
    ratios = [float(took) / float(predicted) for took, predicted in steps]
    assert len(ratios) == 4
    assert round(max(ratios), 2) == ROOFLINE_STEP


def test_a_range_widens_what_halves_are_within_to_eight_tenths_of_a_normal_curve():
    normal = NormalDist()
    assert (
        pytest.approx(normal.inv_cdf(0.9) / normal.inv_cdf(0.75), rel=1e-4) == QUARTILES_TO_DECILES
    )


def test_a_fit_holds_for_its_device_and_for_others_of_its_kind_but_not_over_what_they_state():
    """Another model is not the measured device; of another kind, nothing was fitted."""
    costs = Costs("here", "2026-01-01", {}, [
        MeasuredDevice("tpu", "tpu", efficiency={"matmul": Efficiency(0.5, 0.5, 1.0, 9, 3.0)}),
        MeasuredDevice("gpu", "gpu", "K80"),
        MeasuredDevice("gpu2", "gpu", "K40", efficiency={"matmul": Efficiency(1, 1, 1, 9, 1.2)}),
    ])  # fmt: skip
    rates = {"flops": {"float32": 1e9}, "bandwidth": 1e9}
    for device, source in (
        (Device("gpu", model="K80", **rates), "fitted"),
        (Device("new", model="H100", **rates), "fitted"),
        (Device("gpu2", model="K40", efficiency={"matmul": 0.5}, **rates), "fitted"),
        (Device("new", model="H100", efficiency={"matmul": 0.5}, **rates), "roofline"),
        (Device("cpu", kind="cpu", **rates), "roofline"),
    ):
        step = problem(work("a"), costs=costs, devices=(device,))
        plan = schedule(step, [0])
        assert error_bar(step, plan).shares == {source: 1.0}
        if source == "fitted":
            assert error_bar(step, plan).low == pytest.approx(
                plan.makespan / 1.2**QUARTILES_TO_DECILES
            )
            assert error_bar(step, plan).high == pytest.approx(
                plan.makespan * 1.2**QUARTILES_TO_DECILES
            )


def test_an_op_without_a_signature_was_not_measured():
    device = MeasuredDevice("gpu", "gpu", seconds={"": Timing(2.0, 1.9, 2.2, 9)})
    step = problem(work("a"), costs=Costs("here", "2026-01-01", {}, [device]))
    assert error_bar(step, schedule(step, [0])).shares == {"roofline": 1.0}
