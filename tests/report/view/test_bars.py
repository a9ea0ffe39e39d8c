"""Bars of a timeline."""

from __future__ import annotations

import numpy as np

from situate.report.view.bars import bars_of
from tests.report.handmade import chain, schedule


def test_few_ops_have_a_bar_each() -> None:
    problem = chain(4)
    bars = bars_of(problem, schedule(problem, [0, 0, 1, 1]), np.zeros(4, np.int64))
    assert not bars.aggregated
    assert bars.of.tolist() == [0, 1, 2, 3]


def test_many_ops_become_runs_of_one_device_and_class() -> None:
    problem = chain(40)
    step = schedule(problem, [0] * 20 + [1] * 20)
    classes = np.repeat([0, 1], [10, 30])
    bars = bars_of(problem, step, classes, limit=12)
    assert bars.aggregated
    assert len(bars.first) <= 12
    assert bars.count.sum() == 40
    for bar in range(len(bars.first)):
        ops = np.flatnonzero(bars.of == bar)
        assert len(set(step.placement[ops])) == len(set(classes[ops])) == 1
        assert np.array_equal(ops, np.arange(ops[0], ops[-1] + 1))


def test_a_bar_spans_its_ops_and_sums_their_bytes() -> None:
    problem = chain(40)
    step = schedule(problem, [0] * 40)
    bars = bars_of(problem, step, np.zeros(40, np.int64), limit=4)
    start, end = bars.span(step)
    assert start[bars.of[0]] == 0.0
    assert end.max() == step.end.max()
    assert bars.totals(problem.persistent).sum() == problem.persistent.sum()


def test_classes_that_change_at_every_op_keep_their_bars() -> None:
    problem = chain(40)
    bars = bars_of(problem, schedule(problem, [0] * 40), np.arange(40) % 2, limit=4)
    assert len(bars.first) == 40
