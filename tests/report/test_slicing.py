"""Plans of whole batches say where slices might pay."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.report.slicing import slicing_text
from situate.solvers import solve
from tests.solvers.families import apart, chain, devices

STEP = replace(chain(8), source="pytorch", optimizer="sgd")


def test_a_chain_of_ops_gains_what_its_devices_share():
    told = slicing_text(solve(Problem(STEP, devices(1, 1)), "single"))
    assert "as with --slices 2, the step may take 4.00 s at best" in told


def test_a_faster_device_counts_for_more():
    told = slicing_text(solve(Problem(STEP, devices(1, 2)), "single"))
    assert "may take 5.33 s at best" in told


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
    assert slicing_text(solve(Problem(graph, devices(1, 1)), "single")) == ""


def test_a_plan_that_shares_already_and_one_device_are_not_told():
    shared = replace(apart(8), source="pytorch", optimizer="sgd")
    assert slicing_text(solve(Problem(shared, devices(1, 1)), "heft")) == ""
    assert slicing_text(solve(Problem(STEP, devices(1)), "single")) == ""
