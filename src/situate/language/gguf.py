"""Headers of GGUF files: metadata and the table of tensors, without the weights.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md, versions 2 and 3, little-endian. A
header alone is enough: the file may end where the weights begin.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from pathlib import Path
from typing import NamedTuple, TypeVar

from situate.errors import ReadError
from situate.files.contents import one_line, reason_of
from situate.language.tensor_types import TensorType, numbered_type

T = TypeVar("T")

MAGIC = b"GGUF"
CHUNK, LIMIT = 2**23, 2**27
"""Bytes that are read first, and the longest header."""
MAX_KEYS, MAX_TENSORS, MAX_SPLITS = 2**16, 2**17, 2**10
MAX_NAME, MAX_KEY = 127, 2**16
MAX_TEXTS, MAX_NUMBERS = 64, 4096
"""Longest arrays that are kept: of strings, and of numbers."""
MAX_ELEMENTS = 2**60
DEFAULT_ALIGNMENT = 32

STRING, ARRAY = 8, 9
_NUMBERS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
"""Formats of `struct` by the number of a value's type."""

_SPLIT_NAME = re.compile(r"(.*)-(\d{5})-of-(\d{5})\.gguf", re.DOTALL)


class LongArray(NamedTuple):
    """An array that is too long to be kept, such as the tokens of a vocabulary."""

    length: int


Value = int | float | str | tuple[int | float | str, ...] | LongArray


class TensorInfo(NamedTuple):
    """A row of the table of tensors.

    Attributes:
        shape: elements by dimension, those of a row first.
        offset: bytes from the beginning of the weights.
        size: bytes.
    """

    name: str
    shape: tuple[int, ...]
    type: TensorType
    offset: int
    size: int


@dataclass(frozen=True)
class Header:
    """The header of a GGUF file, or of all splits of a model together.

    Attributes:
        metadata: values by key; long arrays are only counted.
        tensors: in the order of the file, and of the splits.
        size: bytes of the header up to the weights, of the first split.
        complete: True if the weights are there too.
    """

    version: int
    metadata: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    size: int
    complete: bool


def is_gguf(path: str | Path) -> bool:
    """True if a file begins like GGUF; False if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def read(path: str | Path) -> Header:
    """The header of a GGUF file; of any of its splits, the header of the whole model.

    Raises:
        ReadError: one line that begins with the path: the file cannot be read, its header is
            truncated or contradicts itself, or another split is missing.
    """
    path = Path(path)
    header = _named_errors(path, lambda: _read_file(path))
    count = header.metadata.get("split.count", 1)
    if count == 1:
        return header
    return _named_errors(path, lambda: _join(path, header, count))


def _named_errors(path: Path, action: Callable[[], T]) -> T:
    try:
        return action()
    except ReadError as error:
        raise ReadError(one_line(f"{path}: {error}")) from None
    except (OSError, ValueError) as error:
        raise ReadError(one_line(f"{path}: cannot be read: {reason_of(error)}")) from None


def _read_file(path: Path) -> Header:
    """The header of one file, of which more is read until the header is whole."""
    if path.is_dir():
        raise ReadError("is a directory")
    with path.open("rb") as file:
        size = path.stat().st_size
        data = file.read(min(CHUNK, size))
        while True:
            try:
                return _parse(data, size)
            except _TooShortError as error:
                # Four times as much each time, within the file.
                more = file.read(min(3 * len(data), LIMIT - len(data), size - len(data)))
                if not more:
                    raise ReadError(f"ends within its header: {error}") from None
                data += more


class _TooShortError(Exception):
    """The bytes end before a value does."""


class _Cursor:
    """A place in the bytes of a header, and the values that follow it."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self, format: str) -> int | float:
        layout = struct.Struct(f"<{format}")
        at = self._skip(layout.size)
        value: int | float = layout.unpack_from(self.data, at)[0]
        return value

    def count(self, format: str = "Q") -> int:
        return int(self.number(format))

    def text(self, limit: int, what: str) -> str:
        length = self.count()
        if length > limit:
            raise ReadError(f"{what} at byte {self.at - 8} is {length} bytes long")
        at = self._skip(length)
        return self.data[at : at + length].decode("utf-8", "backslashreplace")

    def array(self) -> Value:
        kind, length = self.count("I"), self.count()
        if kind == STRING:
            if length <= MAX_TEXTS:
                return tuple(self.text(LIMIT, "a string") for _ in range(length))
            self._skip_texts(length)
            return LongArray(length)
        format = _NUMBERS.get(kind)
        if format is None:
            # Type (4 bytes) and length (8) lie before the place.
            raise ReadError(f"an array at byte {self.at - 12} has elements of type {kind}")
        size = struct.calcsize(f"<{format}")
        at = self._skip(length * size)
        if length > MAX_NUMBERS:
            return LongArray(length)
        return struct.unpack_from(f"<{length}{format}", self.data, at)

    def value(self, kind: int) -> Value:
        if kind == STRING:
            return self.text(LIMIT, "a string")
        if kind == ARRAY:
            return self.array()
        if kind not in _NUMBERS:
            raise ReadError(f"the value at byte {self.at} is of type {kind}, which GGUF lacks")
        return self.number(_NUMBERS[kind])

    def _skip(self, size: int) -> int:
        """Move past `size` bytes; the place before them."""
        at, end = self.at, self.at + size
        if end > LIMIT:
            raise ReadError(f"says at byte {at} that {size} bytes follow, too many for a header")
        if end > len(self.data):
            raise _TooShortError(f"byte {end} of {len(self.data)}")
        self.at = end
        return at

    def _skip_texts(self, count: int) -> None:
        # Hundreds of thousands of strings: nothing but their lengths is looked at.
        if 8 * count > LIMIT:
            raise ReadError(f"says at byte {self.at} that {count} strings follow")
        unpack, data, at = struct.Struct("<Q").unpack_from, self.data, self.at
        try:
            for _ in range(count):
                at += 8 + unpack(data, at)[0]
        except (struct.error, OverflowError):
            if at > LIMIT:
                raise ReadError(f"has strings up to byte {at}, too far for a header") from None
            raise _TooShortError(f"byte {at} of {len(data)}") from None
        self.at = at
        self._skip(0)


def _parse(data: bytes, file_size: int) -> Header:
    """
    Raises:
        ReadError: the header is no header, or contradicts itself.
        _TooShortError: `data` ends within it.
    """
    if not data:
        raise ReadError("the file is empty")
    if not data.startswith(MAGIC):
        raise ReadError("is no GGUF file")
    cursor = _Cursor(data)
    cursor.at = len(MAGIC)
    version = _version(cursor.count("I"))
    tensors, keys = cursor.count(), cursor.count()
    _check_count("tensors", tensors, MAX_TENSORS)
    _check_count("keys", keys, MAX_KEYS)
    metadata = _metadata(cursor, keys)
    alignment = _alignment(metadata)
    table = _table(cursor, tensors, alignment)
    # Weights begin at the first aligned byte behind the table.
    begin = -(-cursor.at // alignment) * alignment
    end = max((info.offset + info.size for info in table), default=0)
    return Header(version, metadata, table, begin, file_size >= begin + end)


def _version(version: int) -> int:
    if version in (2, 3):
        return version
    # The bytes of a small number in the other order.
    if version and version % 2**16 == 0:
        raise ReadError(
            "is a big-endian GGUF file, and only little-endian ones are read: convert it with "
            "llama.cpp's gguf_convert_endian.py"
        )
    raise ReadError(f"is GGUF of version {version}, and versions 2 and 3 are read: convert it anew")


def _check_count(what: str, count: int, limit: int) -> None:
    if count > limit:
        raise ReadError(f"says that it has {count} {what}, and at most {limit} are read")


def _metadata(cursor: _Cursor, count: int) -> dict[str, Value]:
    metadata: dict[str, Value] = {}
    for _ in range(count):
        key = cursor.text(MAX_KEY, "a key")
        if key in metadata:
            raise ReadError(f"has the key {key!r} twice")
        metadata[key] = cursor.value(cursor.count("I"))
    return metadata


def _alignment(metadata: Mapping[str, Value]) -> int:
    value = metadata.get("general.alignment", DEFAULT_ALIGNMENT)
    if not isinstance(value, int) or not 0 < value <= 2**20 or value & (value - 1):
        raise ReadError(f"general.alignment: must be a power of two, got {value!r}")
    return value


def _table(cursor: _Cursor, count: int, alignment: int) -> tuple[TensorInfo, ...]:
    table: dict[str, TensorInfo] = {}
    for i in range(count):
        info = _tensor(cursor, i, alignment)
        if info.name in table:
            raise ReadError(f"has the tensor {info.name!r} twice")
        table[info.name] = info
    _check_overlaps(table.values())
    return tuple(table.values())


def _tensor(cursor: _Cursor, index: int, alignment: int) -> TensorInfo:
    name = cursor.text(MAX_NAME, f"the name of tensor {index}")
    if not name.isprintable() or not name:
        raise ReadError(f"tensor {index} has the name {name!r}, with characters that no name has")
    dims = cursor.count("I")
    if not 1 <= dims <= 4:
        raise ReadError(f"tensor {name!r} has {dims} dimensions: must be 1 to 4")
    shape = tuple(cursor.count() for _ in range(dims))
    number, offset = cursor.count("I"), cursor.count()
    if not 0 < prod(shape) <= MAX_ELEMENTS:
        raise ReadError(f"tensor {name!r} has the shape {list(shape)}")
    try:
        kind = numbered_type(number)
        size = kind.tensor_bytes(shape)
    except ReadError as error:
        raise ReadError(f"tensor {name!r} has {error}") from None
    if offset % alignment:
        raise ReadError(f"tensor {name!r} begins at byte {offset}, no multiple of {alignment}")
    return TensorInfo(name, shape, kind, offset, size)


def _check_overlaps(table: Iterable[TensorInfo]) -> None:
    for first, second in pairwise(sorted(table, key=lambda info: info.offset)):
        if first.offset + first.size > second.offset:
            raise ReadError(f"tensors {first.name!r} and {second.name!r} overlap")


# A model in several files: each has a table of its own tensors, the first the metadata.
def _join(path: Path, own: Header, count: Value) -> Header:
    paths = _split_paths(path, own, count)
    headers = []
    for i, sibling in enumerate(paths):
        header = own if sibling == path else _sibling(sibling, i, len(paths))
        if (header.metadata.get("split.no"), header.metadata.get("split.count")) != (i, count):
            raise ReadError(f"{sibling.name} says that it is another split: take them from one set")
        headers.append(header)
    tensors = {info.name: info for header in headers for info in header.tensors}
    total = sum(len(header.tensors) for header in headers)
    if len(tensors) < total:
        raise ReadError("two splits have the same tensor: take them from one set")
    if headers[0].metadata.get("split.tensors.count", total) != total:
        raise ReadError(f"the splits have {total} tensors together, and say another number")
    complete = all(header.complete for header in headers)
    first = headers[0]
    return Header(first.version, first.metadata, tuple(tensors.values()), first.size, complete)


def _split_paths(path: Path, header: Header, count: Value) -> list[Path]:
    if not isinstance(count, int) or not 1 < count <= MAX_SPLITS:
        raise ReadError(f"split.count: must be 1 to {MAX_SPLITS}, got {count!r}")
    match = _SPLIT_NAME.fullmatch(path.name)
    number = header.metadata.get("split.no")
    if match is None or int(match[3]) != count:
        place = f"{number + 1} of " if isinstance(number, int) else "one of "
        raise ReadError(
            f"is {place}{count} splits, which are found by their names: NAME-00001-of-"
            f"{count:05}.gguf"
        )
    return [path.with_name(f"{match[1]}-{i + 1:05}-of-{count:05}.gguf") for i in range(count)]


def _sibling(path: Path, index: int, count: int) -> Header:
    if not path.exists():
        raise ReadError(f"split {index + 1} of {count} is missing: {path.name} belongs beside it")
    try:
        return _read_file(path)
    except ReadError as error:
        raise ReadError(f"split {path.name}: {error}") from None
