"""JSON has exactly the requested type, or the error names the place."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from situate.cli.failures import shortage
from situate.data.cluster import Cluster, Device, Link
from situate.data.graph import Graph, Op, Tensor
from situate.data.graph_json import encode, write
from situate.data.problem import Problem
from situate.errors import ReadError
from situate.files.strict_json import decode, json_bytes, plain, top_level
from situate.readers import read
from situate.solvers import solve
from tests.report.handmade import HOSTILE


class Box(msgspec.Struct, forbid_unknown_fields=True):
    name: str = ""
    sizes: list[int] = []
    inner: dict[str, float] = {}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"sizes": [1, "x"]}', r"sizes\[1\]: expected int, got str"),
        (b'{"colour": 1}', "unknown field colour"),
        (b'{"a\\n\\u2028\\u202e": 1}', r"unknown field a\\n\\u2028\\u202e"),
        (b'{"name": "a", "name": "b"}', "has the key 'name' twice"),
        (b'{"name": "b", "inner": {"x": 1, "x": 2}}', "has the key 'x' twice"),
        (b'{"inner": {"x": NaN}}', "not valid JSON"),
        (b'{"inner": {"x": Infinity}}', "not valid JSON"),
        (b'{"inner": {"x": 1e999}}', "number out of range"),
        (b'{"name": "a', "not valid JSON: Input data was truncated"),
        (b'{"name": "a"} {}', "not valid JSON"),
        (b'{"name": "\xff"}', r"not UTF-8 text \(byte 10\)"),
        (b'{"name": "\\ud800"}', "not valid JSON"),
        (b"{'name': 1}", "not valid JSON"),
        (b"[1]", "expected object, got array"),
        (b'{"sizes": [' + b"9" * 5000 + b"]}", "not valid JSON|out of range"),
    ],
)
def test_bad_json_names_the_place(data, message):
    with pytest.raises(ReadError, match=message):
        decode(data, Box)


def test_a_file_that_does_not_say_what_it_is_is_refused():
    """A format is as required as any field: an object without it may be anything."""

    class Labelled(msgspec.Struct, tag_field="format", tag="labelled-box"):
        name: str = ""

    assert decode(b'{"format": "labelled-box", "name": "a"}', Labelled).name == "a"
    with pytest.raises(ReadError, match=r"^object missing required field format$"):
        decode(b'{"name": "a"}', Labelled)


def test_a_key_twice_is_found_among_many():
    """In time that grows with the object and not with its square: that would be hours."""
    keys = ", ".join(f'"{i}": 1' for i in [*range(200_000), 199_999])
    with pytest.raises(ReadError, match="has the key '199999' twice"):
        decode(f'{{"inner": {{{keys}}}}}'.encode(), Box)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
def test_deep_nesting_is_an_error_and_no_crash(opening):
    with pytest.raises(ReadError, match="nested too deeply"):
        top_level(b'{"name": ' + opening * 100_000)


def test_the_top_level_is_read_without_its_values():
    assert set(top_level(b'\xef\xbb\xbf {"a": [1, {"b": 2}], "c": null}')) == {"a", "c"}


@pytest.mark.parametrize("data", [b"50\n0 0 0", b"\n{\n\x06 binary", b"[1]", b""])
def test_what_does_not_begin_like_an_object_has_no_keys(data):
    assert top_level(data) == {}


def test_a_file_that_does_not_say_its_version_is_refused():
    class Versioned(msgspec.Struct, tag_field="format", tag="versioned-box"):
        version: int = 1

    assert decode(b'{"format": "versioned-box", "version": 2}', Versioned).version == 2
    with pytest.raises(ReadError, match=r"^object missing required field version$"):
        decode(b'{"format": "versioned-box"}', Versioned)


def test_a_file_that_no_memory_holds_is_an_error_and_no_crash(monkeypatch):
    monkeypatch.setattr("situate.files.strict_json.BYTES_OF_A_CHARACTER", 2**46)
    with pytest.raises(OSError, match="allocate") as raised:
        decode(b'{"format": "situate-graph"}', dict)
    assert shortage(raised.value).startswith("memory ran out")


def test_values_come_back_as_they_were() -> None:
    value = {"names": list(HOSTILE), "seconds": 0.1 + 0.2, "bytes": 2**53}
    assert json.loads(json_bytes(value)) == value


def test_no_script_element_can_be_closed_from_within() -> None:
    assert b"</" not in json_bytes({"</script>": "</SCRIPT>"})


# Numbers out of numpy arrays are as good as Python's own, from the graph to the plan's file.
def graph(whole=int, real=float) -> Graph:
    ops = tuple(Op(name, seconds={"*": real(0.5)}, persistent=whole(3)) for name in "ab")
    tensors = (Tensor("t", whole(0), whole(2), (whole(1),), seconds=real(0.25)),)
    return Graph("g", ops, tensors, ((whole(0), whole(1)),))


def cluster(whole=int, real=float) -> Cluster:
    devices = tuple(Device(f"d{i}", memory=whole(10), launch=real(0.5)) for i in range(2))
    return Cluster("c", devices, (Link("*", "*", real(2.0)),), synchronisation=real(0.5))


def test_hashes_and_files_do_not_tell_them_from_others(tmp_path):
    sample = graph(np.int64, np.float64)
    assert sample.hash == graph().hash
    assert encode(sample) == encode(graph())
    assert cluster(np.int64, np.float64).hash == cluster().hash
    write(sample, tmp_path / "g.json")
    assert read(tmp_path / "g.json").hash == sample.hash


def test_a_plan_of_them_is_written(tmp_path):
    problem = Problem(graph(np.int64, np.float64), cluster(np.int64, np.float64))
    solve(problem, evaluations=50).plan.write(tmp_path / "plan.json")
    assert (tmp_path / "plan.json").exists()


def test_what_is_no_number_is_refused():
    with pytest.raises(NotImplementedError, match="cannot encode a object"):
        plain(object())
