"""Plans of whole batches say where slices might pay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.report.slices.slicing import slicing_text
from situate.solvers import solve
from tests.solvers.families import apart, chain, devices

STEP = replace(chain(8), source="pytorch", optimizer="sgd")


def told(problem: Problem, method: str = "auto") -> str:
    return slicing_text(solve(problem, method, time_limit=None, evaluations=200))


def test_a_chain_of_ops_gains_what_its_devices_share():
    text = told(Problem(STEP, devices(1, 1)))
    assert "with --slices auto, the step may take 4.00 s at best" in text


def test_a_faster_device_counts_for_more():
    assert "may take 5.33 s at best" in told(Problem(STEP, devices(1, 2)))


@pytest.mark.parametrize(
    "graph",
    [
        replace(STEP, slices=Slices((1, 1))),
        replace(STEP, source="onnx"),
        replace(STEP, optimizer=""),
        replace(STEP, optimizer=None),
    ],
)
def test_what_is_no_whole_captured_training_step_is_not_told(graph):
    assert told(Problem(graph, devices(1, 1))) == ""


def test_a_plan_that_shares_already_and_one_device_are_not_told():
    shared = replace(apart(8), source="pytorch", optimizer="sgd")
    assert told(Problem(shared, devices(1, 1))) == ""
    assert told(Problem(STEP, devices(1))) == ""


def test_a_method_that_is_asked_for_is_left_alone():
    assert told(Problem(STEP, devices(1, 1)), "single") == ""
