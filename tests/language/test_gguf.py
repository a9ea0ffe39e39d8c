"""Headers of GGUF files: their contents, and that no sequence of bytes does harm."""

from __future__ import annotations

import struct
import time
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from situate.errors import ReadError
from situate.language import gguf
from situate.language.gguf import LongArray
from tests.language.files import (
    LLAMA,
    gguf_header,
    llama_tensors,
    table,
    table_metadata,
    table_rows,
    tensor_bytes,
    text_bytes,
    value_bytes,
)

TINY = gguf_header(LLAMA, llama_tensors())


def write(folder: Path, data: bytes, name: str = "model.gguf") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def refusal(folder: Path, data: bytes) -> str:
    """The message for a file with these bytes, without its path."""
    path = write(folder, data)
    with pytest.raises(ReadError) as caught:
        gguf.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


# What a header holds.
@pytest.mark.parametrize("version", [2, 3])
def test_metadata_and_tensors_are_read(tmp_path, version):
    header = gguf.read(write(tmp_path, gguf_header(LLAMA, llama_tensors(), version)))
    assert header.version == version
    assert header.metadata["llama.block_count"] == 2
    assert header.metadata["tokenizer.ggml.tokens"] == LongArray(100)
    assert len(header.tensors) == len(llama_tensors())
    first = header.tensors[0]
    assert (first.name, first.shape, first.type.name) == ("token_embd.weight", (256, 100), "Q4_K")
    assert first.size == 100 * 144


@pytest.mark.parametrize("value", [7, True, 1.5, "text", (1, 2, 3), ("a", "b"), (True, False)])
def test_values_of_every_kind_are_read(tmp_path, value):
    written = list(value) if isinstance(value, tuple) else value
    header = gguf.read(write(tmp_path, gguf_header({"key": written}, llama_tensors())))
    assert header.metadata["key"] == value


@pytest.mark.parametrize("name", ["gemma-3-270m-q4_k_m", "deepseek-r1-distill-qwen-7b-q4_k_m"])
def test_real_tables_are_read_with_the_bytes_of_the_real_files(tmp_path, name):
    content = table(name)
    header = gguf.read(write(tmp_path, gguf_header(table_metadata(content), table_rows(content))))
    assert sum(info.size for info in header.tensors) == content["data_bytes"]


def test_a_header_alone_is_enough_and_the_weights_make_it_complete(tmp_path):
    size = max(i.offset + i.size for i in gguf.read(write(tmp_path, TINY)).tensors)
    assert not gguf.read(write(tmp_path, TINY)).complete
    assert not gguf.read(write(tmp_path, TINY + bytes(size - 1))).complete
    assert gguf.read(write(tmp_path, TINY + bytes(size))).complete


def test_another_alignment_moves_the_weights(tmp_path):
    metadata = LLAMA | {"general.alignment": 4096}
    header = gguf.read(write(tmp_path, gguf_header(metadata, llama_tensors(), alignment=4096)))
    assert header.size == 4096 * -(-header.size // 4096)
    assert {info.offset % 4096 for info in header.tensors} == {0}


def test_a_tokenizer_of_megabytes_takes_little_time_and_memory(tmp_path):
    words = [f"word {i} of a long vocabulary" for i in range(200_000)]
    path = write(tmp_path, gguf_header(LLAMA | {"tokenizer.ggml.tokens": words}, llama_tensors()))
    size = path.stat().st_size
    assert size > 6e6
    began = time.perf_counter()
    gguf.read(path)
    assert time.perf_counter() - began < 2  # about 50 ms; a loaded machine takes longer
    tracemalloc.start()
    gguf.read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * size


# Models in several files.
def shards(folder: Path, count: int = 3, missing: int = -1) -> list[Path]:
    tensors, paths = llama_tensors(), []
    for i in range(count):
        metadata = {"split.no": i, "split.count": count, "split.tensors.count": len(tensors)}
        data = gguf_header((LLAMA if i == 0 else {}) | metadata, tensors[i::count])
        paths.append(folder / f"m-{i + 1:05}-of-{count:05}.gguf")
        if i != missing:
            paths[-1].write_bytes(data)
    return paths


@pytest.mark.parametrize("given", [0, 1, 2])
def test_any_split_finds_the_others(tmp_path, given):
    header = gguf.read(shards(tmp_path)[given])
    assert {i.name for i in header.tensors} == {name for name, _, _ in llama_tensors()}
    assert header.metadata["general.architecture"] == "llama"


def test_a_missing_split_is_named(tmp_path):
    paths = shards(tmp_path, missing=1)
    with pytest.raises(ReadError, match=r"split 2 of 3 is missing: m-00002-of-00003\.gguf"):
        gguf.read(paths[2])


def test_a_split_under_another_name_is_refused(tmp_path):
    path = shards(tmp_path)[1].rename(tmp_path / "renamed.gguf")
    with pytest.raises(ReadError, match="is 2 of 3 splits, which are found by their names"):
        gguf.read(path)


def test_splits_of_two_sets_are_refused(tmp_path):
    paths = shards(tmp_path)
    paths[2].write_bytes(paths[1].read_bytes())
    with pytest.raises(ReadError, match="says that it is another split"):
        gguf.read(paths[0])


def test_a_split_with_tensors_too_many_is_refused(tmp_path):
    paths = shards(tmp_path)
    extra = [("extra.weight", (32,), "F32")]
    paths[2].write_bytes(gguf_header({"split.no": 2, "split.count": 3}, extra))
    with pytest.raises(ReadError, match="the splits have"):
        gguf.read(paths[0])


# Headers that contradict themselves, each with a line of its own.
def test_files_of_other_kinds_are_refused(tmp_path):
    assert refusal(tmp_path, b"") == "the file is empty"
    assert refusal(tmp_path, b"GGML" + bytes(40)) == "is no GGUF file"
    with pytest.raises(ReadError, match="no such file"):
        gguf.read(tmp_path / "absent.gguf")
    with pytest.raises(ReadError, match="is a directory"):
        gguf.read(tmp_path)


def test_other_versions_and_big_endian_files_are_refused_by_name(tmp_path):
    assert "version 1" in refusal(tmp_path, b"GGUF" + struct.pack("<I", 1) + bytes(20))
    assert "version 4" in refusal(tmp_path, b"GGUF" + struct.pack("<I", 4) + bytes(20))
    assert "big-endian" in refusal(tmp_path, b"GGUF" + struct.pack(">I", 3) + bytes(20))


@pytest.mark.parametrize("counts", [(2**60, 1), (1, 2**60), (2**64 - 1, 2**64 - 1), (2**17 + 1, 0)])
def test_absurd_counts_are_refused(tmp_path, counts):
    message = refusal(tmp_path, b"GGUF" + struct.pack("<IQQ", 3, *counts) + bytes(4096))
    assert "at most" in message


def with_key(value: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text_bytes("key") + value + bytes(64)


@pytest.mark.parametrize(
    "value",
    [
        struct.pack("<IQ", 8, 2**60),
        struct.pack("<IIQ", 9, 8, 2**60),
        struct.pack("<IIQ", 9, 4, 2**60),
        struct.pack("<IIQ", 9, 12, 2**63),
    ],
)
def test_absurd_lengths_take_no_memory(tmp_path, value):
    tracemalloc.start()
    message = refusal(tmp_path, with_key(value))
    assert tracemalloc.get_traced_memory()[1] < 10**6
    tracemalloc.stop()
    assert "bytes follow" in message or "strings follow" in message or "bytes long" in message


def test_strings_of_absurd_length_in_an_array_are_refused(tmp_path):
    strings = struct.pack("<IIQ", 9, 8, 100) + struct.pack("<Q", 2**62)
    assert "too far for a header" in refusal(tmp_path, with_key(strings))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (struct.pack("<I", 13), "is of type 13"),
        (struct.pack("<IIQ", 9, 9, 1), "has elements of type 9"),
        (struct.pack("<IIQ", 9, 77, 1), "has elements of type 77"),
    ],
)
def test_unknown_types_of_values_are_refused(tmp_path, value, message):
    assert message in refusal(tmp_path, with_key(value))


def test_a_key_twice_is_refused(tmp_path):
    pair = text_bytes("key") + value_bytes(1)
    assert "'key' twice" in refusal(tmp_path, b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + pair + pair)


@pytest.mark.parametrize("alignment", [0, 3, 2**21, "32"])
def test_an_alignment_that_is_none_is_refused(tmp_path, alignment):
    data = gguf_header({"general.alignment": alignment}, llama_tensors())
    assert "general.alignment: must be a power of two" in refusal(tmp_path, data)


def with_tensors(*rows: bytes) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, len(rows), 0) + b"".join(rows) + bytes(64)


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (tensor_bytes("a\nb", (32,), 0, 0), "characters that no name has"),
        (tensor_bytes("a\x1b[31m", (32,), 0, 0), "characters that no name has"),
        (tensor_bytes(b"\xff\x00", (32,), 0, 0), "characters that no name has"),
        (tensor_bytes("", (32,), 0, 0), "characters that no name has"),
        (tensor_bytes("a" * 1000, (32,), 0, 0), "the name of tensor 0"),
        (tensor_bytes("a", (), 0, 0), "0 dimensions"),
        (tensor_bytes("a", (1, 1, 1, 1, 1), 0, 0), "5 dimensions"),
        (tensor_bytes("a", (0, 5), 0, 0), "has the shape [0, 5]"),
        (tensor_bytes("a", (2**40, 2**40), 0, 0), "has the shape"),
        (tensor_bytes("a", (32,), 4, 0), "Q4_2, which llama.cpp no longer reads"),
        (tensor_bytes("a", (32,), 9999, 0), "type 9999"),
        (tensor_bytes("a", (100,), 12, 0), "rows of 100 elements, and Q4_K needs"),
        (tensor_bytes("a", (32,), 0, 7), "no multiple of 32"),
    ],
)
def test_tensors_that_cannot_be_are_refused(tmp_path, row, message):
    assert message in refusal(tmp_path, with_tensors(row))


def test_overlaps_and_doubles_are_refused(tmp_path):
    first, second = tensor_bytes("a", (32,), 0, 0), tensor_bytes("b", (32,), 0, 96)
    assert "'a' and 'b' overlap" in refusal(tmp_path, with_tensors(first, second))
    double = tensor_bytes("a", (32,), 0, 128)
    assert "'a' twice" in refusal(tmp_path, with_tensors(first, double))


# Bytes of any kind: a header or a ReadError, nothing else.
def test_a_header_that_ends_anywhere_is_refused(tmp_path):
    metadata = {"general.architecture": "llama", "numbers": [1, 2], "words": ["a", "bc"] * 40}
    whole = gguf_header(metadata, llama_tensors()[:2])
    for size in range(len(whole.rstrip(b"\0"))):
        message = refusal(tmp_path, whole[:size])
        assert message in ("the file is empty", "is no GGUF file") or "ends within" in message
    assert len(gguf.read(write(tmp_path, whole)).tensors) == 2


def outcome(path: Path) -> None:
    """Read a file; only a ReadError may come of it."""
    message = ""
    try:
        gguf.read(path)
    except ReadError as error:
        message = str(error)
    assert message.isprintable()


ANY = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@ANY
@given(st.binary(max_size=300))
def test_random_bytes_do_no_harm(tmp_path, data):
    outcome(write(tmp_path, data))
    outcome(write(tmp_path, b"GGUF\x03\0\0\0" + data))


@ANY
@given(st.integers(0, len(TINY) - 1), st.binary(min_size=1, max_size=16))
def test_damaged_headers_do_no_harm(tmp_path, place, damage):
    data = TINY[:place] + damage + TINY[place + len(damage) :]
    tracemalloc.start()
    outcome(write(tmp_path, data))
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()


@ANY
@given(st.integers(4, len(TINY) - 8), st.sampled_from([2**31, 2**32 - 1, 2**60, 2**63, 2**64 - 1]))
def test_large_numbers_anywhere_do_no_harm(tmp_path, place, number):
    outcome(write(tmp_path, TINY[:place] + struct.pack("<Q", number) + TINY[place + 8 :]))
