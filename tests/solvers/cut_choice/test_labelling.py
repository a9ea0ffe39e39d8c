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
from situate.solvers.cut_choice.divisions import Division
from situate.solvers.cut_choice.labelling import Labelling, labelled_cuts

MEGA = 10**6

FEATURES, SEQUENCE = 0, 1

TWO_OR_FOUR = (Division.equal(2), Division.equal(4))


def columns_and_rows(
    nbytes: int = MEGA, speeds: tuple[int, ...] = (1, 1, 1, 1)
) -> tuple[Problem, LetterGraph]:
    """Two products of a second each, which share `features`; a sequence cuts both as well."""
    seconds = {f"gpu{k}": 1 / speed for k, speed in enumerate(speeds)}
    ops = tuple(Op(name, seconds=seconds) for name in ("up", "down", "loss"))
    tensors = (Tensor("x", 0, nbytes, (1,)), Tensor("y", 1, nbytes, (2,)))
    gpus = tuple(Device(f"gpu{k}", bandwidth=1e12) for k in range(len(speeds)))
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
    labelling = Labelling(problem, graph, TWO_OR_FOUR)
    sharding = labelling.problem
    plan = solve_sharding(sharding, time_limit=None, rounds=30)
    sizes = [range(len(cost)) for cost in sharding.costs]
    assert plan.cost == min(sharding.cost(own) for own in product(*sizes))
    assert plan.cost * (1 - 1e-8) <= plan.bound <= plan.cost


def test_parts_of_one_class_are_not_exchanged() -> None:
    problem, graph = columns_and_rows()
    (first, *_) = labelled_cuts(problem, graph, TWO_OR_FOUR)
    assert first == parse_cuts(["sequence=4"])


def test_ops_stay_whole_where_exchanges_cost_more_than_parts_save() -> None:
    problem, graph = columns_and_rows(nbytes=10**10)
    assert [*labelled_cuts(problem, graph, TWO_OR_FOUR)] == []


def test_more_parts_have_a_shorter_estimate() -> None:
    problem, graph = columns_and_rows()
    labelling = Labelling(problem, graph, TWO_OR_FOUR)
    whole, two, four = 3.0, parse_cuts(["sequence=2"]), parse_cuts(["sequence=4"])
    assert labelling.seconds(four) < labelling.seconds(two) < whole


# On a device three times as fast as the other one, shares of 3:1 end at once.
def test_unequal_devices_have_labels_by_speed() -> None:
    problem, graph = columns_and_rows(speeds=(3, 1))
    ways = (Division.equal(2), Division((0.75, 0.25)))
    labelling = Labelling(problem, graph, ways)
    equal, unequal = parse_cuts(["sequence=2"]), parse_cuts(["sequence=3:1"])
    assert labelling.seconds(equal) == pytest.approx(2 * 1 / 2 + 1 / 3, abs=0.01)
    assert labelling.seconds(unequal) == pytest.approx(2 * 1 / 4 + 1 / 3, abs=0.01)
    (first, *_) = labelled_cuts(problem, graph, ways)
    assert first == unequal


def test_blocks_that_are_alike_have_one_label() -> None:
    problem, graph = columns_and_rows()
    tied = LetterGraph((*graph.ops[:2], *graph.ops[:2]), graph.kinds, graph.units)
    assert len(Labelling(problem, tied, (Division.equal(2),)).problem.costs) == 3


# Devices share whole parameters among them: each sends its own ones, adds up their gradients and
# updates them, while the others do the same with theirs.
def test_whole_parameters_are_shared_among_devices() -> None:
    ops = (Op("weight", kind="parameter", seconds={"*": 4}), Op("product", seconds={"*": 8}))
    gpus = tuple(Device(f"gpu{k}", bandwidth=1e12) for k in range(4))
    cluster = Cluster("gpus", gpus, (Link("*", "*", bandwidth=1e6, latency=0),))
    step = Graph("step", ops, (Tensor("weight", 0, MEGA, (1,)),))
    weight = LetterOp((0,), "weight", ((1, 0),), (MEGA,), ())
    cut = ClassOption(0, (WHOLE,), (SUM,))
    product = LetterOp((1,), "product", ((0, 0),), (MEGA,), (cut,))
    graph = LetterGraph((weight, product), ("sequence",), (64,))
    in_parts = Labelling(Problem(step, cluster), graph, TWO_OR_FOUR)
    seconds = in_parts.seconds(parse_cuts(["sequence=4"]))
    # The weight and its gradient take a second each on the way.
    assert seconds == pytest.approx((4 + 8 + 1 + 1) / 4, rel=0.01)
