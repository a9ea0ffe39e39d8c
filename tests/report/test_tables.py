from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs
from rich.console import Console, RenderableType

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.report import tables
from tests.report.handmade import HOSTILE, chain, schedule
from tests.report.outcome import outcome
from tests.solvers.families import apart, devices


def table_text(renderable: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=200, force_terminal=False)
    console.print(renderable)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "\x1b" not in text
    return str(text)


# Summaries of one plan.
def test_a_summary_names_value_bound_gap_memory_and_method() -> None:
    text = table_text(tables.summary(outcome(chain(4), [0, 0, 1, 1])))
    for part in ("chain on pair", "5.00 s", "2.00 s", "150.0 %", "2 of 2", "heft", "gpu1", "yes"):
        assert part in text


def test_only_a_plan_for_throughput_says_that_memory_is_that_of_one_step() -> None:
    steady = replace(chain(4), objective="throughput")
    assert tables.ONE_STEP in table_text(tables.summary(outcome(steady, [0, 0, 1, 1])))
    assert tables.ONE_STEP not in table_text(tables.summary(outcome(chain(4), [0, 0, 1, 1])))


def test_tables_call_a_plan_optimal_where_that_is_proved() -> None:
    problem = chain(4)
    proved = outcome(problem, [0, 0, 1, 1], lower_bound=5.0)
    nearly = outcome(problem, [0, 0, 1, 1], lower_bound=4.999)
    for table in (tables.summary(proved), tables.comparison([proved])):
        assert "optimal" in table_text(table)
    for table in (tables.summary(nearly), tables.comparison([nearly])):
        assert "< 0.1 %" in table_text(table)
        assert "optimal" not in table_text(table)


def test_a_summary_says_what_was_measured_and_how_far_off_the_prediction_was() -> None:
    text = table_text(tables.summary(outcome(chain(4), [0, 0, 1, 1], measured=5.5)))
    assert "5.50 s, 10.0 % more than predicted" in text
    text = table_text(tables.summary(outcome(chain(4), [0, 0, 1, 1], measured=4.5)))
    assert "4.50 s, 10.0 % less than predicted" in text
    failed = table_text(tables.summary(outcome(chain(4), [0, 0, 1, 1], measured=np.inf)))
    assert "never" in failed
    assert "measured" not in table_text(tables.summary(outcome(chain(4), [0, 0, 1, 1])))


def test_a_summary_says_by_how_much_a_plan_does_not_fit() -> None:
    text = table_text(tables.summary(outcome(chain(4, memory=200), [0, 0, 0, 0])))
    assert "no: gpu0 by 41 B" in text


# Memory that plans lack.
def test_why_no_plan_can_fit_names_the_devices_that_would_have_to_hold_it() -> None:
    small = apart(4, persistent=10)
    pinned = replace(small, ops=tuple(structs.replace(op, device="d1") for op in small.ops))
    need = "at least 40 B must be held at once on d1, with room for 30 B"
    assert tables.never_text(Problem(pinned, devices(1, 1, memory=30))) == need
    outputs = tuple(Tensor(f"t{j}", j, 30, output=True) for j in range(4))
    chained = Graph("g", apart(4).ops, outputs, control=((0, 1), (1, 2), (2, 3)))
    together = "at least 120 B must be held at once, all devices together have 100 B"
    assert tables.never_text(Problem(chained, devices(1, 1, memory=50))) == together
    assert tables.never_text(Problem(chained, devices(1, 1, memory=60))) == ""


def test_memory_has_a_row_a_device_with_its_share_of_the_limit() -> None:
    problem = chain(4, memory=1000, devices=3)
    text = table_text(tables.memory(problem, schedule(problem, [0, 0, 1, 1])))
    assert text.splitlines()[1].split() == ["gpu0", "2", "40.0", "%", "221", "B", "1,000", "B",
                                            "22.1", "%"]  # fmt: skip
    assert text.splitlines()[3].split()[:2] == ["gpu2", "0"]


def test_memory_without_a_limit() -> None:
    problem = chain(2, memory=None)
    assert "none" in table_text(tables.memory(problem, schedule(problem, [0, 1])))


def test_a_summary_names_the_bound() -> None:
    result = outcome(chain(4), [0, 0, 1, 1])
    assert "2.00 s, by load" in table_text(tables.summary(result))
    assert ", by" not in table_text(tables.summary(replace(result, bounded_by=None)))


# Comparisons of methods.
def test_a_comparison_puts_the_best_plan_that_fits_first() -> None:
    problem = chain(4, memory=235)
    results = [
        outcome(problem, [0, 0, 0, 0], method="single"),
        outcome(problem, [0, 1, 0, 1], method="random"),
        outcome(problem, [0, 0, 1, 1], method="heft"),
    ]
    lines = table_text(tables.comparison(results)).splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["heft", "random", "single"]
    assert "no: gpu0 by 6 B" in lines[4]


def test_a_comparison_goes_by_what_was_measured() -> None:
    problem = chain(4)
    results = [
        outcome(problem, [0, 0, 1, 1], method="heft", measured=5.5),
        outcome(problem, [0, 1, 0, 1], method="random", measured=5.0),
    ]
    lines = table_text(tables.comparison(results)).splitlines()
    assert [line.split()[0] for line in lines[2:4]] == ["random", "heft"]
    assert "5.50 s, 10.0 % more than predicted" in lines[3]


def test_a_summary_says_what_a_method_that_learns_was_told() -> None:
    curve = outcome(chain(4), [0, 0, 1, 1], samples=(5.0,), knows="measured times only")
    assert "measured times only" in table_text(tables.summary(curve))
    assert "knows" not in table_text(tables.summary(replace(curve, samples=())))


def test_a_comparison_with_a_method_that_learns_says_what_each_was_told() -> None:
    problem = chain(4)
    ruled = outcome(problem, [0, 1, 0, 1], knows="told costs")
    curve = outcome(problem, [0] * 4, samples=(4.0,), knows="measured times only")
    assert "told costs" not in table_text(tables.comparison([ruled]))
    shown_of_both = table_text(tables.comparison([ruled, curve]))
    assert "told costs" in shown_of_both
    assert "measured times only" in shown_of_both


def test_a_comparison_says_when_one_device_is_best() -> None:
    problem = chain(4)
    results = [outcome(problem, [0, 1, 0, 1]), outcome(problem, [0] * 4, method="single")]
    assert "One device is best: use gpu0 alone." in table_text(tables.comparison(results))


def test_a_comparison_says_when_nothing_fits() -> None:
    problem = chain(4, memory=100)
    text = table_text(tables.comparison([outcome(problem, [0] * 4)]))
    assert "No method found a plan that fits in memory." in text


def test_a_comparison_says_how_much_faster_than_one_device_the_best_is() -> None:
    ops = tuple(Op(f"op{i}", seconds={"*": 1.0}) for i in range(4))
    problem = Problem(Graph("wide", ops), chain(1).cluster)
    results = [outcome(problem, [0] * 4, method="single"), outcome(problem, [0, 1, 0, 1])]
    assert "Best: heft, 2.00 times faster than gpu0 alone." in table_text(
        tables.comparison(results)
    )


def test_a_comparison_says_when_one_device_is_as_good() -> None:
    ops = (*(Op(f"op{i}", seconds={"*": 1.0}) for i in range(4)), Op("tail", seconds={"*": 0.01}))
    problem = Problem(Graph("narrow", ops), chain(1).cluster)
    results = [outcome(problem, [0] * 5, method="single"), outcome(problem, [0] * 4 + [1])]
    text = table_text(tables.comparison(results))
    assert "One device is as good: gpu0 alone is within 0.2 % of the best." in text


# The contents of a graph.
def test_info_counts_ops_tensors_bytes_phases_and_the_longest_chain() -> None:
    text = " ".join(table_text(tables.info(chain(6).graph)).split())
    for part in ("ops 6", "tensors 5, 500 B", "held for the step 60 B", "longest chain 6 ops",
                 "time on any device 6.00 s", "forward 2"):  # fmt: skip
        assert part in text


def test_info_shows_work_where_it_is_known() -> None:
    graph = Graph("g", (Op("a", flops=3 * 10**9), Op("b", flops=10**9)))
    text = " ".join(table_text(tables.info(graph)).split())
    assert "work 4.00 G FLOP, 75.0 % of it in one chain" in text


def test_info_lists_the_commonest_kinds_and_sums_up_the_rest() -> None:
    graph = Graph("g", tuple(Op(f"op{i}", kind=f"k{i}") for i in range(tables.MAX_KINDS + 3)))
    assert "3 more" in table_text(tables.info(graph))


def test_the_longest_path_follows_control_edges_too() -> None:
    graph = Graph("g", (Op("a", flops=1), Op("b", flops=2)), control=((0, 1),))
    assert tables.longest_path(graph) == (2, 3)


def test_times_without_a_unit_are_plain_numbers() -> None:
    problem = chain(4, unit="", bandwidth=math.inf)
    lines = table_text(tables.summary(outcome(problem, [0, 0, 1, 1]))).splitlines()
    assert lines[1].split() == ["makespan", "4"]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_show_as_they_are_and_do_nothing(name: str) -> None:
    ops = (Op(name, kind=name, phase=name, seconds={"*": 1.0}, module=name),)
    problem = chain(1, device_names=[name.translate(str.maketrans("", "", "*?[]")), "other"])
    problem = Problem(Graph(name, ops), problem.cluster)
    result = outcome(problem, [0], method=name)
    texts = table_text(tables.summary(result)), table_text(tables.info(problem.graph))
    assert all(tables.printable(name) in text for text in texts)
    assert tables.printable(name) in table_text(tables.comparison([result]))


def test_memory_of_a_schedule_that_never_ends() -> None:
    problem = chain(1)
    plan = schedule(problem, [0])
    endless = replace(plan, end=np.array([np.inf]), makespan=np.inf)
    assert "unknown" in table_text(tables.memory(problem, endless))
