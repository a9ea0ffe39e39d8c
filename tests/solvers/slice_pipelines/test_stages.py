"""The line of a step of slices, and its cuts into stages."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.solvers.slice_pipelines.sites import Sites
from situate.solvers.slice_pipelines.stages import Line, Weights, cut, line_of, weights_of
from tests.solvers.families import chain, devices
from tests.solvers.parts import training
from tests.solvers.slices import sliced


# Seconds and bytes at each place of a line.
def test_a_place_has_the_ops_of_all_slices_and_its_parameters_update():
    line = line_of(Problem(sliced(1, 2, update=5), devices(1, 2)))
    assert line.count == 2
    assert line.seconds.tolist() == [[2 * (1 + 2) + 5, 4 * (1 + 2) + 10]] * 2


def test_bytes_are_those_of_parameters_of_what_is_kept_and_of_what_crosses():
    line = line_of(Problem(sliced(1, 1, held=(7, 5)), devices(1)))
    assert line.persistent.tolist() == [7, 5]
    assert line.activations.tolist() == [0, 1]
    assert line.crossing.tolist() == [0, 2 * (1 + 5), 0]


def test_a_tensor_crosses_once_for_each_part_that_reads_it():
    of_slices = line_of(Problem(training(2, 2, slices=1 + 1), devices(1, 1)))
    # Forward and backward, each of two slices sends two parts to two readers.
    assert of_slices.crossing.tolist() == [0, 2 * 2 * 2 * 2, 0]


def test_a_whole_batch_may_count_as_one_slice():
    problem = Problem(training(2, 3), devices(1, 1))
    once = [op.phase == "update" or op.persistent > 0 for op in problem.graph.ops]
    slices = np.where(once, -1, 0)
    own = line_of(problem, Sites.of(problem), slices)
    assert own.count == 1
    assert own.seconds.tolist() == [[3.0]] * 3


def test_a_step_that_takes_its_batch_whole_is_refused_with_what_to_give():
    with pytest.raises(SituateError, match=r"takes its batch whole: give --slices"):
        line_of(Problem(chain(3), devices(1, 1)))


NONE = np.zeros(0, np.int64)


def line(seconds, kept=None, crossing=None) -> Line:
    """A line whose places take so many seconds on any of eight devices."""
    length = len(seconds)
    of_devices = np.repeat(np.array(seconds, float)[:, None], 8, axis=1)
    kept = np.zeros(length) if kept is None else np.array(kept, float)
    crossing = np.zeros(length + 1) if crossing is None else np.array(crossing, float)
    return Line(NONE, NONE, NONE, NONE, of_devices, np.zeros(length), kept, crossing)


def weights(of: Line, stages: int, room: float = np.inf) -> Weights:
    return weights_of(of, np.arange(stages), np.ones(stages, np.int64), np.full(stages, room))


def slowest(seconds, borders) -> float:
    return max(part.sum() for part in np.split(np.array(seconds), borders))


# Cuts of a line into stages.
def test_stages_take_their_shares_of_the_seconds():
    own, none = line([1.0] * 8), np.zeros(2, np.int64)
    weights_of_shares = weights_of(
        own, np.arange(2), none, np.full(2, np.inf), np.array([0.25, 0.75])
    )
    assert cut(own, weights_of_shares, 0.0).tolist() == [2]


@pytest.mark.parametrize("seed", range(20))
def test_the_slowest_stage_is_as_fast_as_in_any_cut(seed):
    rng = np.random.default_rng(seed)
    seconds, stages = rng.uniform(0, 1, 12), int(rng.integers(1, 5))
    result = cut(line(seconds), weights(line(seconds), stages), 0.0)
    every = combinations_with_replacement(range(13), stages - 1)
    best = min(slowest(seconds, borders) for borders in every)
    assert slowest(seconds, result) == pytest.approx(best)


def test_equal_places_are_shared_out_evenly():
    assert cut(line([1] * 8), weights(line([1] * 8), 4), 0.0).tolist() == [2, 4, 6]


def test_a_border_goes_where_fewer_bytes_cross_if_that_costs_little():
    of = line([1] * 20, crossing=[0, *([9] * 10), 1, *([9] * 8), 0])
    assert cut(of, weights(of, 2), 0.0).tolist() == [10]
    assert cut(of, weights(of, 2), 0.1).tolist() == [11]


def test_a_stage_keeps_no_more_than_fits():
    of = line([1] * 8, kept=[3, 3, 3, 1, 1, 1, 1, 1])
    assert cut(of, weights(of, 2), 0.0).tolist() == [4]
    assert cut(of, weights(of, 2, room=9), 0.0).tolist() == [3]


def test_memory_that_no_cut_keeps_to_is_left_aside():
    of = line([1] * 8, kept=[3] * 8)
    assert cut(of, weights(of, 2, room=9), 0.0).tolist() == [4]


def test_a_faster_device_gets_a_longer_stage():
    of = line([1] * 9)
    of.seconds[:, 1] /= 2
    assert cut(of, weights(of, 2), 0.0).tolist() == [3]


def test_there_may_be_more_stages_than_places():
    assert len(cut(line([1, 1]), weights(line([1, 1]), 4), 0.0)) == 3


@pytest.mark.parametrize("seed", range(20))
def test_borders_rise_and_keep_to_memory_wherever_that_is_possible(seed):
    rng = np.random.default_rng(seed)
    of = line(rng.uniform(0, 1, 30), rng.uniform(0, 1, 30), rng.uniform(0, 1, 31))
    room = float(rng.uniform(of.activations.sum() / 4, of.activations.sum() / 2))
    borders = cut(of, weights(of, 5, room), 0.1)
    assert (np.diff([0, *borders, 30]) >= 0).all()
    assert max(part.sum() for part in np.split(of.activations, borders)) <= room * (1 + 1e-12)
