"""`policy_gradient` learns."""

from __future__ import annotations

import pytest

from tests.solvers.learning import first_sixty, learnt


@pytest.mark.parametrize(("settings", "share"), [("tuned", 0.9), ("paper", 0.95)])
@pytest.mark.parametrize("seed", [0, 1])
def test_it_ends_below_the_best_of_its_first_sixty(settings, share, seed):
    result = learnt("policy_gradient", settings, seed)
    assert result.value <= share * first_sixty(result)
