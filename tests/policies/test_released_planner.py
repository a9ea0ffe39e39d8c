"""The released networks: their gradients are exact, and noise is part of the probabilities."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from situate.data.problem import Problem  # noqa: E402
from situate.policies.hierarchical import Membership  # noqa: E402
from situate.policies.planner_features import op_features  # noqa: E402
from situate.policies.released_features import (  # noqa: E402
    ReleasedGroupFeatures,
    released_unit_features,
)
from situate.policies.released_planner import (  # noqa: E402
    ReleasedGrouper,
    ReleasedHierarchy,
    ReleasedPlacer,
)
from situate.policies.seq2seq import LogitScale  # noqa: E402
from tests.solvers.families import devices, layered  # noqa: E402

GROUPS, FEATURES, DEVICES, HIDDEN = 3, 4, 3, 6
OPEN = torch.ones(GROUPS, DEVICES, dtype=torch.bool)


def draws(seed=0):
    return torch.Generator().manual_seed(seed)


def placer():
    return ReleasedPlacer(FEATURES, DEVICES, HIDDEN, generator=draws(1), scale=LogitScale(1.0, 1.0))


def embeddings(dtype=torch.float32):
    return torch.randn(GROUPS, FEATURES, generator=draws(2), dtype=dtype)


def trainable(module):
    return [each for each in module.parameters() if each.requires_grad]


def log_likelihood(policy, noise):
    chosen = torch.tensor([[0, 2, 1]])
    memory = policy.encode(embeddings(torch.float64))
    log_p = policy.log_probs(memory, chosen, OPEN, noise=noise)
    return log_p.gather(2, chosen.unsqueeze(2)).sum()


# The placer: shapes, gradients, and samples as frequent as their probabilities.


def test_no_bias_but_the_forget_gates_is_trained():
    policy = placer()
    shapes = sorted(tuple(each.shape) for each in trainable(policy))
    assert shapes.count((1,)) == 2
    assert (HIDDEN,) in shapes  # v of the attention
    assert len([shape for shape in shapes if len(shape) == 1]) == 3


@pytest.mark.parametrize("noisy", [False, True])
def test_gradients_are_those_of_finite_differences(noisy):
    policy = placer().double()
    noise = torch.randn(1, GROUPS, DEVICES, generator=draws(4), dtype=torch.float64)
    noise = 0.5 * noise if noisy else None
    parameters = trainable(policy)
    gradients = torch.autograd.grad(log_likelihood(policy, noise), parameters)
    for seed in range(3):
        draw = draws(seed)
        direction = [torch.randn(p.shape, generator=draw, dtype=p.dtype) for p in parameters]
        values = []
        for step in (1e-5, -2e-5, 1e-5):
            for parameter, part in zip(parameters, direction, strict=True):
                parameter.data += step * part
            values.append(log_likelihood(policy, noise).item())
        slope = sum((g * d).sum().item() for g, d in zip(gradients, direction, strict=True))
        assert (values[0] - values[1]) / 2e-5 == pytest.approx(slope, rel=1e-5, abs=1e-8)


def test_samples_are_as_frequent_as_their_noisy_log_probabilities_say():
    policy, k = placer(), 20000
    for parameter in trainable(policy):
        parameter.data *= 3
    noise = 0.5 * torch.randn(1, GROUPS, DEVICES, generator=draws(5))
    with torch.no_grad():
        memory = policy.encode(embeddings())
        devices, _ = policy.draw(memory, OPEN, k, draws(3), noise.expand(k, -1, -1))
        every = torch.tensor(list(product(range(DEVICES), repeat=GROUPS)))
        log_p = policy.log_probs(memory, every, OPEN, noise=noise)
    probability = log_p.gather(2, every.unsqueeze(2)).sum((1, 2)).exp()
    number = (devices * torch.tensor([DEVICES**2, DEVICES, 1])).sum(1)
    frequency = torch.bincount(number, minlength=len(every)) / k
    assert float(probability.sum()) == pytest.approx(1, abs=1e-5)
    error = (frequency - probability) / (probability * (1 - probability) / k).sqrt().clamp(1e-6)
    assert float(error.abs().max()) < 4


def test_attention_scores_with_tanh_and_sums_its_keys():
    """The first step of the decoder, written out."""
    policy = placer().double()
    memory = policy.encode(embeddings(torch.float64))
    chosen = torch.zeros(1, GROUPS, dtype=torch.int64)
    log_p = policy.log_probs(memory, chosen, OPEN)[0, 0]
    lstm, attention = policy.decoder, policy.attention
    read = torch.cat([policy.embedding.weight[-1], memory.state[0][0, 0]])
    gates = torch.cat([lstm.weight_ih_l0, lstm.weight_hh_l0], 1) @ read
    i, f, g, o = gates.split(HIDDEN)
    cell = i.sigmoid() * g.tanh() + (f + lstm.forget).sigmoid() * memory.state[1][0, 0]
    state = o.sigmoid() * cell.tanh()
    keys = memory.outputs[0]
    weights = torch.softmax((keys + attention.query.weight @ state).tanh() @ attention.v, 0)
    logits = policy.head.weight @ torch.cat([state, weights @ keys])
    torch.testing.assert_close(log_p, torch.log_softmax(logits.tanh(), 0))


def test_the_encoder_reads_in_both_directions():
    policy = placer()
    changed = embeddings().clone()
    changed[-1] += 1
    first = [policy.encode(each).outputs[0, 0] for each in (embeddings(), changed)]
    assert not torch.equal(*first)


# The grouper and both networks together.


def test_noise_is_in_proportion_to_all_logits():
    grouper = ReleasedGrouper(torch.ones(5, 2), 3, 4, draws())
    noise = grouper.noise(0.5, draws(1))
    plain, noisy = grouper.log_probs(None), grouper.log_probs(noise)
    logits = grouper.last(grouper.hidden())
    expected = torch.log_softmax(logits + noise * logits.square().mean().sqrt(), 1)
    torch.testing.assert_close(noisy, expected)
    assert not torch.equal(plain, noisy)
    assert grouper.noise(0.0, draws(1)) is None


def hierarchy():
    problem = Problem(layered(4, 3, 1), devices(1, 1, 2))
    ops = op_features(problem)
    membership = Membership(problem, GROUPS)
    features = ReleasedGroupFeatures(problem, ops, GROUPS)
    units = torch.from_numpy(released_unit_features(problem, ops)[membership.free])
    policy = ReleasedPlacer(
        features.width, 3, HIDDEN, generator=draws(1), scale=LogitScale(1.0, 1.0)
    )
    grouper = ReleasedGrouper(units, GROUPS, 4, draws())
    return problem, ReleasedHierarchy(grouper, policy, membership, features)


def test_the_objective_weighs_the_log_probabilities_of_groups_and_devices():
    _, both = hierarchy()
    sample = both.draw(2, 2, draws(7), 0.5)
    objective = both.objective(sample, torch.tensor([1.0, -3.0]))
    grouper_noise, placer_noise = sample.noises
    of_groups = both.grouper.log_probs(grouper_noise).gather(1, sample.groups.t()).sum()
    log_p = both.placer.log_probs(sample.memory, sample.devices, sample.allowed, noise=placer_noise)
    of_devices = log_p.gather(2, sample.devices.unsqueeze(2)).sum((1, 2))
    expected = 0.5 * (of_groups + of_devices[0]) - 1.5 * (of_groups + of_devices[1])
    torch.testing.assert_close(objective, expected)


def test_a_redrawn_placer_reads_zeros():
    _, both = hierarchy()
    sample = both.redraw(1, draws(7))
    zeros = both.placer.encode(torch.zeros(GROUPS, both._embeddings.width))
    torch.testing.assert_close(sample.memory.outputs, zeros.outputs)


def test_placements_respect_what_devices_can_run():
    problem, both = hierarchy()
    placements = both.expand(both.draw(5, 5, draws(3), 0.5))
    assert placements.shape == (5, problem.n)
    assert problem.allowed[problem.unit, placements].all()
    assert np.unique(placements).size > 1
