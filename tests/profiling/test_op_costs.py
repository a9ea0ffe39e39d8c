"""Costs of ops from measurements: timings, workspace, and efficiencies behind synthetic times."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.costs import MeasuredDevice, Timing
from situate.data.graph import Graph, Op, Tensor
from situate.profiling.op_costs import contention, efficiencies, timings, workspace
from situate.runtime.device import StepRecord

GRAPH = Graph(
    "g",
    (
        Op("x", "input"),
        Op("a", "aten.mm", signature="mm"),
        Op("b", "aten.mm", signature="mm"),
        Op("c", "aten.relu", signature="relu"),
    ),
)


def step(*seconds: float) -> StepRecord:
    """Ops 0 to 3 took so long, and number 4, behind the graph's, a day."""
    ends = {op: 100.0 + s for op, s in enumerate((*seconds, 86400.0))}
    return StepRecord(0.0, 1.0, 0.0, dict.fromkeys(ends, 100.0), ends)


# Timings and contention.
def test_a_signature_takes_the_mean_of_its_ops_medians() -> None:
    steps = [step(0, 1, 3, 5), step(0, 2, 4, 6), step(0, 900, 900, 900)]
    result = timings(GRAPH, steps, 0.0)
    assert result.keys() == {"mm", "relu"}
    assert (result["mm"].median, result["relu"].median) == (3.0, 6.0)
    assert result["mm"].count == 6
    assert result["mm"].low < 3.0 < result["mm"].high


def test_the_sum_over_all_ops_is_that_of_the_step() -> None:
    result = timings(GRAPH, [step(0, 1, 3, 5)], 0.0)
    assert sum(result[op.signature].median for op in GRAPH.ops if op.signature) == 9.0


def test_the_clock_itself_is_taken_off_and_nothing_takes_less_than_nothing() -> None:
    result = timings(GRAPH, [step(0, 1, 3, 0.1)], 0.5)
    assert (result["mm"].median, result["relu"].median) == (1.5, 0.0)


def took(seconds: float) -> Timing:
    return Timing(seconds, seconds, seconds, 1)


def test_contention_is_a_ratio_of_sums_by_class() -> None:
    alone = {"mm": took(1.0), "relu": took(2.0)}
    together = {"mm": took(1.5), "relu": took(1.0)}
    assert contention(GRAPH, alone, together) == {
        "matmul": pytest.approx(1.5),
        "elementwise": 1.0,
    }


def test_a_class_that_takes_no_time_has_no_contention() -> None:
    assert contention(GRAPH, {"mm": took(0.0)}, {"mm": took(1.0)}) == {}


CONVOLUTION_GRAPH = Graph(
    "g",
    (Op("a", signature="conv"), Op("b", signature="conv"), Op("c", signature="relu"), Op("d")),
    (Tensor("a:0", 0, 100, (1,)), Tensor("b:0", 1, 100, (2,)), Tensor("c:0", 2, 50, (3,))),
)


def allocated(*most: int) -> StepRecord:
    return StepRecord(0.0, 1.0, 0.0, {}, {}, 0, dict(enumerate(most)))


# Workspace.
def test_workspace_is_the_allocation_beyond_an_ops_outputs() -> None:
    assert workspace(CONVOLUTION_GRAPH, allocated(130, 100, 50, 0)) == {"conv": 30}


def test_the_largest_workspace_of_a_signature_counts() -> None:
    assert workspace(CONVOLUTION_GRAPH, allocated(110, 170, 0, 0)) == {"conv": 70}


def test_ops_without_a_signature_and_marks_behind_the_ops_are_left_out() -> None:
    assert (
        workspace(CONVOLUTION_GRAPH, StepRecord(0.0, 1.0, 0.0, {}, {}, 0, {3: 900, 4: 900})) == {}
    )


PEAK, BANDWIDTH, LAUNCH = 1e11, 1e10, 5e-6


def device(seconds: dict[str, float]) -> MeasuredDevice:
    timings = {name: Timing(s, s, s, 1) for name, s in seconds.items()}
    return MeasuredDevice("d", "cpu", "", 1, {"float32": PEAK}, BANDWIDTH, LAUNCH, timings)


def products(count: int = 40) -> list[Op]:
    """Half bound by arithmetic, half by memory."""
    sizes = np.logspace(6, 9, count).astype(int).tolist()
    return [
        Op(
            f"op{i}",
            "aten.mm",
            flops=n if i % 2 else 1,
            traffic=1 if i % 2 else n,
            signature=f"{i}",
        )
        for i, n in enumerate(sizes)
    ]


def roofline_seconds(op: Op, arithmetic: float, memory: float) -> float:
    work = op.flops / (PEAK * arithmetic), op.traffic / (BANDWIDTH * memory)
    return LAUNCH + max(work)


# Recovery with and without outliers.
def test_both_sides_of_the_roofline_are_found():
    ops = products()
    fit = efficiencies(ops, device({op.signature: roofline_seconds(op, 0.6, 0.2) for op in ops}))[
        "matmul"
    ]
    assert (fit.arithmetic, fit.memory) == pytest.approx((0.6, 0.2))
    assert fit.ops == 40
    assert fit.error == pytest.approx(1.0)


def test_a_quarter_of_wild_outliers_moves_nothing_far():
    ops = products()
    seconds = {op.signature: roofline_seconds(op, 0.6, 0.2) for op in ops}
    seconds |= {op.signature: seconds[op.signature] * 1000 for op in ops[::4]}
    fit = efficiencies(ops, device(seconds))["matmul"]
    assert fit.arithmetic == pytest.approx(0.6)
    assert fit.memory == pytest.approx(0.2, rel=0.5)


def test_a_side_without_ops_reaches_what_the_other_does():
    op = Op("a", "aten.relu", traffic=10**9, signature="a")
    fit = efficiencies([op], device({"a": LAUNCH + 0.2}))["elementwise"]
    assert fit.arithmetic == fit.memory == pytest.approx(0.5)


# Which ops count.
def test_an_op_counts_once_however_often_it_is_there():
    ops = [Op(f"op{i}", "aten.relu", traffic=10**9, signature="a") for i in range(5)]
    assert efficiencies(ops, device({"a": 1.0}))["elementwise"].ops == 1


def test_unmeasured_and_short_ops_give_no_class():
    ops = [
        Op("a", "aten.relu", traffic=10**9, signature="a"),
        Op("b", "aten.mm", flops=10**9, signature="b"),
        Op("c", "aten.convolution", signature="c"),
    ]
    assert efficiencies(ops, device({"b": LAUNCH, "c": 1.0})) == {}


# The binding side, the error, and launches.
def test_the_side_of_an_op_is_told_by_what_is_reached_and_not_by_the_peaks():
    """Some take twice as long at the peak of arithmetic, and are bound by memory all the same."""
    mixed = [
        Op(f"m{n}", "aten.mm", flops=2 * 10 * n, traffic=n, signature=f"m{n}")
        for n in range(10**6, 10**7, 10**6)
    ]
    seconds = {op.signature: roofline_seconds(op, 0.6, 0.05) for op in [*products(), *mixed]}
    for op, factor in zip(products()[1::2], np.geomspace(0.8, 1.25, 20).tolist(), strict=True):
        seconds[op.signature] *= factor
    fit = efficiencies([*products(), *mixed], device(seconds))["matmul"]
    assert (fit.arithmetic, fit.memory) == pytest.approx((0.6, 0.05), rel=0.02)


def test_half_of_the_ops_are_within_the_error_on_either_side():
    ops = [Op(f"op{i}", "aten.relu", traffic=10**10, signature=f"{i}") for i in range(5)]
    factors = 1 / 1.5, 1 / 1.2, 1.0, 1.2, 1.5
    seconds = {op.signature: 5.0 * f for op, f in zip(ops, factors, strict=True)}
    fit = efficiencies(ops, device(seconds))["elementwise"]
    assert fit.memory == pytest.approx(0.2, rel=1e-4)
    assert fit.error == pytest.approx(1.2, rel=1e-4)


def test_as_few_launches_start_an_op_as_explain_its_time():
    sizes = np.logspace(2, 6, 40).astype(int).tolist()
    ops = [Op(f"op{i}", "aten.relu", traffic=n, signature=f"{i}") for i, n in enumerate(sizes)]
    for launches in (1.0, 8.0):
        seconds = {op.signature: launches * LAUNCH + op.traffic / (0.2 * BANDWIDTH) for op in ops}
        fit = efficiencies(ops, device(seconds))["elementwise"]
        assert launches / 1.5 < fit.launches <= launches
        assert fit.error < 1.1
