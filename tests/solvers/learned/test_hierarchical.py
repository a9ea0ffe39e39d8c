"""The Hierarchical Planner as a learner: its learning, and faults that it must never have."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch")

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.evaluators.simulated import SimulatedMachine
from situate.solvers.learned.hierarchical import PAPER, RELEASE, TUNED, make, with_grouping
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.rewards import failure_seconds
from situate.solvers.learned.sequence_learner import generator
from tests.solvers.families import apart, chain, devices, families, layered, problem

SMALL = replace(PAPER, hidden=16, groups=8)
BOTH = {
    "paper": SMALL,
    "release": replace(RELEASE, hidden=16, width=16, groups=8),
    "tuned": replace(TUNED, hidden=16, groups=8),
}
PROBLEM = Problem(layered(6, 5, 1), devices(1, 1, 2))

both = pytest.mark.parametrize("settings", BOTH.values(), ids=BOTH.keys())


def measured(seconds, failed=False):
    outcome = np.full(len(seconds), int(failed), np.uint8)
    return Measurements(np.where(outcome == 0, seconds, np.inf), outcome)


def teach(learner, samples, on=PROBLEM):
    """Seconds (samples,) by the simulator."""
    machine, seconds = SimulatedMachine(on, threads=1), []
    while len(seconds) < samples:
        placements = learner.ask(min(learner.batch, samples - len(seconds)))
        measured = machine.measure(placements, len(seconds))
        learner.tell(placements, measured)
        seconds += measured.seconds.tolist()
    return np.array(seconds)


def parameters(learner):
    return learner.state()["parameters"]


def awkward():
    """Units of several ops, pins, ops that only some devices can run."""
    anywhere, elsewhere = {"x1": 1.0, "x2": 2.0, "x3": 1.0}, {"x2": 1.0, "x3": 3.0}
    ops = [
        Op(
            f"op{j}",
            seconds=elsewhere if j % 5 == 0 else anywhere,
            group=f"g{j % 4}" if j % 3 == 0 else None,
            device="d2" if j % 7 == 1 else None,
        )
        for j in range(30)
    ]
    tensors = [Tensor(f"t{j}", j, 1, (j + 1,)) for j in range(29)]
    return Problem(Graph("awkward", tuple(ops), tuple(tensors)), devices(1, 2, 3))


# Every sample respects the restrictions of the problem, and the policy improves.


@both
@pytest.mark.parametrize("groups", [1, 4, 60])
def test_every_sample_holds_to_groups_pins_and_devices(settings, groups):
    on = awkward()
    learner = make(on, replace(settings, groups=groups), 0)
    for _ in range(6):
        placements = learner.ask(learner.batch)
        assert placements.shape == (learner.batch, on.n)
        assert on.allowed[on.unit, placements].all()
        for unit in range(on.units):
            assert (np.ptp(placements[:, on.unit == unit], axis=1) == 0).all()
        learner.tell(placements, measured(1.0 + placements.mean(axis=1)))


@pytest.mark.parametrize("family", families())
def test_it_learns_on_every_kind_of_problem(family):
    on = problem(family)
    learner = make(on, BOTH["tuned"], 0)
    teach(learner, 2 * learner.batch, on)
    assert np.isfinite(parameters(learner)).all()


def test_tuned_ends_a_twentieth_below_the_best_of_its_first_sixty():
    on = Problem(layered(40, 8, 1), devices(1, 1, 1, bandwidth=10))
    seconds = teach(make(on, replace(TUNED, groups=32), 0), 600, on)
    assert seconds.min() < 0.95 * seconds[:60].min()


def test_paper_learns_that_a_chain_is_fastest_on_one_device():
    on = Problem(chain(60), devices(1, 1, 2))
    seconds = teach(make(on, replace(PAPER, hidden=64, groups=16), 0), 400, on)
    assert np.median(seconds[-60:]) == 60 < 0.9 * np.median(seconds[:4])


# Seeds decide all draws, also after a checkpoint.


@both
def test_the_same_seed_draws_the_same_placements_and_another_seed_others(settings):
    one, same, other = (make(PROBLEM, settings, seed) for seed in (1, 1, 2))
    times = teach(one, 30)
    np.testing.assert_array_equal(teach(same, 30), times)
    assert (teach(other, 30) != times).any()


def test_a_baseline_that_is_not_known_yet_is_restored_as_well():
    own = replace(SMALL, pessimistic=False)
    one, other = make(PROBLEM, own, 0), make(PROBLEM, own, 0)
    other.restore(one.state())
    np.testing.assert_array_equal(teach(one, 30), teach(other, 30))


@both
def test_what_a_checkpoint_restores_goes_on_as_if_nothing_had_happened(settings):
    one, other = make(PROBLEM, settings, 0), make(PROBLEM, settings, 0)
    teach(one, 3 * one.batch)
    other.restore(one.state())
    np.testing.assert_array_equal(teach(one, 30), teach(other, 30))
    np.testing.assert_array_equal(parameters(one), parameters(other))


def test_a_checkpoint_of_another_shape_is_refused_by_name():
    learner, other = make(PROBLEM, SMALL, 0), make(PROBLEM, replace(SMALL, groups=9), 0)
    with pytest.raises(SituateError, match=r"'parameters' is float32 .*another learner's"):
        learner.restore(other.state())
    with pytest.raises(SituateError, match="lacks 'baseline'"):
        learner.restore({k: v for k, v in learner.state().items() if k != "baseline"})


# Failures and equal rewards: the policy neither breaks nor stands still for ever.


@both
def test_when_all_samples_fail_nothing_becomes_nan_and_the_policy_moves_on(settings):
    learner = make(PROBLEM, settings, 0)
    before = learner.ask(learner.batch)
    learner.tell(before, measured(np.ones(len(before))))
    begin = parameters(learner)
    for _ in range(20):
        placements = learner.ask(learner.batch)
        learner.tell(placements, measured(np.ones(len(placements)), failed=True))
    assert np.isfinite(parameters(learner)).all()
    assert (parameters(learner) != begin).any()


def moved_by_equal_rewards(settings):
    """The distance that the parameters move in the first update, whose rewards are all the same."""
    learner = make(PROBLEM, settings, 0)
    begin = parameters(learner)
    learner.tell(learner.ask(learner.batch), measured(np.ones(learner.batch)))
    return np.abs(parameters(learner) - begin).max()


def test_the_first_placements_are_good_beside_a_failure_and_neither_good_nor_bad_by_themselves():
    assert moved_by_equal_rewards(replace(SMALL, pessimistic=True)) > 0
    assert moved_by_equal_rewards(SMALL) == 0


def test_entropy_moves_the_policy_where_rewards_do_not():
    assert moved_by_equal_rewards(replace(SMALL, pessimistic=False, entropy=1.0)) > 0


def late(ok):
    """The distance that the parameters move in update number `late`, and the baseline after it."""
    learner, succeeded = make(PROBLEM, replace(SMALL, pessimistic=True, late=1), 0), np.array(ok)
    learner.tell(learner.ask(4), measured(np.ones(4)))
    before = parameters(learner).copy()
    seconds = np.where(succeeded, np.arange(1.0, 5.0), np.inf)
    learner.tell(learner.ask(4), Measurements(seconds, (~succeeded).astype(np.uint8)))
    return parameters(learner) - before, float(learner.state()["baseline"][0])


def test_late_on_placements_that_failed_are_left_out():
    one, of_one = late([True, False, False, False])
    four, of_four = late([True] * 4)
    assert one.any()
    assert not np.array_equal(one, four)
    assert of_one - of_four == pytest.approx(0.1 * (np.sqrt(np.arange(1, 5)).mean() - 1))


def test_late_on_a_batch_that_failed_changes_nothing():
    moved, _ = late([False] * 4)
    assert not moved.any()


# Extreme times and trivial problems are survived.


@both
@pytest.mark.parametrize("seconds", [1e-300, 1e300])
def test_nothing_becomes_nan_however_long_steps_take(settings, seconds):
    learner = make(PROBLEM, settings, 0)
    for _ in range(10):
        placements = learner.ask(learner.batch)
        learner.tell(placements, measured(seconds * (1 + placements.mean(axis=1))))
    assert np.isfinite(parameters(learner)).all()


@both
def test_one_device_leaves_nothing_to_learn(settings):
    on = Problem(apart(5), devices(1))
    learner = make(on, settings, 0)
    for _ in range(3):
        placements = learner.ask(learner.batch)
        assert (placements == 0).all()
        learner.tell(placements, measured(np.arange(1.0, 1.0 + len(placements))))
    assert np.isfinite(parameters(learner)).all()


def test_a_last_batch_may_be_smaller():
    learner = make(PROBLEM, BOTH["tuned"], 0)
    assert len(teach(learner, learner.batch + 1)) == learner.batch + 1


# Baseline, groups and learning rate follow the settings.


def test_the_moving_average_begins_at_a_failure_and_keeps_nine_tenths():
    learner = make(PROBLEM, replace(SMALL, pessimistic=True), 0)
    expected = -np.sqrt(failure_seconds(PROBLEM))
    for seconds in (4.0, 9.0):
        assert learner.state()["baseline"][0] == pytest.approx(expected)
        learner.tell(learner.ask(4), measured(np.full(4, seconds)))
        expected = 0.9 * expected - 0.1 * np.sqrt(seconds)
    assert learner.state()["baseline"][0] == pytest.approx(expected)


def test_a_number_of_groups_and_a_rule_to_begin_with_can_be_asked_for():
    assert with_grouping(PAPER, Learning()).groups == 256
    settings = with_grouping(PAPER, Learning(grouping="metis", groups=12))
    assert (settings.groups, settings.grouping, settings.trust) == (12, "metis", TUNED.trust)


def test_a_trusted_rule_decides_the_first_groups():
    learner = make(PROBLEM, replace(TUNED, grouping="heavy-edge", groups=6, trust=40.0), 0)
    placements = learner.ask(200)
    together = (placements[:, :, None] == placements[:, None, :]).all(axis=0)
    assert len(np.unique(together, axis=0)) == 6


def test_the_learning_rate_falls_by_a_twentieth_every_fifty_updates_from_the_400th():
    rates = [RELEASE.rate(update) for update in (0, 399, 449, 450, 499, 500, 1000)]
    np.testing.assert_allclose(rates, 0.1 * 0.95 ** np.array([0, 0, 0, 1, 1, 2, 12]))


def test_exploration_ends_with_update_750():
    assert [RELEASE.exploration(update) for update in (0, 750, 751)] == [0.5, 0.5, 0.0]


# `paper` and `release` have each their own source, and nothing of the other's.


def test_paper_has_a_fixed_learning_rate_and_nothing_of_the_release():
    assert {PAPER.rate(update) for update in (0, 400, 4000)} == {0.1}
    assert (PAPER.groupings, PAPER.placements, PAPER.clip) == (1, 4, 1.0)
    assert (PAPER.tanh_constant, PAPER.temperature, PAPER.groups) == (5.0, 10.0, 256)
    assert (PAPER.noise, PAPER.pessimistic, PAPER.late, PAPER.frozen) == (0.0, False, None, None)
    assert PAPER.network == "text"
    assert not PAPER.redraw


def test_the_release_measures_one_placement_and_has_twenty_groups_a_device():
    learner = make(PROBLEM, replace(RELEASE, hidden=16, width=16), 0)
    assert learner.batch == 1
    assert learner.hierarchy.groups == 20 * PROBLEM.d
    many = Problem(layered(6, 5, 1), devices(*[1] * 14))
    assert make(many, replace(RELEASE, hidden=16, width=16), 0).hierarchy.groups == 256


def test_the_releases_limit_gives_way_to_a_number_that_is_asked_for():
    assert with_grouping(RELEASE, Learning(groups=12)).groups_per_device is None
    assert with_grouping(RELEASE, Learning()).groups_per_device == 20


def test_the_releases_grouper_cannot_begin_with_a_rule():
    with pytest.raises(SituateError, match="grouping: the released grouper begins at random"):
        with_grouping(RELEASE, Learning(grouping="bytes"))


FROZEN = replace(BOTH["release"], frozen=3)


def test_devices_of_groups_stay_from_the_frozen_update_on():
    learner, devices_of_groups = make(PROBLEM, FROZEN, 0), []
    for _ in range(6):
        placements = learner.ask(1)
        devices_of_groups.append(learner.state()["devices"])
        learner.tell(placements, measured(1.0 + placements.mean(axis=1)))
    assert all((devices == devices_of_groups[2]).all() for devices in devices_of_groups[3:])


def test_frozen_devices_are_restored():
    one, other = make(PROBLEM, FROZEN, 0), make(PROBLEM, FROZEN, 0)
    teach(one, 4)
    other.restore(one.state())
    np.testing.assert_array_equal(teach(one, 6), teach(other, 6))


def step(settings, draws_before):
    """The parameters after one update, whose placement was asked for after other draws."""
    learner = make(PROBLEM, settings, 0)
    for _ in range(draws_before):
        learner._last_draw = learner.hierarchy.draw(1, 1, generator(9), 0.5)
    placements = learner.ask(1) if not draws_before else np.zeros((1, PROBLEM.n), np.int32)
    learner.tell(placements, measured(np.array([4.0])))
    return parameters(learner)


def test_the_releases_gradient_does_not_depend_on_the_measured_placement():
    """With `redraw` a reward alone enters the update; without it the draw matters."""
    settings = BOTH["release"]
    np.testing.assert_array_equal(step(settings, 0), step(settings, 1))
    own = replace(settings, redraw=False)
    assert (step(own, 0) != step(own, 1)).any()
