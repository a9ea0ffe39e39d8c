"""Files that are either written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sys
from pathlib import Path

from situate.errors import SituateError


def write_bytes(path: str | Path, data: bytes) -> None:
    """Write `data` to `path`: to a temporary file beside it, then renamed over it.

    Raises:
        SituateError: `path` cannot be written; whatever was there is left as it was.
    """
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            _write_stream(Path(path), data)
        else:
            _replace(Path(os.path.realpath(path)), data)
    except (OSError, ValueError) as error:
        raise SituateError(f"cannot write {str(path)!r}: {write_failure(path, error)}") from None


def write_failure(path: str | Path, error: Exception) -> str:
    """The reason why a file cannot be written, and a remedy where one is known."""
    folder = os.path.dirname(os.path.abspath(path))
    if isinstance(error, FileNotFoundError) and not os.path.isdir(folder):
        return f"there is no folder {folder!r}: make it first, or give another path"
    reason = getattr(error, "strerror", None) or str(error)
    if isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return f"{reason}: make it and its folder writable, or give another path"
    return reason


def _write_stream(target: Path, data: bytes) -> None:
    """Write to a pipe or a terminal such as /dev/stdout, which no file can replace. Its links need
    not lead to a path."""
    with target.open("wb") as stream:
        stream.write(data)


def _replace(target: Path, data: bytes) -> None:
    # File systems take names of up to 255 bytes, so a long name is cut before the random part.
    begin = os.fsencode(target.name)[:100].decode(sys.getfilesystemencoding(), "ignore")
    temporary = target.with_name(f".{begin}.{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as stream:  # with the permissions that a new file gets here
            if target.exists():
                os.chmod(temporary, target.stat().st_mode & 0o777)
            stream.write(data)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
