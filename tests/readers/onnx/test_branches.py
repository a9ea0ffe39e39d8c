"""The branches of `If` in ONNX models."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from situate.errors import ReadError
from situate.readers import onnx
from tests.readers.models import graph, model, node, scalar, value, weight, whole
from tests.readers.onnx.remedies import read, warned, work

CONDITION = value("c", [], TensorProto.BOOL)


def truth(name: str, value: bool) -> object:
    return helper.make_tensor(name, TensorProto.BOOL, [], [value])


def conditional(then: object, other: object, *before: object, **more: object) -> bytes:
    """Relu, an If and a Relu; the condition is the value `c`, a shape is `x`'s."""
    nodes = [node("Relu", "x", "r"), *before]
    nodes += [node("If", "c", "s", name="if", then_branch=then, else_branch=other)]
    nodes += [node("Relu", "s", "y")]
    inputs = [value("x", ["batch", 1, 32]), *([] if before else more.pop("inputs", [CONDITION]))]
    return model(nodes, inputs, [value("y", None)], more.pop("held", []))


SQUEEZED = graph([node("Squeeze", "r one", "t")], [], [value("t", None)])
IDENTITY = graph([node("Identity", "r", "e")], [], [value("e", None)])
IS_ONE = [
    node("Shape", "r", "sizes"),
    node("Gather", "sizes index", "size"),
    node("Equal", "size index", "c"),
]
CONSTANTS = [whole("one", 1), scalar("index", 1)]


# A known condition: the branch stands in place of its op.
def test_a_condition_that_follows_from_shapes_chooses_its_branch():
    g = read(conditional(SQUEEZED, IDENTITY, *IS_ONE, held=CONSTANTS), batch=4)
    assert [op.kind for op in g.ops] == ["input", "onnx.Relu", "onnx.Squeeze", "onnx.Relu"]
    other = conditional(IDENTITY, SQUEEZED, *IS_ONE, held=CONSTANTS)
    assert [op.kind for op in read(other, batch=4).ops][2] == "onnx.Identity"


@pytest.mark.parametrize("branch", [True, False])
def test_a_condition_that_is_a_constant_chooses_its_branch(branch):
    data = conditional(SQUEEZED, IDENTITY, inputs=[], held=[*CONSTANTS, truth("c", branch)])
    assert len(read(data, batch=4).ops) == 4
    stated = node("Constant", "", "c", value=truth("", branch))
    data = conditional(SQUEEZED, IDENTITY, stated, held=CONSTANTS)
    assert ("onnx.Squeeze" in [op.kind for op in read(data, batch=4).ops]) is branch


def test_what_the_other_branch_holds_is_no_matter():
    """Neither an op without inference nor weights."""
    magic = graph(
        [node("Magic", "r big", "m", domain="com.microsoft")],
        [],
        [value("m", None)],
        [weight("big", 500)],
    )
    g = read(conditional(SQUEEZED, magic, *IS_ONE, held=CONSTANTS), batch=4)
    assert sum(op.persistent for op in g.ops) == 8


def test_names_stay_unique_where_a_branch_stands_in_place_of_its_op():
    """The values of two branches have the names of one another, and of values around them."""
    branch = graph(
        [node("Add", "r k", "h", name="add"), node("Mul", "h k", "r2", name="add")],
        [],
        [value("r2", None)],
        [weight("k", 32)],
    )
    nodes = [node("Relu", "x", "r"), node("Relu", "x", "h")]
    nodes += [node("If", "c", out, then_branch=branch, else_branch=IDENTITY) for out in ("p", "q")]
    nodes += [node("Sum", "p q h", "y")]
    data = model(nodes, [value("x", [4, 32])], [value("y", None)], [truth("c", True)])
    g = read(data)
    assert [op.name for op in g.ops[3:7]] == ["add", "add#2", "add#3", "add#4"]
    assert [t.name for t in g.tensors] == ["x", "r", "h", "h#2", "p", "h#3", "q", "y"]
    assert sum(op.persistent for op in g.ops) == 2 * 4 * 32
    assert [g.ops[c].name for c in g.tensors[2].consumers] == ["y"]


def test_a_branch_may_hand_out_what_is_around_it_or_one_value_twice():
    twice = graph(
        [node("Relu", "r", "h")],
        [],
        [value(n, None) for n in ("h", "h", "r", "w")],
        [weight("w", 2)],
    )
    nodes = [
        node("Relu", "x", "r"),
        node("If", "c", "a b d e", then_branch=twice, else_branch=twice),
    ]
    nodes += [node("Sum", "a b d", "y"), node("Relu", "e", "z")]
    data = model(nodes, [value("x", [4])], [value("y", None), value("z", None)], [truth("c", True)])
    ops = [op.kind for op in read(data).ops]
    assert ops == ["input", "onnx.Relu", "onnx.Relu", "onnx.Identity", "onnx.Identity", "onnx.Sum"]


def test_a_known_condition_inside_a_known_branch_is_followed_too():
    inner = node("If", "c", "i", then_branch=SQUEEZED, else_branch=IDENTITY)
    data = conditional(graph([inner], [], [value("i", None)]), IDENTITY, *IS_ONE, held=CONSTANTS)
    assert [op.kind for op in read(data, batch=4).ops][2] == "onnx.Squeeze"


def test_a_name_inside_a_body_of_a_branch_stays_its_own():
    deep = graph([node("Relu", "h", "d"), node("Mul", "d d", "h2")], [], [value("h2", None)])
    branch = graph(
        [node("Neg", "r", "h"), node("If", "open", "i", then_branch=deep, else_branch=deep)],
        [],
        [value("i", None)],
    )
    nodes = [node("Relu", "x", "r"), node("Abs", "x", "h"), node("Abs", "h", "d")]
    nodes += [
        node("If", "c", "s", then_branch=branch, else_branch=IDENTITY),
        node("Sum", "s d", "y"),
    ]
    inputs = [value("x", [4]), value("open", [], TensorProto.BOOL)]
    g = read(model(nodes, inputs, [value("y", None)], [truth("c", True)]))
    items = {t.name: [g.ops[c].name for c in t.consumers] for t in g.tensors}
    assert (items["h"], items["h#2"], items["d"]) == (["d"], ["s"], ["y"])


def outer_constants(inside: bool) -> bytes:
    """A product of rows of 64, reshaped by a constant in the branches or around them."""
    shape = [whole("shape", -1, 64)]

    def branch(width: int) -> object:
        nodes = [node("Reshape", "x shape", "s"), node("MatMul", "s w", "h")]
        nodes += [node("ReduceMax", "h", "o", axes=[0, 1])]
        constants = [weight("w", 64, width), *(shape if inside else [])]
        return graph(nodes, [], [value("o", [1, 1])], constants)

    nodes = [node("If", "c", "y", then_branch=branch(512), else_branch=branch(8))]
    inputs = [value("x", ["batch", 256]), CONDITION]
    constants = [] if inside else shape
    opsets = [helper.make_opsetid("", 17)]
    return model(nodes, inputs, [value("y", [1, 1])], constants, opset_imports=opsets)


# Values of the graph around a branch.
@pytest.mark.parametrize("inside", [True, False])
def test_constants_from_outside_are_known_in_branches(inside):
    assert work(outer_constants(inside), "If", batch=64) == 2 * 256 * 64 * 512 + 256 * 512


def test_what_follows_from_shapes_outside_is_known_in_a_body_of_a_body():
    """A shape that is computed around both bodies, in the outer one, and in the inner one."""
    inner = graph(
        [
            node("Concat", "size eight", "target", axis=0),
            node("Reshape", "x target", "s"),
            node("MatMul", "s w", "o"),
        ],
        [],
        [value("o", None)],
        [weight("w", 8, 6)],
    )
    both = {"then_branch": inner, "else_branch": inner}
    size = node("Div", "first four", "size")
    middle = graph([size, node("If", "c", "m", **both)], [], [value("m", None)])
    nodes = [node("Shape", "x", "sizes"), node("Gather", "sizes zero", "first")]
    nodes += [node("If", "c", "y", then_branch=middle, else_branch=middle)]
    constants = [whole("zero", 0), whole("four", 4), whole("eight", 8)]
    data = model(nodes, [value("x", ["n", 2]), CONDITION], [value("y", None)], constants)
    assert work(data, "If", n=64) == 2 * (64 // 4) * 8 * 6


# An unknown condition counts the larger branch; broken branches are named.
def test_where_branches_make_other_shapes_the_larger_counts_and_a_warning_says_so():
    wide = graph([node("MatMul", "r w", "t")], [], [value("t", None)], [weight("w", 32, 64)])
    data = conditional(wide, IDENTITY)
    assert "'s'" in warned(data, "1 value has a shape that depends on the branch taken")
    assert onnx.read(data, "", {"batch": 4}).ops[-1].flops == 4 * 64
    assert onnx.read(conditional(IDENTITY, wide), "", {"batch": 4}).ops[-1].flops == 4 * 64


@pytest.mark.parametrize("missing", ["then_branch", "else_branch"])
def test_a_branch_that_is_missing_is_named(missing):
    both = {"then_branch": IDENTITY, "else_branch": IDENTITY}
    del both[missing]
    nodes = [node("Relu", "x", "r"), node("If", "c", "y", **both)]
    data = model(nodes, [value("x", [4]), CONDITION], [value("y", [4])])
    with pytest.raises(ReadError, match=f"op 'y': has no {missing}, which If needs"):
        onnx.read(data, "")


def test_a_branch_of_fewer_outputs_than_its_op_is_named():
    for constants in ([], [truth("c", True)]):
        nodes = [
            node("Relu", "x", "r"),
            node("If", "c", "y z", then_branch=IDENTITY, else_branch=IDENTITY),
        ]
        inputs = [value("x", [4]), *([] if constants else [CONDITION])]
        with pytest.raises(ReadError, match=r"op 'y': its (then|else)_branch makes 1 values of 2"):
            onnx.read(model(nodes, inputs, [value("y", [4])], constants), "")


def test_a_value_that_nothing_makes_is_named_in_a_branch():
    lost = graph([node("Relu", "nowhere", "t")], [], [value("t", None)])
    with pytest.raises(ReadError, match="reads 'nowhere', which no op makes"):
        onnx.read(conditional(lost, IDENTITY), "")


def test_a_condition_of_several_values_is_none():
    constants = [numpy_helper.from_array(numpy_helper.to_array(whole("c", 1, 1)) > 0, "c")]
    assert "onnx.If" in [
        op.kind
        for op in onnx.read(conditional(IDENTITY, IDENTITY, inputs=[], held=constants), "").ops
    ]
