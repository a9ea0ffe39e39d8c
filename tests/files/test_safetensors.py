"""Files of arrays come back as they were written, and hostile ones are refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("safetensors")

from situate.errors import ReadError, SituateError
from situate.files import safetensors

ARRAYS = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a": np.float32([1.5]),
    "none": np.zeros((0, 4), np.float32),
    "one": np.array(2, np.float32),
}


def tensor_file(path: Path, header: Any, numbers: bytes = b"") -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + numbers)
    return path


def entry(**changes: Any) -> dict[str, Any]:
    return {"x": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]} | changes}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    safetensors.write(tmp_path / "w", ARRAYS, {"why": "a \u2713"})
    arrays, about = safetensors.read(tmp_path / "w", 10_000)
    assert about == {"why": "a \u2713"}
    assert arrays.keys() == ARRAYS.keys()
    assert all(np.array_equal(arrays[name], ARRAYS[name]) for name in ARRAYS)
    assert all(arrays[name].shape == ARRAYS[name].shape for name in ARRAYS)


UNREADABLE = "cannot be read as safetensors: "


# Hostile, truncated and oversized files are refused in one line.
@pytest.mark.parametrize(
    ("header", "numbers", "message"),
    [
        (b"[]", b"", UNREADABLE),
        (b"{", b"", UNREADABLE),
        (b"\xff", b"", UNREADABLE),
        (b'{"x": 1}', b"", UNREADABLE),
        (b'{"a":{},"a":{}}', b"", UNREADABLE),
        (entry(dtype="F64", shape=[1]), b"x" * 8, "numbers are float64, and only float32"),
        (entry(dtype="BF16", shape=[4]), b"x" * 8, "bfloat16"),
        (entry(shape=[3]), b"x" * 8, UNREADABLE),
        (entry(shape=[-2]), b"x" * 8, UNREADABLE),
        (entry(shape=[2**62, 2**62, 0]), b"x" * 8, UNREADABLE),
        (entry(shape=[10**30]), b"x" * 8, UNREADABLE),
        (entry(shape=[2**62, 0], data_offsets=[0, 0]), b"", UNREADABLE),
        (entry(shape=[1] * 100, data_offsets=[0, 4]), b"abcd", UNREADABLE),
        (entry(data_offsets=[8, 0]), b"x" * 8, UNREADABLE),
        (entry(data_offsets=[0, 10**12]), b"x" * 8, UNREADABLE),
        (entry(), b"x" * 4, UNREADABLE),
        (entry(), b"x" * 12, UNREADABLE),
        (entry() | {"y": entry()["x"]}, b"x" * 8, UNREADABLE),
        ({"__metadata__": {"a": 1}}, b"", UNREADABLE),
        (entry(), struct.pack("<2f", 1.0, float("nan")), "not finite"),
        (entry(), struct.pack("<2f", 1.0, float("inf")), "not finite"),
    ],
)
def test_what_is_hostile_is_refused_in_a_line(
    tmp_path: Path, header: Any, numbers: bytes, message: str
) -> None:
    path = tensor_file(tmp_path / "w.safetensors", header, numbers)
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
    with pytest.raises(
        ReadError, match=r"safetensors: has [0-9]+ bytes, more than the 2000 of any"
    ):
        safetensors.read(tmp_path / "w", 2000)


def test_a_header_longer_than_any_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"\xff" * 100)
    with pytest.raises(ReadError, match="cannot be read as safetensors"):
        safetensors.read(tmp_path / "w", 10_000)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="nothere: cannot be read as safetensors: no such file"):
        safetensors.read(tmp_path / "nothere", 10_000)


@pytest.mark.parametrize("path", [".", "/dev/zero"])
def test_what_is_no_regular_file_is_not_opened(path: str) -> None:
    with pytest.raises(
        ReadError, match=f"^{path}: cannot be read as safetensors: is no regular file"
    ):
        safetensors.read(path, 10_000)


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(SituateError, match="cannot write"):
        safetensors.write(tmp_path / "no" / "w", ARRAYS, {})
