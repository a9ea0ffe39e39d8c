"""Problems worth learning on, and the statements about every sequence model as a method.

One has blocks of four branches of ops of 30 to 90 ms on three devices and a
slow one, a millisecond between any two; a step takes about a second, as in the papers. The other is
layered and small.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from situate.data.problem import Problem
from situate.errors import MissingExtra
from situate.grouping import group
from situate.policies import installed
from situate.results.result import Result
from situate.solvers import METHODS, solve
from situate.solvers.budget import Budget
from situate.solvers.learned.driver import learn
from situate.solvers.learned.learner import Learning, Settings
from situate.solvers.search import Search
from tests.solvers.families import devices, graph, layered

LAYERED = Problem(layered(6, 4, 1), devices(1, 1, 2, bandwidth=0.5))
BLOCKS, BRANCHES = 4, 4


def branching() -> Problem:
    """36 ops; a single device takes six times the critical path or so."""
    rng = np.random.default_rng(7)
    edges, n = [], 1
    for _ in range(BLOCKS):
        join = n + 2 * BRANCHES
        for branch in range(BRANCHES):
            first = n + 2 * branch
            edges += [(n - 1, first), (first, first + 1), (first + 1, join)]
        n = join + 1
    seconds = rng.uniform(0.03, 0.09, n).tolist()
    return Problem(graph(n, edges, seconds=seconds), devices(1, 1, 1, 2, bandwidth=1000.0))


def learnt(method: str, settings: Settings = "tuned", seed: int = 0, **changes: object) -> Result:
    """1,200 samples on the branching problem."""
    learning = Learning(settings=settings, **changes)  # type: ignore[arg-type]
    return solve(branching(), method, evaluations=1200, seed=seed, learning=learning)


def first_sixty(result: Result) -> float:
    """The best of the first 60 samples."""
    return float(result.samples[:60].min())


def beats_its_first_sixty(method: str) -> bool:
    """By a tenth, in 480 samples of the layered problem, op by op."""
    search = Search(LAYERED, budget=Budget(evaluation_limit=480), threads=1)
    telemetry = learn(search, method, METHODS[method].learner(), Learning(grouping="none"))
    samples = telemetry.result(search, method).samples
    return bool(samples.min() < 0.9 * samples[:60].min())


def says_what_to_install(method: str, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Where there is no PyTorch."""
    monkeypatch.setattr(installed, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'situate\[torch\]'"):
        solve(LAYERED, method, evaluations=60)
    return True


def groups_as_asked(method: str) -> bool:
    """A grouping asked for goes before that of the settings."""
    make: Any = METHODS[method].learner()
    asked, few = (
        make(LAYERED, learning, 60, 0)
        for learning in (Learning(grouping="none"), Learning(groups=4))
    )
    merged = len(group(LAYERED, "heavy-edge", 4))
    return len(asked.groups) == LAYERED.units != merged == len(few.groups)
