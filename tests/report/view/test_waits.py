"""The last input of each op, and the critical path as items."""

from __future__ import annotations

import numpy as np

from situate.report.critical import critical_path
from situate.report.view.waits import KINDS, last_inputs, path_columns
from tests.report.handmade import chain, schedule, two_branches


def test_an_op_waits_for_the_tensor_that_arrives_last() -> None:
    problem = chain(3)
    assert last_inputs(problem, schedule(problem, [0, 1, 1])).tolist() == [-1, 0, 1]


def test_the_last_input_may_be_on_its_way_longest() -> None:
    problem = two_branches()
    step = schedule(problem, [0, 0, 1])
    assert last_inputs(problem, step).tolist() == [-1, 0, 1]


def test_one_op_without_edges_has_no_input() -> None:
    problem = chain(1)
    assert last_inputs(problem, schedule(problem, [0])).tolist() == [-1]


# The columns are the critical path of `explain`.
def test_the_path_has_the_items_of_its_segments() -> None:
    problem = chain(4)
    step = schedule(problem, [0, 0, 1, 1])
    columns, path = path_columns(problem, step), critical_path(problem, step)
    assert columns["item"].tolist() == [0, 1, 4, 2, 3]
    assert [KINDS[k] for k in columns["kind"]] == [element.kind for element in path.elements]
    assert np.array_equal(columns["end"], [element.end for element in path.elements])
