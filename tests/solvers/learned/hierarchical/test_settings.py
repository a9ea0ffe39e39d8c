"""Settings of the Hierarchical Planner, update by update."""

from __future__ import annotations

import numpy as np

from situate.solvers.learned.hierarchical.settings import PAPER


def test_the_learning_rate_falls_by_a_twentieth_every_fifty_updates_from_the_400th():
    rates = [PAPER.rate(update) for update in (0, 399, 449, 450, 499, 500, 1000)]
    np.testing.assert_allclose(rates, 0.1 * 0.95 ** np.array([0, 0, 0, 1, 1, 2, 12]))


def test_exploration_ends_with_update_750():
    assert [PAPER.exploration(update) for update in (0, 750, 751)] == [0.5, 0.5, 0.0]
