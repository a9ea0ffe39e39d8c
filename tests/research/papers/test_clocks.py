"""Hours of searches by a virtual clock."""

from __future__ import annotations

import numpy as np
import pytest

from research.papers.claims.spotlight import long_claims
from research.papers.clocks import spotlight_hours
from research.papers.clocks.batches import at_once, ends, until_best
from research.papers.pages import clocks as page
from situate.evaluators.measurements import Measurements
from situate.solvers.learned.asynchronous.virtual_clock import STEPS, VirtualClock

SAMPLES = np.array([3600.0, 1800.0, np.inf, 900.0, 7200.0])
CLOCK = VirtualClock(2)


def batches(size: int) -> list[Measurements]:
    """The samples in batches of so many."""
    return [
        Measurements(part, np.where(np.isfinite(part), 0, 1).astype(np.uint8))
        for part in np.split(SAMPLES, range(size, len(SAMPLES), size))
    ]


def test_batches_smaller_than_the_workers_are_put_together_with_their_failures():
    result = at_once(batches(1), 2)
    assert [len(update) for update in result] == [2, 2, 1]
    assert result[1].ok.tolist() == [False, True]


def test_a_learners_own_batches_are_left_as_they_are():
    assert [len(update) for update in at_once(batches(3), 2)] == [3, 2]


def test_a_sample_is_known_when_all_of_its_batch_is():
    assert ends(batches(2), CLOCK) == pytest.approx(STEPS * np.array([1, 1, 1.25, 1.25, 3.25]))
    assert until_best(SAMPLES, batches(2), CLOCK) == pytest.approx(STEPS * 1.25)


def test_workers_wait_for_one_another_at_the_end_of_a_batch_alone():
    assert ends(batches(5), CLOCK)[0] == pytest.approx(STEPS * 2.75)


def test_the_set_up_is_what_the_slides_minutes_leave():
    hours = spotlight_hours.MINUTES / 60
    trials = spotlight_hours.SAMPLES / spotlight_hours.MACHINES
    result = spotlight_hours._setup(hours - 1, spotlight_hours.SAMPLES)
    assert result == pytest.approx(3600 / trials)
    assert spotlight_hours._setup(2 * hours, spotlight_hours.SAMPLES) == 0


def search(controllers: int, hours: float, failures: int = 0) -> dict[str, object]:
    return {
        "case": page.LARGEST,
        "method": "hierarchical",
        "settings": "paper",
        "controllers": controllers,
        "best": 2.0,
        "first_mean": 3.0,
        "last_mean": 4.0,
        "hours": hours,
        "staleness": 2.5,
        "samples": 100,
        "failures": failures,
    }


@pytest.mark.parametrize(("hours", "verdict"), [(2.9, "yes"), (3.1, "**no**")])
def test_the_planners_hours_are_those_of_its_asynchronous_controllers(hours, verdict):
    rows = [search(0, 9.0), search(4, hours)]
    names = page.searches({"tables": {"searches": rows}})
    assert names["claims"].splitlines()[-1].endswith(f"| {verdict} |")
    assert len(names["planner"].splitlines()) == 4


def test_hours_of_placements_of_which_most_fail_are_not_counted():
    rows = [search(4, 1.0, failures=51)]
    last = page.searches({"tables": {"searches": rows}})["claims"].splitlines()[-1]
    assert "51.0 % of the placements fail" in last
    assert last.endswith("| not counted: unlike |")


def test_a_method_is_more_efficient_if_it_is_near_the_best_after_fewer_samples() -> None:
    def run(method: str, settings: str, curve: list[float]) -> dict[str, object]:
        return {
            "method": method, "settings": settings, "samples": 180, "best_curve": curve,
            "best": curve[-1], "gpus": 1, "moved_bytes": 0, "setup_seconds": 1.0,
        }  # fmt: skip

    runs = [
        run("spotlight", "paper", [3.0, 1.005, 1.0]),
        run("colocrl", "paper, prefix", [3.0, 2.0, 1.01]),
        run("spotlight", "paper, colocation", [3.0, 3.0, 3.0]),
    ]
    result = {claim.sentence: claim for claim in long_claims(runs)}
    efficient = result["better sample efficiency than the policy gradient method"]
    assert efficient.finding == "120 samples, ColocRL 180"
    assert efficient.verdict == "yes"
