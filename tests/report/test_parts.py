"""The parallelism of a plan of parts, and its step in collectives, a line each."""

from __future__ import annotations

import numpy as np

from situate import Cluster, Problem, evaluate
from situate.report.parts import collectives_text, parts_text
from tests.simulation.exchanged import exchanged
from tests.solvers.parts import step


def text(graph, placement, devices=4) -> str:
    problem = Problem(graph, Cluster.identical(devices))
    return parts_text(problem, evaluate(problem, np.array(placement, np.int32)).schedule)


# Parts on devices of their own are tensor parallel, in one team or in several.
def test_parts_on_devices_of_their_own_are_tensor_parallel() -> None:
    assert text(step(2, 3), [0, 1] * 3) == (
        "tensor parallel by 2: the parts of features=2 run on d0, d1"
    )


def test_slices_on_teams_are_counted() -> None:
    assert text(step(2, slices=2), [0, 1, 2, 3]) == (
        "tensor parallel by 2 in 2 teams of devices, the first of d0, d1: features=2"
    )


def test_teams_that_take_turns_are_a_pipeline() -> None:
    assert text(step(2, 2), [0, 1, 2, 3]) == (
        "tensor parallel by 2 in a pipeline of 2 teams of devices, the first of d0, d1: features=2"
    )
    assert text(step(2, 2, slices=2), [0, 1, 2, 3] * 2) == text(step(2, 2), [0, 1, 2, 3])


def test_parts_that_share_a_device_have_no_name() -> None:
    assert text(step(2), [0, 0]) == ""
    assert text(step(2, 2), [0, 1, 1, 0]) == ""


# Exchanges among all parts have a step in collectives, others have no line.
def test_exchanges_are_counted_with_the_step_in_collectives() -> None:
    graph = exchanged("all_reduce", 4)
    problem = Problem(graph, Cluster.find("h100-8"))
    placement = np.array([op.part or 0 for op in graph.ops], np.int32)
    schedule = evaluate(problem, placement).schedule
    line = collectives_text(problem, schedule)
    assert line.startswith("with a collective in place of 1 exchange, the step takes ")
    assert line.endswith((" us", " µs"))


def test_a_plan_without_exchanges_has_no_line() -> None:
    problem = Problem(step(2), Cluster.identical(4))
    schedule = evaluate(problem, np.array([0, 1], np.int32)).schedule
    assert collectives_text(problem, schedule) == ""
