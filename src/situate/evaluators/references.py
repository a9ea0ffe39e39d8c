"""Seconds of workers that differ, made comparable by the reference step that each measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from situate.evaluators.measurements import Measurements, Origin

ALIKE = 1.05
"""Ratio of two reference times up to which workers count as equally fast: they are known no better,
and a ratio that is noise would favour what one of them measures."""


class References:
    """The reference times of a search's workers.

    Args:
        met: the workers that measured so far, the first of them first.
    """

    def __init__(self, met: Sequence[Origin] = ()) -> None:
        self._first = met[0].reference if met else None

    def compared(self, measured: Measurements) -> Measurements:
        """Measurements as the first worker would have made them: seconds of a worker that needs
        twice its time for the reference step are halved."""
        if not measured.origins:
            return measured
        origins = tuple(self._paced(origin) for origin in measured.origins)
        paces = np.array([origin.pace if origin else 1.0 for origin in origins])
        return replace(measured, seconds=measured.seconds / paces, origins=origins)

    def _paced(self, origin: Origin | None) -> Origin | None:
        if origin is None:
            return None
        if self._first is None:
            self._first = origin.reference
        ratio = origin.reference / self._first
        return replace(origin, pace=1.0 if 1 / ALIKE <= ratio <= ALIKE else ratio)
