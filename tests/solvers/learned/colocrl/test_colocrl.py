"""`colocrl` as a method: what it learns, and what it needs."""

from __future__ import annotations

import pytest

from situate.solvers.learned import colocrl
from tests.solvers.learning import (
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
