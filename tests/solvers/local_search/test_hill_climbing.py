"""A climber climbs from a placement that runs, and goes on where it was."""

from __future__ import annotations

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.evaluators.measurements import Measurements
from situate.grouping import make_groups
from situate.solvers import solve
from situate.solvers.learned.groups import levels
from situate.solvers.learned.initial_placements import InitialPlacements
from situate.solvers.learned.learner import Learning
from situate.solvers.local_search import hill_climbing
from situate.solvers.local_search.hill_climbing import BATCH, MEASUREMENTS, HillClimber
from tests.solvers.families import chain, devices
from tests.solvers.learning import branching, first_sixty, groups_as_asked, learnt

PROBLEM = Problem(chain(40), devices(1, 1, 2))
WANTED = np.arange(40) // 10 % 3


def climber(seed=0, forbidden=()):
    groups = make_groups(PROBLEM, np.arange(PROBLEM.units))
    for op, device in forbidden:
        groups.allowed[op, device] = False
    return HillClimber(groups, levels(PROBLEM, groups), InitialPlacements(groups), seed)


def measured(seconds):
    failed = np.isinf(seconds)
    return Measurements(seconds, failed.astype(np.uint8))


def wrong(placements):
    """One more second for each op that is not where it is wanted."""
    return 1.0 + (placements != WANTED).sum(axis=1)


def climb(learner, samples, seconds=wrong):
    proposals = []
    while sum(map(len, proposals)) < samples:
        proposals.append(learner.ask(learner.batch))
        learner.tell(proposals[-1], measured(seconds(proposals[-1])))
    return np.concatenate(proposals)


def test_it_finds_what_is_wanted():
    assert wrong(climb(climber(), 2000)).min() == 1


def test_everything_on_one_device_comes_first_then_a_draw_of_each_scale():
    proposals = climb(climber(), 1)
    assert proposals[:3].tolist() == [[device] * 40 for device in range(3)]
    changes = (np.diff(proposals[3:], axis=1) != 0).sum(axis=1)
    assert len(changes) == 3
    assert changes[0] < 12 < changes[-1]


def test_then_come_neighbours_of_the_best():
    learner = climber()
    first = climb(learner, 1)
    best = first[wrong(first).argmin()]
    again, *near = learner.ask(BATCH)
    assert again.tolist() == best.tolist()
    for placement in near:
        moved = np.flatnonzero(placement != best)
        assert 0 < len(moved) < 40
        assert len(np.unique(placement[moved])) == 1


def test_a_lucky_time_is_not_believed():
    learner = climber()
    first = learner.ask(learner.batch)
    learner.tell(first, measured(np.where(np.arange(len(first)) == 1, 0.5, 2.0)))
    for _ in range(MEASUREMENTS - 1):
        proposals = learner.ask(BATCH)
        assert proposals[0].tolist() == first[1].tolist()
        learner.tell(proposals, measured(np.array([1.0, 3.0, 3.0, 3.0])))
    assert learner.state()["numbers"][1] == np.mean([0.5, 1.0, 1.0, 1.0])
    assert learner.ask(BATCH)[0].tolist() != first[1].tolist()


def test_where_times_are_exact_once_more_is_enough():
    learner, at = climber(), []
    for _ in range(50):
        best = learner.state()["best"].tolist()
        proposals = climb(learner, 1)
        at.append(best in proposals.tolist())
    assert np.flatnonzero(at[1:]).tolist() == [0]


def test_a_failure_where_it_is_does_not_drive_it_away():
    learner = climber()
    climb(learner, 1)
    before = learner.state()["numbers"][1]
    learner.tell(learner.ask(BATCH), measured(np.full(BATCH, np.inf)))
    assert learner.state()["numbers"][1] == before


def test_of_two_that_take_as_long_it_goes_to_the_later():
    learner = climber()
    climb(learner, 3 + BATCH, lambda placements: np.ones(len(placements)))
    assert len(np.unique(learner.state()["best"])) == 2


def test_until_a_placement_runs_it_draws_blocks_of_every_size():
    proposals = climb(climber(), 400, lambda placements: np.full(len(placements), np.inf))
    changes = (np.diff(proposals[3:], axis=1) != 0).sum(axis=1)
    assert changes.min() < 12 < changes.max()


def test_no_group_is_where_it_may_not_run():
    proposals = climb(climber(forbidden=[(3, 0), (17, 1), (17, 2)]), 500)
    assert (proposals[:, 3] != 0).all()
    assert (proposals[:, 17] == 0).all()


def test_where_nothing_can_move_it_asks_for_the_same_again():
    stuck = climber(forbidden=[(op, device) for op in range(40) for device in (1, 2)])
    assert (climb(stuck, 20) == 0).all()


def test_restored_it_goes_on_as_it_would_have():
    one, other = climber(), climber()
    climb(one, 100)
    other.restore({name: array.copy() for name, array in one.state().items()})
    np.testing.assert_array_equal(climb(one, 100), climb(other, 100))


@pytest.mark.parametrize("seed", [0, 1])
def test_it_ends_below_the_best_of_its_first_sixty(seed):
    result = learnt("hill_climbing", seed=seed)
    assert result.value <= 0.9 * first_sixty(result)


def test_it_begins_with_a_plan_that_it_is_given():
    planned = np.arange(40, dtype=np.int32) % 3
    learning = Learning(start=lambda: planned, grouping="none")
    learner = hill_climbing.learner(PROBLEM, learning, 60, 0)
    assert learner.ask(learner.batch)[0].tolist() == planned.tolist()


def test_a_grouping_asked_for_goes_before_its_own():
    assert groups_as_asked("hill_climbing")


def test_noise_is_not_the_end_of_it():
    learning = Learning(noise=0.05)
    noisy = solve(branching(), "hill_climbing", evaluations=1200, learning=learning)
    alone = solve(branching(), "single").value
    assert noisy.value < 0.8 * alone
