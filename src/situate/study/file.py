"""The study file of a running search."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from situate.errors import SituateError
from situate.evaluators.measurements import Measurements, Origin
from situate.study import samples, tables
from situate.study.connection import connect, damaged, one_line
from situate.study.format import TABLES, check_header, create, is_new, read_header
from situate.study.samples import Packing, SampleTable

StoredSamples = tuple[NDArray[np.int64], Measurements]
"""Row numbers (j,) of some placements, and their measurements in a study."""


CHECKPOINT_SECONDS = 10.0
"""Seconds of a search between two checkpoints of its learner."""


class NoStudy:
    """The interface of `StudyFile` for a search without a study; it stores nothing."""

    workers: tuple[Origin, ...] = ()

    def __enter__(self) -> NoStudy:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def first(self) -> None:
        """None."""

    def stored_samples(
        self, first: int, placements: NDArray[np.int32], table: SampleTable = "samples"
    ) -> StoredSamples:
        """No rows."""
        return np.empty(0, np.int64), Measurements(np.empty(0), np.empty(0, np.uint8))

    def record(
        self,
        numbers: NDArray[np.int64],
        placements: NDArray[np.int32],
        measurements: Measurements,
        batch: int,
        table: SampleTable = "samples",
    ) -> None:
        """Store nothing."""

    def keep(self, samples_done: int, state: Callable[[], tables.State], now: bool = False) -> None:
        """Store no checkpoint."""

    def checkpoint(self) -> tuple[int, tables.State | None]:
        """None."""
        return 0, None

    def batches(self, until: int) -> Iterator[tuple[int, NDArray[np.int32], Measurements]]:
        """No batches."""
        return iter(())


class StudyFile:
    """A study with one search as its exclusive writer; a context manager.

    Once a method returns, its data is in the file, even if the process is killed right then.

    Args:
        path: of the file; a missing or empty file becomes a new study.
        header: names and values of all settings that determine the samples and their measurements;
            among them the numbers of `ops` and `devices`.

    Attributes:
        workers: origins of the measurements by worker number, if workers are distinguished.

    Raises:
        ReadError: not a study, or a damaged one.
        SituateError: a study of another search; in use; cannot be written.
    """

    def __init__(self, path: Path, header: Mapping[str, str]) -> None:
        self.path = path
        self._packing = Packing.of(header)
        self._logged = False
        self.workers: list[Origin] = []
        self._connection = connect(path, write=True)
        try:
            with one_line(path):
                self._open(header)
        except BaseException:
            self._connection.close()
            raise
        self._kept_at = time.monotonic()

    @classmethod
    def open(cls, path: str | Path | None, header: Mapping[str, str]) -> StudyFile | NoStudy:
        """The study at `path`; without a path, a study that stores nothing."""
        return NoStudy() if path is None else cls(Path(path), header)

    def _open(self, header: Mapping[str, str]) -> None:
        # The lock ends when the connection closes, at the latest with the process.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        # A killed search leaves its log.
        self._logged = self._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        with self._connection:
            self._connection.execute("BEGIN EXCLUSIVE")
            if is_new(self._connection):
                create(self._connection, header)
            else:
                check_header(read_header(self._connection, self.path), header, self.path)
            together = samples.measures_batches_together(header)
            counts = {
                table: samples.check(self._connection, self.path, table, together)
                for table in samples.TABLES
            }
            self.workers = tables.read_workers(self._connection, self.path)
        self._count = {table: count for table, (count, _) in counts.items()}
        self._complete = counts["samples"][1]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write all statements of the block, or none."""
        with one_line(self.path), self._connection:
            # With a write-ahead log, a commit does not wait for the disk and still survives the
            # process. A power failure loses at most the last commits.
            if not self._logged:
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._logged = True
            self._connection.execute("BEGIN")
            yield

    def __enter__(self) -> StudyFile:
        return self

    def __exit__(self, *_: object) -> None:
        """Merge the log into the file, and close it.

        The result is one file that can be copied. Its bytes do not depend on the number of
        checkpoints and restarts, except for SQLite's change counter.
        """
        with suppress(sqlite3.Error):
            self._connection.execute("PRAGMA journal_mode = DELETE")
            if self._logged:
                self._connection.execute("VACUUM")
                # VACUUM raises the schema version although the tables stay the same.
                self._connection.execute(f"PRAGMA schema_version = {len(TABLES)}")
        self._connection.close()

    def stored_samples(
        self, first: int, placements: NDArray[np.int32], table: SampleTable = "samples"
    ) -> StoredSamples:
        """The samples from number `first` on that are already in the file.

        Args:
            first: number of the first sample.
            placements: (k, n) placements that the learner now asks for.
            table: of the search, or of the final repetition of its finalists.

        Raises:
            ReadError: a damaged sample.
            SituateError: a sample of another placement.
        """
        stored = self._samples(first, first + len(placements), table)
        # Samples of an interrupted batch may be missing anywhere, so rows are looked up.
        rows = np.array([sample.number - first for sample in stored], np.int64)
        same = (samples.placements(stored, self._packing, self.path) == placements[rows]).all(
            axis=1
        )
        if not same.all():
            raise SituateError(
                f"{self.path}: made by another version of situate or of the learner: sample "
                f"{stored[int(np.argmin(same))].number} differs; use that version, or give "
                "another file"
            )
        return rows, samples.measurements(stored, self.workers)

    def record(
        self,
        numbers: NDArray[np.int64],
        placements: NDArray[np.int32],
        measurements: Measurements,
        batch: int,
        table: SampleTable = "samples",
    ) -> None:
        """Add the measurements of placements (k, n) as samples `numbers` (k,), all or none.

        Args:
            batch: number of the first sample of their batch.
            table: of the search, or of the final repetition of its finalists.

        Raises:
            SituateError: the file cannot be written.
        """
        packed = self._packing.pack(placements)
        origins = measurements.origins or (None,) * len(packed)
        new = [origin for origin in dict.fromkeys(origins) if origin and origin not in self.workers]
        all_workers = [*self.workers, *new]
        by = [None if origin is None else all_workers.index(origin) for origin in origins]
        count = self._count[table] + len(packed)
        with self._transaction():
            if new:
                tables.write_workers(self._connection, new, len(self.workers))
            samples.write(
                self._connection, numbers.tolist(), packed, measurements, by, batch, count, table
            )
        self._count[table], self.workers = count, all_workers

    def keep(self, samples_done: int, state: Callable[[], tables.State], now: bool = False) -> None:
        """Replace the checkpoint if the last is `CHECKPOINT_SECONDS` old, or `now`.

        Args:
            samples_done: number of samples that the learner has seen.
            state: returns the learner's arrays.
            now: write even if the last checkpoint is recent.
        """
        if not now and time.monotonic() - self._kept_at < CHECKPOINT_SECONDS:
            return
        with self._transaction():
            tables.write_checkpoint(self._connection, samples_done, state())
        self._complete = max(self._complete, samples_done)
        self._kept_at = time.monotonic()

    def checkpoint(self) -> tuple[int, tables.State | None]:
        """The number of samples that the learner has seen, and its state; 0 and None without any.

        Raises:
            ReadError: the checkpoint is damaged, or the file lacks some of its samples.
        """
        with one_line(self.path):
            samples_done, state = tables.read_checkpoint(self._connection, self.path)
        if not 0 <= samples_done <= self._complete:
            raise damaged(self.path, "the checkpoint of the study")
        return samples_done, state

    def batches(self, until: int) -> Iterator[tuple[int, NDArray[np.int32], Measurements]]:
        """The samples before number `until`, by batch: first number, placements (k, n),
        measurements.

        Raises:
            ReadError: a damaged sample.
        """
        for first, group in groupby(self._samples(0, until), key=lambda sample: sample.batch):
            batch = list(group)
            placements = samples.placements(batch, self._packing, self.path)
            yield first, placements, samples.measurements(batch, self.workers)

    def first(self) -> NDArray[np.int32] | None:
        """The placement (n,) of the first sample, if there is one.

        Raises:
            ReadError: the sample is damaged.
        """
        first_sample = self._samples(0, 1)
        return (
            samples.placements(first_sample, self._packing, self.path)[0] if first_sample else None
        )

    def _samples(
        self, first: int, end: int, table: SampleTable = "samples"
    ) -> list[samples.Sample]:
        with one_line(self.path):
            return samples.read(self._connection, self.path, first, end, table)
