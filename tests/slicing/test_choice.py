"""The best way of cutting a batch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from situate.data.problem import Problem
from situate.data.slices import AutoSlices
from situate.errors import SituateError
from situate.results.choice import Choice
from situate.results.result import Result
from situate.slicing.choice import SharedBudget, Solve, choose
from situate.slicing.cuts import Cuts
from situate.solvers import solve
from tests.slicing.steps import Captured
from tests.solvers.families import chain, devices


def by(method: str = "auto") -> Solve:
    """A search by a method."""

    def search(problem: Problem, seconds: float | None, evaluations: int | None) -> Result:
        return solve(problem, method, time_limit=seconds, evaluations=evaluations)

    return search


def best_choice(cuts: Cuts, method: str = "auto", evaluations: int = 400) -> Choice:
    return choose(cuts, by(method), evaluations=evaluations)


def samples(choice: Choice) -> list[tuple[int, ...]]:
    return [trial.samples for trial in choice.tried]


# The best cut wins.
def test_two_equal_devices_get_a_half_each():
    choice = best_choice(Captured().cuts())
    assert choice.result.problem.graph.slices.shares == (4, 4)
    assert choice.result.value == pytest.approx(16, rel=0.01)


def test_unequal_devices_are_tried_with_slices_by_their_speed():
    choice = best_choice(Captured().cuts(devices(1, 2, bandwidth=1e3)))
    assert {(4, 4), (6, 2)} < {*samples(choice)}
    assert choice.result.value < 24.1


def test_the_whole_batch_is_the_answer_where_slices_cost_more_than_they_gain():
    choice = best_choice(Captured(launch=1.0).cuts(devices(1, 1, bandwidth=0.01)))
    assert choice.result.problem.graph.slices is None
    assert len(samples(choice)) > 1


@pytest.mark.parametrize("method", ["auto", "data_parallel", "heft", "single"])
def test_nothing_that_was_tried_is_better_than_what_is_chosen(method):
    choice = best_choice(Captured(launch=0.3).cuts(), method)
    values = [trial.result.value for trial in choice.tried if trial.result]
    assert choice.result.value == min(values)


# Cuts that cannot win, or cannot be captured, are left out with the reason.
def test_what_cannot_be_better_is_said_and_not_captured():
    captured = Captured()
    choice = best_choice(captured.cuts(devices(1)))
    assert captured.requests == []
    assert choice.tried[1].left_out == "takes 32.0 s at least"


def test_a_step_that_cannot_be_cut_is_planned_whole_and_says_why():
    def refuses() -> int:
        raise SituateError("no batch")

    whole = Captured().cuts().whole
    choice = choose(Cuts(whole, AutoSlices(), refuses, Captured()), by(), evaluations=100)
    assert (choice.uncut, samples(choice)) == ("no batch", [()])
    options = AutoSlices({"mask": 1})
    with pytest.raises(SituateError, match="no batch"):
        choose(Cuts(whole, options, refuses, Captured()), by(), evaluations=100)


def test_a_size_that_cannot_be_captured_is_left_out_with_the_reason():
    def captured(slices):
        if min(slices.shares) < 4:
            raise SituateError("too few samples")
        return Captured()(slices)

    whole = Captured().cuts(devices(1, 1, 1, 1, bandwidth=1e3)).whole
    choice = choose(Cuts(whole, AutoSlices(), lambda: 8, captured), by(), evaluations=400)
    assert [trial.left_out for trial in choice.tried if not trial.result] == ["too few samples"]
    assert choice.result.problem.graph.slices.shares == (4, 4)


def test_slices_are_tried_until_they_fit():
    cuts = Captured().cuts(devices(1, memory=22), "memory")
    assert best_choice(cuts).result.value <= min(
        solve(cuts.problem(shares), evaluations=400).value for shares in ((), (4, 4))
    )


# The choice depends on seed and budget alone.
def test_the_same_seed_and_evaluations_give_the_same_choice():
    one, other = (best_choice(Captured(launch=0.1).cuts(devices(1, 2))) for _ in range(2))
    assert samples(one) == samples(other)
    assert one.result.plan.placement == other.result.plan.placement
    assert one.result.evaluations == other.result.evaluations


def test_a_method_that_applies_to_no_cut_is_refused():
    cuts = Cuts(Captured().cuts(batch=1).whole, AutoSlices(), lambda: 1, Captured())
    with pytest.raises(SituateError, match="takes its batch whole"):
        best_choice(cuts, "data_parallel")


def test_without_time_the_whole_batch_is_planned_and_that_is_said():
    choice = choose(Captured().cuts(), by(), time_limit=0)
    assert samples(choice) == [()]
    assert choice.uncut == "the budget was spent on the whole batch: give more of it"


def test_only_what_is_asked_for_is_tried():
    choice = choose(Captured().cuts(), by(), evaluations=100, among=[(), (2, 2, 2, 2)])
    assert samples(choice) == [(), (2, 2, 2, 2)]


@pytest.mark.parametrize("raises", [True, False])
def test_an_interrupt_ends_it_with_the_best_so_far(raises):
    calls = []

    def search(problem: Problem, seconds: float | None, evaluations: int | None) -> Result:
        calls.append(problem)
        if len(calls) == 3 and raises:
            raise KeyboardInterrupt
        values = by()(problem, seconds, evaluations)
        return replace(values, interrupted=len(calls) == 3)

    choice = choose(Captured(launch=0.1).cuts(), search, evaluations=400)
    assert len(calls) == 3
    assert choice.result.problem.graph.slices.shares == (4, 4)


def test_the_history_counts_all_searches():
    choice = best_choice(Captured(launch=0.1).cuts())
    seconds = [second for second, _, _ in choice.result.history]
    assert seconds == sorted(seconds)
    assert seconds[-1] <= choice.result.seconds


# Several searches share one budget.
RESULT = solve(Problem(chain(2), devices(1)), "single")


def spent(
    budget: SharedBudget, seconds: float, evaluations: int, limit: float | None = None
) -> SharedBudget:
    budget.spend(replace(RESULT, seconds=seconds, evaluations=evaluations), limit)
    return budget


def test_a_part_is_a_share_of_all_and_no_more_than_is_left():
    budget = SharedBudget(10.0, 100)
    assert budget.part(0.5) == (5.0, 50)
    assert spent(budget, 8.0, 70).part(0.5) == (2.0, 30)


def test_what_is_unlimited_stays_so():
    assert SharedBudget(None, 100).part(0.25) == (None, 25)
    assert SharedBudget(4.0, None).part(0.25) == (1.0, None)
    assert spent(SharedBudget(None, None), 1e9, 10**9).affords_another()


def test_a_search_that_may_go_over_the_time_is_not_begun():
    assert spent(SharedBudget(10.0, None), 6.0, 1, limit=5.0).affords_another()
    assert not spent(SharedBudget(10.0, None), 6.0, 1, limit=1.0).affords_another()


def test_no_search_is_begun_without_evaluations():
    assert spent(SharedBudget(None, 10), 1.0, 9).affords_another()
    assert not spent(SharedBudget(None, 10), 1.0, 10).affords_another()
