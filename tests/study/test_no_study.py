"""A search without a study has something of the same interface, which keeps nothing."""

from __future__ import annotations

import numpy as np

from situate.evaluators.measurements import Measurements
from situate.study.no_study import NoStudy


def test_nothing_recorded_is_known_afterwards():
    placements = np.zeros((1, 3), np.int32)
    with NoStudy() as study:
        study.record(np.arange(1), placements, Measurements(np.ones(1), np.zeros(1, np.uint8)), 0)
        study.keep(1, dict)
        assert len(study.stored_samples(0, placements)[0]) == 0
        assert study.checkpoint() == (0, None)
        assert list(study.batches(1)) == []
