"""Runs: contiguous parts of a line of ops."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.topology import edge_producers
from situate.solvers.auto.coarse.runs import (
    MAX_RELATIVE_LOAD,
    in_shared_units,
    op_line,
    run_labels,
)
from tests.oracle.problems import random_problem
from tests.solvers.auto.coarse.unrolled import CELL, unrolled

CELLS = 32


@pytest.mark.parametrize("seed", range(20))
def test_no_edge_leads_to_an_earlier_run(seed: int) -> None:
    problem = random_problem(seed)
    label = run_labels(problem, op_line(problem), 3, np.zeros(problem.n, np.int64))
    assert (label[edge_producers(problem)] <= label[problem.consumers]).all()
    assert set(label.tolist()) == set(range(label.max() + 1))


def test_the_ops_of_a_cell_join() -> None:
    problem = unrolled()
    shared = int(in_shared_units(problem).sum())
    label = run_labels(problem, op_line(problem), CELLS + shared, np.zeros(problem.n, np.int64))
    cells = label[~in_shared_units(problem)].reshape(-1, CELL)
    assert (cells == cells[:, :1]).all()


def test_parameters_and_updates_stay_alone_at_the_ends_of_the_line() -> None:
    problem = unrolled()
    line, shared = op_line(problem), in_shared_units(problem)
    label = run_labels(problem, line, 2, np.zeros(problem.n, np.int64))
    assert (np.bincount(label)[label[shared]] == 1).all()
    middle = np.flatnonzero(~shared[line])
    assert np.ptp(middle) == len(middle) - 1


def test_ops_of_different_kinds_stay_apart() -> None:
    problem = unrolled()
    kind = np.arange(problem.n) // 7 % 2
    label = run_labels(problem, op_line(problem), 1, kind)
    assert (kind[np.unique(label, return_index=True)[1]][label] == kind).all()


def test_no_run_is_much_longer_than_the_average_run() -> None:
    problem = unrolled()
    label = run_labels(problem, op_line(problem), 10, np.zeros(problem.n, np.int64))
    seconds = np.bincount(label, problem.fastest)
    assert seconds.max() <= MAX_RELATIVE_LOAD * seconds.sum() / 10
