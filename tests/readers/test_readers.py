"""Any file becomes a graph or one line that begins with its path."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import pytest

from situate.errors import GraphError, ReadError, SituateError
from situate.readers import read
from situate.readers.recognise import READERS
from tests.readers.samples import SAMPLES

pytest.importorskip("onnx")
pytest.importorskip("tensorboard")


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", READERS)
def test_a_file_is_read_whatever_it_is_called(tmp_path, name, packed):
    path = tmp_path / "no-suffix"
    path.write_bytes(gzip.compress(SAMPLES[name]) if packed else SAMPLES[name])
    graph = read(path)
    assert graph.source == name
    assert graph == READERS[name].read(SAMPLES[name], "no-suffix")


def test_a_format_can_be_demanded(tmp_path):
    path = tmp_path / "tasks"
    path.write_bytes(SAMPLES["stg"])
    assert read(path, format="stg") == read(path)
    with pytest.raises(ReadError, match="tasks: line 3: lists more than 1 ids"):
        read(path, format="doppler")


def test_an_unknown_format_has_a_nearest_one(tmp_path):
    with pytest.raises(ReadError, match="unknown format 'onx'; did you mean 'onnx'"):
        read(tmp_path, format="onx")


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    with pytest.raises(ReadError) as error:
        read(tmp_path / name)
    assert str(error.value).startswith(f"{tmp_path / name}: cannot be read: ")


def test_an_error_keeps_its_kind_and_names_the_file(tmp_path):
    path = tmp_path / "cycle.stg"
    path.write_bytes(SAMPLES["stg"].replace(b"1    3    1    0", b"1    3    1    2"))
    with pytest.raises(GraphError, match=r"cycle.stg: graph 'cycle': cycle: "):
        read(path)


def test_an_error_is_one_line_whatever_the_names_are(tmp_path):
    path = tmp_path / "a\x1b[2J\nb.json"
    path.write_bytes(b'{"format": "situate-graph", "\\u001b[2J\\nkey</script>": 1}')
    with pytest.raises(ReadError) as error:
        read(path)
    assert str(error.value).isprintable()


def mangled(data: bytes, seed: int) -> bytes:
    """The data with a few of its bytes changed, or cut off, or some lines twice."""
    chance = random.Random(seed)
    changed = bytearray(data)
    if seed % 3 == 0:
        return data[: chance.randrange(len(data))]
    if seed % 3 == 1:
        start, end = sorted(chance.randrange(len(data)) for _ in range(2))
        return data[:end] + data[start:]
    for _ in range(chance.randint(1, 4)):
        changed[chance.randrange(len(data))] = chance.choice([0, 9, 48, 57, 45, 255, 34, 128])
    return bytes(changed)


def complaint(path: Path, format: str | None) -> str:
    """The complaint about the file, empty if there is none."""
    try:
        read(path, format)
    except SituateError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", READERS)
def test_a_mangled_file_gives_a_graph_or_one_clear_line(tmp_path, name):
    path = tmp_path / "mangled"
    for seed in range(300):
        path.write_bytes(mangled(SAMPLES[name], seed))
        for format in (None, name):
            message = complaint(path, format)
            assert not message or message.startswith(f"{path}: "), seed
            assert message.isprintable(), seed
            assert len(message) < 2000, seed
