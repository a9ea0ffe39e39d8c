"""A graph is validated whole; each message names the op or tensor at fault."""

from __future__ import annotations

import math

import numpy as np
import pytest

from situate.data.graph import BYTES_LIMIT, Graph, MachineDevice, Op, Tensor
from situate.data.slices import Slices
from situate.errors import GraphError, SituateError


def ops(*names: str) -> tuple[Op, ...]:
    return tuple(Op(name) for name in names)


def chain(n: int, back: bool = False) -> tuple[tuple[int, int], ...]:
    """Control edges 0 -> 1 -> ... -> n - 1, and back to 0."""
    return tuple((i, i + 1) for i in range(n - 1)) + (((n - 1, 0),) if back else ())


# Orders of ops and edges.
def test_the_order_puts_producers_first_and_keeps_file_order_between_equals():
    tensors = (Tensor("t", 3, 8, (0,)),)
    assert Graph("g", ops("a", "b", "c", "d"), tensors, control=((2, 1),)).order == (2, 3, 1, 0)


def test_the_program_order_is_that_of_the_file_where_producers_stand_first():
    branches = (Tensor("t", 0, 8, (1,)), Tensor("u", 2, 8, (3,)))
    graph = Graph("g", ops("a", "b", "c", "d"), branches)
    assert graph.order == (0, 2, 1, 3)
    assert graph.program_order == (0, 1, 2, 3)
    backward = Graph("g", ops("a", "b"), (Tensor("t", 1, 8, (0,)),))
    assert backward.program_order == backward.order == (1, 0)


def test_edges_are_those_of_tensors_and_then_of_control():
    tensors = (Tensor("t", 0, 8, (1, 2)), Tensor("u", 1, 8, (2,)))
    graph = Graph("g", ops("a", "b", "c"), tensors, control=((0, 2),))
    assert list(graph.edges()) == [(0, 1), (0, 2), (1, 2), (0, 2)]


def test_a_long_chain_needs_no_recursion():
    n = 20_000
    graph = Graph("g", tuple(Op(f"o{i}") for i in range(n)), control=chain(n))
    assert graph.order == tuple(range(n))


# A graph that breaks its rules is refused by the name of the op or tensor.
def test_an_empty_graph_is_an_error():
    with pytest.raises(GraphError, match="the graph has no ops"):
        Graph("g", ())


def test_a_cycle_is_named_along_its_edges():
    tensors = (Tensor("t", 0, 8, (1,)), Tensor("u", 1, 8, (2, 3)), Tensor("v", 2, 8, (1,)))
    with pytest.raises(
        GraphError, match=r"graph 'g': cycle: ('b' -> 'c' -> 'b'|'c' -> 'b' -> 'c')"
    ):
        Graph("g", ops("a", "b", "c", "behind"), tensors)


def test_a_cycle_of_control_edges_is_named_too():
    with pytest.raises(GraphError, match=r"cycle: .*'a' -> 'b'"):
        Graph("g", ops("a", "b"), control=((0, 1), (1, 0)))


def test_a_long_cycle_is_named_in_short():
    with pytest.raises(GraphError, match="cycle") as error:
        Graph("g", tuple(Op(f"o{i}") for i in range(5000)), control=chain(5000, back=True))
    assert " -> ... -> " in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (Tensor("t", 5, 8), "tensor 't': its producer does not exist"),
        (Tensor("t", -1, 8), "tensor 't': its producer does not exist"),
        (Tensor("t", 0, 8, (9,)), "tensor 't': one of its consumers does not exist"),
        (Tensor("t", 0, 8, (-1,)), "tensor 't': one of its consumers does not exist"),
        (Tensor("t", 0, 8, (0,)), "tensor 't': op 'a' consumes its own output"),
        (Tensor("t", 0, 8, (1, 1)), "tensor 't': lists the same consumer twice"),
        (Tensor("t", 0, -8), r"tensor 't': size: must be between 0 and 2\^53, got -8"),
        (Tensor("t", 0, BYTES_LIMIT + 1), r"tensor 't': size: must be between 0 and 2\^53"),
        (Tensor("t", 0, 2**62 * 2**62), r"tensor 't': size: must be between 0 and 2\^53"),
        (Tensor("t", 0, 2**20_000), r"tensor 't': size: must be .* 2\^53, got a number beyond"),
        (Tensor("t", 0, 8, seconds=math.nan), "tensor 't': seconds: must be finite"),
        (Tensor("t", 0, 8, seconds=math.inf), "tensor 't': seconds: must be finite"),
        (Tensor("t", 0, 8, seconds=-1.0), "tensor 't': seconds: must be finite and not negative"),
        (Tensor("", 0, 8), "tensor 0 has an empty name"),
    ],
)
def test_a_bad_tensor_is_named(tensor, message):
    with pytest.raises(GraphError, match=message):
        Graph("g", ops("a", "b"), (tensor,))


@pytest.mark.parametrize("field", ["flops", "traffic", "persistent", "workspace"])
@pytest.mark.parametrize("value", [-1, BYTES_LIMIT + 1, math.nan, math.inf])
def test_a_bad_size_of_an_op_is_named(field, value):
    with pytest.raises(GraphError, match=rf"op 'a': {field}: must be between 0 and 2\^53"):
        Graph("g", (Op("a", **{field: value}),))


@pytest.mark.parametrize("field", ["flops", "traffic", "persistent", "workspace"])
@pytest.mark.parametrize("value", [5.5, 1e9, "8"])
def test_sizes_are_integers(field, value):
    """Half a byte would be lost without a word, and no graph file holds `1e9`."""
    with pytest.raises(GraphError, match=f"op 'a': {field}: must be an integer, got {value!r}"):
        Graph("g", (Op("a", **{field: value}),))
    with pytest.raises(GraphError, match=f"tensor 't': size: must be an integer, got {value!r}"):
        Graph("g", ops("a"), (Tensor("t", 0, value),))


def test_numpys_integers_are_sizes():
    sizes = {"persistent": np.int64(8), "workspace": np.uint8(7)}
    graph = Graph("g", (Op("a", **sizes),), (Tensor("t", 0, np.int32(4)),))
    same = Graph("g", (Op("a", persistent=8, workspace=7),), (Tensor("t", 0, 4),))
    assert graph.hash == same.hash


@pytest.mark.parametrize("value", [-1e-9, math.nan, math.inf, -math.inf])
def test_bad_seconds_of_an_op_are_named_with_their_device(value):
    with pytest.raises(GraphError, match=r"op 'a': seconds\['gpu'\]: must be finite"):
        Graph("g", (Op("a", seconds={"gpu": value}),))


def test_sizes_that_overflow_only_together_are_an_error():
    with pytest.raises(GraphError, match=r"all sizes together are \d+ bytes, more than 2\^62"):
        Graph("g", tuple(Op(f"o{i}", persistent=BYTES_LIMIT) for i in range(600)))


def test_duplicate_names_are_errors():
    with pytest.raises(GraphError, match="two ops are called 'a'"):
        Graph("g", ops("a", "b", "a"))
    with pytest.raises(GraphError, match="two tensors are called 't'"):
        Graph("g", ops("a", "b"), (Tensor("t", 0, 8), Tensor("t", 1, 8)))


def test_an_empty_op_name_is_an_error():
    with pytest.raises(GraphError, match="op 1 has an empty name"):
        Graph("g", ops("a", ""))


@pytest.mark.parametrize("edge", [(0, 2), (2, 0), (-1, 0), (0, -1)])
def test_a_control_edge_to_nowhere_is_an_error(edge):
    with pytest.raises(GraphError, match="names an op that does not exist"):
        Graph("g", ops("a", "b"), control=(edge,))


def test_an_op_that_waits_for_itself_is_an_error():
    with pytest.raises(GraphError, match="op 'b' waits for itself"):
        Graph("g", ops("a", "b"), control=((1, 1),))


def test_a_group_pinned_to_two_devices_is_an_error_that_names_both():
    pinned = (Op("a", group="w", device="gpu0"), Op("b", group="w"), Op("c", group="w", device="x"))
    with pytest.raises(
        GraphError, match="group 'w' is pinned to two devices: op 'a' to 'gpu0', op 'c' to 'x'"
    ):
        Graph("g", pinned)


def test_a_group_pinned_twice_to_one_device_is_fine():
    Graph("g", (Op("a", group="w", device="gpu0"), Op("b", group="w", device="gpu0")))


def test_errors_quote_control_characters_in_names():
    with pytest.raises(GraphError) as error:
        Graph("g", ops("a\x1b[31m\n", "a\x1b[31m\n"))
    assert "\x1b" not in str(error.value)
    assert "\n" not in str(error.value)


def test_graph_errors_are_situate_errors_and_value_errors():
    assert issubclass(GraphError, SituateError)
    assert issubclass(GraphError, ValueError)


# The hash changes with all that a placement depends on, and with nothing else.
def test_the_hash_follows_what_placement_depends_on_and_not_the_name():
    base = Graph("g", ops("a", "b"), (Tensor("t", 0, 8, (1,)),))
    same = Graph("other", ops("a", "b"), (Tensor("t", 0, 8, (1,)),), warnings=("w",))
    assert base.hash == same.hash
    changed = [
        Graph("g", ops("a", "c"), base.tensors),
        Graph("g", base.ops, (Tensor("t", 0, 9, (1,)),)),
        Graph("g", base.ops, base.tensors, control=((0, 1),)),
        Graph("g", base.ops, base.tensors, unit=""),
        Graph("g", base.ops, base.tensors, machine=(MachineDevice("d", "cpu"),)),
    ]
    assert len({base.hash, *(graph.hash for graph in changed)}) == 6


def test_the_hash_of_a_graph_stays_whatever_fields_ops_come_to_have():
    """Plans, studies and best known values are of graphs with these hashes."""
    ops = Op("a", flops=3, seconds={"*": 1.5}), Op("b", persistent=7, group="x")
    graph = Graph("g", ops, (Tensor("t", 0, 4, (1,)),))
    assert graph.hash == "cbba558786e16eb516de87a6685cc7fa38b72497bfc2f364663b71ca51995e88"


def test_signatures_are_no_part_of_the_hash():
    plain = Graph("g", (Op("a"),))
    signed = Graph("g", (Op("a", signature="aten.relu(f32[8])"),))
    assert signed.hash == plain.hash
    assert signed != plain


# Graphs are immutable, and ops refer to slices, replicas and modules that exist.
def test_a_graph_cannot_be_changed():
    graph = Graph("g", ops("a"))
    with pytest.raises(AttributeError):
        graph.name = "h"
    with pytest.raises(AttributeError):
        graph.ops[0].flops = 3


def test_an_unknown_optimizer_is_refused():
    with pytest.raises(GraphError, match="graph 'g': unknown optimizer 'adamv'"):
        Graph("g", (Op("a"),), optimizer="adamv")


def test_an_op_is_of_a_slice_that_there_is():
    with pytest.raises(GraphError, match="op 'a': slice: must be below the number of slices, 0"):
        Graph("g", (Op("a", slice=0),))
    assert Graph("g", (Op("a", slice=1),), slices=Slices((1, 1))).ops[0].slice == 1


def test_an_op_is_of_a_replica_that_there_is():
    with pytest.raises(GraphError, match="op 'a': replica: must be below the number of replicas"):
        Graph("g", (Op("a", replica=0),), slices=Slices((1, 1)))
    slices = Slices((1, 1), replicas=(1, 1))
    assert Graph("g", (Op("a", replica=1),), slices=slices).ops[0].replica == 1


def test_an_op_that_runs_again_is_of_a_module_that_does():
    again = Op("a", module="layers.1.norm", recompute=True)
    with pytest.raises(GraphError, match=r"op 'a': recompute: its module 'layers.1.norm' lies in"):
        Graph("g", (again,), recompute=("layers.10",))
    assert Graph("g", (again,), recompute=("layers.1",)).recompute == ("layers.1",)
