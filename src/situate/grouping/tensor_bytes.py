"""`bytes`: as `heavy-edge`, but balanced by the bytes of the ops' tensors instead of seconds.

A learner with such groups sees bytes and edges of the graph. It sees no seconds and no FLOPs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from situate.data.problem import Problem
from situate.grouping import heavy_edge
from situate.grouping.units import unit_bytes


def labels(problem: Problem, count: int) -> NDArray[np.int64]:
    """Labels (units,) of `count` groups: fewer if there are fewer units, more if units that share
    no device leave no other way."""
    return heavy_edge.labels(problem, count, unit_bytes(problem))
