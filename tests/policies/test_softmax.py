"""Closed forms against finite differences and autograd, and samples against probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from situate.policies.softmax import (
    Softmax,
    Surrogate,
    counts,
    kl_divergence,
    policy_gradient,
    softmax,
)

D, G, K = 3, 4, 6
ANY = np.ones((G, D), bool)


def samples(seed: int = 0):
    """Old and new preferences (D, G), devices (K, G) and advantages (K,)."""
    rng = np.random.default_rng(seed)
    old, new = rng.normal(size=(2, D, G)).astype(np.float32)
    return old, new, rng.integers(0, D, (K, G)).astype(np.int32), rng.normal(size=K)


def numerical(objective, u, step=1e-6):
    """Central differences of objective(u), in double precision."""
    u = u.astype(np.float64)
    gradient = np.empty_like(u)
    for cell in np.ndindex(u.shape):
        up, down = u.copy(), u.copy()
        up[cell] += step
        down[cell] -= step
        gradient[cell] = (objective(up) - objective(down)) / (2 * step)
    return gradient


def log_likelihood(u, devices, weights):
    p = np.exp(u) / np.exp(u).sum(axis=0)
    return sum(w * np.log(p[row, np.arange(G)]).sum() for w, row in zip(weights, devices))  # noqa: B905


def surrogate(u, old, devices, advantage, beta):
    """Post, Eq. 11, as it is written: a sum over samples and groups."""
    p = np.exp(u) / np.exp(u).sum(axis=0)
    q = np.exp(old.astype(np.float64))
    q /= q.sum(axis=0)
    total = 0.0
    for n, row in enumerate(devices):
        for m, j in enumerate(row):
            divergence = (q[:, m] * np.log(q[:, m] / p[:, m])).sum()
            total += p[j, m] / q[j, m] * advantage[n] - beta * divergence
    return total / len(devices)


def closed_form(old, new, devices, advantage, beta):
    q = softmax(old)
    weighted = counts(devices, advantage / len(devices), D)
    return Surrogate(q, weighted, beta).gradient(softmax(new))


# Gradients in closed form.
def test_the_policy_gradient_is_that_of_the_likelihood():
    _, u, devices, weights = samples()
    closed = policy_gradient(softmax(u), counts(devices, weights, D))
    expected = numerical(lambda v: log_likelihood(v, devices, weights), u)
    np.testing.assert_allclose(closed, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("beta", [0.0, 1.0, 7.5])
def test_the_surrogates_gradient_is_that_of_equation_11(beta):
    old, new, devices, advantage = samples(1)
    closed = closed_form(old, new, devices, advantage, beta)
    expected = numerical(lambda v: surrogate(v, old, devices, advantage, beta), new)
    np.testing.assert_allclose(closed, expected, rtol=1e-4, atol=1e-5)


def test_both_gradients_are_autograds():
    torch = pytest.importorskip("torch")
    old, new, devices, advantage = samples(2)
    u = torch.tensor(new, dtype=torch.float64, requires_grad=True)
    log_q = torch.log_softmax(torch.tensor(old, dtype=torch.float64), 0)
    log_p = torch.log_softmax(u, 0)
    rows, cells = torch.tensor(devices).long(), torch.arange(G)
    ratio = torch.exp(log_p[rows, cells] - log_q[rows, cells])
    divergence = (log_q.exp() * (log_q - log_p)).sum()
    value = (ratio.sum(1) * torch.tensor(advantage)).mean() - 2.0 * divergence
    (expected,) = torch.autograd.grad(value, u)
    closed = closed_form(old, new, devices, advantage, 2.0)
    np.testing.assert_allclose(closed, expected, rtol=1e-4, atol=1e-5)


def test_at_the_old_preferences_the_surrogate_ascends_the_policy_gradient():
    old, _, devices, advantage = samples(3)
    weighted = counts(devices, advantage / K, D)
    np.testing.assert_allclose(
        closed_form(old, old, devices, advantage, 5.0),
        policy_gradient(softmax(old), weighted),
        rtol=1e-4,
        atol=1e-6,
    )


# Samples and the cross-entropy estimate.
def test_samples_come_as_often_as_their_probability_says():
    policy = Softmax(ANY)
    policy.logits = samples(4)[0]
    devices = policy.sample(40_000, np.random.default_rng(0))
    frequency = counts(devices, np.full(len(devices), 1 / len(devices)), D)
    np.testing.assert_allclose(frequency, policy.probabilities, atol=0.01)


def test_a_device_that_is_not_allowed_is_never_drawn():
    allowed = np.array([[True, False, True], [False, False, True], [True, False, False]])
    policy = Softmax(allowed)
    for epsilon in (0.5, 0.0):
        devices = policy.sample(2_000, np.random.default_rng(0))
        assert allowed[np.arange(3), devices].all()
        policy.estimate(devices[:3], epsilon)
    assert (policy.probabilities.T[~allowed] == 0).all()


def test_the_estimate_is_the_elites_frequency_mixed_with_the_uniform_one():
    policy = Softmax(np.array([[True, True, False]]))
    policy.estimate(np.array([[0], [0], [0], [1]], np.int32), epsilon=0.2)
    np.testing.assert_allclose(policy.probabilities[:, 0], [0.7, 0.3, 0.0], rtol=1e-5)


def test_the_estimate_minimises_the_cross_entropy():
    """Theorem 1: no other probabilities give the elite a higher likelihood."""
    _, _, devices, _ = samples(5)
    policy = Softmax(ANY)
    policy.estimate(devices, epsilon=0.0)
    best = log_likelihood(policy.logits.astype(np.float64), devices, np.ones(K))
    rng = np.random.default_rng(0)
    for _ in range(100):
        other = policy.logits + rng.normal(scale=0.3, size=(D, G))
        assert log_likelihood(other, devices, np.ones(K)) < best


# Divergence and penalty.
def test_divergence_is_zero_of_itself_and_finite_of_what_lost_all_probability():
    p = softmax(samples(6)[0])
    assert kl_divergence(p, p) == pytest.approx(0.0, abs=1e-6)
    certain = np.zeros((D, G), np.float32)
    certain[0] = 1
    assert 0 < kl_divergence(p, certain) < 100


@pytest.mark.parametrize(("beta", "settles"), [(3.0, True), (5.0, False)])
def test_steps_along_the_penalty_overshoot_where_its_weight_exceeds_four(beta, settles):
    """Its curvature at even odds of two devices is beta / 2."""
    old = np.full((2, 1), 0.5, np.float32)
    logits = np.array([[0.01], [-0.01]], np.float32)
    penalty = Surrogate(old, np.zeros_like(old), beta)
    for _ in range(50):
        logits += penalty.gradient(softmax(logits))
    assert (kl_divergence(old, softmax(logits)) < 1e-6) == settles


# Groups that are split.
def test_parts_are_placed_as_the_whole_was():
    whole = Softmax(np.array([[True, True, False], [True, True, True]]))
    whole.logits[:, 0] += np.float32(np.log([1, 3, 5]))
    parts = whole.split(np.array([1, 0, 0], np.int32), ANY[:3] & [True, True, False])
    np.testing.assert_allclose(parts.probabilities[:, 0], [0.5, 0.5, 0], rtol=1e-6)
    np.testing.assert_allclose(parts.probabilities[:, 1:].T, [[0.25, 0.75, 0]] * 2, rtol=1e-6)


def test_a_part_may_go_where_its_whole_could_not():
    whole = Softmax(np.array([[True, False]]))
    parts = whole.split(np.zeros(2, np.int32), np.array([[True, True], [True, False]]))
    assert parts.probabilities[1, 0] >= 0.25
    assert parts.probabilities[:, 1].tolist() == [1, 0]
