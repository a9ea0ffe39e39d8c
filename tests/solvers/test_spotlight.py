"""`spotlight` as a method: what it learns, and what it needs."""

from __future__ import annotations

import numpy as np
import pytest

from situate.errors import MissingExtra
from situate.grouping import group
from situate.policies import installed
from situate.problem import Problem
from situate.solvers import spotlight
from situate.solvers.learner import Learning
from situate.solvers.search import Search
from tests.solvers.families import devices, layered

PROBLEM = Problem(layered(6, 4, 1), devices(1, 1, 2, bandwidth=0.5))


def times(samples, **learning):
    """Seconds (samples,) of a search, in their order."""
    settings = Learning(**{"grouping": "none", **learning})
    search = Search(PROBLEM, 0.0, None, samples, 0, 1, None, learning=settings)
    spotlight.run(search)
    return np.concatenate([batch.seconds for batch in search.measurements])


def test_it_beats_the_best_of_its_first_sixty_samples_by_a_tenth():
    pytest.importorskip("torch")
    found = times(480)
    assert found.min() < 0.9 * found[:60].min()


def test_without_pytorch_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'situate\[torch\]'"):
        spotlight.learner(PROBLEM, Learning(), 60, 0)


def test_a_grouping_asked_for_goes_before_that_of_the_settings():
    pytest.importorskip("torch")
    asked = spotlight.learner(PROBLEM, Learning(grouping="none"), 60, 0)
    assert len(asked.groups) == PROBLEM.units
    assert len(asked.groups) != len(group(PROBLEM, "heavy-edge", 4))
    few = spotlight.learner(PROBLEM, Learning(groups=4), 60, 0)
    assert len(few.groups) == len(group(PROBLEM, "heavy-edge", 4))
