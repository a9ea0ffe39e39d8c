"""Two files as one model."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from situate.errors import ReadError
from situate.model import find_model
from situate.readers import execution_trace, pair, read
from tests.readers.samples import SAMPLES
from tests.readers.traces import KERNELS, RELU, chrome_trace
from tests.readers.traces import execution_trace as trace


@pytest.fixture
def both(tmp_path) -> tuple[Path, Path]:
    first, second = tmp_path / "step.json.gz", tmp_path / "times.json"
    first.write_bytes(gzip.compress(trace(*RELU)))
    second.write_bytes(chrome_trace(*KERNELS))
    return first, second


def test_a_plus_joins_two_files_in_either_order(both):
    first, second = both
    expected = execution_trace.read(trace(*RELU), "step", chrome_trace(*KERNELS))
    assert read(f"{first}+{second}") == read(f"{second}+{first}") == expected
    assert find_model(f"{first}+{second}") == expected
    assert expected.name == "step"


def test_a_file_may_have_a_plus_in_its_name(both, tmp_path):
    first, second = both
    odd = first.rename(tmp_path / "a+b.json.gz")
    assert pair.files(str(odd)) is None
    assert pair.files(f"{odd}+{second}") == (odd, second)


def test_what_is_no_pair_of_files_is_none():
    assert pair.files("resnet50") is None
    assert pair.files("a+b") is None
    assert pair.files("a" * 300 + "+b") is None


def test_a_missing_half_is_named(both):
    first, second = both
    with pytest.raises(ReadError, match=r"^nowhere.json: no such file"):
        pair.files(f"{first}+nowhere.json")
    with pytest.raises(ReadError, match=r"^nowhere.json: no such file"):
        pair.files(f"nowhere.json+{second}")


def test_a_broken_half_is_named(both):
    first, second = both
    second.write_bytes(b"")
    with pytest.raises(ReadError, match=r"times.json: the file is empty"):
        read(f"{first}+{second}")


def test_other_pairs_are_refused(both, tmp_path):
    first, second = both
    (tmp_path / "tasks").write_bytes(SAMPLES["stg"])
    for text, result in (
        (f"{first}+{first}", "execution-trace and execution-trace"),
        (f"{tmp_path / 'tasks'}+{second}", "stg and chrome-trace"),
    ):
        with pytest.raises(ReadError, match=f"its Kineto trace, got {result}"):
            read(text)


def test_a_pair_takes_no_other_format_and_no_dims(both):
    text = "+".join(map(str, both))
    assert read(text, format="execution-trace") == read(text)
    with pytest.raises(ReadError, match="is an execution-trace, not 'onnx'"):
        read(text, format="onnx")
    with pytest.raises(ReadError, match="dims are for ONNX files"):
        read(text, dims={"batch": 1})
