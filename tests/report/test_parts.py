"""The parallelism of a plan of parts, in a line."""

from __future__ import annotations

import numpy as np

from situate import Cluster, Problem, evaluate
from situate.report.parts import parts_text
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
