"""Archives and compressed files other than gzip: named, with how to unpack them."""

from __future__ import annotations

import tarfile

from situate.errors import ReadError

HEAD = 1024
"""First bytes of a file that are looked at."""

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
    b"\x1f\x9d": "is compressed by compress: unpack it first (uncompress -k FILE)",
}
"""By the first bytes of a file."""


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
