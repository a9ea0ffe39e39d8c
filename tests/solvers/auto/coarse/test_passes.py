"""Runs of a step in slices."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.data.topology import edge_producers
from situate.errors import SituateError
from situate.simulation.decoding import is_topological
from situate.solvers.auto.coarse.contraction import contracted
from situate.solvers.auto.coarse.passes import pass_runs
from tests.solvers.families import chain, devices
from tests.solvers.slice_pipelines.uniform import uniform
from tests.solvers.slices import sliced


# A line of runs, from which an acyclic coarse problem follows.
@pytest.mark.parametrize(
    "graph",
    [sliced(1, 2, 1, update=1), sliced(1, 1, 1, 1, replicas=(2, 2)), sliced(1, 1, sums="tree")],
    ids=["chain", "replicas", "tree"],
)
@pytest.mark.parametrize("segments", [1, 2])
def test_runs_are_contiguous_on_a_topological_line(graph, segments):
    problem = Problem(graph, devices(1, 1))
    line, run = pass_runs(problem, segments)
    assert is_topological(problem, line)
    assert np.isin(np.diff(run[line]), (0, 1)).all()
    assert (run[edge_producers(problem)] <= run[problem.consumers]).all()


def test_a_step_that_takes_its_batch_whole_is_refused():
    with pytest.raises(SituateError, match="takes its batch whole"):
        pass_runs(Problem(chain(3), devices(1, 1)), 2)


# The contents of a run.
def test_a_run_is_of_one_slice_and_one_phase():
    problem = Problem(sliced(1, 2, 1, update=1), devices(1, 1))
    _, run = pass_runs(problem, 1)
    for number in range(run.max() + 1):
        ops = [op for op, r in zip(problem.graph.ops, run, strict=True) if r == number]
        assert len({(op.slice, op.phase) for op in ops}) == 1


def test_with_one_segment_a_slice_has_a_run_of_each_kind():
    problem = uniform(2, 3)
    _, run = pass_runs(problem, 1)
    by_slice = [
        {int(run[i]) for i, op in enumerate(problem.graph.ops) if op.slice == s} for s in range(3)
    ]
    assert all(len(runs) == 3 for runs in by_slice)


def test_segments_take_about_equal_seconds():
    problem = uniform(4, 2, chunks=4)
    line, run = pass_runs(problem, 4)
    coarse = contracted(problem, line, run)
    forward = [op.slice == 0 and op.phase == "forward" for op in coarse.graph.ops]
    seconds = coarse.seconds[forward, 0]
    assert len(seconds) == 4
    assert np.allclose(seconds, seconds[0])


def test_the_coarse_step_has_the_same_slices():
    problem = Problem(sliced(1, 1, update=1), devices(1, 1))
    coarse = contracted(problem, *pass_runs(problem, 2))
    assert coarse.graph.slices == problem.graph.slices
    assert coarse.graph.program_order == tuple(range(coarse.n))
