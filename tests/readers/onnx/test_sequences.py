"""Sequences and optionals in ONNX models."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper

from situate.errors import ReadError
from situate.readers import onnx
from tests.readers.models import graph, loaded, model, node, scalar, value, whole
from tests.readers.onnx.remedies import read

OPSETS = [helper.make_opsetid("", version) for version in (11, 17)]
CONSTANTS = [
    scalar("zero", 0),
    scalar("one", 1),
    scalar("last", -1),
    scalar("four", 4),
    whole("parts", 2, 8),
]


def reading(*nodes: Any, version: int = 17, outputs: Any = None, inputs: Any = ()) -> bytes:
    """Nodes on two values of (10, 4)."""
    arguments = [value("a", [10, 4]), value("b", [10, 4]), *inputs]
    result = outputs or [value("y", None)]
    opsets = [helper.make_opsetid("", version)]
    return model(nodes, arguments, result, CONSTANTS, opset_imports=opsets)


def sequence(name: str) -> Any:
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(1, None))
    return helper.make_value_info(name, kind)


PAIR = node("SequenceConstruct", "a b", "s")


def kinds(data: bytes) -> list[str]:
    return [op.kind.removeprefix("onnx.") for op in read(data).ops[2:]]


# Sequences of known content become the tensors in them.
@pytest.mark.parametrize("version", [11, 17])
@pytest.mark.parametrize(
    ("nodes", "op", "size"),
    [
        ([PAIR, node("SequenceAt", "s one", "y")], ["Identity"], 160),
        ([PAIR, node("SequenceAt", "s last", "y")], ["Identity"], 160),
        ([PAIR, node("ConcatFromSequence", "s", "y", axis=1)], ["Concat"], 320),
        (
            [PAIR, node("ConcatFromSequence", "s", "y", axis=0, new_axis=1)],
            ["Unsqueeze", "Unsqueeze", "Concat"],
            320,
        ),
        (
            [
                node("SequenceEmpty", "", "e"),
                node("SequenceInsert", "e a", "s"),
                node("SequenceInsert", "s b zero", "t"),
                node("SequenceErase", "t", "u"),
                node("SequenceAt", "u zero", "y"),
            ],
            ["Identity"],
            160,
        ),
        (
            [node("SplitToSequence", "a", "s"), node("SequenceAt", "s zero", "y")],
            ["Split", "Identity"],
            16,
        ),
        (
            [node("SplitToSequence", "a", "s", keepdims=0), node("SequenceAt", "s last", "y")],
            ["Split", *["Squeeze"] * 10, "Identity"],
            16,
        ),
        (
            [node("SplitToSequence", "a four", "s"), node("SequenceAt", "s last", "y")],
            ["Split", "Identity"],
            2 * 16,
        ),
        (
            [node("SplitToSequence", "a parts", "s"), node("SequenceAt", "s one", "y")],
            ["Split", "Identity"],
            8 * 16,
        ),
        (
            [
                node("SplitToSequence", "a", "s", axis=-1),
                node("ConcatFromSequence", "s", "y", axis=1),
            ],
            ["Split", "Concat"],
            160,
        ),
    ],
)
def test_ops_on_sequences_are_ops_on_their_tensors(nodes, op, size, version):
    data = reading(*nodes, version=version)
    assert kinds(data) == op
    view = op[-1] == "Identity" and "Split" not in op
    tensors = {t.name: t.size for t in read(data).tensors}
    assert size == (tensors["a"] if view else tensors.get("y", size))


def test_what_a_sequence_holds_is_sent_and_not_the_sequence():
    g = read(reading(PAIR, node("SequenceAt", "s one", "u"), node("Relu", "u", "y")))
    consumers = {t.name: [g.ops[c].name for c in t.consumers] for t in g.tensors}
    assert consumers == {"a": [], "b": ["u", "y"], "y": []}


def test_the_length_of_a_sequence_is_known():
    data = reading(PAIR, node("SequenceLength", "s", "n"), node("Gather", "a n", "y"))
    assert kinds(data) == ["Gather"]


def test_a_sequence_that_the_model_hands_out_is_its_tensors():
    data = reading(node("SplitToSequence", "a four", "s"), outputs=[sequence("s")])
    g = read(data)
    assert [t.size for t in g.tensors if t.output] == [64, 64, 32]


@pytest.mark.parametrize(("arguments", "kind"), [("a", "Relu"), ("", "Neg")])
def test_an_optional_is_its_content_and_whether_it_has_one_is_known(arguments, kind):
    has = graph(
        [node("OptionalGetElement", "o", "e"), node("Relu", "e", "t")], [], [value("t", None)]
    )
    lacks = graph([node("Neg", "b", "t")], [], [value("t", None)])
    nodes = [node("Optional", arguments, "o"), node("OptionalHasElement", "o", "c")]
    if not arguments:
        nodes[0].attribute.add(name="type", type=13).tp.CopyFrom(
            helper.make_tensor_type_proto(1, [10, 4])
        )
    nodes += [node("If", "c", "y", then_branch=has, else_branch=lacks)]
    assert kinds(reading(*nodes))[-1] == kind


# Sequences that depend on data are refused with a remedy that works.
@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [PAIR, node("SequenceAt", "s n", "y")],
            "op 'y': its place in the sequence, 'n', depends on",
        ),
        ([PAIR, node("SequenceAt", "s four", "y")], "op 'y': takes place 4 of a sequence of 2"),
        ([PAIR, node("SequenceInsert", "s", "y")], "op 'y': lacks an input of SequenceInsert"),
        (
            [node("SplitToSequence", "a n", "s"), node("SequenceAt", "s zero", "y")],
            "op 's': how many tensors it makes depends on the data, 'n': make that a constant",
        ),
        (
            [node("SplitToSequence", "a", "s", axis=2), node("SequenceAt", "s zero", "y")],
            "op 's': splits axis 2 of 2 axes",
        ),
        (
            [PAIR, node("Relu", "s", "y")],
            "op 'y': 's' is of type sequence, and only tensors are read",
        ),
        (
            [node("SequenceAt", "q zero", "y")],
            "input: 'q' is of type sequence.*as values of their own",
        ),
    ],
)
def test_what_cannot_be_followed_is_named(nodes, message):
    inputs = [value("n", [], TensorProto.INT64)]
    inputs += [sequence("q")] if "q" in nodes[0].input else []
    with pytest.raises(ReadError, match=message):
        onnx.read(reading(*nodes, inputs=inputs), "")


def test_choosing_from_one_tensor_by_data_is_read():
    """As the message on a place that depends on the data says."""
    inputs = [value("n", [], TensorProto.INT64)]
    nodes = [
        PAIR,
        node("ConcatFromSequence", "s", "t", axis=0, new_axis=1),
        node("Gather", "t n", "y"),
    ]
    assert kinds(reading(*nodes, inputs=inputs))[-1] == "Gather"


def test_an_optional_input_is_refused_and_its_tensor_read():
    has = node("OptionalHasElement", "o", "h")
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [4]))
    outputs = [value("y", None)]
    nodes = [has, node("OptionalGetElement", "o", "e"), node("Neg", "e", "y")]
    with pytest.raises(ReadError, match=r"input: 'o' is of type optional.*the tensor itself"):
        onnx.read(model(nodes, [helper.make_value_info("o", kind)], outputs), "")
    tensor = model(nodes, [value("o", [4])], outputs)
    assert [op.kind for op in read(tensor).ops[2:]] == ["onnx.Neg"]


def test_a_branch_that_makes_a_sequence_by_data_is_refused():
    branch = graph([node("SequenceConstruct", "a b", "t")], [], [sequence("t")])
    nodes = [
        node("If", "c", "s", then_branch=branch, else_branch=branch),
        node("SequenceLength", "s", "y"),
    ]
    with pytest.raises(ReadError, match="'t' is of type sequence"):
        onnx.read(reading(*nodes, inputs=[value("c", [], TensorProto.BOOL)]), "")


def classifier(*, zipped: bool) -> bytes:
    """A linear classifier as skl2onnx writes it, with a map of probabilities or without it."""
    nodes = [
        node(
            "LinearClassifier",
            "x",
            "label p",
            domain="ai.onnx.ml",
            coefficients=[1.0] * 8,
            classlabels_ints=[0, 1],
        ),
    ]
    if zipped:
        nodes.append(node("ZipMap", "p", "z", domain="ai.onnx.ml", classlabels_int64s=[0, 1]))
    data = model(
        nodes,
        [value("x", [3, 4])],
        [value("label", None, TensorProto.INT64), value("p", None)],
        opset_imports=[OPSETS[1], helper.make_opsetid("ai.onnx.ml", 1)],
    )
    return bytes(loaded(data).SerializeToString())


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            [node("SplitToSequence", "x", "s"), node("SequenceAt", "s zero", "y")],
            "op 's': makes a sequence of 1,073,741,824 tensors, more than 1,024",
        ),
        (
            [
                node("SplitToSequence", "a", "s"),
                *(node("ConcatFromSequence", "s", f"y{i}", axis=0, new_axis=1) for i in range(4)),
            ],
            "its sequences stand for more than 2,000 nodes",
        ),
    ],
)
def test_sequences_without_end_are_an_error(nodes, message, monkeypatch):
    monkeypatch.setattr("situate.readers.onnx.walk.MOST_NODES", 2000)
    inputs = [value("x", [2**30, 2]), value("a", [1000, 2])]
    data = model(nodes, inputs, [value(nodes[-1].output[0], None)], CONSTANTS)
    with pytest.raises(ReadError, match=message):
        onnx.read(data, "")


def test_a_map_is_refused_and_the_model_without_it_read():
    with pytest.raises(ReadError, match=r"op 'z': 'z' is of type map.*options={'zipmap': False}"):
        onnx.read(classifier(zipped=True), "")
    assert read(classifier(zipped=False)).ops[1].kind == "onnx.LinearClassifier"
