"""The bytes of a file, unpacked if it is gzipped; other archives are refused by name."""

from __future__ import annotations

import codecs
import gzip
import io
import os
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from situate.errors import ReadError

LIMIT = 2**31 - 1
"""Largest file, unpacked, in bytes: the limit of a protocol buffer."""

CHUNK = 2**20

LONGEST_LINE = 2**24
"""Largest number of bytes in a line."""

_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n|\Z)")

SUFFIXES = {".gz", ".json", ".txt", ".graph", ".stg", ".onnx", ".pb", ".pbtxt"}


def contents(path: Path, limit: int = LIMIT) -> bytes:
    """The content of the file, unpacked if it begins like a gzip file.

    Raises:
        ReadError: the file cannot be read, is empty, is an archive, is larger than `limit` bytes or
            is a damaged gzip file.
    """
    try:
        data = packed(path, limit)
    except (OSError, ValueError) as error:
        raise ReadError(f"cannot be read: {reason_of(error)}") from None
    if data.startswith(b"\x1f\x8b"):
        data = _unpacked(data, limit)
    if not data:
        raise ReadError("the file is empty")
    return data


def reason_of(error: Exception) -> str:
    """The reason why a file cannot be read, in the same words for all kinds of files."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    return getattr(error, "strerror", None) or str(error)


def packed(path: Path, limit: int) -> bytes:
    """The content of the file as it is.

    Raises:
        OSError, ValueError: the file cannot be read.
        ReadError: it is an archive or larger than `limit` bytes.
    """
    with path.open("rb") as file:
        return _read_limited(file, limit)


def text(data: bytes) -> str:
    """The content as text.

    Raises:
        ReadError: it is not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ReadError(f"is not UTF-8 text (byte {error.start})") from None


def lines(data: bytes) -> Iterator[str]:
    """The lines of a text, without their ends, one after the other: none is kept.

    Raises:
        ReadError: one is not UTF-8 or longer than `LONGEST_LINE`.
    """
    at = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    number = 0
    while at < len(data) and (match := _LINE.match(data, at)):
        number, begin, at = number + 1, at, match.end()
        if match.end(1) - begin > LONGEST_LINE:
            raise ReadError(f"line {number}: has more than {LONGEST_LINE} bytes")
        try:
            yield match[1].decode()
        except UnicodeDecodeError as error:
            raise ReadError(f"is not UTF-8 text (byte {begin + error.start})") from None


def graph_name(path: Path) -> str:
    """The file's name without the suffixes of its format; bytes of it that are not UTF-8 as
    escapes, so that the name can be written again."""
    name = path.name
    while (suffix := os.path.splitext(name)[1]).lower() in SUFFIXES:
        name = name.removesuffix(suffix)
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


def one_line(message: str) -> str:
    """The message with control characters and line breaks written as escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)


def _unpacked(data: bytes, limit: int) -> bytes:
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            return _read_limited(file, limit)
    except EOFError:
        raise ReadError("the gzip file is truncated") from None
    except (OSError, zlib.error) as error:
        raise ReadError(f"the gzip file is damaged: {error}") from None


def _read_limited(file: BinaryIO | gzip.GzipFile, limit: int) -> bytes:
    data = io.BytesIO()  # gives its bytes without a copy
    while chunk := file.read(CHUNK):
        if not data.tell():
            refuse(chunk[:HEAD])
        if data.tell() + len(chunk) > limit:
            raise ReadError(f"holds more than {limit} bytes, the most that is read")
        data.write(chunk)
    return data.getvalue()


# Archives and compressed files other than gzip, with their remedies.
HEAD = 1024
"""Number of first bytes that decide a file's format."""

_TAR = "is a tar archive: unpack it (tar -xf FILE) and give the file in it"

_KINDS = {
    b"PK\x03\x04": "is a zip archive: unpack it (unzip FILE) and give the file in it",
    b"PK\x05\x06": "is an empty zip archive",
    b"PK\x07\x08": "is a part of a zip archive: join its parts and unpack it (unzip FILE)",
    b"7z\xbc\xaf\x27\x1c": "is a 7z archive: unpack it (7z x FILE) and give the file in it",
    b"Rar!\x1a\x07": "is a rar archive: unpack it (unrar x FILE) and give the file in it",
    b"\xfd7zXZ\x00": "is compressed by xz: unpack it first (xz -dk FILE)",
    **dict.fromkeys(
        (b"BZh%d1AY&SY" % level for level in range(1, 10)),
        "is compressed by bzip2: unpack it first (bzip2 -dk FILE)",
    ),
    b"\x28\xb5\x2f\xfd": "is compressed by zstd: unpack it first (zstd -dk FILE)",
    b"\x04\x22\x4d\x18": "is compressed by lz4: unpack it first (lz4 -dk FILE)",
    b"GGUF": "is a language model in GGUF: situate info, plan and convert read it",
    b"\x1f\x9d": "is compressed by compress: unpack it first (uncompress -k FILE)",
}
"""By the first bytes of a file. GGUF files would be too large to be read whole."""


def refuse(head: bytes) -> None:
    """
    Raises:
        ReadError: a file that begins like this is an archive, or compressed otherwise than by gzip.
    """
    for magic, kind in _KINDS.items():
        if head.startswith(magic):
            raise ReadError(kind)
    if _is_tar(head):
        raise ReadError(_TAR)


def _is_tar(head: bytes) -> bool:
    """True if a block of 512 bytes has the checksum that a tar header has of itself."""
    try:
        tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True
