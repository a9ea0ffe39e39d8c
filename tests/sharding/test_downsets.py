"""Downsets: sets of layers that hold all layers after theirs."""

from __future__ import annotations

from itertools import combinations

import pytest

from situate.sharding.downsets import (
    all_downsets,
    as_array,
    cheapest_cuts,
    layer_order,
    members,
    suffixes,
)
from tests.sharding.stage_problems import random_problem


@pytest.mark.parametrize("seed", range(10))
def test_all_downsets_are_listed_once_by_size(tmp_path, seed):
    problem = random_problem(tmp_path, seed, layers=6)
    order = layer_order(problem)
    expected = {
        subset
        for size in range(7)
        for subset in map(frozenset, combinations(order, size))
        if all(b in subset for a, b in problem.edges if a in subset)
    }
    downsets = all_downsets(problem, order, 100)
    assert {frozenset(members(downset, 0, order)) for downset in downsets} == expected
    assert len(downsets) == len(expected)
    sizes = [downset.bit_count() for downset in downsets]
    assert sizes == sorted(sizes)
    assert {*suffixes(order)} <= {*downsets}


@pytest.mark.parametrize("seed", range(5))
def test_an_order_puts_each_layer_after_those_it_reads(tmp_path, seed):
    problem = random_problem(tmp_path, seed, layers=8)
    order = layer_order(problem)
    assert sorted(order) == sorted(problem.layers)
    assert all(order.index(a) < order.index(b) for a, b in problem.edges)


def test_too_many_downsets_are_not_listed(tmp_path):
    problem = random_problem(tmp_path, 0, layers=6)
    assert all_downsets(problem, layer_order(problem), 3) is None


def test_few_of_them_are_enough_for_a_plan(tmp_path):
    problem = random_problem(tmp_path, 0, layers=7)
    order = layer_order(problem)
    downsets = all_downsets(problem, order, 1000)
    few = cheapest_cuts(problem, order, downsets, 9)
    assert {*suffixes(order)} <= {*few} <= {*downsets}
    assert len(few) < len(downsets)


def test_an_array_has_a_row_for_each():
    assert as_array([0b00, 0b10, 0b11], 2).tolist() == [[0, 0], [0, 1], [1, 1]]
