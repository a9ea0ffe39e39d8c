"""Cuts as a labelling problem, on steps of a few ops with known best labels."""

from __future__ import annotations

from itertools import product

import pytest

from situate import Cluster, Graph, Problem
from situate.data.cluster import Device, Link
from situate.data.cuts import parse_cuts
from situate.data.graph import Op, Tensor
from situate.data.letter_graph import SUM, WHOLE, ClassOption, LetterGraph, LetterOp
from situate.sharding.solve import solve_sharding
from situate.solvers.cut_labelling import Labelling, Rates, labelled_cuts

MEGA = 10**6

FEATURES, SEQUENCE = 0, 1


def columns_and_rows(nbytes: int = MEGA) -> tuple[Problem, LetterGraph]:
    """Two products of a second each, which share `features`; a sequence cuts both as well."""
    ops = tuple(Op(name, seconds={"*": 1.0}) for name in ("up", "down", "loss"))
    tensors = (Tensor("x", 0, nbytes, (1,)), Tensor("y", 1, nbytes, (2,)))
    gpus = tuple(Device(f"gpu{k}", bandwidth=1e12) for k in range(4))
    cluster = Cluster("gpus", gpus, (Link("*", "*", bandwidth=1e9, latency=1e-3),))
    letter_ops = (
        LetterOp(
            (0,),
            "up",
            (),
            (nbytes,),
            (ClassOption(FEATURES, (), (FEATURES,)), ClassOption(SEQUENCE, (), (SEQUENCE,))),
        ),
        LetterOp(
            (1,),
            "down",
            ((0, 0),),
            (nbytes,),
            (
                ClassOption(FEATURES, (FEATURES,), (SUM,)),
                ClassOption(SEQUENCE, (SEQUENCE,), (SEQUENCE,)),
            ),
        ),
        LetterOp((2,), "loss", ((1, 0),), (8,), ()),
    )
    graph = LetterGraph(letter_ops, ("features", "sequence"), (64, 64))
    return Problem(Graph("step", ops, tensors), cluster), graph


# The labels of least cost are found, and no other labels cost less.
def test_the_best_labels_are_those_of_all_combinations() -> None:
    problem, graph = columns_and_rows()
    labelling = Labelling(problem, graph, (2, 4))
    sharding = labelling.problem
    plan = solve_sharding(sharding, time_limit=None, rounds=30)
    sizes = [range(len(cost)) for cost in sharding.costs]
    assert plan.cost == min(sharding.cost(own) for own in product(*sizes))
    assert plan.cost * (1 - 1e-8) <= plan.bound <= plan.cost


def test_parts_of_one_class_are_not_exchanged() -> None:
    problem, graph = columns_and_rows()
    (first, *_) = labelled_cuts(problem, graph, (2, 4))
    assert first == parse_cuts(["sequence=4"])


def test_ops_stay_whole_where_exchanges_cost_more_than_parts_save() -> None:
    problem, graph = columns_and_rows(nbytes=10**10)
    assert [*labelled_cuts(problem, graph, (2, 4))] == []


def test_cuts_of_unequal_shares_have_no_estimate() -> None:
    problem, graph = columns_and_rows()
    labelling = Labelling(problem, graph, (2, 4))
    assert labelling.seconds(parse_cuts(["features=3:1"])) == 0.0
    whole = 3.0
    assert labelling.seconds(parse_cuts(["sequence=4"])) < labelling.seconds(
        parse_cuts(["sequence=2"])
    )
    assert labelling.seconds(parse_cuts(["sequence=2"])) < whole


def test_blocks_that_are_alike_have_one_label() -> None:
    problem, graph = columns_and_rows()
    tied = LetterGraph((*graph.ops[:2], *graph.ops[:2]), graph.kinds, graph.units)
    assert len(Labelling(problem, tied, (2,)).problem.costs) == 3


# Exchanges take the transfers and the ops by which cuts write them.
@pytest.mark.parametrize(
    ("source", "target", "seconds"),
    [
        ((0, 4), (0, 4), 0.0),
        ((WHOLE, 1), (WHOLE, 4), 2e-3),
        ((0, 4), (WHOLE, 4), 1.25e-3),
        ((SUM, 4), (0, 4), 1.25e-3),
        ((SUM, 4), (WHOLE, 4), 2.5e-3),
        ((0, 4), (1, 4), 1.0625e-3),
    ],
)
def test_exchanges_are_those_of_collectives(source, target, seconds) -> None:
    rates = Rates(latency=1e-3, bandwidth=1e9, shares_channel=False, launch=0.0, memory=1e18)
    assert rates.exchange(source, target, MEGA) == pytest.approx(seconds)


def test_a_channel_that_all_receivers_share_is_busy_for_each() -> None:
    rates = Rates(latency=0.0, bandwidth=1e9, shares_channel=True, launch=0.0, memory=1e18)
    assert rates.exchange((0, 4), (WHOLE, 4), MEGA) == pytest.approx(0.75e-3)
