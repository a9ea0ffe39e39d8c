"""The policy's distributions, draws and log-probabilities, and its baseline."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from situate.policies.proposal_policy import (  # noqa: E402
    Baseline,
    ProposalPolicy,
    log_prob,
)
from situate.policies.shapes import GraphShape  # noqa: E402
from tests.policies.test_graph_network import batch, first, seeded  # noqa: E402

CHOICES = [2, 2, 5]
SHAPE = GraphShape(8, 2)


def policy(trained=False):
    policy_made = ProposalPolicy((4, 3), CHOICES, SHAPE, seeded())
    if trained:
        torch.nn.init.normal_(policy_made.head[2].weight, generator=seeded(3))
    return policy_made


# Distributions, draws and log-probabilities.
def test_it_begins_uniform():
    for tensor, categories in zip(policy().log_probs(batch()), CHOICES, strict=True):
        assert tensor.shape == (6, categories)
        torch.testing.assert_close(tensor.exp(), torch.full_like(tensor, 1 / categories))


def test_draws_are_as_frequent_as_they_are_probable():
    of = policy(trained=True)
    samples_drawn = of.sample(batch(), 4000, seeded())
    assert samples_drawn.shape == (4000, 6, 3)
    for choice, log_probs in enumerate(of.log_probs(batch())):
        shares = [
            (samples_drawn[:, :, choice] == i).float().mean(dim=0) for i in range(CHOICES[choice])
        ]
        torch.testing.assert_close(torch.stack(shares, 1), log_probs.exp(), atol=0.04, rtol=0)


def test_log_probabilities_are_summed_over_nodes_and_choices_of_a_graph():
    of = policy(trained=True)
    log_probs, actions = of.log_probs(batch()), of.sample(batch(), 2, seeded())
    result = log_prob(log_probs, actions, batch())
    for sample in range(2):
        for graph, nodes in enumerate(([0, 1, 2], [3, 4], [5])):
            expected = sum(
                log_probs[c][v, actions[sample, v, c]] for v in nodes for c in range(len(CHOICES))
            )
            torch.testing.assert_close(result[sample, graph], expected)


# The baseline.
def test_the_baseline_is_a_number_a_graph_whatever_stands_beside_it():
    baseline, of = Baseline((4, 3), SHAPE, seeded(), 0.0), batch()
    torch.testing.assert_close(baseline(of)[:1], baseline(first(of)))


def test_the_baseline_begins_near_what_it_is_told():
    expects = [Baseline((4, 3), SHAPE, seeded(), first)(batch()) for first in (-1.0, 0.0)]
    torch.testing.assert_close(expects[0], expects[1] - 1)
    assert (expects[1].abs() < 0.5).all()
