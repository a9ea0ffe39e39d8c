"""Loops of ONNX models that carry sequences."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper

from situate.errors import ReadError
from situate.readers import onnx
from tests.readers.models import graph, model, node, scalar, value, weight, whole
from tests.readers.onnx.remedies import read, sizes
from tests.readers.onnx.test_sequences import sequence

INT, BOOL = TensorProto.INT64, TensorProto.BOOL
HELD = [
    scalar("zero", 0),
    scalar("three", 3),
    whole("size", 2),
    helper.make_tensor("yes", BOOL, [], [True]),
    helper.make_tensor("no", BOOL, [], [False]),
]
STEP = [
    node("Gather", "x i", "row"),
    node("MatMul", "h w", "p"),
    node("Add", "p row", "h2"),
    node("SequenceInsert", "q h2", "q2"),
]
GOES_ON = node("Identity", "c", "c2")


def recurrence(inputs: str, *ends: Any, out: str = "last rows", **more: Any) -> bytes:
    """A state (1, 8) that meets a matrix and a row of `x` (3, 8) in each iteration, all states in a
    sequence, joined at the end."""
    inner = graph(
        [*STEP, *(ends or [GOES_ON])],
        [value("i", [], INT), value("c", [], BOOL), value("h", None), sequence("q")],
        [value("c2", [], BOOL), value("h2", None), sequence("q2"), *more.get("stacked", [])],
        [weight("w", 8, 8)],
    )
    nodes = [node("SequenceEmpty", "", "e"), *more.get("before", [])]
    nodes += [node("Loop", f"{inputs} h0 e", out, name="loop", body=inner)]
    nodes += [node("ConcatFromSequence", "rows", "y", axis=0)]
    given = [value("x", ["n", 8]), value("h0", [1, 8]), value("cond", [], BOOL)]
    return model(nodes, given, [value("y", None)], HELD)


def kinds(data: bytes, **dims: int) -> list[str]:
    return [op.kind.removeprefix("onnx.") for op in read(data, **dims).ops[3:]]


ONCE = ["Gather", "MatMul", "Add"]


@pytest.mark.parametrize("start", ["yes", "-"])
def test_iterations_of_a_known_number_stand_one_after_the_other(start):
    data = recurrence(f"three {start}")
    assert kinds(data, n=3) == [*ONCE * 3, "Identity", "Concat"]
    g = read(data, n=3)
    assert sum(op.flops for op in g.ops if op.kind == "onnx.MatMul") == 3 * 2 * 8 * 8
    assert {t.name: t.size for t in g.tensors}["y"] == 4 * 3 * 8


def test_a_weight_of_the_body_is_held_once():
    g = read(recurrence("three yes"), n=3)
    assert sum(op.persistent for op in g.ops) < 2 * 4 * 8 * 8


def test_a_number_that_follows_from_shapes_is_known():
    before = [node("Shape", "x", "sizes"), node("Gather", "sizes zero", "rows_of_x")]
    data = recurrence("rows_of_x yes", before=before)
    assert kinds(data, n=5).count("MatMul") == 5


def test_a_condition_that_is_known_to_end_ends_it():
    assert kinds(recurrence("three yes", node("Not", "c", "c2")), n=3).count("MatMul") == 1
    early = [node("Less", "i one", "c2")]
    early.insert(0, node("Constant", "", "one", value=scalar("", 1)))
    assert kinds(recurrence("three yes", *early), n=3).count("MatMul") == 2


def test_what_iterations_stack_is_joined_along_a_new_axis():
    data = recurrence("three yes", out="last rows all", stacked=[value("p", None)])
    made = onnx.read(data, "", {"n": 3})
    assert {t.name: t.size for t in made.tensors}["all"] == 4 * 3 * 8


def test_a_loop_that_does_not_begin_hands_on_what_it_was_given():
    with pytest.raises(ReadError, match="op 'y'"):  # joins no tensors
        onnx.read(recurrence("three no"), "", {"n": 3})
    with pytest.raises(ReadError, match="op 'loop': stacks 'all' of no iterations"):
        onnx.read(recurrence("three no", out="last rows all", stacked=[value("p", None)]), "")


@pytest.mark.parametrize(
    "data",
    [
        recurrence("three cond"),
        recurrence("- yes"),
        recurrence(
            "three yes", node("ReduceMax", "h2", "m", keepdims=0), node("Cast", "m", "c2", to=BOOL)
        ),
    ],
)
def test_a_number_that_depends_on_the_data_is_refused_with_the_option_that_gives_it(data):
    with pytest.raises(ReadError, match="op 'loop': carries a sequence, and how often it") as error:
        onnx.read(data, "", {"n": 3})
    assert kinds(data, n=3, **sizes(str(error.value))).count("MatMul") == 3


def test_a_number_that_is_too_large_to_follow_is_refused():
    with pytest.raises(ReadError, match="is too often to be followed"):
        onnx.read(recurrence("- yes"), "", {"n": 3, "loop.iterations": 10**6})


def test_a_number_beyond_the_most_there_can_be_is_refused():
    with pytest.raises(ReadError, match="dims: loop 'loop' runs at most 3 times, and not 4"):
        onnx.read(recurrence("three yes"), "", {"n": 3, "loop.iterations": 4})
