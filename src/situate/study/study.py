"""A study as people read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from situate.evaluators.measurements import Measurements, Origin
from situate.study import samples, tables
from situate.study.connection import connect, damaged, one_line
from situate.study.format import read_header
from situate.study.samples import Packing


@dataclass(frozen=True, eq=False)
class Study:
    """Every measurement of a search, in order, up to the first missing one of an interrupted batch.

    Attributes:
        path: of the file.
        header: settings of the search: graph, cluster, method, seed, ...
        measurements: seconds (k,), outcome (k,) and worker of each sample.
        batch: (k,) number of the first sample of each sample's batch.
        workers: origins of the measurements, if workers are distinguished.
    """

    path: Path
    header: dict[str, str]
    measurements: Measurements
    batch: NDArray[np.int64]
    workers: tuple[Origin, ...]
    _samples: list[samples.Sample] = field(repr=False)
    _finals: list[samples.Sample] = field(repr=False)
    _packing: Packing = field(repr=False)

    @classmethod
    def read(cls, path: str | Path) -> Study:
        """Read a study; the file is left as it is.

        Raises:
            ReadError: no such file, no study, or a damaged one.
            SituateError: a search is writing it, or it cannot be opened.
        """
        path = Path(path)
        with closing(connect(path, write=False)) as connection, one_line(path):
            header = read_header(connection, path)
            together = samples.measures_batches_together(header)
            _, complete = samples.check(connection, path, together=together)
            stored = samples.read(connection, path, end=complete)
            finals = samples.read(connection, path, table="finals")
            origins = tuple(tables.read_workers(connection, path))
        try:
            packing = Packing.of(header)
        except ValueError:
            raise damaged(path, "the header of the study") from None
        batch = np.array([sample.batch for sample in stored], np.int64)
        measurements = samples.measurements(stored, origins)
        return cls(path, header, measurements, batch, origins, stored, finals, packing)

    def __len__(self) -> int:
        return len(self._samples)

    def placement(self, number: int) -> NDArray[np.int32]:
        """(n,) the device index of each op in sample `number`.

        Raises:
            IndexError: no such sample.
            ReadError: it is damaged.
        """
        return np.asarray(
            samples.placements([self._samples[number]], self._packing, self.path)[0], np.int32
        )

    def placements(self) -> Iterator[NDArray[np.int32]]:
        """`placement` of every sample in turn.

        Raises:
            ReadError: at a damaged sample.
        """
        return map(self.placement, range(len(self)))

    def finalists(self) -> list[tuple[NDArray[np.int32], NDArray[np.float64]]]:
        """The placements (n,) that the search measured again at its end, and their seconds (k,).

        Raises:
            ReadError: at a damaged sample.
        """
        seconds: dict[bytes, list[float]] = {}
        for sample in self._finals:
            seconds.setdefault(sample.packed, []).append(sample.seconds)
        first = {sample.packed: sample for sample in reversed(self._finals)}
        placements = samples.placements([first[key] for key in seconds], self._packing, self.path)
        return list(zip(placements, map(np.array, seconds.values()), strict=True))
