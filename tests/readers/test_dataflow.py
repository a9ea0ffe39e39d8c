"""Ops and the named values between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situate.data.graph import Op
from situate.errors import ReadError
from situate.readers.dataflow import Dataflow, unique


def chain() -> Dataflow:
    """a makes x; v views x as y; b reads y; c reads x and y."""
    flow = Dataflow()
    flow.make("x", flow.add(Op("a")), 8)
    flow.make("y", flow.add(Op("v"), ["x"]), 8, view_of="x")
    flow.add(Op("b"), ["y"])
    flow.add(Op("c"), ["x", "y"])
    return flow


def test_who_reads_a_view_reads_what_it_views():
    _, tensors, control = chain().finish()
    assert [(t.name, t.producer, t.consumers) for t in tensors] == [("x", 0, (1, 2, 3))]
    assert control == ((1, 2), (1, 3))


def test_a_view_sits_with_what_it_views():
    ops, _, _ = chain().finish()
    assert [op.group for op in ops] == ["a", "a", None, None]


def test_an_output_that_is_a_view_keeps_what_it_views():
    flow = chain()
    flow.output("y")
    assert flow.finish()[1][0].output


def test_a_view_of_a_view_reads_the_first():
    flow = chain()
    flow.make("z", flow.add(Op("w"), ["y"]), 8, view_of="y")
    flow.add(Op("d"), ["z"])
    ops, tensors, _ = flow.finish()
    assert tensors[0].consumers == (1, 2, 3, 4, 5)
    assert ops[4].group == "a"


def test_what_is_carried_sits_with_its_first_reader():
    flow = Dataflow()
    flow.make("w", flow.add(Op("weight")), 8, resident=True)
    flow.carry("w")
    flow.add(Op("first"), ["w"])
    flow.add(Op("second"), ["w"])
    ops, tensors, _ = flow.finish()
    assert [op.group for op in ops] == ["weight", "weight", None]
    assert tensors[0].resident


def test_a_value_may_be_read_before_it_is_made():
    flow = Dataflow()
    flow.add(Op("reader"), ["x"])
    flow.make("x", flow.add(Op("maker")), 8)
    assert flow.finish()[1][0].consumers == (0,)


def test_a_value_that_no_op_makes_is_named():
    flow = chain()
    flow.add(Op("d"), ["q"])
    with pytest.raises(ReadError, match="op 'd' reads 'q', which no op makes"):
        flow.finish()


def test_an_output_that_no_op_makes_is_named():
    flow = chain()
    flow.output("q")
    with pytest.raises(ReadError, match="output 'q' is made by no op"):
        flow.finish()


def test_a_value_made_twice_is_named():
    flow = chain()
    with pytest.raises(ReadError, match="value 'x' is made twice"):
        flow.make("x", 1, 8)


def test_views_in_a_circle_are_named():
    flow = Dataflow()
    flow.make("x", flow.add(Op("a"), ["y"]), 8, view_of="y")
    flow.make("y", flow.add(Op("b"), ["x"]), 8, view_of="x")
    with pytest.raises(ReadError, match="is a view of itself"):
        flow.finish()


# Names become unique and those that were unique stay as they are.
def test_repeated_names_get_a_number():
    assert unique(["a", "b", "a", "a"]) == ["a", "b", "a#2", "a#3"]


def test_a_number_never_takes_a_name_that_is_there():
    assert unique(["a", "a", "a#2", "a#2"]) == ["a", "a#3", "a#2", "a#2#2"]


@given(st.lists(st.sampled_from(["a", "b", "a#2", "a#3", "a#2#2", ""])))
def test_names_are_always_unique(names):
    assert len(set(unique(names))) == len(names)
