"""Sizes that the caller gives an ONNX model."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper

from situate.errors import ReadError
from situate.readers import onnx
from tests.readers.models import graph, loaded, model, node, value, weight
from tests.readers.onnx.remedies import read, sizes, warned, work


def product(name: str = "x", *dims: object) -> bytes:
    """A product with a matrix of (64, 32); without dims, an input of two axes without sizes."""
    shape = [*(dims or (None, None)), 64]
    nodes = [node("MatMul", f"{name} w", "y")]
    return model(nodes, [value(name, shape)], [value("y", None)], [weight("w", 64, 32)])


NAMES = ["x", "input.1", "model/input:0", "a=b", "two words", "it's"]


@pytest.mark.parametrize("name", NAMES)
def test_axes_without_a_name_are_given_by_number(name):
    nodes = [node("Relu", "input", "y")]
    nodes[0].input[0] = name
    data = model(nodes, [value(name, [None, None, 2])], [value("y", None)])
    assert work(data, "Relu", **{f"{name}.0": 8, f"{name}.1": 128}) == 8 * 128 * 2


@pytest.mark.parametrize("name", NAMES)
def test_the_warning_of_axes_without_a_size_says_how_to_give_it(name):
    nodes = [node("Relu", "input", "y")]
    nodes[0].input[0] = name
    data = model(nodes, [value(name, [None, 0, 64])], [value("y", None)])
    warning = warned(data, f"input {name!r}: dimensions without a size are taken as 1")
    assert work(data, "Relu", **sizes(warning)) == 3 * 3 * 64


@pytest.mark.parametrize("name", ["batch", "2*sequence", "floor(width/2)", "past + 1"])
def test_the_warning_of_a_named_dimension_says_how_to_give_it(name):
    data = product("x", name, 1)
    warning = warned(data, f"dimension {name!r} is taken as 1")
    assert work(data, "MatMul", **sizes(warning)) == 2 * 3 * 64 * 32


def test_a_size_of_an_axis_that_has_a_name_is_one_of_all_axes_of_that_name():
    nodes = [node("Add", "x y", "z")]
    inputs = [value("x", ["batch", 2]), value("y", ["batch", 2])]
    assert work(model(nodes, inputs, [value("z", None)]), "Add", **{"x.0": 5}) == 10


def test_a_name_goes_before_a_value_and_an_axis():
    assert work(product("x", "x.1", 1), "MatMul", **{"x.1": 4}) == 2 * 4 * 64 * 32


def test_an_input_of_unknown_rank_is_given_a_shape():
    data = model([node("Relu", "x", "y")], [value("x", None)], [value("y", None)])
    with pytest.raises(
        ReadError, match=r"input 'x' has no shape; --dim x.0=SIZE, --dim x.1=S"
    ) as e:
        onnx.read(data, "")
    assert work(data, "Relu", **sizes(str(e.value))) == 9


def test_a_name_that_only_an_op_without_inference_has_is_given_too():
    nodes = [node("Magic", "x", "m", domain="com.microsoft"), node("Relu", "m", "y")]
    data = model(nodes, [value("x", [2])], [value("y", None)])
    result = onnx.read(data, "", {"m.0": 6})
    assert result.ops[2].flops == 6


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"y.5": 2}, "'y' has 3 axes, counted from 0: no 5"),
        ({"z.0": 2}, "the model has no value 'z'; known: x, y"),
        ({"x.3": 2}, "'x' has 3 axes, counted from 0: no 3"),
        ({"x.99999999999999999999": 2}, "'x' has 3 axes, counted from 0: no 999999999"),
        ({"x.2": 65}, "axis 2 of 'x' is 64, and not 65"),
        ({"x.-1": 2}, r"no dimension 'x.-1'; did you mean 'x.1'"),
        ({"x": 2}, r"no dimension 'x'; did you mean 'x.1'"),
        ({"0": 2}, r"no dimension '0'; did you mean 'x.0'"),
        ({0: 2}, r"no dimension 0; did you mean 'x.0'"),
        ({"x.0": 0}, r"'x.0' must be a whole number from 1 to 2\^31, got 0"),
        ({"x.0": 2.0}, r"'x.0' must be a whole number"),
    ],
)
def test_sizes_that_cannot_be_are_named(dims, message):
    with pytest.raises(ReadError, match=f"dims: .*{message}"):
        onnx.read(product(), "", dims)


def test_a_size_that_changes_nothing_is_refused():
    """The value's size is known, or it is in a branch that does not run."""
    nodes = [node("Relu", "x", "y")]
    data = loaded(model(nodes, [value("x", [4])], [value("y", ["rows"])]))
    data.graph.value_info.append(value("gone", ["other"]))
    for name in ("rows", "other"):
        with pytest.raises(ReadError, match=f"dims: '{name}' gives nothing a size"):
            onnx.read(data.SerializeToString(), "", {name: 4})
    branches = {
        "then_branch": graph(nodes, [], [value("y", None)]),
        "else_branch": graph([node("NonZero", "x", "i")], [], [value("i", None)]),
    }
    constants = [helper.make_tensor("c", TensorProto.BOOL, [], [True])]
    choice = model(
        [node("If", "c", "z", **branches)], [value("x", [4])], [value("z", None)], constants
    )
    with pytest.raises(ReadError, match=r"dims: 'i.1' gives nothing a size"):
        onnx.read(choice, "", {"i.1": 4})


def test_a_symbol_of_what_inference_leaves_open_is_given():
    nodes = [node("NonZero", "x", "i"), node("Cast", "i", "y", to=TensorProto.FLOAT)]
    data = model(nodes, [value("x", [4, 8])], [value("y", [2, "found"])])
    proto = loaded(data)
    proto.graph.value_info.append(value("i", [2, "found"], TensorProto.INT64))
    assert work(proto.SerializeToString(), "Cast", found=7) == 14


def test_two_sizes_of_one_dimension_are_named():
    data = product("x", "batch", 1)
    with pytest.raises(ReadError, match="'batch', which is given as 4 and as 5: give one size"):
        onnx.read(data, "", {"batch": 4, "x.0": 5})
    assert read(data, **{"batch": 4, "x.0": 4}).tensors[0].size == 4 * 4 * 64


def test_sizes_of_a_model_without_open_dimensions_are_refused():
    with pytest.raises(ReadError, match="'n'; every dimension of its inputs has a size"):
        onnx.read(product("x", 2, 2), "", {"n": 4})


def test_a_size_inside_a_body_is_given_by_its_name():
    results = [value("i", [2, None], TensorProto.INT64)]
    body = graph([node("NonZero", "x", "i")], [], results)
    other = graph([node("Cast", "k", "j", to=TensorProto.INT64)], [], [value("j", [2, None])])
    nodes = [node("If", "c", "y", then_branch=body, else_branch=other)]
    inputs = [value("x", [4, 8]), value("k", [2, 1]), value("c", [], TensorProto.BOOL)]
    data = model(nodes, inputs, [value("y", None, TensorProto.INT64)])
    found_size = next(t.size for t in onnx.read(data, "", {"i.1": 7}).tensors if t.name == "y")
    assert found_size == 2 * 7 * 8
