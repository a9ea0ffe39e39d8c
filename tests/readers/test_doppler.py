"""DOPPLER's text format."""

from __future__ import annotations

import pytest

from situate.errors import GraphError, ReadError
from situate.readers import doppler
from tests.readers.allocated import peak_bytes

SMALL = b"\n".join(
    [
        b"5",
        b"0, 1, ",
        b"0, 0, 1, ",
        b"1, 2, 2, ",
        b"20000000000,80000000000,mm",
        b"10000000000,40000000000",
        b"10000000000,40000000000,add",
    ]
)


def test_edges_count_the_lines_of_costs_and_inputs_are_no_ops():
    graph = doppler.read(SMALL, "small")
    assert [op.name for op in graph.ops] == ["0", "1", "2"]
    assert [op.kind for op in graph.ops] == ["mm", "op", "add"]
    assert [(t.producer, t.consumers) for t in graph.tensors] == [(0, (1, 2)), (1, (2,))]


def test_costs_are_divided_as_the_authors_divide_their_makespans():
    graph = doppler.read(SMALL, "small")
    assert [op.seconds for op in graph.ops] == [{"*": 2.0}, {"*": 1.0}, {"*": 1.0}]
    assert [tensor.seconds for tensor in graph.tensors] == [8.0, 4.0]
    assert (graph.unit, graph.rules, graph.source) == ("", "doppler", "doppler")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"5\n", b"6\n", "6 nodes less 2 inputs need 4 lines of costs, there are 3"),
        (b"\n10000000000,40000000000,add", b"", "need 3 lines of costs, there are 2"),
        (b"1, 2, 2", b"1, 2, 3", "edge 1 -> 3: there are 3 ops"),
        (b"1, 2, 2", b"1, 2", "list 3 sources and 2 heads"),
        (b"1, 2, 2", b"1, -2, 2", "line 4: id: must be a whole number"),
        (b"20000000000,", b"-20000000000,", "line 5: cost: must be a finite number"),
        (b",80000000000,", b",inf,", "line 5: cost: must be a finite number"),
        (b",80000000000,mm", b"", "line 5: must be: compute,comm"),
    ],
)
def test_a_bad_line_is_named(old, new, message):
    with pytest.raises(ReadError, match=message):
        doppler.read(SMALL.replace(old, new, 1), "small")


def test_a_truncated_file_says_so():
    with pytest.raises(ReadError, match="truncated"):
        doppler.read(SMALL[:20], "small")


def test_a_cycle_is_named():
    with pytest.raises(GraphError, match="cycle"):
        doppler.read(SMALL.replace(b"1, 2, 2, \n2", b"1, 2, 0, \n2"), "small")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (b"0,1\n0,0,1,2\n1,2,3,3\n" + b"5,1\n" * 100_000, "need 4 lines of costs, there are m"),
        (b"0,1" * 50_000 + b"\n0\n1\n5,1\n", "line 2: lists more than 6 ids"),
        (b"0,1\n0" + b",0" * 100_000 + b"\n0\n5,1\n", "line 3: lists more than 16 ids"),
        (b"0,1\n0\n1\n" + b"\n" * 100_000, "need 4 lines of costs, there are 0"),
    ],
)
def test_no_more_is_kept_than_the_first_line_promises(rows, message):
    def read():
        with pytest.raises(ReadError, match=message):
            doppler.read(data, "")

    data = b"6\n" + rows
    assert peak_bytes(read) < 4.5 * 100_000


def test_a_count_without_rows_takes_nothing():
    def read():
        with pytest.raises(ReadError, match="need 999999999999999999 lines of costs, there are 1"):
            doppler.read(b"9" * 18 + b"\n\n0\n1\n5,1\n", "")

    assert peak_bytes(read) < 100_000
