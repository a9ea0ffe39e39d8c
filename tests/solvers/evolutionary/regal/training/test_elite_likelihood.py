"""The likelihood of elites' keys."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.solvers.evolutionary.regal.proposals import beta_distributions  # noqa: E402
from situate.solvers.evolutionary.regal.settings import Proposed  # noqa: E402
from situate.solvers.evolutionary.regal.training.elite_likelihood import (  # noqa: E402
    log_likelihood,
)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def log_probs(proposed, n):
    return [
        torch.randn(n, k, generator=seeded(i)).log_softmax(dim=1)
        for i, k in enumerate(proposed.choices(2))
    ]


def plainly(of, keys, proposed):
    """Key by key, by PyTorch's beta distribution."""
    total = 0.0
    for elite in keys:
        for op, own in enumerate(elite):
            for j, key in enumerate(own):
                k = proposed.placement if j < 2 else proposed.scheduling
                density = 0.0
                for m in range(k):
                    for v in range(k):
                        alpha, beta = beta_distributions(torch.tensor([m, v]).numpy(), k)
                        chosen = (of[2 * j][op, m] + of[2 * j + 1][op, v]).exp()
                        beta = torch.distributions.Beta(float(alpha[0]), float(beta[0]))
                        density += chosen * beta.log_prob(key).exp()
                total += density.log()
    return total / (keys.shape[0] * keys.shape[1])


def test_it_is_that_of_mixtures_of_beta_distributions():
    proposed = Proposed(placement=2, scheduling=3, crossover=4)
    keys = torch.rand(2, 4, 3, generator=seeded()) * 0.9 + 0.05
    of = log_probs(proposed, 4)
    torch.testing.assert_close(log_likelihood(of, keys, proposed), plainly(of, keys, proposed))


def test_what_is_not_proposed_has_no_part_in_it():
    keys = torch.rand(2, 4, 3, generator=seeded())
    both = Proposed(placement=2, scheduling=3)
    parts = [Proposed(2, 0), Proposed(0, 3)]
    of = log_probs(both, 4)
    found = [log_likelihood(each, keys, p) for each, p in zip((of[:4], of[4:]), parts, strict=True)]
    torch.testing.assert_close(sum(found), log_likelihood(of, keys, both))


def test_keys_at_the_ends_are_finite():
    proposed = Proposed(placement=2, scheduling=16)
    for end in (0.0, 1.0):
        keys = torch.full((1, 4, 3), end)
        assert torch.isfinite(log_likelihood(log_probs(proposed, 4), keys, proposed))


def test_a_policy_that_climbs_it_proposes_what_was_selected():
    """Priorities are near 0.8, and affinities low for the first device and high for the second."""
    proposed = Proposed(placement=2, scheduling=8)
    logits = [torch.zeros(1, k, requires_grad=True) for k in proposed.choices(2)]
    means = torch.tensor([0.2, 0.8, 0.8])
    keys = means + 0.05 * torch.randn(200, 1, 3, generator=seeded())
    adam = torch.optim.Adam(logits, 0.1)
    for _ in range(100):
        adam.zero_grad()
        (-log_likelihood([x.log_softmax(1) for x in logits], keys, proposed)).backward()
        adam.step()
    chosen = [int(x.argmax()) for x in logits]
    assert chosen[:4] == [0, 0, 1, 0]
    assert chosen[4] == 6  # of means (m + 1) / 9
    assert chosen[5] == 0
