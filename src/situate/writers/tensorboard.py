"""TensorBoard event files: one run a folder, written as the numbers come."""

from __future__ import annotations

import io
import math
import os
import secrets
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from situate.errors import MissingExtra, SituateError

EVENT_FILE = "brain.Event:2"
"""The version that a file of events begins with."""


class Scalars:
    """Numbers over steps. In TensorBoard they replace a previous run in the folder.

    Written numbers can be read at once, and the file ends with a whole record even if the disk is
    full. TensorBoard's own writer leaves both to a thread and loses its errors.

    Args:
        folder: of the run; created with its parents.

    Raises:
        MissingExtra: tensorboard is not installed.
        SituateError: the folder cannot be written; of every method.
    """

    def __init__(self, folder: str | Path) -> None:
        try:
            from tensorboard.compat.proto import event_pb2, summary_pb2
            from tensorboard.summary.writer.record_writer import RecordWriter
        except ImportError:
            raise MissingExtra("tensorboard", "report") from None
        self._folder = folder
        self._event, self._summary = event_pb2.Event, summary_pb2.Summary
        self._record_writer = RecordWriter
        start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
        with self._one_line():
            os.makedirs(folder, exist_ok=True)
            self._file = Path(folder, _name()).open("xb", buffering=0)  # noqa: SIM115 - see close
        self._add(file_version=EVENT_FILE)
        self._add(session_log=start)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Add values by tag, without those that are not finite."""
        summary = self._summary(
            value=[
                self._summary.Value(tag=tag, simple_value=value)
                for tag, value in values.items()
                if math.isfinite(value)
            ]
        )
        self._add(step=step, summary=summary)

    def close(self) -> None:
        """Let go of the file."""
        with self._one_line():
            self._file.close()

    def _add(self, **content: Any) -> None:
        record = io.BytesIO()
        event = self._event(wall_time=time.time(), **content)
        # Framed in memory first, so that the length and checksums reach the disk with their record.
        self._record_writer(record).write(event.SerializeToString())
        with self._one_line():
            self._append(record.getbuffer())

    def _append(self, record: memoryview) -> None:
        """All of a record or nothing."""
        end = self._file.tell()
        try:
            while record:
                # An unbuffered file may take a part of the bytes only.
                record = record[self._file.write(record) :]
        except OSError:
            self._file.truncate(end)
            self._file.seek(end)
            raise

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            reason = error.strerror or str(error)
            raise SituateError(f"cannot write {str(self._folder)!r}: {reason}") from None


def _name() -> str:
    """The name of a new file; TensorBoard reads a folder's files in the order of their names."""
    host, token = socket.gethostname(), secrets.token_hex(4)
    return f"events.out.tfevents.{int(time.time()):010d}.{host}.{os.getpid()}.{token}"
