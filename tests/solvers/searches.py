"""A small search, and decisions to offer to it."""

from __future__ import annotations

from typing import Any

import numpy as np

from situate.data.graph import Graph, Op, Tensor
from situate.data.problem import Problem
from situate.solvers.budget import Budget
from situate.solvers.search import Search
from tests.solvers.families import apart, devices


def search_of(
    of: Problem | None = None, bound: float = 0.0, evaluations: int | None = 10, **limits: Any
) -> Search:
    """A search of four independent ops on two devices, or of another problem."""
    budget = Budget(evaluation_limit=evaluations, **limits)
    return Search(of or Problem(apart(4), devices(1, 2)), bound, budget=budget, threads=1)


def decision(*devices: int) -> tuple[np.ndarray, np.ndarray]:
    """A placement and the order of the file."""
    return np.array(devices, np.int32), np.arange(len(devices), dtype=np.int32)


def late_tensor() -> tuple[Problem, np.ndarray]:
    """Both make the large tensor only when the small one has come; the eager decoder does not."""
    ops = [Op("far", seconds={"*": 1.0}, device="d0"), Op("large", seconds={"*": 0.0}, device="d1")]
    ops += [Op("join", seconds={"*": 0.0}, device="d1")]
    tensors = (Tensor("t", 0, 2, (2,)), Tensor("u", 1, 9, (2,)))
    cluster = devices(1, 1, memory=4, transfers="blocking")
    return Problem(Graph("late", tuple(ops), tensors), cluster), np.array([0, 2, 1], np.int32)
