"""Spotlight: its update, line by line of Algorithm 1, and its learning."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.problem import Problem  # noqa: E402
from situate.grouping import make_groups  # noqa: E402
from situate.policies.arithmetic import arithmetic  # noqa: E402
from situate.policies.gradient_ascent import Ascent  # noqa: E402
from situate.policies.group_policy import GroupPolicy  # noqa: E402
from situate.policies.shapes import Shape  # noqa: E402
from situate.solvers.learned.spotlight import (  # noqa: E402
    PAPER,
    Proximal,
    objective,
)
from tests.solvers.families import devices, fork  # noqa: E402
from tests.solvers.learning import beats_its_first_sixty, groups_as_asked, says_what_to_install  # noqa: E402

SUCCEEDED = np.ones(1, np.bool_)


@pytest.fixture(autouse=True)
def _quietly():
    """Threads that wait for one another cost more than these matrices."""
    with arithmetic():
        yield


def policy():
    problem = Problem(fork(4), devices(1, 1, 2))
    groups = make_groups(problem, np.arange(problem.units))
    return GroupPolicy(problem, groups, Shape(4), torch.Generator().manual_seed(0))


# Objective, reward and update follow Algorithm 1.


def test_the_objective_is_the_mean_of_line_17_over_stages():
    draws = np.random.default_rng(0)
    q, p = draws.dirichlet(np.ones(3), (2, 5)), draws.dirichlet(np.ones(3), (2, 5))
    actions, rewards = draws.integers(3, size=(2, 5)), np.array([0.5, -2.0])
    stages = [
        p[k, n, actions[k, n]] / q[k, n, actions[k, n]] * rewards[k]
        - 0.7 * (q[k, n] * np.log(q[k, n] / p[k, n])).sum()
        for k in range(2)
        for n in range(5)
    ]
    new, old = torch.from_numpy(p).log(), torch.from_numpy(q).log()
    result = objective(new, old, torch.from_numpy(actions), torch.from_numpy(rewards), 0.7)
    assert result.item() == pytest.approx(np.mean(stages))


def test_the_reward_is_the_mean_of_all_trials_before_less_this_one():
    update = Proximal(PAPER)
    rewards = [update._advantages(np.array([seconds]))[0] for seconds in (4.0, 2.0, 6.0)]
    assert rewards == [0.0, 2.0, -3.0]


def test_the_first_trial_changes_nothing():
    model = policy()
    ascent = Ascent(model, "plain", 1.0)
    before = ascent.state()["parameters"].copy()
    Proximal(PAPER).update(model, ascent, torch.zeros(1, 4, dtype=int), np.array([3.0]), SUCCEEDED)
    np.testing.assert_allclose(ascent.state()["parameters"], before, atol=1e-5)


@pytest.mark.parametrize(("seconds", "likelier"), [(1.0, True), (3.0, False)])
def test_a_trial_faster_than_those_before_becomes_likelier_and_a_slower_one_less_so(
    seconds, likelier
):
    model, update, actions = policy(), Proximal(PAPER), torch.tensor([[1, 0, 2, 1]])
    ascent = Ascent(model, "plain", 1.0)
    update.update(model, ascent, actions, np.array([2.0]), SUCCEEDED)
    before = model.log_probs(actions).gather(2, actions.unsqueeze(2)).sum()
    update.update(model, ascent, actions, np.array([seconds]), SUCCEEDED)
    after = model.log_probs(actions).gather(2, actions.unsqueeze(2)).sum()
    assert bool(after > before) == likelier


def test_a_heavier_penalty_keeps_the_policy_closer_to_the_old_one():
    moved = []
    for beta in (0.0, 10.0):
        model, actions = policy(), torch.tensor([[1, 0, 2, 1]])
        update = Proximal(dataclasses.replace(PAPER, beta=beta))
        update.numbers[:] = 2.0, 1
        update.update(model, Ascent(model, "plain", 1.0), actions, np.array([1.0]), SUCCEEDED)
        moved.append((model.log_probs(actions).exp() - 1 / 3).abs().mean().item())
    assert moved[1] < 0.5 * moved[0]


# As a method: it learns, names its extra, and follows `Learning.grouping`.


def test_it_beats_the_best_of_its_first_sixty_samples_by_a_tenth():
    assert beats_its_first_sixty("spotlight")


def test_without_pytorch_it_says_what_to_install(monkeypatch):
    assert says_what_to_install("spotlight", monkeypatch)


def test_a_grouping_asked_for_goes_before_that_of_the_settings():
    assert groups_as_asked("spotlight")
