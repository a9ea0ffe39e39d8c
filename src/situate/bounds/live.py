"""The bytes of tensors and workspaces that must be live at once; docs/bounds.md derives them."""

from __future__ import annotations

import math
import time

import numpy as np

from situate import _core
from situate.bounds.rounding import EPSILON
from situate.data.arrays import Bools, Ints
from situate.data.problem import Problem
from situate.data.topology import edge_producers, edge_tensors

WORK = 400_000_000
"""Budget of ops, tensors and edges; about a third of a second, or two seconds for large cuts."""


class Live:
    """The bytes of a problem's tensors and workspaces that are live at once in every schedule.

    Args:
        problem: of n ops, under rules that count live tensors.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        orders = np.array([problem.graph.order, problem.depth_first], np.int32)
        self._from, self._tensor = edge_producers(problem), edge_tensors(problem)
        self._dependencies = _core.bounds.Dependencies(
            before=self._from, after=problem.consumers, orders=orders
        )
        # If memory is counted per step, an op of no time is a step too.
        each_step = problem.rules.memory == "step"
        runs = np.ones(problem.n, np.bool_) if each_step else takes_time(problem)
        self._runs = runs.astype(np.uint8)

    def least(self, confined: Bools, work: int = WORK, until: float = math.inf) -> int:
        """Lower bound on the live bytes of the ops of a mask (n,) on their common devices.

        Outputs live until their last reader in the mask ends, inputs from elsewhere while their
        readers run, workspaces while their op runs. The bound is weaker if `work` ops, tensors and
        edges are not enough, or `time.perf_counter` reaches `until` first.
        """
        problem = self._problem
        counts = confined[problem.producer] & (problem.resident == 0) & (problem.size > 0)
        reads = counts[self._tensor] & confined[problem.consumers]
        # (m,) new number of a tensor among those that count; only read for these.
        number = np.cumsum(counts, dtype=np.int32) - 1
        tensors = _core.bounds.HeldTensors(
            size=problem.size[counts],
            producer=problem.producer[counts],
            edge_tensor=number[self._tensor[reads]],
            edge_consumer=problem.consumers[reads],
            output=problem.output[counts],
        )
        return _core.bounds.least_live(
            self._dependencies,
            tensors,
            workspace=np.where(confined, problem.workspace + self._received(confined), 0),
            runs=self._runs & confined,
            work=work,
            seconds=until - time.perf_counter(),
        )

    def _received(self, confined: Bools) -> Ints:
        """(n,) bytes of inputs from ops outside the mask, without resident ones, whose producer may
        be on the same device."""
        problem = self._problem
        received, size = np.zeros(problem.n, np.int64), problem.size[self._tensor]
        counts = ~confined[self._from] & (problem.resident[self._tensor] == 0)
        np.add.at(received, problem.consumers[counts], size[counts])
        return received


def takes_time(problem: Problem) -> Bools:
    """(n,) whether a clock at an op's start shows another time at its end, whenever it starts."""
    return np.asarray(problem.fastest > EPSILON * problem.serial_seconds)


def all_take_time(problem: Problem) -> bool:
    """True if every op that needs bytes takes time, or is a step of its own."""
    needed = problem.workspace.copy()
    np.add.at(needed, problem.producer, np.where(problem.resident == 1, 0, problem.size))
    return problem.rules.memory == "step" or bool((needed[~takes_time(problem)] == 0).all())
