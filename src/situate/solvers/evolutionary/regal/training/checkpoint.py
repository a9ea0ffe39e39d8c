"""The file that a training goes on from: arrays, and what they belong to."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from situate.errors import ReadError, SituateError
from situate.files.atomic import write_bytes

Arrays = Mapping[str, NDArray[np.generic]]

Training = Mapping[str, object]
"""By name what makes a training another one, as JSON knows it."""

TRAINING = "training"
"""The name of the array that holds that, as a text."""


def write(path: Path, training: Training, arrays: Arrays) -> None:
    """Write arrays of a training, whole or not at all.

    Raises:
        SituateError: the file cannot be written; the last one is left as it was.
    """
    stream = io.BytesIO()
    text = msgspec.json.encode(training).decode()
    np.savez(stream, **{TRAINING: np.array(text)}, **arrays)  # type: ignore[arg-type]
    write_bytes(path, stream.getvalue())


def read(path: Path, training: Training) -> dict[str, NDArray[np.generic]] | None:
    """The arrays; None where there is no such file.

    Raises:
        ReadError: the file is damaged.
        SituateError: it belongs to another training.
    """
    if not path.exists():
        return None
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        belongs = msgspec.json.decode(str(arrays.pop(TRAINING)), type=dict[str, object])
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, msgspec.DecodeError):
        # NumPy's own messages advise to open the file unsafely.
        raise ReadError(f"{path}: is no checkpoint, or damaged: remove it to begin anew") from None
    if others := list(_others(belongs, msgspec.to_builtins(training))):
        raise SituateError(
            f"{path}: belongs to another training, of other {', '.join(others)}: give another "
            f"folder, or the same data and options"
        )
    return arrays


def _others(belongs: Training, training: Training) -> Iterator[str]:
    """The names of what differs."""
    for name in sorted(belongs.keys() | training.keys()):
        if belongs.get(name) != training.get(name):
            yield name
