"""Shapes that are inferred, stated, given or none of it."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper

from situate.errors import ReadError
from situate.readers import onnx
from tests.readers.models import graph, loaded, model, node, value, weight
from tests.readers.onnx.remedies import read, sizes, warned, work

OPSETS = [helper.make_opsetid("", 18), helper.make_opsetid("acme", 1)]


def stated(data: bytes, *values: object) -> bytes:
    """The model with shapes in its value_info."""
    proto = loaded(data)
    proto.graph.value_info.extend(values)
    return bytes(proto.SerializeToString())


def quantised(*shape: int | None) -> bytes:
    """Image and filters through a quantiser of another domain, whose rank alone is stated."""
    nodes = [
        node("Quant", "x s", "xq", domain="acme", name="quant_x"),
        node("Quant", "w s", "wq", domain="acme", name="quant_w"),
        node("Conv", "xq wq", "y", pads=[2, 2, 2, 2]),
    ]
    constants = [weight("w", 16, 3, 5, 5), weight("s")]
    image = [value("x", [1, 3, 32, 32])]
    data = model(nodes, image, [value("y", [None] * 4)], constants, opset_imports=OPSETS)
    return stated(data, value("xq", shape or [None] * 4), value("wq", [16, 3, 5, 5]))


# Values without inferred shapes: sizes come from the model or from the caller.
def test_an_op_without_inference_makes_sizes_unknown_and_never_1():
    message = r"'quant_x': the shape of 'xq' .*\(acme.Quant has no shape inference here\)"
    with pytest.raises(ReadError, match=message):
        onnx.read(quantised(), "")


def test_a_shape_that_is_stated_makes_it_known():
    assert work(quantised(1, 3, 32, 32), "Conv") == 2 * 16 * 32 * 32 * 75


def test_sizes_that_are_given_make_it_known():
    with pytest.raises(ReadError) as error:
        onnx.read(quantised(), "")
    dims = {**sizes(str(error.value), 32), "xq.0": 1, "xq.1": 3}
    assert work(quantised(), "Conv", **dims) == 2 * 16 * 32 * 32 * 75


def magic(*outputs: object) -> bytes:
    nodes = [node("Magic", "x", "m", domain="acme"), node("Relu", "m", "y")]
    data = model(nodes, [value("x", [4])], [value("y", None)], opset_imports=OPSETS)
    return stated(data, *outputs)


def test_both_remedies_for_a_value_of_unknown_rank_work():
    with pytest.raises(ReadError, match=r"--dim m.1=SIZE ... for each of its axes, or state") as e:
        onnx.read(magic(), "")
    assert work(magic(), "Relu", **sizes(str(e.value))) == 9
    assert work(magic(value("m", [5, 5])), "Relu") == 25


def test_a_symbol_in_a_stated_shape_is_given_by_its_name():
    with pytest.raises(ReadError, match=r"the shape of 'm' .* give it by --dim m.0=SIZE, or state"):
        onnx.read(magic(value("m", ["rows", 5])), "")
    assert work(magic(value("m", ["rows", 5])), "Relu", rows=4) == 20


def test_a_gap_between_the_axes_that_are_given_is_no_shape():
    with pytest.raises(ReadError, match="the shape of 'm' cannot be inferred"):
        onnx.read(magic(), "", {"m.0": 2, "m.2": 2})


def test_a_size_that_is_given_does_not_change_one_that_is_stated_or_inferred():
    with pytest.raises(ReadError, match="dims: axis 0 of 'm' is 5, and not 4"):
        onnx.read(magic(value("m", [5, 5])), "", {"m.0": 4})
    with pytest.raises(ReadError, match="dims: axis 1 of 'y' is 5, and not 4"):
        onnx.read(magic(value("m", [5, 5])), "", {"y.1": 4})


def test_what_an_op_in_a_body_makes_is_never_taken_as_1():
    branch = graph([node("Magic", "x", "m", domain="acme")], [], [value("m", None)])
    other = graph([node("Relu", "x", "r")], [], [value("r", [4])])
    nodes = [node("If", "c", "y", then_branch=branch, else_branch=other)]
    inputs = [value("x", [4]), value("c", [], TensorProto.BOOL)]
    data = model(nodes, inputs, [value("y", [4])], opset_imports=OPSETS)
    with pytest.raises(ReadError, match="op 'm': the shape of 'm' cannot be inferred"):
        onnx.read(data, "")
    assert read(data, **{"m.0": 4}).ops[2].kind == "onnx.If"


def test_a_value_that_no_node_makes_is_warned_of_never():
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    data = model(nodes, [value("x", [4, 8])], [value("y", ["batch", 16])], [weight("w", 8, 16)])
    stale = [value("gone", ["other", 16]), value("long_gone", [None]), value("h", [4, 16])]
    assert work(stated(data, *stale), "Relu") == 64


# Stated shapes against inference.
@pytest.mark.parametrize("shape", [[99, 16], [4], [4, 16, 1]])
def test_a_stated_shape_that_contradicts_inference_is_not_believed(shape):
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    data = model(nodes, [value("x", [4, 8])], [value("y", [1])], [weight("w", 8, 16)])
    g = onnx.read(stated(data, value("h", shape)), "")
    assert [op.flops for op in g.ops] == [0, 2 * 4 * 16 * 8, 64]
    assert g.warnings == (
        "2 values have another shape than the model states, and it is taken: 'h', 'y'",
    )


def nonzero_model(*outputs: object) -> bytes:
    """Places of numbers that are not zero, as float."""
    nodes = [node("NonZero", "x", "i"), node("Cast", "i", "y", to=TensorProto.FLOAT)]
    return model(nodes, [value("x", [4, 8])], list(outputs) or [value("y", [2, "found"])])


# Sizes that depend on data are assumed to be 1, and a warning names the option.
def test_a_size_that_depends_on_data_is_one_and_its_warning_says_how_to_give_it():
    warning = warned(
        nonzero_model(), "1 value has dimensions that depend on the data, taken as 1: 'i'"
    )
    assert onnx.read(nonzero_model(), "").ops[2].flops == 2
    assert work(nonzero_model(), "Cast", **sizes(warning)) == 6


def test_several_sizes_that_depend_on_data_are_warned_of_as_one():
    nodes = [node("Unique", "x", "y i j k")]
    outputs = [value("y", None), *(value(n, None, TensorProto.INT64) for n in "ijk")]
    data = model(nodes, [value("x", [9])], outputs)
    warning = warned(data, "4 values have dimensions that depend on the data")
    assert sizes(warning) == {"y.0": 3, "i.0": 3, "j.0": 3}


def twice(*nodes: object) -> bytes:
    """A model in which two branches that are known to run make values of the same names."""
    branch = graph(nodes, [], [value("t", None)])
    both = {"then_branch": branch, "else_branch": branch}
    constants = [helper.make_tensor("c", TensorProto.BOOL, [], [True])]
    outer = [node("If", "c", name, **both) for name in "yz"]
    outputs = [value("y", None), value("z", None)]
    return model(outer, [value("x", [4, 8])], outputs, constants, opset_imports=OPSETS)


def test_sizes_of_values_that_are_renamed_are_given_by_the_name_in_the_model():
    data = twice(node("NonZero", "x", "i"), node("Cast", "i", "t", to=TensorProto.FLOAT))
    warning = warned(data, "depend on the data, taken as 1: 'i'")
    assert work(data, "Cast", **sizes(warning)) == 2 * 6
    data = twice(node("Magic", "x", "i", domain="acme"), node("Neg", "i", "t"))
    with pytest.raises(ReadError, match="the shape of 'i' cannot be inferred") as error:
        onnx.read(data, "")
    assert work(data, "Neg", **sizes(str(error.value))) == 2 * 9


# Assumptions give way to statements, and errors name them.
def test_a_stated_size_goes_before_one_that_was_assumed():
    assert onnx.read(nonzero_model(value("y", [2, 5])), "").ops[2].flops == 10


def test_a_shape_that_inference_rejects_may_be_stated():
    nodes = [node("MatMul", "x w", "h"), node("Relu", "h", "y")]
    data = model(nodes, [value("x", [4, 8])], [value("y", None)], [weight("w", 9, 16)])
    with pytest.raises(
        ReadError, match=r"shape inference failed: op 'h': .*Incompatible dimensions"
    ):
        onnx.read(data, "")
    g = onnx.read(stated(data, value("h", [4, 16])), "")
    assert g.ops[2].flops == 64
    assert (
        "1 value has the shape that the model states: inference rejects their op: 'h'" in g.warnings
    )


def test_sizes_that_were_assumed_are_named_where_shapes_do_not_fit():
    nodes = [node("NonZero", "x", "i"), node("Transpose", "i", "t"), node("GatherND", "x t", "g")]
    nodes += [node("MatMul", "g w", "y")]
    data = model(nodes, [value("x", [4, 8])], [value("y", None)], [weight("w", 6, 5)])
    with pytest.raises(
        ReadError, match=r"--dim i.1=SIZE gives sizes to what is taken as 1"
    ) as error:
        onnx.read(data, "")
    assert work(data, "MatMul", **sizes(str(error.value), 6)) == 2 * 6 * 5


def test_dimensions_of_inputs_that_were_taken_as_1_are_named_where_shapes_do_not_fit():
    shapes = [value("x", ["rows", "columns"]), value("z", [2, None])]
    nodes = [node("MatMul", "x w", "h"), node("MatMul", "z v", "y")]
    outputs = [value("h", None), value("y", None)]
    data = model(nodes, shapes, outputs, [weight("w", 6, 5), weight("v", 6, 5)])
    with pytest.raises(ReadError, match=r"op 'h': .* gives sizes to what is taken as 1") as error:
        onnx.read(data, "")
    dims = sizes(str(error.value), 6)
    assert dims == {"columns": 6, "rows": 6, "z.1": 6}
    assert work(data, "MatMul", **dims) == 2 * 5 * 6 * (6 + 2)


def test_an_optional_output_that_nobody_reads_needs_no_shape():
    nodes = [node("Dropout", "x", "y mask")]
    data = model(
        nodes, [value("x", [4])], [value("y", None)], opset_imports=[helper.make_opsetid("", 9)]
    )
    assert [t.name for t in read(data).tensors] == ["x", "y"]


def test_an_output_that_a_chosen_branch_reads_under_another_name_is_kept():
    """And named, where its shape is not known."""
    opsets = [helper.make_opsetid("", 9)]
    nodes = [node("Dropout", "x", "h mask"), node("Not", "mask", "t")]
    branch = graph(nodes, [], [value("t", None, TensorProto.BOOL)])
    constants = [helper.make_tensor("c", TensorProto.BOOL, [], [True])]
    both = {"then_branch": branch, "else_branch": branch}
    outer = [node("Abs", "x", "mask"), node("If", "c", "y", **both), node("Abs", "mask", "z")]
    data = model(outer, [value("x", [4])], [value("y", None)], constants, opset_imports=opsets)
    with pytest.raises(ReadError, match="the shape of 'mask' cannot be inferred"):
        onnx.read(data, "")
