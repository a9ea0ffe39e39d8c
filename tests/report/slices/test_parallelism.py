"""Names of the parallelism of plans of slices."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from situate.data.graph import Graph, Tensor
from situate.data.problem import Problem
from situate.report.explain import explain
from situate.report.slices.parallelism import data_parallel, parallelism_text
from situate.simulation.decoding import decode
from situate.solvers import solve
from tests.solvers.families import chain, devices
from tests.solvers.slices import sliced
from tests.writers.slices.staged import on, staged, staged_plan


def test_whole_slices_in_equal_shares_are_data_parallel():
    problem = Problem(sliced(1, 1, 1, 1), devices(1, 1))
    schedule = solve(problem, "fsdp").schedule
    assert parallelism_text(problem, schedule) == (
        "data parallel: each of d0, d1 runs the whole model on 2 samples; parameters are spread "
        "over them, as FSDP does"
    )
    assert explain(problem, schedule).parallelism == parallelism_text(problem, schedule)


def test_parameters_on_one_device_are_what_ddp_copies():
    problem = Problem(sliced(1, 1), devices(1, 1))
    plan = solve(problem, "data_parallel").schedule
    plan.placement[[op.slice is None for op in problem.graph.ops]] = 1
    result = data_parallel(problem, plan)
    assert result is not None
    assert (result.homes, result.sharded) == (("d1",), False)
    assert "parameters are on d1, where DDP has a copy" in parallelism_text(problem, plan)


def with_copies() -> Graph:
    """Two slices, each of which reads a copy of the parameters of its own."""
    graph = sliced(1, 1)
    ops, tensors = list(graph.ops), list(graph.tensors)
    for i, tensor in enumerate(graph.tensors):
        if tensor.name in ("a", "b"):
            of_slice = [[j for j in tensor.consumers if ops[j].slice == s] for s in range(2)]
            copy = replace(ops[tensor.producer], name=f"{tensor.name}/copy", group=None)
            tensors[i] = replace(tensor, consumers=tuple(of_slice[0]))
            tensors.append(Tensor(copy.name, len(ops), tensor.size, tuple(of_slice[1])))
            ops.append(copy)
    return Graph("copies", tuple(ops), tuple(tensors), slices=graph.slices)


def test_copies_of_parameters_are_ddp():
    problem = Problem(with_copies(), devices(1, 1))
    second = [op.slice == 1 or op.name.endswith("/copy") for op in problem.graph.ops]
    order = np.array(problem.graph.program_order, np.int32)
    plan = decode(problem, np.array(second, np.int32), order, "eager")
    result = data_parallel(problem, plan)
    assert result is not None
    assert (result.homes, result.sharded) == (("d0", "d1"), False)
    assert parallelism_text(problem, plan) == (
        "data parallel: each of d0, d1 runs the whole model on 1 sample; each has a copy of the "
        "parameters, as DDP does"
    )


def test_unequal_shares_are_said_to_be_nothing_that_ddp_does():
    problem = Problem(sliced(*[1.0] * 6), devices(1, 2))
    text = parallelism_text(problem, solve(problem, "data_parallel").schedule)
    assert text.endswith("which DDP and FSDP do not have: samples 4 on d0, 2 on d1")


def test_one_device_accumulates_gradients():
    problem = Problem(sliced(1, 1, 1), devices(1, 1))
    text = parallelism_text(problem, solve(problem, "single").schedule)
    assert text == "gradient accumulation: d0 runs 3 slices one by one"


def test_stages_are_a_pipeline():
    problem = on(staged())
    assert parallelism_text(problem, staged_plan(problem, (0, 0, 1, 1, 0, 0))) == (
        "a pipeline: every slice goes through 3 stages on 2 devices, gpu0, gpu1"
    )


@pytest.mark.parametrize(("moved", "exact"), [("slice1/gb", False), ("", True)])
def test_a_slice_may_have_a_tenth_of_its_seconds_elsewhere(moved: str, exact: bool):
    problem = Problem(sliced(1, 1), devices(1, 1))
    plan = solve(problem, "data_parallel").schedule
    for j, op in enumerate(problem.graph.ops):
        if op.name == moved:
            plan.placement[j] = 0
            plan.end[j] = plan.start[j] + 0.2
    result = data_parallel(problem, plan)
    assert result is not None
    assert (result.device, result.exact) == (("d0", "d1"), exact)


def test_all_else_has_no_name():
    problem = Problem(sliced(1, 1), devices(1, 1))
    plan = solve(problem, "data_parallel").schedule
    plan.placement[[op.name == "slice0/a" for op in problem.graph.ops]] = 1
    assert parallelism_text(problem, plan) == ""
    whole = Problem(chain(3), devices(1))
    assert parallelism_text(whole, solve(whole, "single").schedule) == ""
