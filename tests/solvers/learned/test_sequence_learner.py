"""Properties of every learner with a sequence-to-sequence policy, in both settings."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec import structs

torch = pytest.importorskip("torch")

from situate.data.problem import Problem  # noqa: E402
from situate.errors import SituateError  # noqa: E402
from situate.evaluators.measurements import Measurements  # noqa: E402
from situate.solvers.learned import colocrl, spotlight  # noqa: E402
from situate.solvers.learned.learner import Learning  # noqa: E402
from situate.solvers.learned.sequence_learner import generator  # noqa: E402
from tests.solvers.families import chain, devices, fork  # noqa: E402

PROBLEM = Problem(fork(6), devices(1, 1, 2))
METHODS = {
    f"{module.__name__.rsplit('.', 1)[1]} {settings}": (module, settings)
    for module in (spotlight, colocrl)
    for settings in ("paper", "tuned")
}

pytestmark = pytest.mark.parametrize("method", METHODS)


def learner(method, problem=PROBLEM, seed=0, noise=0.0):
    module, name = METHODS[method]
    settings = getattr(module, name.upper())
    small = dataclasses.replace(settings, shape=dataclasses.replace(settings.shape, hidden=8))
    return module.make(problem, Learning(grouping="none", noise=noise), small, seed)


def measured(seconds):
    """Infinite seconds are failures."""
    return Measurements(seconds, np.where(np.isfinite(seconds), 0, 1).astype(np.uint8))


def teach(learner, batches, seconds=lambda placements: 1.0 + (placements != 1).mean(axis=1)):
    """The placements asked for."""
    proposals = []
    for _ in range(batches):
        proposals.append(learner.ask(learner.batch))
        learner.tell(proposals[-1], measured(seconds(proposals[-1])))
    return proposals


def likelihood(learner, device):
    """Mean probability of every op's going to the device."""
    with torch.no_grad():
        devices = torch.full((1, PROBLEM.n), device)
        return learner.policy.log_probs(devices)[0, :, device].exp().mean().item()


# It learns, and its draws depend on the seed alone.


def test_its_policy_comes_to_prefer_what_is_measured_to_be_good(method):
    taught = learner(method)
    teach(taught, 30)
    assert likelihood(taught, 1) > 0.4


def test_every_batch_is_one_of_the_same_seed_and_of_no_other(method):
    one, same, other = (teach(learner(method, seed=seed), 3) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.array_equal(one, other)


def test_placements_do_not_depend_on_the_number_of_threads(method):
    before, proposals = torch.get_num_threads(), []
    for threads in (1, 4):
        torch.set_num_threads(threads)
        proposals.append(teach(learner(method), 2))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    np.testing.assert_array_equal(*proposals)


def test_pytorchs_own_random_numbers_are_left_alone(method):
    before = torch.get_rng_state()
    teach(learner(method), 2)
    assert torch.equal(torch.get_rng_state(), before)


# Restrictions, small problems and failures are survived.


def test_pins_hold_for_every_sample(method):
    free, pins = fork(6), {2: "d1", 5: "d2"}
    ops = tuple(structs.replace(op, device=pins.get(i)) for i, op in enumerate(free.ops))
    problem = Problem(dataclasses.replace(free, ops=ops), PROBLEM.cluster)
    for placements in teach(learner(method, problem), 5):
        assert (placements[:, 2] == 1).all()
        assert (placements[:, 5] == 2).all()


@pytest.mark.parametrize(
    "problem",
    [Problem(fork(5), devices(1)), Problem(chain(1), devices(1, 1)), Problem(chain(1), devices(1))],
    ids=["one device", "one group", "one of each"],
)
def test_one_device_and_one_group_are_learnt_on_too(method, problem):
    taught = learner(method, problem)
    for placements in teach(taught, 3, lambda p: 1.0 + p.mean(axis=1)):
        assert (placements < problem.d).all()
    assert np.isfinite(taught.state()["parameters"]).all()


def test_when_all_samples_fail_nothing_becomes_nan(method):
    failing = learner(method)
    teach(failing, 4, lambda placements: np.full(len(placements), np.inf))
    assert np.isfinite(failing.state()["parameters"]).all()
    teach(failing, 4)
    assert np.isfinite(failing.state()["parameters"]).all()


@pytest.mark.parametrize("seconds", [0.0, 1e300])
def test_nothing_becomes_nan_however_long_steps_take(method, seconds):
    extreme = learner(method)
    draws = np.random.default_rng(0)
    teach(extreme, 6, lambda p: seconds * draws.lognormal(0, 3, len(p)))
    assert np.isfinite(extreme.state()["parameters"]).all()
    assert extreme.ask(3).shape == (3, PROBLEM.n)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_a_budget_that_ends_within_a_batch_is_learnt_from(method, noise):
    cut = learner(method, noise=noise)
    remaining = max(1, cut.batch - 3)
    placements = cut.ask(remaining)
    assert len(placements) == remaining
    cut.tell(placements, measured(1.0 + placements.mean(axis=1)))
    assert cut.state()["samples"].tolist() == [remaining]


# A checkpoint restores the learner to the bit.


def test_what_a_checkpoint_restores_goes_on_as_if_nothing_had_happened(method):
    one, other = learner(method), learner(method)
    teach(one, 3)
    teach(other, 2)
    other.restore({name: array.copy() for name, array in one.state().items()})
    np.testing.assert_array_equal(teach(one, 4), teach(other, 4))
    for name, array in one.state().items():
        np.testing.assert_array_equal(other.state()[name], array)


def test_a_checkpoint_of_another_shape_is_refused_by_name(method):
    state = learner(method, Problem(fork(5), PROBLEM.cluster)).state()
    with pytest.raises(SituateError, match=r"'(mean|parameters)' is") as refused:
        learner(method).restore(state)
    assert "\n" not in str(refused.value)


def test_every_purpose_has_a_generator_of_its_own(method):
    del method
    seeds = {
        generator(*key).initial_seed() for key in [(0, 0), (0, 1), (1, 0), (0, 1, 0), (0, 0, 1)]
    }
    assert len(seeds) == 5
