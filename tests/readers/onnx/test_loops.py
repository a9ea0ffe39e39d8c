"""Bodies of ONNX models that run several times."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper

from situate.errors import ReadError
from situate.readers import onnx
from situate.readers.onnx.loops import TRIPS
from tests.readers.models import graph, loaded, model, node, scalar, value, weight, whole
from tests.readers.onnx.remedies import read, sizes, warned, work
from tests.readers.onnx.test_sequences import sequence

# Loops of ONNX models that carry sequences.
INT, BOOL = TensorProto.INT64, TensorProto.BOOL
STEP = 2 * 8 * 16 * 16 + 8 * 16
"""FLOPs of one iteration: a product of (8, 16) and (16, 16), and a hyperbolic tangent."""

YES = helper.make_tensor("yes", BOOL, [], [True])
NO = helper.make_tensor("no", BOOL, [], [False])


def body(*nodes: Any, out: str = "h2", **more: Any) -> Any:
    """The body of a loop that carries a state (8, 16); `c2` says whether it goes on."""
    result = nodes or (
        node("MatMul", "h w", "p"),
        node("Tanh", "p", "h2"),
        node("Identity", "c", "c2"),
    )
    inputs = [value("i", [], INT), value("c", [], BOOL), value("h", more.pop("shape", [8, 16]))]
    outputs = [value("c2", [], BOOL), *(value(name, None) for name in out.split())]
    return graph(result, inputs, outputs, more.pop("held", []))


def looping(inputs: str, inner: Any, *before: Any, **more: Any) -> bytes:
    """A Loop over an input (8, 16), and a Relu of its first output."""
    outputs = more.pop("outputs", "last")
    nodes = [*before, node("Loop", f"{inputs} x", outputs, name="loop", body=inner)]
    nodes += [node("Relu", name, f"y{i}") for i, name in enumerate(outputs.split())]
    constants = [scalar("count", 5), YES, NO, weight("w", 16, 16), *more.pop("held", [])]
    arguments = [value("x", [8, 16]), *more.pop("given", [])]
    return model(nodes, arguments, [value("y0", None)], constants)


# Trip counts: constant, from shapes, or given by the caller.
@pytest.mark.parametrize("start", ["yes", "-"])
def test_a_carried_state_keeps_its_shape_and_a_constant_trip_count_multiplies_work(start):
    data = looping(f"count {start}", body())
    assert work(data, "Loop") == 5 * STEP
    assert work(data, "Relu") == 8 * 16


def test_a_trip_count_that_follows_from_shapes_multiplies_work():
    before = [node("Shape", "x", "sizes"), node("Gather", "sizes zero", "rows")]
    data = looping("rows yes", body(), *before, held=[scalar("zero", 0)])
    assert work(data, "Loop") == 8 * STEP


def test_a_condition_that_is_always_true_inside_is_known():
    always = node("Constant", "", "c2", value=helper.make_tensor("", BOOL, [], [True]))
    inner = body(node("MatMul", "h w", "p"), node("Tanh", "p", "h2"), always)
    assert work(looping("count -", inner), "Loop") == 5 * STEP


def test_a_condition_that_ends_it_at_once_makes_one_iteration():
    never = node("Not", "c", "c2")
    inner = body(node("MatMul", "h w", "p"), node("Tanh", "p", "h2"), never)
    assert work(looping("count yes", inner), "Loop") == STEP


@pytest.mark.parametrize("inputs", ["zero yes", "count no"])
def test_a_loop_that_does_not_begin_hands_on_its_state(inputs):
    inner = body(node("MatMul", "h w", "p"), node("Concat", "p p", "h2", axis=0), CARRY)
    data = looping(inputs, inner, held=[scalar("zero", 0)])
    assert work(data, "Loop") == 0
    assert work(data, "Relu") == 8 * 16


CARRY = node("Identity", "c", "c2")
TANH = [node("MatMul", "h w", "p"), node("Tanh", "p", "h2")]


def data_dependent(count: str) -> bytes:
    """A loop that goes on while the first number of its state is below 1."""
    decides = [node("ReduceMax", "h2", "m", keepdims=0), node("Less", "m one", "c2")]
    return looping(f"{count} yes", body(*TANH, *decides), held=[weight("one")])


@pytest.mark.parametrize("count", ["count", "-"])
def test_an_unknown_trip_count_is_one_and_its_warning_says_how_to_give_it(count):
    data = data_dependent(count)
    warning = warned(data, "loop 'loop' counts as one iteration")
    once = next(op.flops for op in onnx.read(data, "").ops if op.kind == "onnx.Loop")
    assert once == STEP + 2 * 8 * 16 - 8 * 16 + 1
    assert work(data, "Loop", **sizes(warning)) == 3 * once


def test_a_trip_count_that_is_an_input_is_unknown():
    data = looping("n yes", body(), given=[value("n", [], INT)])
    assert sizes(warned(data, "counts as one iteration")) == {"loop.iterations": 3}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (looping("count yes", body()), "runs 5 times, and not 4"),
        (looping("count no", body()), "runs 0 times, and not 4"),
    ],
)
def test_a_trip_count_that_contradicts_the_model_is_refused(data, message):
    with pytest.raises(ReadError, match=f"dims: loop 'loop' {message}"):
        onnx.read(data, "", {"loop.iterations": 4})


def test_a_trip_count_beyond_the_most_there_can_be_is_refused():
    with pytest.raises(ReadError, match="dims: loop 'loop' runs at most 5 times, and not 6"):
        onnx.read(data_dependent("count"), "", {"loop.iterations": 6})


# Values that a loop stacks or carries.
def test_what_all_iterations_make_is_stacked():
    inner = body(*TANH, CARRY, node("ReduceMax", "h2", "row", keepdims=0), out="h2 row h2")
    data = looping("count yes", inner, outputs="last rows states")
    items = {t.name: t.size for t in read(data).tensors}
    assert (items["rows"], items["states"]) == (4 * 5, 4 * 5 * 8 * 16)


def test_a_state_that_grows_ends_as_it_began_and_is_named():
    inner = body(
        node("Concat", "h row", "h2", axis=0), CARRY, shape=None, held=[weight("row", 1, 16)]
    )
    data = looping("count yes", inner)
    assert "'last'" in warned(data, "another shape in every iteration")
    assert {t.name: t.size for t in onnx.read(data, "").tensors}["last"] == 4 * (8 + 5) * 16


def test_a_state_that_grows_without_measure_is_an_error():
    inner = body(node("Tile", "h reps", "h2"), CARRY, held=[whole("reps", 1, 2**30)])
    data = looping("n yes", inner, given=[value("n", [], INT)])
    with pytest.raises(ReadError, match=r"no size is 2\^63 or more"):
        onnx.read(data, "", {"loop.iterations": 2**31})


@pytest.mark.parametrize("kind", ["Loop", "If"])
def test_what_a_file_says_of_trip_counts_is_no_matter(kind):
    proto = loaded(looping("count yes", body()))
    branch = graph([node("Relu", "x", "r")], [], [value("r", None)])
    proto.graph.node.append(node("If", "n", "s", then_branch=branch, else_branch=branch))
    proto.graph.input.append(value("n", [], BOOL))
    for op in proto.graph.node:
        op.metadata_props.add(key=TRIPS, value="many")
    assert work(proto.SerializeToString(), kind) == {"Loop": 5 * STEP, "If": 128}[kind]


# Nested loops, and bodies that do not fit.
def test_loops_in_loops_multiply():
    inner = node(
        "Loop",
        "count yes h",
        "h2",
        name="inner",
        body=graph(
            [node("MatMul", "k w", "q"), node("Tanh", "q", "k2"), node("Identity", "d", "d2")],
            [value("j", [], INT), value("d", [], BOOL), value("k", None)],
            [value("d2", [], BOOL), value("k2", None)],
        ),
    )
    assert work(looping("count yes", body(inner, CARRY)), "Loop") == 25 * STEP


def test_constants_from_outside_are_known_in_a_loop():
    inner = body(
        node("Reshape", "h shape", "s"),
        node("MatMul", "s v", "p"),
        node("Reshape", "p back", "h2"),
        CARRY,
    )
    constants = [whole("shape", -1, 4), whole("back", 8, 16), weight("v", 4, 4)]
    assert work(looping("count yes", inner, held=constants), "Loop") == 5 * 2 * 32 * 4 * 4


@pytest.mark.parametrize(
    ("inputs", "inner", "message"),
    [
        ("count yes x", body(), "op 'loop': its body makes 2 values of 3"),
        ("count yes x", body(out="h2 p"), "hands over 2 values, and its body takes 1"),
        ("count yes -", body(out="h2 p"), "hands over 1 values, and its body takes 1"),
        ("count yes", body(*TANH, CARRY, out=""), "op 'loop': its body makes 1 values of 2"),
    ],
)
def test_a_body_that_does_not_fit_its_loop_is_named(inputs, inner, message):
    with pytest.raises(ReadError, match=message):
        onnx.read(looping(inputs, inner), "")


def scanning(version: int = 18, **attributes: Any) -> bytes:
    """A Scan that adds up rows, with the sums so far; of (3, 5, 4) numbers."""
    inner = graph(
        [node("Add", "s row", "s2"), node("Relu", "s2", "seen")],
        [value("s", None), value("row", None)],
        [value("s2", None), value("seen", None)],
    )
    nodes = [
        node("Scan", "first x", "sum all", name="scan", body=inner, num_scan_inputs=1, **attributes)
    ]
    if version < 9:
        nodes[0].input.insert(0, "")
    first = {8: [3, 4]}.get(version, [3, 4] if attributes else [5, 4])
    return model(
        nodes,
        [value("x", [3, 5, 4]), value("first", first)],
        [value("sum", None), value("all", None)],
        opset_imports=[helper.make_opsetid("", version)],
    )


# Scans run once for each place along an axis.
@pytest.mark.parametrize(
    ("attributes", "trips", "op"),
    [
        ({}, 3, (20, 60)),
        ({"scan_input_axes": [1]}, 5, (12, 60)),
        ({"scan_input_axes": [-2], "scan_output_axes": [-1]}, 5, (12, 60)),
    ],
)
def test_a_scan_runs_as_often_as_its_axis_is_long(attributes, trips, op):
    g = read(scanning(**attributes))
    assert g.ops[2].flops == 2 * trips * op[0]
    assert [t.size for t in g.tensors[2:]] == [4 * size for size in op]


def test_a_scan_of_the_first_version_goes_over_a_batch():
    g = read(scanning(8))
    assert g.ops[2].flops == 2 * 3 * 5 * 4
    assert [t.size for t in g.tensors[2:]] == [4 * 12, 4 * 60]


def test_a_scan_of_an_axis_that_is_none_is_named():
    with pytest.raises(ReadError, match="op 'scan': scans axis 7 of 3 axes"):
        onnx.read(scanning(scan_input_axes=[7]), "")


CONSTANTS = [
    scalar("zero", 0),
    scalar("three", 3),
    whole("size", 2),
    helper.make_tensor("yes", BOOL, [], [True]),
    helper.make_tensor("no", BOOL, [], [False]),
]
SEQUENCE_STEP = [
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
        [*SEQUENCE_STEP, *(ends or [GOES_ON])],
        [value("i", [], INT), value("c", [], BOOL), value("h", None), sequence("q")],
        [value("c2", [], BOOL), value("h2", None), sequence("q2"), *more.get("stacked", [])],
        [weight("w", 8, 8)],
    )
    nodes = [node("SequenceEmpty", "", "e"), *more.get("before", [])]
    nodes += [node("Loop", f"{inputs} h0 e", out, name="loop", body=inner)]
    nodes += [node("ConcatFromSequence", "rows", "y", axis=0)]
    arguments = [value("x", ["n", 8]), value("h0", [1, 8]), value("cond", [], BOOL)]
    return model(nodes, arguments, [value("y", None)], CONSTANTS)


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
    result = onnx.read(data, "", {"n": 3})
    assert {t.name: t.size for t in result.tensors}["all"] == 4 * 3 * 8


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
