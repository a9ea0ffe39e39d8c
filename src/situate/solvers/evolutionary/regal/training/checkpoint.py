"""The checkpoint of a training: its file, and checks of its arrays."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from situate.errors import ReadError, SituateError
from situate.files.atomic import write_bytes
from situate.files.contents import one_line, reason_of

Arrays = Mapping[str, NDArray[np.generic]]

Training = Mapping[str, object]
"""Settings that must match for a checkpoint to be resumed, by name, as JSON values."""

TRAINING = "training"
"""The name of the array that holds these settings as JSON text."""

WITH_NAN = frozenset({"curve", "plain", "plain_valid"})
"""Arrays with NaN for missing measurements."""


def write(path: Path, training: Training, arrays: Arrays) -> None:
    """Write arrays of a training, whole or not at all.

    Raises:
        SituateError: the file cannot be written; the last one stays as it was.
    """
    stream = io.BytesIO()
    text = msgspec.json.encode(training).decode()
    np.savez(stream, **{TRAINING: np.array(text)}, **arrays)  # type: ignore[arg-type]
    write_bytes(path, stream.getvalue())


def read(path: Path, training: Training) -> dict[str, NDArray[np.generic]] | None:
    """The arrays of a checkpoint; None if there is no such file.

    Raises:
        ReadError: the file cannot be read, or is damaged.
        SituateError: it belongs to another training.
    """
    if not path.exists():
        return None
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {reason_of(error)}") from None
    try:
        arrays, belongs = _unpacked(data)
    except MemoryError:
        # Lack of memory says nothing about the file.
        raise
    except Exception:  # from zip files, NumPy's headers and Python's own parser
        # NumPy's own messages advise opening the file unsafely.
        raise damaged(path) from None
    if others := list(_others(belongs, msgspec.to_builtins(training))):
        raise SituateError(
            one_line(
                f"{path}: belongs to another training, of other {', '.join(others)}: give another "
                "folder, or the same data and options"
            )
        )
    return arrays


def damaged(path: Path) -> ReadError:
    """The error for a checkpoint that cannot be resumed."""
    return ReadError(f"{path}: is no checkpoint, or damaged: remove it to begin anew")


def _unpacked(data: bytes) -> tuple[dict[str, NDArray[np.generic]], dict[str, object]]:
    """The arrays of a file, and the training that it belongs to."""
    with np.load(io.BytesIO(data), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return arrays, msgspec.json.decode(str(arrays.pop(TRAINING)), type=dict[str, object])


def _others(belongs: Training, training: Training) -> Iterator[str]:
    """The names of the settings that differ."""
    for name in sorted(belongs.keys() | training.keys()):
        if belongs.get(name) != training.get(name):
            yield name


def is_sound(state: Arrays, own: Arrays) -> bool:
    """True if a trainer may restore `state`.

    Args:
        state: arrays of a checkpoint by name.
        own: arrays of the trainer. Both must have the same names, types and shapes, except for the
            number of points of the curve.
    """
    return state.keys() == own.keys() and (
        all(_is_alike(name, state[name], array) for name, array in own.items())
        and _is_consistent(state)
    )


def _is_alike(name: str, array: NDArray[np.generic], own: NDArray[np.generic]) -> bool:
    # Only the curve grows with the steps, along its first axis.
    grows = 1 if name == "curve" else 0
    if array.dtype != own.dtype or array.ndim != own.ndim:
        return False
    return array.shape[grows:] == own.shape[grows:] and _has_numbers(name, array)


def _has_numbers(name: str, array: NDArray[np.generic]) -> bool:
    numbers = array[~np.isnan(array)] if name in WITH_NAN else array
    return bool(np.isfinite(numbers).all())


def _is_consistent(state: Arrays) -> bool:
    """True if the numbers of steps agree, and rewards and times are possible."""
    step, curve = int(state["step"]), state["curve"]
    steps, rewards, validations = curve.T
    times = np.concatenate([state[name] for name in ("plain", "plain_valid") if name in state])
    return (
        step == int(state["steps"][0]) == (int(steps[-1]) if len(steps) else 0)
        and bool((np.diff(steps, prepend=0) > 0).all() and (steps % 1 == 0).all())
        and not np.isnan(rewards).any()
        and (np.isnan(validations) == ("plain_valid" not in state)).all()
        and not (times < 0).any()
        and not np.less(state["square"], 0).any()
    )
