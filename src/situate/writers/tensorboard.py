"""TensorBoard event files: one run a folder, written as the numbers come."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from situate.errors import MissingExtra, SituateError

FLUSH = 2.0
"""Seconds after which what was written can be read."""


class Scalars:
    """Numbers over steps. A run that the folder already holds is replaced as TensorBoard shows it.

    Args:
        folder: of the run; made with its parents.

    Raises:
        MissingExtra: tensorboard is not installed.
        SituateError: the folder cannot be written; of every method.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise MissingExtra("tensorboard", "report") from None
        self._folder = folder
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        with self._one_line():
            self._writer = EventFileWriter(str(folder), flush_secs=FLUSH)
            self._writer.add_event(self._event(wall_time=time.time(), session_log=start))

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Add values by tag; those that are not finite are left out."""
        summary = self._summary(
            value=[
                self._summary.Value(tag=tag, simple_value=value)
                for tag, value in values.items()
                if math.isfinite(value)
            ]
        )
        with self._one_line():
            self._writer.add_event(self._event(wall_time=time.time(), step=step, summary=summary))

    def close(self) -> None:
        """Write what is left."""
        with self._one_line():
            self._writer.close()

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise SituateError(f"cannot write {str(self._folder)!r}: {reason}") from None
