"""Algorithm 1 step by step, faults that it must never have, and that its four methods learn."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.errors import SituateError
from situate.evaluators.measurements import Measurements
from situate.grouping import make_groups
from situate.solvers.learned.initial_placements import InitialPlacements
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.post import PAPER, TUNED, SoftmaxLearner, SoftmaxSettings, make
from tests.solvers.families import devices, fork
from tests.solvers.learning import first_sixty, learnt

POST = PAPER["post"]
PROBLEM = Problem(fork(10), devices(1, 1, 2))


def learner(settings=POST, samples=240, problem=PROBLEM, seed=0):
    groups = make_groups(problem, np.arange(problem.units))
    return SoftmaxLearner(groups, settings, samples, 100.0, seed)


def measurements(seconds, failed=False):
    outcome = np.full(len(seconds), int(failed), np.uint8)
    return Measurements(np.where(outcome == 0, seconds, np.inf), outcome)


def teach(learner, samples, seconds=lambda placements: 1.0 + (placements != 1).mean(axis=1)):
    for _ in range(samples // learner.batch):
        placements = learner.ask(learner.batch)
        learner.tell(placements, measurements(seconds(placements)))


# The rhythm of updates is that of Algorithm 1.


def test_it_is_told_of_twelve_samples_and_minimises_after_sixty():
    post, minimised = learner(), []
    for _ in range(20):
        assert post.batch == 12
        placements = post.ask(12)
        post.tell(placements, measurements(np.ones(12)))
        minimised.append(len(post.state()["times"]) == 0)
    assert np.flatnonzero(minimised).tolist() == [4, 9, 14, 19]


def test_alone_each_part_asks_for_its_own_batch():
    assert learner(dataclasses.replace(POST, gradient=None)).batch == 60
    assert learner(dataclasses.replace(POST, cross_entropy=False)).batch == 12


# Ascent, exploration and the elite move the distributions as the equations say.


@pytest.mark.parametrize("gradient", ["plain", "proximal"])
def test_ascent_makes_a_good_sample_likelier_and_a_bad_one_less_so(gradient):
    ascent = learner(SoftmaxSettings(gradient=gradient, cross_entropy=False, K=2))
    placements = np.zeros((2, PROBLEM.n), np.int32)
    placements[1] = 1
    ascent.tell(placements, measurements(np.array([2.0, 1.0])))
    p = ascent.policy.probabilities
    assert (p[1] > 1 / 3).all()
    assert (p[0] < 1 / 3).all()


def test_exploration_falls_linearly_to_nothing():
    ce, least = learner(SoftmaxSettings(gradient=None), samples=240), []
    for _ in range(4):
        placements = np.zeros((60, PROBLEM.n), np.int32)
        ce.tell(placements, measurements(np.ones(60)))
        least.append(float(ce.policy.probabilities[1:].sum(axis=0).max()))
    np.testing.assert_allclose(
        least, [2 / 3 * 0.1 * remaining for remaining in (0.75, 0.5, 0.25, 0)], 1e-4, 1e-9
    )


def test_with_memory_an_elite_of_earlier_batches_counts_again():
    ce = learner(SoftmaxSettings(gradient=None, memory=2, epsilon=0.0, N=10))
    good, bad = np.ones((10, PROBLEM.n), np.int32), np.zeros((10, PROBLEM.n), np.int32)
    ce.tell(good, measurements(np.ones(10)))
    ce.tell(bad, measurements(np.full(10, 2.0)))
    assert (ce.policy.probabilities[1] == 1).all()
    ce.tell(bad, measurements(np.full(10, 2.0)))
    assert (ce.policy.probabilities[0] == 1).all()


def test_the_first_samples_can_be_single_devices():
    placements = learner(SoftmaxSettings(single_first=True)).ask(12)
    np.testing.assert_array_equal(placements[:3], np.arange(3)[:, None].repeat(PROBLEM.n, axis=1))
    assert all(len(np.unique(placement)) > 1 for placement in placements[3:])


def test_of_more_devices_than_a_batch_holds_the_first_are_measured_alone():
    many = Problem(fork(10), devices(*[1] * 15))
    placements = learner(SoftmaxSettings(single_first=True), problem=many).ask(12)
    np.testing.assert_array_equal(placements, np.arange(12)[:, None].repeat(many.n, axis=1))


def test_the_penalty_doubles_beyond_the_target_and_halves_below_it():
    far = learner(SoftmaxSettings(cross_entropy=False, target=1e-9))
    near = learner(SoftmaxSettings(cross_entropy=False, target=1e9))
    teach(far, 36)
    teach(near, 36)
    assert far.state()["numbers"][1] == 8
    assert near.state()["numbers"][1] == 1 / 8


# Extreme times and failures leave distributions that are distributions.


@pytest.mark.parametrize("gradient", ["plain", "proximal", None])
@pytest.mark.parametrize("seconds", [1e-300, 1.0, 1e12])
def test_nothing_becomes_nan_however_long_steps_take(gradient, seconds):
    settings = SoftmaxSettings(gradient=gradient, cross_entropy=gradient != "plain")
    extreme = learner(settings)
    teach(extreme, 240, lambda placements: seconds * (1 + placements.mean(axis=1)))
    assert np.isfinite(extreme.policy.probabilities).all()


def test_when_all_samples_fail_the_policy_stays_a_distribution():
    failing = learner()
    for _ in range(20):
        placements = failing.ask(12)
        failing.tell(placements, measurements(np.ones(12), failed=True))
    np.testing.assert_allclose(failing.policy.probabilities.sum(axis=0), 1, rtol=1e-5)


def test_what_failed_is_not_promising_however_little_ran():
    ce = learner(SoftmaxSettings(gradient=None, epsilon=0.0, N=20))
    placements = np.zeros((20, PROBLEM.n), np.int32)
    placements[7] = 1
    succeeded = np.arange(20) == 7
    ce.tell(placements, Measurements(np.where(succeeded, 1.0, np.inf), np.where(succeeded, 0, 1)))
    assert (ce.policy.probabilities[1] == 1).all()


def test_where_nothing_ran_there_is_nothing_to_minimise():
    ce = learner(SoftmaxSettings(gradient=None, epsilon=0.0, N=20))
    before = ce.policy.probabilities
    ce.tell(ce.ask(20), measurements(np.ones(20), failed=True))
    np.testing.assert_array_equal(ce.policy.probabilities, before)


# A checkpoint restores the learner to the bit, or is refused by name.


def test_what_a_checkpoint_restores_goes_on_as_if_nothing_had_happened():
    one, other = learner(), learner()
    teach(one, 96)
    other.restore(one.state())
    for _ in range(5):
        placements = one.ask(12)
        np.testing.assert_array_equal(other.ask(12), placements)
        measured = measurements(1.0 + placements.mean(axis=1))
        one.tell(placements, measured)
        other.tell(placements, measured)
    np.testing.assert_array_equal(one.policy.logits, other.policy.logits)


def test_a_checkpoint_of_another_shape_is_refused_by_name():
    state = learner(problem=Problem(fork(9), devices(1, 1, 2))).state()
    with pytest.raises(SituateError, match=r"'logits' is float32 .3, 9., not float32 .3, 10."):
        learner().restore(state)
    with pytest.raises(SituateError, match="lacks 'logits'"):
        learner().restore({key: value for key, value in state.items() if key != "logits"})


# With few samples the rhythm shortens, and the first samples can be chosen.


@pytest.mark.parametrize(
    ("samples", "period"), [(2400, 60), (600, 60), (240, 24), (200, 12), (60, 12)]
)
def test_where_samples_are_few_it_minimises_more_often_after_whole_ascents(samples, period):
    settings = SoftmaxSettings(gradient=None, minimisations=10)
    assert learner(settings, samples).batch == period


@pytest.mark.parametrize("samples", [12, 60, 239])
def test_however_few_samples_it_climbs_before_it_minimises(samples):
    settings = SoftmaxSettings(minimisations=10)
    assert learner(settings, samples).settings.N == 2 * settings.K


def test_a_plan_that_is_given_is_measured_before_single_devices():
    groups = make_groups(PROBLEM, np.arange(PROBLEM.units))
    planned = np.arange(len(groups), dtype=np.int32) % 3
    settings = SoftmaxSettings(single_first=True)
    first = InitialPlacements(groups, lambda: planned)
    placements = SoftmaxLearner(groups, settings, 240, 100.0, 0, first).ask(12)
    np.testing.assert_array_equal(placements[0], groups.expand(planned[None])[0])
    np.testing.assert_array_equal(placements[1:4, 0], [0, 1, 2])


def test_what_a_group_may_not_run_on_is_drawn():
    problem = Problem(fork(10), devices(1, 1, 2))
    groups = make_groups(problem, np.arange(problem.units))
    groups.allowed[0, 1] = False
    settings = SoftmaxSettings(single_first=True)
    second = SoftmaxLearner(groups, settings, 240, 100.0, 0).ask(12)[1]
    assert second[groups.of_op == 0].tolist() != [1]
    assert (second[groups.of_op != 0] == 1).all()


def test_a_placement_to_start_with_is_measured_first_and_made_when_it_is_asked_for():
    planned, calls = np.arange(PROBLEM.n, dtype=np.int32) % 3, []

    def start():
        calls.append(True)
        return planned

    tuned = make(TUNED["post"], PROBLEM, Learning(start=start, grouping="none"), 240, 0)
    assert calls == []
    assert tuned.ask(12)[0].tolist() == planned.tolist()
    tuned.tell(np.zeros((12, PROBLEM.n), np.int32), measurements(np.ones(12)))
    tuned.ask(12)
    assert calls == [True]


def test_the_papers_settings_start_with_what_they_draw():
    def start():
        raise AssertionError

    make(POST, PROBLEM, Learning(start=start), 240, 0).ask(12)


def refined(samples=240, *, settings=POST):
    """Two groups up to half of the samples, then one for every op."""
    groups = make_groups(PROBLEM, np.arange(PROBLEM.units))
    coarse = make_groups(PROBLEM, np.arange(PROBLEM.units) // 5)
    return SoftmaxLearner(groups, settings, samples, 100.0, 0, coarser=[(coarse, 0.5)])


# Groups become finer during a search, and inherit what was learnt.


def test_few_groups_are_placed_first_and_their_parts_later():
    post, groups = refined(120), []
    for _ in range(10):
        placements = post.ask(12)
        groups.append(len(np.unique(placements, axis=1).T))
        teach(post, 12)
    assert max(groups[:5]) == 2
    assert min(groups[5:]) > 2


def test_a_finer_group_begins_where_the_coarser_one_ended():
    ce = refined(120, settings=dataclasses.replace(POST, gradient=None, epsilon=0.0))
    placements = np.repeat([[0] * 5 + [1] * 5], 60, axis=0).astype(np.int32)
    ce.tell(placements, measurements(np.ones(60)))
    assert len(ce.groups) == PROBLEM.n
    np.testing.assert_array_equal(ce.ask(60), placements)


def test_candidates_for_the_elite_stay_when_groups_become_finer():
    settings = dataclasses.replace(POST, gradient=None, epsilon=0.0, memory=2)
    ce = refined(120, settings=settings)
    good = np.repeat([[1] * 5 + [0] * 5], 60, axis=0).astype(np.int32)
    ce.tell(good, measurements(np.ones(60)))
    ce.tell(ce.ask(60) * 0, measurements(np.full(60, 2.0)))
    np.testing.assert_array_equal(ce.ask(1), good[:1])


def test_a_checkpoint_with_times_of_other_samples_is_refused():
    one = learner()
    state = {**one.state(), "times": np.append(one.state()["times"], 1.0)}
    with pytest.raises(SituateError, match="'devices' and 'times' are of different samples"):
        learner().restore(state)


@pytest.mark.parametrize("samples", [96, 120, 132])
def test_a_checkpoint_says_how_fine_the_groups_are(samples):
    one, other = refined(), refined()
    teach(one, samples)
    other.restore(one.state())
    np.testing.assert_array_equal(other.ask(12), one.ask(12))
    assert len(other.groups) == (2 if samples < 120 else PROBLEM.n)


def test_a_checkpoint_without_numbers_is_refused_by_name():
    state = refined().state()
    for numbers in (np.empty(0), np.zeros((), complex), np.array("many")):
        with pytest.raises((SituateError, ValueError)):
            refined().restore({**state, "numbers": numbers})
    with pytest.raises(SituateError, match="lacks 'numbers'"):
        refined().restore({key: value for key, value in state.items() if key != "numbers"})


@pytest.mark.parametrize(
    ("learning", "groups"),
    [
        (Learning(), 16),
        (Learning(groups=20), 20),
        (Learning(grouping="none"), 60),
        (Learning(start=lambda: np.zeros(60, np.int32)), 60),
    ],
)
def test_tuned_post_begins_with_few_groups_unless_others_or_a_plan_are_given(learning, groups):
    problem = Problem(fork(60), devices(1, 1, 2))
    assert len(make(TUNED["post"], problem, learning, 240, 0).groups) == groups


# Each method learns, in both settings.


@pytest.mark.parametrize("method", PAPER)
@pytest.mark.parametrize(("settings", "share"), [("tuned", 0.9), ("paper", 0.95)])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_method_ends_below_the_best_of_its_first_sixty(method, settings, share, seed):
    result = learnt(method, settings, seed)
    assert result.value <= share * first_sixty(result)


def test_tuned_settings_are_of_the_same_methods_as_those_of_the_paper():
    assert TUNED.keys() == PAPER.keys()
    for method, settings in TUNED.items():
        assert settings.gradient == PAPER[method].gradient
        assert settings.cross_entropy == PAPER[method].cross_entropy
