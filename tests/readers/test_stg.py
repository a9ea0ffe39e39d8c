"""The Standard Task Graph Set's format."""

from __future__ import annotations

import pytest

from situate.errors import GraphError, ReadError
from situate.readers import stg
from situate.readers.recognise import recognise
from tests.readers.allocated import peak_bytes

DIAMOND = b"""\
    4
    0    0    0
    1    3    1    0
    2    5    1    1
    3    2    1    1
    4    1    2    2   3
    5    0    1    4
# Ave. Proc. Time : 2.75
"""


def test_every_line_is_an_op_and_every_predecessor_a_control_edge():
    graph = stg.read(DIAMOND, "diamond")
    assert [op.name for op in graph.ops] == ["0", "1", "2", "3", "4", "5"]
    assert [op.seconds["*"] for op in graph.ops] == [0, 3, 5, 2, 1, 0]
    assert graph.control == ((0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5))
    assert (graph.unit, graph.rules, graph.source) == ("", "situate", "stg")


def test_applications_count_their_dummies_too():
    assert stg.read(DIAMOND.replace(b"    4\n", b"    6\n", 1), "").ops == stg.read(DIAMOND, "").ops


def test_comments_may_stand_anywhere():
    assert recognise(b"# made by hand\n" + DIAMOND) == "stg"
    commented = b"# made by hand\n" + DIAMOND.replace(b"5    1    1", b"5 1 1 # long")
    assert stg.read(commented, "").control == stg.read(DIAMOND, "").control


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"    2    5    1    1\n", b"", "says 4 tasks.* there are 5"),
        (b"    5    0    1    4\n", b"    5    7    1    4\n", "dummy exit task.* truncated"),
        (b"2    5    1", b"2    -5    1", "line 4: time: must be a finite number"),
        (b"2    5    1", b"2    nan    1", "line 4: time: must be a finite number"),
        (b"2    5    1    1", b"2    5    1", "line 4: task 2: says 1 predecessors and lists 0"),
        (b"2    5    1    1", b"2    5    1    9", "task 2: predecessor 9 does not exist"),
        (b"2    5    1    1", b"3    5    1    1", "line 4: id must be 2, got 3"),
        (b"2    5    1    1", b"2    5", "line 4: must be: id time"),
        (b"    4\n", b"    4 5\n", "line 1: must be the number of tasks alone"),
    ],
)
def test_a_bad_line_is_named(old, new, message):
    with pytest.raises(ReadError, match=message):
        stg.read(DIAMOND.replace(old, new, 1), "diamond")


def test_truncation_by_the_two_lines_that_dummies_could_be_is_noticed():
    lines = DIAMOND.splitlines(keepends=True)
    with pytest.raises(ReadError, match="truncated"):
        stg.read(b"".join(lines[:5]), "")


def test_a_cycle_and_a_self_loop_are_named():
    with pytest.raises(GraphError, match=r"cycle: '[12]' -> '[12]' -> '[12]'"):
        stg.read(DIAMOND.replace(b"1    3    1    0", b"1    3    1    2"), "")
    with pytest.raises(GraphError, match="op '1' waits for itself"):
        stg.read(DIAMOND.replace(b"1    3    1    0", b"1    3    1    1"), "")


@pytest.mark.parametrize("data", [b"", b"#\n", b"4\n", b"x"])
def test_next_to_nothing_is_an_error(data):
    with pytest.raises(ReadError):
        stg.read(data, "")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (b"0 0 0\n" * 100_000, r"says 5 tasks.* there are more"),
        (b"0 0 100000" + b" 0" * 100_000 + b"\n1 0 0\n" * 6, "line 2.*lists more predecessors"),
        (b"\n" * 100_000, r"says 5 tasks.* there are 0"),
        (b"# a word\n" * 50_000, r"says 5 tasks.* there are 0"),
    ],
)
def test_no_more_is_kept_than_the_first_line_promises(rows, message):
    def read():
        with pytest.raises(ReadError, match=message):
            stg.read(data, "")

    data = b"5\n" + rows
    assert peak_bytes(read) < 4.5 * 100_000


def test_a_count_without_rows_takes_nothing():
    def read():
        with pytest.raises(ReadError, match=r"says 999999999999999999 tasks.* there are 1"):
            stg.read(b"9" * 18 + b"\n0 0 0\n", "")

    assert peak_bytes(read) < 100_000
