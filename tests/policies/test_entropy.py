"""Entropy and divergence by their definitions, devices that are not allowed included."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from situate.policies.entropy import divergence, entropy  # noqa: E402

OLD = torch.tensor([[[0.5, 0.5, 0.0], [1.0, 0.0, 0.0]]], dtype=torch.float64)
NEW = torch.tensor([[[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]]], dtype=torch.float64)


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
