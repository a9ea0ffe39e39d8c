"""Labels of ops, and pairs of them."""

from __future__ import annotations

import numpy as np
import pytest

from situate import Cluster, Graph, Problem
from situate.data.cluster import Device
from situate.data.graph import Op
from situate.data.letter_graph import SUM, WHOLE, ClassOption, LetterGraph, LetterOp, Passage
from situate.solvers.cut_choice.kernels import Kernels
from situate.solvers.cut_choice.label_pairs import (
    Label,
    is_loose,
    labels_of,
    pair_of,
    pair_seconds,
    ranges,
)

FEATURES, SEQUENCE, HIDDEN = range(3)

TWO = ((2, 2),)


def letters(
    passage: Passage, ranges: tuple[int, ...] = (0, 1, 2), dimensions: tuple[int, ...] = ()
) -> LetterGraph:
    """An op of features and sequence, and a reader of sequence and hidden."""
    up = (ClassOption(FEATURES, (), (SUM,)), ClassOption(SEQUENCE, (), (SEQUENCE,)))
    norm = (
        ClassOption(SEQUENCE, (SEQUENCE,), (SEQUENCE,)),
        ClassOption(HIDDEN, (HIDDEN,), (HIDDEN,)),
    )
    ops = (
        LetterOp((0,), "up", (), (64,), up),
        LetterOp((1,), "norm", ((0, 0),), (64,), norm, passages=(passage,)),
    )
    return LetterGraph(
        ops, ("features", "sequence", "hidden"), (8, 8, 8), ranges, dimensions or ranges
    )


def seconds(graph: LetterGraph) -> np.ndarray:
    """By cut of the producer and of the reader, in two parts, seconds of the load in two ways."""
    labels = [labels_of(op, graph.units, TWO, False) for op in graph.ops]
    cluster = Cluster("gpu", (Device("gpu", bandwidth=1e12, launch=1e-6),))
    problem = Problem(Graph("step", (Op("op", seconds={"*": 1.0}),)), cluster)
    return pair_seconds(pair_of(graph, labels, 1, 0), Kernels(problem, np.array([1.0])))[0]


# Ranges hold each number of parts once.
@pytest.mark.parametrize("most", [2, 3, 8, 64, 100])
def test_ranges_cover_all_numbers_of_parts(most) -> None:
    numbers = [n for low, high in ranges(most) for n in range(low, high + 1)]
    assert numbers == list(range(2, most + 1))


def test_an_op_has_a_label_for_each_class_and_number_of_parts() -> None:
    (up, _) = letters(Passage(64)).ops
    assert labels_of(up, (2, 8, 8), ((2, 2), (3, 4)), True) == (
        Label(WHOLE, WHOLE, (1, 1)),
        Label(FEATURES, FEATURES, (2, 2)),
        Label(SEQUENCE, SEQUENCE, (2, 2)),
        Label(SEQUENCE, SEQUENCE, (3, 4)),
        Label(SUM, SUM, (2, 2)),
        Label(SUM, SUM, (3, 4)),
    )


# A cut class cuts all its ops that no earlier class cuts.
def test_an_op_is_not_whole_beside_a_cut_of_its_class() -> None:
    whole, features, sequence = seconds(letters(Passage(64)))
    assert np.isfinite(whole[0]).any()
    assert np.isinf(whole[1]).all()
    assert np.isfinite(whole[2]).any()
    assert np.isfinite(features[1]).any()
    assert np.isinf(sequence[0]).all()
    assert sequence[1].min() == 0.0


# Views that the reader's class divides are in its parts; others may be of the whole tensor.
def test_a_view_that_no_class_divides_may_be_whole() -> None:
    direct = seconds(letters(Passage(64)))[1, 1]
    divided = Passage(64, False, frozenset({SEQUENCE}), frozenset({SEQUENCE, HIDDEN}))
    assert seconds(letters(divided))[1, 1].tolist() == direct.tolist()
    through = seconds(letters(Passage(64, False)))[1, 1]
    assert through.min() < direct.min()


def test_classes_that_divide_one_dimension_alike_exchange_nothing() -> None:
    apart, alike = (seconds(letters(Passage(64), own)) for own in ((0, 1, 2), (0, 1, 1)))
    assert apart[2, 2].min() > 0
    assert alike[2, 2].min() == 0


def test_parts_in_other_ranges_of_a_dimension_read_the_whole() -> None:
    apart, crossing = (
        seconds(letters(Passage(64), dimensions=own)) for own in ((0, 1, 2), (0, 1, 1))
    )
    assert 0 < crossing[2, 2].min() < apart[2, 2].min()


# The largest part of a reader waits for all parts, or for the largest one.
def test_edges_are_loose_where_classes_divide_one_dimension_or_one_part_writes_the_result() -> None:
    graph = letters(Passage(64))
    up, norm = graph.ops
    assert not is_loose(graph, up, 0, norm)
    assert is_loose(letters(Passage(64), (0, 1, 1)), up, 0, norm)
    once = LetterOp((0,), "loss", (), (64,), (ClassOption(FEATURES, (), (WHOLE,)),))
    assert is_loose(graph, once, 0, norm)
