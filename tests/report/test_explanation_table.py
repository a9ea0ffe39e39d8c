from __future__ import annotations

import numpy as np

from situate import evaluate
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.report.explain import explain
from situate.report.explanation_table import explanation_table
from situate.solvers import solve
from tests.report.handmade import HOSTILE, chain, schedule, two_branches
from tests.report.test_tables import table_text
from tests.simulation.exchanged import exchanged
from tests.solvers.families import devices
from tests.solvers.recomputing import layered_step
from tests.solvers.slices import sliced


def text_of(problem: Problem, placement: list[int]) -> str:
    return table_text(explanation_table(explain(problem, schedule(problem, placement))))


def test_it_splits_the_critical_path() -> None:
    lines = [line.split() for line in text_of(chain(3), [0, 1, 1]).splitlines()]
    assert ["critical", "path:", "4.00", "s"] in lines
    assert ["compute", "3.00", "s", "75.0", "%"] in lines
    assert ["transfer", "1.00", "s", "25.0", "%"] in lines
    assert ["on", "gpu1", "2.00", "s", "50.0", "%"] in lines


def test_it_says_what_waiting_is_where_there_is_any() -> None:
    message = "waiting: the device is at something else\n"
    assert message not in text_of(chain(3), [0, 0, 0])
    assert message in text_of(two_branches(), [0, 0, 0])
    assert "waiting: the channel is at other tensors\n" in text_of(two_branches(), [0, 1, 1])


def test_a_plan_that_does_not_fit_is_explained() -> None:
    text = text_of(chain(3, memory=200), [0, 0, 0])
    assert "gpu0 does not fit: 31 B too much at 1.00 s." in text
    assert "would fit with 231 B on gpu0, or with 1.155 times the memory of every device" in text
    assert "No single device would do: in this order the step needs 231 B on one." in text


def test_what_would_make_a_plan_fit_is_rounded_up() -> None:
    problem = chain(3, memory=2_000_700)
    plan = schedule(problem, [0, 0, 0])
    plan.peak[0] = 2_001_034
    text = table_text(explanation_table(explain(problem, plan)))
    assert "with 1.91 MiB on gpu0, or with 1.001 times the memory" in text
    plan.peak[0] = 2_006_000
    text = table_text(explanation_table(explain(problem, plan)))
    assert "with 1.92 MiB on gpu0, or with 1.003 times the memory" in text


def test_it_says_when_no_plan_can_fit() -> None:
    assert "no plan can fit" not in text_of(chain(3, memory=211), [0, 0, 0])
    text = text_of(chain(3, memory=210), [0, 0, 0])
    assert "With the memory that there is, no plan can fit: some device holds at least" in text
    assert "at least 211 B, the largest has 210 B." in text
    text = text_of(chain(3, memory=14), [0, 0, 1])
    assert "no plan can fit: 30 B are held for the whole step, all devices together" in text
    assert "all devices together have 28 B." in text


def test_it_says_when_one_device_is_better() -> None:
    assert "gpu0 alone would do better: 3.00 s" in text_of(chain(3), [0, 1, 0])
    assert "gpu0 alone would do as well: 3.00 s" in text_of(chain(3), [1, 1, 1])


def test_a_throughput_plan_is_judged_by_the_time_between_its_steps() -> None:
    problem = chain(3, objective="throughput")
    text = text_of(problem, [0, 1, 1])
    lines = [line.split() for line in text.splitlines()]
    assert "one step every 2.00 s" in text
    assert ["device", "gpu1", "2.00", "s", "100.0", "%"] in lines
    assert ["channel", "gpu0->gpu1", "1.00", "s", "50.0", "%"] in lines
    assert "gpu0 alone would do, but slower: a step every 3.00 s, 231 B." in text


def test_a_memory_plan_is_judged_by_its_largest_peak() -> None:
    text = text_of(chain(3, objective="memory"), [0, 0, 1])
    assert "largest peak: 221 B" in text
    assert "gpu0 alone would do, but with more memory: 231 B." in text
    assert "gpu0 alone would do as well: 231 B." in text_of(chain(3, objective="memory"), [0, 0, 0])


def test_one_op_has_no_transfers() -> None:
    assert "costliest transfers" not in text_of(chain(1), [0])


def test_hostile_names_do_nothing() -> None:
    text = text_of(chain(names=HOSTILE), [0, 1] * 4)
    assert "[red]not markup[/red] [/]" in text
    assert "\\x1b[31mred" in text


def test_devices_that_do_nothing_are_only_counted() -> None:
    lines = [line.split() for line in text_of(chain(2, devices=9), [4, 4]).splitlines()]
    assert ["8", "more", "0"] in lines
    assert not any(line[:1] == ["gpu0"] for line in lines if len(line) > 5 and line[1] == "0")


def test_slices_are_listed_with_where_they_ran() -> None:
    problem = Problem(sliced(2, 1), devices(1, 1, bandwidth=1e9))
    text = table_text(explanation_table(explain(problem, solve(problem, "data_parallel").schedule)))
    lines = [line.split() for line in text.splitlines()]
    (first,) = [line for line in lines if line[:4] == ["0", "1", "8.00", "s"]]
    assert first[-3:] == ["d0", "100.0", "%"]
    assert ["d0", "1", "1", "4.00", "s", "4.00", "s"] in [line[:7] for line in lines]
    assert "slices" not in text_of(chain(3), [0, 1, 1])


def test_modules_that_run_again_are_listed_and_added_up() -> None:
    problem = Problem(layered_step(20, ("all",)), devices(1))
    text = table_text(explanation_table(explain(problem, solve(problem, "single").schedule)))
    lines = [line.split() for line in text.splitlines()]
    assert ["l0", "1", "1.00", "s", "100", "B"] in lines
    assert ["4", "more"] in lines
    assert ["all", "20", "210", "s", "1.95", "KiB"] in lines


# A plan of parts has its name and its step in collectives, with slices or without.
def test_a_plan_of_parts_is_named() -> None:
    graph = exchanged("all_gather", 2)
    problem = Problem(graph, Cluster.find("h100-8"))
    placement = [op.part or 0 for op in graph.ops]
    plan = evaluate(problem, np.array(placement, np.int32)).schedule
    text = table_text(explanation_table(explain(problem, plan)))
    assert "tensor parallel by 2: the parts of features=2 run on gpu0, gpu1" in text
    assert "with a collective in place of 1 exchange, the step takes " in text
