"""`colocrl` as a method: what it learns, and what it needs."""

from __future__ import annotations

import pytest

from situate.solvers.learned import colocrl
from situate.solvers.learned.learner import Learning
from tests.solvers.learning import (
    LAYERED,
    beats_its_first_sixty,
    groups_as_asked,
    says_what_to_install,
)


def test_it_beats_the_best_of_its_first_sixty_samples_by_a_tenth():
    pytest.importorskip("torch")
    assert beats_its_first_sixty("colocrl")


def test_without_pytorch_it_says_what_to_install(monkeypatch):
    assert says_what_to_install(colocrl, monkeypatch)


def test_a_grouping_asked_for_goes_before_that_of_the_settings():
    pytest.importorskip("torch")
    assert groups_as_asked(colocrl)


def test_on_a_noisy_machine_the_papers_worker_repeats_a_placement():
    pytest.importorskip("torch")
    noisy = colocrl.learner(LAYERED, Learning("paper", "none", noise=0.1), 240, 0)
    quiet = colocrl.learner(LAYERED, Learning("paper", "none"), 240, 0)
    assert (noisy.batch, quiet.batch) == (80, 8)
    placements = noisy.ask(25)
    assert (placements[:10] == placements[0]).all()
    assert (placements[10:20] == placements[10]).all()
    assert not (placements[0] == placements[10]).all()
