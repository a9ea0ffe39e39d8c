"""The placer's samples follow its log-probabilities, which have exact gradients."""

from __future__ import annotations

import itertools
import math

import pytest

torch = pytest.importorskip("torch")

from situate.policies.arithmetic import arithmetic  # noqa: E402
from situate.policies.seq2seq import (  # noqa: E402
    LogitScale,
    Placer,
    divergence,
    entropy,
)


@pytest.fixture(autouse=True)
def _quietly():
    """Threads that wait for one another cost more than these matrices."""
    with arithmetic():
        yield


GROUPS, FEATURES, DEVICES = 3, 4, 3
OPEN = torch.ones(GROUPS, DEVICES, dtype=torch.bool)
OPTIONS = [
    {},
    {"score": "general"},
    {"layers": 2, "aligned": True},
    {"scale": LogitScale(0.5, 1.5)},
]


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def placer(**options):
    options = {"uniform": False, "hidden": 5, "width": 4, **options}
    placer_made = Placer(FEATURES, DEVICES, generator=draws(1), **options)
    for parameter in placer_made.parameters():
        parameter.data *= 3
    return placer_made


def groups(*leading, dtype=torch.float32):
    return torch.randn((*leading, GROUPS, FEATURES), generator=draws(2), dtype=dtype)


# Gradients and samples against the log-probabilities.
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_gradients_are_those_of_finite_differences(options):
    policy, memory_read = placer(**options).double(), groups(dtype=torch.float64)
    devices, allowed = torch.tensor([[0, 2, 1], [1, 1, 0]]), OPEN.clone()
    allowed[1, 0] = False
    parameters = list(policy.parameters())

    def likelihood(step=0.0, direction=()):
        for parameter, part in zip(parameters, direction, strict=False):
            parameter.data += step * part
        log_probs = policy.log_probs(policy.encode(memory_read), devices, allowed)
        return (
            log_probs.gather(2, devices.unsqueeze(2)).squeeze(2)
            @ torch.tensor([1.0, -2.0, 3.0]).double()
        )

    for i in range(2):
        gradients = torch.autograd.grad(likelihood()[i], parameters)
        for seed in range(3):
            shapes, draw = [p.shape for p in parameters], draws(seed)
            direction = [torch.randn(s, generator=draw, dtype=torch.float64) for s in shapes]
            ahead = likelihood(1e-5, direction)[i].item()
            behind = likelihood(-2e-5, direction)[i].item()
            likelihood(1e-5, direction)
            slope = sum((g * d).sum().item() for g, d in zip(gradients, direction, strict=True))
            assert (ahead - behind) / 2e-5 == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_samples_are_as_frequent_as_their_log_probabilities_say(options):
    policy, allowed, k = placer(**options), OPEN.clone(), 20000
    allowed[1, 2] = False
    with torch.no_grad():
        memory = policy.encode(groups())
        devices_drawn = policy.sample(memory, allowed, k, draws(3))
        every = torch.tensor(list(itertools.product(range(DEVICES), repeat=GROUPS)))
        of_each = policy.log_probs(memory, every, allowed).gather(2, every.unsqueeze(2))
    probability = of_each.sum((1, 2)).exp()
    number = (devices_drawn * torch.tensor([DEVICES**2, DEVICES, 1])).sum(1)
    frequency = torch.bincount(number, minlength=len(every)) / k
    assert float(probability.sum()) == pytest.approx(1, abs=1e-5)
    assert float(probability.max() - probability.min()) > 0.05
    error = (frequency - probability) / (probability * (1 - probability) / k).sqrt().clamp(1e-6)
    assert float(error.abs().max()) < 4


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_activations_of_the_draw_are_those_of_the_log_probabilities(options):
    policy, allowed, k = placer(**options), OPEN.clone(), 5
    memory = policy.encode(groups())
    devices, activations = policy.draw(memory, allowed, k, draws(3), noise=0.5)
    slopes = []
    for activations_known in (activations, ()):
        memory = policy.encode(groups())
        log_probs = policy.log_probs(memory, devices, allowed, activations_known)
        slopes.append(torch.autograd.grad(log_probs.square().sum(), list(policy.parameters())))
    torch.testing.assert_close(*slopes)


# Options: allowed devices, uniform start, tanh, noise.
@pytest.mark.parametrize("layers", [1, 2])
def test_a_device_that_is_not_allowed_is_never_drawn_however_likely(layers):
    policy = placer(layers=layers)
    policy.head.bias.data = torch.tensor([50.0, 0.0, 0.0])
    allowed = torch.tensor([[False, True, True], [False, False, True], [True, False, False]])
    memory = policy.encode(groups())
    devices_drawn = policy.sample(memory, allowed, 500, draws())
    assert allowed.gather(1, devices_drawn.T).all()
    log_probs = policy.log_probs(memory, devices_drawn, allowed)
    assert log_probs[:, ~allowed].isneginf().all()
    assert log_probs[:, allowed].isfinite().all()


def test_it_begins_as_a_uniform_distribution_over_what_is_allowed():
    allowed = OPEN.clone()
    allowed[0, 1] = False
    policy = placer(uniform=True, aligned=True)
    log_probs = policy.log_probs(
        policy.encode(groups()), torch.zeros(1, GROUPS, dtype=int), allowed
    )
    expected = allowed / allowed.sum(1, keepdim=True)
    torch.testing.assert_close(log_probs.exp()[0], expected)


def test_logits_stay_within_the_tanh_constant():
    policy = placer(scale=LogitScale(tanh_constant=0.5))
    policy.head.bias.data = torch.tensor([100.0, 0.0, -100.0])
    log_probs = policy.log_probs(policy.encode(groups()), torch.zeros(1, GROUPS, dtype=int), OPEN)
    spread = log_probs.amax(2) - log_probs.amin(2)
    torch.testing.assert_close(spread, torch.ones(1, GROUPS))


def test_samples_with_groups_of_their_own_are_as_if_each_were_alone():
    policy, k = placer(aligned=True), 4
    memory_read, devices = groups(k), torch.randint(DEVICES, (k, GROUPS), generator=draws())
    allowed = OPEN.expand(k, -1, -1)
    together = policy.log_probs(policy.encode(memory_read), devices, allowed)
    for i in range(k):
        alone = policy.log_probs(policy.encode(memory_read[i]), devices[i : i + 1], OPEN)
        torch.testing.assert_close(together[i : i + 1], alone)
    assert policy.sample(policy.encode(memory_read), allowed, k, draws()).shape == (k, GROUPS)


def test_noise_makes_a_sharp_policy_draw_other_devices():
    policy = placer()
    policy.head.bias.data = torch.tensor([30.0, 0.0, 0.0])
    memory = policy.encode(groups())
    assert (policy.sample(memory, OPEN, 200, draws()) == 0).all()
    assert (policy.sample(memory, OPEN, 200, draws(), noise=2.0) != 0).any()


@pytest.mark.parametrize(("count", "devices"), [(1, 3), (3, 1), (1, 1)])
def test_one_group_and_one_device_are_policies_too(count, devices):
    policy = Placer(FEATURES, devices, 4, generator=draws())
    allowed = torch.ones(count, devices, dtype=torch.bool)
    memory = policy.encode(groups()[:count])
    devices_drawn = policy.sample(memory, allowed, 5, draws())
    assert devices_drawn.shape == (5, count)
    assert policy.log_probs(memory, devices_drawn, allowed).isfinite().all()


# The policy touches no global state.
def test_pytorchs_own_state_is_left_alone():
    before = torch.get_rng_state(), torch.get_num_threads(), torch.get_default_dtype()
    policy = placer()
    policy.sample(policy.encode(groups()), OPEN, 3, draws())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert (torch.get_num_threads(), torch.get_default_dtype()) == before[1:]


def test_the_callers_default_dtype_does_not_change_the_policy():
    torch.set_default_dtype(torch.float64)
    try:
        wide = placer()
    finally:
        torch.set_default_dtype(torch.float32)
    for one, other in zip(wide.parameters(), placer().parameters(), strict=True):
        assert torch.equal(one, other)


OLD = torch.tensor([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]], dtype=torch.float64)
NEW = torch.tensor([[[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]]], dtype=torch.float64)


# Entropy and divergence, also with probabilities of zero.
def test_entropy_is_the_mean_over_groups():
    assert float(entropy(OLD.log())) == pytest.approx(math.log(2) / 2)


def test_divergence_is_the_mean_over_groups():
    expected = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    assert float(divergence(OLD.log(), NEW.log())) == pytest.approx(expected / 2)
    assert float(divergence(OLD.log(), OLD.log())) == 0


def test_gradients_are_finite_where_a_device_is_not_allowed():
    logits = torch.zeros(1, 2, 3, requires_grad=True)
    closed = torch.tensor([False, False, True])
    log_probs = torch.log_softmax(logits.masked_fill(closed, -torch.inf), 2)
    old = torch.log_softmax(torch.ones(1, 2, 3).masked_fill(closed, -torch.inf), 2)
    (entropy(log_probs) + divergence(old, log_probs)).backward()
    assert logits.grad.isfinite().all()
