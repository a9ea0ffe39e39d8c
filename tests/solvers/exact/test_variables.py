"""Variables of placements and transfers."""

from __future__ import annotations

import pytest

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers.exact.solve import cp_model
from situate.solvers.exact.variables import (
    Move,
    OutOfTime,
    Placing,
    consumers_of,
    moves_of,
    remote_units,
    size_of_model,
)
from tests.oracle.problems import random_problem
from tests.solvers.exact.solved import least, placed
from tests.solvers.families import chain, devices, fork, pinned_and_grouped
from tests.solvers.programs import needs_ortools


# Moves are what some placement has to send, and are counted before a model is made.
def test_a_tensor_may_go_from_any_device_to_any_other():
    moves = [*moves_of(Problem(chain(2, size=3), devices(1, 1, latency=0.5)))]
    assert moves == [Move(0, 1, 0, 3.5), Move(0, 0, 1, 3.5)]
    assert [move.arrival for move in moves] == [(0, 0), (0, 1)]


def test_pins_leave_the_moves_between_them():
    moves = [*moves_of(Problem(pinned_and_grouped(), devices(1, 2, 1)))]
    assert [(move.tensor, move.source, move.target) for move in moves] == [
        (0, 1, 2),
        (1, 2, 1),
        (2, 1, 0),
    ]


def test_what_a_group_hands_on_within_itself_and_signals_are_no_moves():
    ops = tuple(Op(name, seconds={"*": 1.0}, group="g") for name in "ab")
    alone = Op("c", seconds={"*": 1.0})
    graph = Graph("g", (*ops, alone), (Tensor("t", 0, 1, (1,)),), control=((1, 2),))
    assert [*moves_of(Problem(graph, devices(1, 1)))] == []


def test_readers_are_known_by_tensor():
    problem = Problem(fork(4), devices(1, 1))
    assert consumers_of(problem, 0) == [1, 2]
    assert remote_units(problem, 0) == [1, 2]


@pytest.mark.parametrize("seed", range(30))
def test_the_size_of_a_model_is_that_of_its_ops_and_moves(seed):
    problem = random_problem(seed)
    ops = int(problem.allowed.sum(axis=1)[problem.unit].sum())
    assert size_of_model(problem) == ops + len([*moves_of(problem)])


# A placement decides what is sent.
@needs_ortools
def test_units_are_where_they_may_be():
    placing = placed(Problem(pinned_and_grouped(), devices(1, 2, 1)))
    assert sorted(placing.on) == [(0, 1), (1, 2), (2, 0)]
    assert placing.devices(1) == [2]


@needs_ortools
@pytest.mark.parametrize(
    ("where", "sent"), [((0, 0, 0, 0), 0), ((0, 1, 1, 1), 1), ((0, 1, 0, 0), 2), ((0, 1, 1, 0), 3)]
)
def test_a_tensor_is_sent_once_to_each_device_that_reads_it(where, sent):
    placing = placed(Problem(fork(4), devices(1, 1)), *where)
    assert least(placing, sum(placing.received.values())) == [sent]
    placing = placed(Problem(fork(4), devices(1, 1)), *where)
    assert least(placing, sum(placing.occurs)) == [sent]


@needs_ortools
def test_moves_and_arrivals_are_known_by_tensor():
    placing = placed(Problem(fork(4), devices(1, 1, 1)))
    assert len(placing.moves_from_home[0]) == 6
    assert placing.arrivals_of[1] == [(1, 0), (1, 1), (1, 2)]
    assert placing.readers(0, 2) == [1, 2]
    assert placing.home(2) == 2


@needs_ortools
def test_a_model_is_not_made_further_than_its_time():
    with pytest.raises(OutOfTime):
        Placing(Problem(fork(4), devices(1, 1)), cp_model().CpModel(), lambda: True)
