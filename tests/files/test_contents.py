"""Files become bytes, or one line that says why not."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

import situate
from situate.errors import ReadError
from situate.files.contents import (
    HEAD,
    LONGEST_LINE,
    contents,
    graph_name,
    lines,
    one_line,
    packed,
    refuse,
    text,
)
from tests.readers.allocated import peak_bytes
from tests.readers.traces import KERNELS, chrome_trace


def write(folder: Path, data: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(data)
    return path


def test_gzip_is_recognised_by_its_first_bytes(tmp_path):
    assert contents(write(tmp_path, gzip.compress(b"abc"))) == b"abc"
    assert contents(write(tmp_path, b"abc")) == b"abc"


def test_a_truncated_gzip_file_says_so(tmp_path):
    packed = gzip.compress(bytes(range(256)) * 40)
    with pytest.raises(ReadError, match="gzip file is truncated"):
        contents(write(tmp_path, packed[:-20]))


def test_a_damaged_gzip_file_says_so(tmp_path):
    packed = bytearray(gzip.compress(b"abc" * 1000))
    packed[-6] ^= 0xFF
    with pytest.raises(ReadError, match="gzip file is damaged"):
        contents(write(tmp_path, bytes(packed)))


def test_a_gzip_bomb_stops_at_the_limit(tmp_path):
    bomb = write(tmp_path, gzip.compress(bytes(10_000_000)))
    with pytest.raises(ReadError, match="more than 1000000 bytes"):
        contents(bomb, limit=1_000_000)


def test_what_is_unpacked_is_held_once(tmp_path):
    size = 2**25
    packed_file = write(tmp_path, gzip.compress(bytes(size)))
    tracemalloc.start()
    assert len(contents(packed_file)) == size
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.5 * size


def test_a_file_above_the_limit_is_not_read(tmp_path):
    with pytest.raises(ReadError, match="more than 10 bytes"):
        contents(write(tmp_path, b"x" * 11), limit=10)


def test_a_packed_file_is_taken_as_it_is(tmp_path):
    data = gzip.compress(b"abc")
    assert packed(write(tmp_path, data), 100) == data
    with pytest.raises(ReadError, match="more than 10 bytes"):
        packed(tmp_path / "file", 10)
    with pytest.raises(FileNotFoundError):
        packed(tmp_path / "none", 10)


@pytest.mark.parametrize("data", [b"", gzip.compress(b"", mtime=0)])
def test_an_empty_file_says_so(tmp_path, data):
    with pytest.raises(ReadError, match="the file is empty"):
        contents(write(tmp_path, data))


@pytest.mark.parametrize("name", ["missing.json", ".", "nul\0byte"])
def test_what_cannot_be_opened_says_why(tmp_path, name):
    with pytest.raises(ReadError, match=r"^cannot be read: \w"):
        contents(tmp_path / name)


def test_text_that_is_not_utf8_names_the_byte():
    with pytest.raises(ReadError, match=r"not UTF-8 text \(byte 2\)"):
        text(b"ab\xff")


def test_a_byte_order_mark_is_no_text():
    assert text(b"\xef\xbb\xbfab") == "ab"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("a/bert_l-3.json.gz", "bert_l-3"),
        ("resnet50.graph.txt", "resnet50"),
        ("inception.v3.onnx", "inception.v3"),
        (".json", ".json"),
        ("..json", "..json"),
        ("robot", "robot"),
    ],
)
def test_a_graph_is_called_after_its_file(file, name):
    assert graph_name(Path(file)) == name


def test_a_graph_of_a_file_whose_name_is_not_utf8_has_a_name_that_is():
    assert graph_name(Path(os.fsdecode(b"\xffa.json"))) == "\\udcffa"


def test_a_message_is_one_line_without_control_characters():
    assert one_line("a\nb\x1b[2J\u2028é") == "a\\nb\\x1b[2J\\u2028é"


def test_lines_end_as_in_any_system():
    assert list(lines(b"\xef\xbb\xbfa\r\nb\rc\n\nd")) == ["a", "b", "c", "", "d"]
    assert list(lines(b"a\n")) == ["a"]
    assert list(lines(b"")) == []


def test_lines_are_made_one_after_the_other():
    data = b"a line\n" * 50_000
    assert peak_bytes(lambda: sum(1 for _ in lines(data))) < 10_000


def test_a_line_without_end_is_refused():
    with pytest.raises(ReadError, match="line 2: has more than 16777216 bytes"):
        list(lines(b"a\n" + b"b" * (LONGEST_LINE + 1)))


def test_a_line_that_is_no_text_names_its_byte():
    with pytest.raises(ReadError, match=r"is not UTF-8 text \(byte 3\)"):
        list(lines(b"a\nb\xff"))


# Archives given as a model file.
TRACE = chrome_trace(*KERNELS)


def tar(format: int) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=format) as file:
        member = tarfile.TarInfo("trace.json")
        member.size = len(TRACE)
        file.addfile(member, io.BytesIO(TRACE))
    return packed.getvalue()


def zipped() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        file.writestr("trace.json", TRACE)
    return packed.getvalue()


V7 = tar(tarfile.USTAR_FORMAT).replace(b"ustar\x0000", bytes(8), 1)
"""A header without the word `ustar`, which the first tar did not write; its checksum is of other
bytes, so it is made to fit."""


def with_checksum(header: bytes) -> bytes:
    total = 256 + sum(header[:148]) + sum(header[156:512])
    return header[:148] + b"%06o\x00 " % total + header[156:]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (zipped(), r"is a zip archive: unpack it \(unzip FILE\)"),
        (tar(tarfile.USTAR_FORMAT), r"is a tar archive: unpack it \(tar -xf FILE\)"),
        (tar(tarfile.GNU_FORMAT), "is a tar archive"),
        (tar(tarfile.PAX_FORMAT), "is a tar archive"),
        (with_checksum(V7), "is a tar archive"),
        (gzip.compress(tar(tarfile.GNU_FORMAT)), r"is a tar archive: unpack it \(tar -xf FILE\)"),
        (gzip.compress(zipped()), "is a zip archive"),
        (bz2.compress(TRACE), r"is compressed by bzip2: unpack it first \(bzip2 -dk FILE\)"),
        (lzma.compress(TRACE), "is compressed by xz"),
        (b"7z\xbc\xaf\x27\x1c\x00\x04", "is a 7z archive"),
        (b"\x28\xb5\x2f\xfd\x04", "is compressed by zstd"),
    ],
)
def test_an_archive_is_named_whatever_its_name(tmp_path, data, message):
    path = tmp_path / "model.json"
    path.write_bytes(data)
    with pytest.raises(ReadError, match=message):
        situate.read(path)
    with pytest.raises(ReadError, match=message):
        situate.read(path, format="onnx")


def test_plans_and_clusters_and_costs_that_are_archives_are_named_too(tmp_path):
    path = tmp_path / "plan.json"
    path.write_bytes(zipped())
    for read in (situate.Plan.read, situate.Cluster.read, situate.Costs.read):
        with pytest.raises(situate.SituateError, match=r"plan.json.*is a zip archive"):
            read(path)


def test_what_is_no_archive_is_let_through():
    for head in (b"", b"{", b"\x08\x07\x12\x04", bytes(512), TRACE[:HEAD]):
        refuse(head)
