"""Arrays by name in the safetensors format: a header of JSON, then the numbers. Nothing in such a
file is run, and all of it is checked before an array is made.

https://huggingface.co/docs/safetensors, the format version 0.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from situate.errors import ReadError
from situate.files.atomic import write_bytes
from situate.files.contents import one_line, packed
from situate.files.strict_json import decode

Arrays = dict[str, NDArray[np.float32]]

METADATA = "__metadata__"

KIND = "F32"
"""The only type of number that is written and read here."""

ALIGNMENT = 8
"""The numbers begin at a multiple of so many bytes."""


MOST = 2**31
"""No dimension is larger."""


class _Tensor(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    shape: list[int]
    data_offsets: tuple[int, int]


def write(
    path: str | Path, arrays: Mapping[str, NDArray[np.float32]], about: Mapping[str, str]
) -> None:
    """Write arrays of 32-bit floats, and texts about them.

    Raises:
        SituateError: the file cannot be written; whatever was there is left as it was.
    """
    header: dict[str, Any] = {METADATA: dict(about)}
    parts, at = [], 0
    for name, array in arrays.items():
        data = np.ascontiguousarray(array, "<f4").tobytes()
        header[name] = _Tensor(KIND, list(array.shape), (at, at + len(data)))
        parts.append(data)
        at += len(data)
    text = msgspec.json.encode(header)
    text += b" " * (-len(text) % ALIGNMENT)
    write_bytes(path, struct.pack("<Q", len(text)) + text + b"".join(parts))


def read(path: str | Path, limit: int) -> tuple[Arrays, dict[str, str]]:
    """The arrays and the texts of a file of `limit` bytes at most.

    Raises:
        ReadError: the file cannot be read, is no safetensors file, is truncated or larger than it
            says, has numbers that are no 32-bit floats or not finite.
    """
    try:
        return _parsed(packed(Path(path), limit))
    except ReadError as error:
        raise ReadError(one_line(f"{path}: {error}")) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ReadError(one_line(f"{path}: cannot be read: {reason}")) from None


def _parsed(data: bytes) -> tuple[Arrays, dict[str, str]]:
    if len(data) < 8:
        raise ReadError("is no safetensors file: it has fewer than 8 bytes")
    (length,) = struct.unpack_from("<Q", data)
    if length > len(data) - 8:
        raise ReadError("is no safetensors file, or truncated: its header ends behind the file")
    header, numbers = data[8 : 8 + length], data[8 + length :]
    found = decode(header, dict[str, msgspec.Raw])
    about = decode(bytes(found.pop(METADATA, msgspec.Raw(b"{}"))), dict[str, str])
    tensors = {name: decode(bytes(raw), _Tensor) for name, raw in found.items()}
    _check_offsets(tensors, len(numbers))
    return {name: _array(name, tensor, numbers) for name, tensor in tensors.items()}, about


def _check_offsets(tensors: Mapping[str, _Tensor], size: int) -> None:
    """The tensors fill the file, one behind the other, as the format demands."""
    at = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1].data_offsets):
        begin, end = tensor.data_offsets
        if begin != at or end < begin:
            raise ReadError(f"tensor {name!r}: begins at byte {begin}, not at {at}")
        at = end
    if at != size:
        raise ReadError(f"has {size} bytes of numbers where its header says {at}: truncated?")


def _array(name: str, tensor: _Tensor, numbers: bytes) -> NDArray[np.float32]:
    begin, end = tensor.data_offsets
    if tensor.dtype != KIND:
        raise ReadError(f"tensor {name!r}: numbers are {tensor.dtype}, and only {KIND} are read")
    sizes_hold = all(0 <= size <= MOST for size in tensor.shape)
    if not sizes_hold or 4 * prod(tensor.shape) != end - begin:
        raise ReadError(f"tensor {name!r}: {end - begin} bytes are no array {tensor.shape}")
    array = np.frombuffer(numbers[begin:end], "<f4").astype(np.float32).reshape(tensor.shape)
    if not np.isfinite(array).all():
        raise ReadError(f"tensor {name!r}: has numbers that are not finite")
    return array
