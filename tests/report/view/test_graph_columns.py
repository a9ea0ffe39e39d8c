"""A graph as columns."""

from __future__ import annotations

import numpy as np

from situate.report.pictures.op_colors import op_classes
from situate.report.view.bars import bars_of
from situate.report.view.block import encoded
from situate.report.view.graph_columns import graph_columns
from tests.report.handmade import chain, schedule
from tests.report.view.unpack import decoded


def _columns(count: int, limit: int) -> dict:
    problem = chain(count)
    classes = op_classes(problem.graph.ops, np.ones(count))
    bars = bars_of(problem, schedule(problem, [0] * count), classes.of, limit)
    return decoded(encoded(graph_columns(problem, classes, bars)))


def test_columns_name_ops_modules_and_phases() -> None:
    columns = _columns(3, 10)
    ops = columns["ops"]
    assert ops["name"] == ["op0", "op1", "op2"]
    modules = [ops["module"]["texts"][i] for i in ops["module"]["of"]]
    assert modules == ["layer0", "layer1", "layer2"]
    assert columns["classes"] == ["forward", "backward", "update"]
    assert ops["persistent"].tolist() == [10.0] * 3


def test_tensors_have_a_producer_and_readers() -> None:
    tensors = _columns(3, 10)["tensors"]
    assert tensors["producer"].tolist() == [0, 1]
    assert tensors["readers"].tolist() == [1, 2]
    assert tensors["first"].tolist() == [0, 1, 2]


def test_a_bar_of_several_ops_names_the_first_and_counts_the_others() -> None:
    ops = _columns(90, 9)["ops"]
    assert ops["name"][0].startswith("op0 and ")
    assert ops["count"].sum() == 90
