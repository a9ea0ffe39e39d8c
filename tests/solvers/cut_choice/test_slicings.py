"""Slices beside cuts."""

from __future__ import annotations

from collections.abc import Sequence

from situate import Cluster, Graph, Problem, solve
from situate.data.cuts import Cuts, parse_cuts
from situate.data.graph import Op
from situate.data.slices import Slices
from situate.errors import SituateError
from situate.solvers.cut_choice.divisions import Division
from situate.solvers.cut_choice.slicings import MIN_GAIN, Shares, is_better, plan_in_slices

EQUAL = [Division.equal(count) for count in (2, 4, 8)]


class Steps:
    """Steps of slices side by side on eight devices, each of these seconds by their number."""

    def __init__(self, seconds: dict[int, float]) -> None:
        self.seconds = seconds
        self.tried: list[tuple[Shares, Cuts | None]] = []

    def __call__(self, shares: Shares, cuts: Cuts | None) -> Problem:
        self.tried.append((shares, cuts))
        own = {"*": self.seconds[len(shares)]}
        part = None if cuts is None else 0
        ops = tuple(Op(f"op{s}", seconds=own, slice=s, part=part) for s in range(len(shares)))
        graph = Graph("slices", ops, slices=Slices(shares), cuts=cuts)
        return Problem(graph, Cluster.find("identical:8"))

    def numbers(self) -> list[int]:
        return [len(shares) for shares, _ in self.tried]


def best(
    steps: Steps, divisions: Sequence[Division], cuts: Sequence[Cuts | None] = (None,)
) -> Shares | None:
    own = plan_in_slices(steps, 1, [8], divisions, cuts)
    return None if own is None else own.shares


# More slices are tried as long as they gain.
def test_the_slices_with_the_shortest_step_are_chosen() -> None:
    steps = Steps({2: 8.0, 4: 4.0, 8: 5.0})
    assert best(steps, EQUAL) == (1,) * 4
    assert steps.numbers() == [2, 4, 8]


def test_the_search_ends_where_more_slices_gain_nothing() -> None:
    steps = Steps({2: 4.0, 4: 4.0, 8: 1.0})
    assert best(steps, EQUAL) == (1, 1)
    assert steps.numbers() == [2, 4]


def test_unequal_slices_come_first() -> None:
    steps = Steps({2: 4.0})
    assert best(steps, [Division.equal(2), Division((0.75, 0.25))]) == (3, 1)


def test_every_cut_is_tried_with_the_slices() -> None:
    steps, cuts = Steps({2: 4.0}), parse_cuts(["features=2"])
    best(steps, EQUAL[:1], (None, cuts))
    assert steps.tried == [((1, 1), None), ((1, 1), cuts)]


# A step may have no slices.
def test_a_step_that_cannot_be_sliced_has_no_plan() -> None:
    def refused(shares: Shares, cuts: Cuts | None) -> Problem:
        raise SituateError("no slices")

    assert plan_in_slices(refused, 1, [8], EQUAL, [None]) is None
    assert plan_in_slices(lambda shares, cuts: None, 1, [8], EQUAL, [None]) is None


def test_large_steps_are_not_sliced() -> None:
    steps = Steps({2: 1.0, 4: 1.0, 8: 1.0})
    assert plan_in_slices(steps, 1_000_000, [8], EQUAL, [None]) is None
    assert not steps.tried
    own = plan_in_slices(steps, 1, [8], EQUAL, [None], most_ops=2)
    assert own is not None
    assert steps.numbers() == [2]


# Slices need a gain, because they are one more choice in the plan.
def test_a_small_gain_is_none() -> None:
    steps = Steps({2: 4.0, 4: 4.0 * (1 - MIN_GAIN / 2), 8: 3.0})
    two, four, eight = (solve(steps((1,) * count, None), "single") for count in (2, 4, 8))
    assert is_better(solve(steps((1,) * 2, None)), two)
    assert not is_better(solve(steps((1,) * 4, None)), solve(steps((1,) * 2, None)))
    assert not is_better(eight, solve(steps((1,) * 8, None)))
    assert is_better(four, eight)
