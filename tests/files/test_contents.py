"""Files become bytes, or one line that says why not."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

from situate.errors import ReadError
from situate.files.contents import LONGEST_LINE, contents, graph_name, lines, one_line, packed, text
from tests.readers.allocated import peak_bytes


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
