"""The file that a training goes on from: arrays, and what they belong to."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from situate.errors import ReadError, SituateError
from situate.files.atomic import write_bytes

Arrays = Mapping[str, NDArray[np.generic]]

TRAINING = "training"
"""The name of the array that holds the text."""


def write(path: Path, training: str, arrays: Arrays) -> None:
    """Write arrays of the training that a text describes, whole or not at all.

    Raises:
        SituateError: the file cannot be written; the last one is left as it was.
    """
    stream = io.BytesIO()
    np.savez(stream, **{TRAINING: np.array(training)}, **arrays)  # type: ignore[arg-type]
    write_bytes(path, stream.getvalue())


def read(path: Path, training: str) -> dict[str, NDArray[np.generic]] | None:
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
        belongs = str(arrays.pop(TRAINING))
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise ReadError(
            f"{path}: is no checkpoint, or damaged ({error}): remove it to begin anew"
        ) from None
    if belongs != training:
        raise SituateError(
            f"{path}: belongs to another training ({belongs}), not to this one ({training}): give "
            f"another folder, or the same data and options"
        )
    return arrays
