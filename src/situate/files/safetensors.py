"""Arrays of 32-bit floats by name, with texts about them, as safetensors files; reading one runs no
code. The library comes with the extra `torch`.

https://huggingface.co/docs/safetensors
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from situate.errors import ReadError
from situate.files.atomic import write_bytes
from situate.files.contents import one_line, reason_of

Arrays = dict[str, NDArray[np.float32]]


def write(
    path: str | Path, arrays: Mapping[str, NDArray[np.float32]], about: dict[str, str]
) -> None:
    """Write arrays of 32-bit floats, and texts about them.

    Raises:
        SituateError: the file cannot be written; whatever was there is left as it was.
    """
    # `ascontiguousarray` alone would make a single number an array (1,).
    floats = {
        name: np.ascontiguousarray(array, np.float32).reshape(array.shape)
        for name, array in arrays.items()
    }
    write_bytes(path, save(floats, about))


def read(path: str | Path, limit: int) -> tuple[Arrays, dict[str, str]]:
    """The arrays and the texts of a file of `limit` bytes at most.

    Raises:
        ReadError: the file cannot be read, is no safetensors file, is truncated or larger than it
            says, has numbers that are no 32-bit floats or not finite.
    """
    try:
        if Path(path).exists() and not Path(path).is_file():
            raise ValueError("is no regular file")
        if (size := Path(path).stat().st_size) > limit:
            raise ValueError(f"has {size} bytes, more than the {limit} of any that are read")
        with safe_open(path, "numpy") as opened:
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
            about = opened.metadata() or {}
    except (OSError, SafetensorError, ValueError, TypeError) as error:
        message = f"{path}: cannot be read as safetensors: {reason_of(error)}"
        raise ReadError(one_line(message)) from None
    for name, array in arrays.items():
        _check(path, name, array)
    return arrays, about


def _check(path: str | Path, name: str, array: NDArray[np.generic]) -> None:
    if array.dtype != np.float32:
        kind = f"tensor {name!r}: numbers are {array.dtype}, and only float32 are read"
        raise ReadError(one_line(f"{path}: {kind}"))
    if not np.isfinite(array).all():
        raise ReadError(one_line(f"{path}: tensor {name!r}: has numbers that are not finite"))
