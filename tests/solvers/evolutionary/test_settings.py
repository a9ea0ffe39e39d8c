"""Settings of BRKGA are refused where no generation can be made of them."""

from __future__ import annotations

from typing import Any

import pytest

from situate.errors import SituateError
from situate.solvers.evolutionary.settings import BRKGA, TUNED_BRKGA, BrkgaSettings


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"population": 1}, "two chromosomes"),
        ({"populations": 0}, "two chromosomes"),
        ({"elites": 0.0}, "shares of the population"),
        ({"elites": 1.0}, "shares of the population"),
        ({"elites": 0.5, "mutants": 0.6}, "shares of the population"),
        ({"mutants": -0.1}, "shares of the population"),
        ({"bias": 0.4}, "from 0.5 to 1"),
        ({"bias": float("nan")}, "from 0.5 to 1"),
        ({"alpha": 0.0}, "positive and at most 1e12"),
        ({"beta": float("inf")}, "positive and at most 1e12"),
        ({"beta": 1e13}, "positive and at most 1e12"),
    ],
)
def test_what_no_generation_can_be_made_of_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(SituateError, match=message):
        BrkgaSettings(**changes)


@pytest.mark.parametrize(
    ("population", "sizes"), [(100, (100, 20, 15)), (10, (10, 2, 2)), (2, (2, 1, 0))]
)
def test_shares_become_chromosomes(population: int, sizes: tuple[int, int, int]) -> None:
    assert BrkgaSettings(population=population).sizes == sizes


def test_all_may_be_mutants_but_the_elites() -> None:
    assert BrkgaSettings(population=10, elites=0.25, mutants=0.75).sizes == (10, 2, 8)


def test_the_decoder_of_the_paper_is_serial() -> None:
    for settings in (BRKGA, TUNED_BRKGA):
        assert [settings[name].decoder for name in ("paper", "tuned")] == ["serial", "eager"]
