"""Ways to use a linkage inside `auto`."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("safetensors")

from research.regal import ways
from research.regal.ways import CpuBudget, Way
from situate.data.problem import Problem
from situate.solvers.auto.improve.blocks import Blocks
from situate.solvers.evolutionary.regal.linkage import ConstantLinkage
from tests.solvers.families import chain, devices, layered


def problem() -> Problem:
    return Problem(layered(8, 6, 0), devices(1, 1))


def members(blocks: Blocks) -> list[list[int]]:
    """The units of each block."""
    ends = zip(blocks.start[:-1], blocks.start[1:], strict=True)
    return [blocks.units[first:last].tolist() for first, last in ends]


# Parts are the connected components of the edges that a draw joins.
def test_components_have_the_label_of_their_least_node() -> None:
    source, target = np.array([5, 1, 2, 6]), np.array([3, 5, 4, 6])
    assert ways.components(7, source, target).tolist() == [0, 1, 2, 1, 2, 1, 6]


def test_components_of_a_long_path_are_one() -> None:
    order = np.random.default_rng(0).permutation(500)
    assert not ways.components(500, order[:-1], order[1:]).any()


def test_parts_are_neither_single_units_nor_all() -> None:
    of = problem()
    drawn = members(ways.parts(of, ways.pairs(of, ConstantLinkage(0.5)), 0))
    assert drawn
    assert all(1 < len(part) < of.units for part in drawn)


@pytest.mark.parametrize("together", [0.0, 1.0])
def test_edges_that_join_nothing_or_all_make_no_parts(together: float) -> None:
    of = Problem(chain(12), devices(1, 1))
    drawn = ways.parts(of, ways.pairs(of, ConstantLinkage(together)), 0)
    assert not len(drawn.turns)


# Units with uncertain edges have more turns.
def test_turns_follow_the_variance_of_edges() -> None:
    of = Problem(chain(4), devices(1, 1))
    source, target = np.array([0, 1, 2]), np.array([1, 2, 3])
    together = np.array([0.5, 1.0, 0.9], np.float32)
    turns = ways.unsure(of, (source, target, together), 0).turns
    counts = np.bincount(turns, minlength=4)
    assert counts[0] == counts[1] > counts[2] == counts[3] > 0


def test_either_kind_of_blocks_is_drawn_equally_often() -> None:
    usual, more = (
        Blocks(*(np.array(values, np.int32) for values in columns))
        for columns in (([0, 2], [0, 1], [0]), ([0, 1, 3], [2, 3, 4], [0, 0, 1, 1]))
    )
    both = ways.joined(usual, more)
    assert members(both) == [[0, 1], [2], [3, 4]]
    assert np.bincount(both.turns).tolist() == [4, 2, 2]


def test_blocks_of_one_kind_stay_alone() -> None:
    some, none = (
        Blocks(*(np.array(values, np.int32) for values in columns))
        for columns in (([0, 2], [0, 1], [0]), ([0], [], []))
    )
    assert ways.joined(some, none) is some
    assert ways.joined(none, some) is some


# Plans within a budget of CPU time.
@pytest.mark.parametrize("way", [None, "parts", "unsure", "start"])
def test_a_way_plans_within_its_evaluations(way: Way | None) -> None:
    of = problem()
    search = ways.plan(of, CpuBudget(None, 3000), 0, way, ConstantLinkage(0.5))
    assert search.incumbent.feasible
    assert search.budget.evaluations <= 3100


def test_seconds_are_those_of_the_processor() -> None:
    budget = CpuBudget(1.0, spent=0.25)
    assert 0.25 <= budget.seconds < 1
    assert budget.part(0.5).seconds == pytest.approx(budget.seconds, abs=0.05)
    assert budget.part(0.5).time_limit == pytest.approx(0.5 + budget.seconds / 2, abs=0.1)
