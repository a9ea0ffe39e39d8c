"""Files of arrays: what is written is read, and what is hostile is refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from situate.errors import ReadError, SituateError
from situate.files import safetensors

ARRAYS = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a": np.float32([1.5]),
    "none": np.zeros((0, 4), np.float32),
    "one": np.array(2, np.float32),
}


def made(path: Path, header: Any, numbers: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + numbers)
    return path


def entry(**changes: Any) -> dict[str, Any]:
    return {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    safetensors.write(tmp_path / "w", ARRAYS, {"why": "a \u2713"})
    arrays, about = safetensors.read(tmp_path / "w", 10_000)
    assert about == {"why": "a \u2713"}
    assert list(arrays) == list(ARRAYS)
    assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)
    assert all(arrays[name].shape == ARRAYS[name].shape for name in ARRAYS)


def test_the_library_reads_it(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    safetensors.write(tmp_path / "w", ARRAYS, {})
    found = library.load_file(tmp_path / "w")
    assert all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS)


def test_it_reads_what_the_library_writes(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    library.save_file(ARRAYS, tmp_path / "w", {"a": "b"})
    arrays, about = safetensors.read(tmp_path / "w", 10_000)
    assert about == {"a": "b"}
    assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)


@pytest.mark.parametrize(
    ("header", "numbers", "message"),
    [
        (b"[]", b"", "expected object"),
        (b"{", b"", "is not valid JSON"),
        (b"\xff", b"", "is not UTF-8"),
        (b'{"x": 1}', b"", "expected object"),
        (b'{"a":{},"a":{}}', b"", "twice"),
        (entry(dtype="F64"), b"x" * 8, "only F32"),
        (entry(dtype="BF16"), b"x" * 8, "only F32"),
        (entry(shape=[3]), b"x" * 8, "no array"),
        (entry(shape=[-2]), b"x" * 8, "no array"),
        (entry(shape=[-1, -2]), b"x" * 8, "no array"),
        (entry(shape=[2**62, 2**62, 0]), b"x" * 8, "no array"),
        (entry(shape=[10**30]), b"x" * 8, "no array"),
        (entry(shape=[2**62, 0], data_offsets=[0, 0]), b"", "no array"),
        (entry(shape=[1] * 100, data_offsets=[0, 4]), b"abcd", "cannot be read"),
        (entry(data_offsets=[8, 0]), b"x" * 8, "begins at byte 8"),
        (entry(data_offsets=[0, 8, 9]), b"x" * 8, "length"),
        (entry(data_offsets=[-8, 0]), b"x" * 8, "begins at byte -8"),
        (entry(data_offsets=[0, 10**12]), b"x" * 8, "truncated"),
        (entry(), b"x" * 4, "truncated"),
        (entry(), b"x" * 12, "truncated"),
        (entry() | {"y": entry()["x"]}, b"x" * 8, "begins at byte 0, not at 8"),
        (entry(more=1), b"x" * 8, "more"),
        ({"__metadata__": {"a": 1}}, b"", "expected str"),
        (entry(), struct.pack("<2f", 1.0, float("nan")), "not finite"),
        (entry(), struct.pack("<2f", 1.0, float("inf")), "not finite"),
    ],
)
def test_what_is_hostile_is_refused_with_its_place(
    tmp_path: Path, header: Any, numbers: bytes, message: str
) -> None:
    path = made(tmp_path / "w.safetensors", header, numbers)
    with pytest.raises(ReadError) as error:
        safetensors.read(path, 10_000)
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def test_every_truncation_is_noticed(tmp_path: Path) -> None:
    safetensors.write(tmp_path / "w", ARRAYS, {"a": "b"})
    whole = (tmp_path / "w").read_bytes()
    for length in range(len(whole)):
        (tmp_path / "w").write_bytes(whole[:length])
        with pytest.raises(ReadError):
            safetensors.read(tmp_path / "w", 10_000)


def test_no_more_is_read_than_allowed(tmp_path: Path) -> None:
    safetensors.write(tmp_path / "w", {"x": np.zeros(1000, np.float32)}, {})
    with pytest.raises(ReadError, match="more than 2000 bytes"):
        safetensors.read(tmp_path / "w", 2000)


def test_a_header_longer_than_any_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"\xff" * 100)
    with pytest.raises(ReadError, match="ends behind the file"):
        safetensors.read(tmp_path / "w", 10_000)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="nothere: cannot be read: No such file"):
        safetensors.read(tmp_path / "nothere", 10_000)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="cannot write"):
        safetensors.write(tmp_path / "no" / "w", ARRAYS, {})
