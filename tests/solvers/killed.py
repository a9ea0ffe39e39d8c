"""Searches that are killed, as by `kill -9`, at moments spread over all that they do:

python -m tests.solvers.killed FOLDER COUNT

leaves COUNT studies in the folder. One process a search, each forked from one that has done nothing
but import.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from situate.data.problem import Problem
from situate.grouping import make_groups
from situate.results.result import Result
from situate.solvers.budget import Budget
from situate.solvers.learned.driver import learn
from situate.solvers.learned.learner import Learning
from situate.solvers.learned.post import SoftmaxLearner, SoftmaxSettings
from situate.solvers.search import Search
from situate.study import file
from tests.solvers.families import devices, layered

SAMPLES = 150
PROBLEM = Problem(layered(4, 3, 1, persistent=1), devices(1, 1, 2, memory=10))
"""Twelve ops; a third of the placements that are measured exceed the memory."""


def learner(problem: Problem, learning: Learning, samples: int, seed: int) -> SoftmaxLearner:
    """Post, each op on its own."""
    groups = make_groups(problem, np.arange(problem.units))
    return SoftmaxLearner(groups, SoftmaxSettings(), samples, 100.0, seed)


def search(study: Path | None, make: Any = learner, **changes: Any) -> Result:
    """The result of the search that tests of studies interrupt; a machine of theirs brings its own
    noise."""
    noise = 0.0 if changes.get("evaluator") else 0.1
    learning = Learning(**{"noise": noise, "study": study} | changes)
    budget = Budget(evaluation_limit=SAMPLES)
    return learnt(Search(PROBLEM, budget=budget, seed=3, threads=1), make, learning)


def learnt(search: Search, make: Any, learning: Learning) -> Result:
    """The result of a search by Post with the learner that `make` makes."""
    return learn(search, "post", make, learning).result(search, "post")


def outcome(result: Result) -> list[Any]:
    """All of a result that does not depend on the clock."""
    history = [(evaluations, value) for _, evaluations, value in result.history]
    placement, samples = result.placement.tolist(), result.samples.tolist()
    return [samples, result.evaluations, history, placement, result.value]


def steps(work: Callable[[], object], die_at: float = np.inf) -> int:
    """Calls and returns within situate that the work takes, or makes before it is killed."""
    count = 0

    def profile(frame: FrameType, event: str, _: object) -> None:
        nonlocal count
        if "situate" in frame.f_code.co_filename:
            count += 1
            if count >= die_at:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def kill(study: Path, moment: int) -> None:
    """Run the search in a process of its own that is killed at this step."""
    if os.fork() == 0:
        steps(lambda: search(study), moment)
        os._exit(1)
    assert os.WTERMSIG(os.wait()[1]) == signal.SIGKILL


def main(folder: Path, count: int) -> None:
    """Half of the studies have a checkpoint after every batch; each is killed twice, the second
    time as it is opened again or shortly after."""
    total = steps(lambda: search(folder / "whole"))
    for i in range(count):
        file.CHECKPOINT_SECONDS = 0.0 if i % 2 else np.inf
        kill(folder / f"{i}", 1 + total * i // count)
        kill(folder / f"{i}", 40 + 17 * i)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
