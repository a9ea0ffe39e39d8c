"""`structure`: as `heavy-edge`, balanced by what ops compute and move instead of by their seconds.

A learner that places such groups knows of the machine nothing but what it measured. The work of ops
is that of `situate.grouping.work`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.grouping import heavy_edge
from situate.grouping.work import unit_work


def labels(problem: Problem, count: int) -> NDArray[np.int64]:
    """Labels (units,) of `count` groups: fewer if there are fewer units, more if units that share
    no device leave no other way."""
    return heavy_edge.labels(problem, count, unit_work(problem))
