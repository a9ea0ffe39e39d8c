"""TensorFlow's CostGraphDef, in text and in binary."""

from __future__ import annotations

import sys

import pytest

from situate.errors import GraphError, MissingExtra, ReadError
from situate.readers import costgraph
from situate.readers.recognise import recognise
from tests.readers.allocated import peak_bytes

TEXT = """
# A matrix product and its gradient.
node { name: "w" device: "/gpu:0" id: 7 persistent_memory_size: 400
  output_info { size: 400 alias_input_port: -1 } }
node { name: "w/read" id: 1 input_info { preceding_node: 7 }
  output_info { size: 400 alias_input_port: 0 } }
node { name: "x" id: 2 output_info { size: 100 alias_input_port: -1 } }
node { name: "net/MatMul_3" id: 3 compute_cost: 50 temporary_memory_size: 9
  input_info { preceding_node: 2 } input_info { preceding_node: 1 }
  output_info { size: 100 alias_input_port: -1 } output_info { size: 4 alias_input_port: -1 } }
node { name: "gradients/net/MatMul_grad" id: 4 compute_cost: 60
  input_info { preceding_node: 3 preceding_port: 1 } control_input: 2
  output_info { size: 400 alias_input_port: -1 } }
node { name: "assign" id: 5 compute_cost: 10 is_final: true
  input_info { preceding_node: 7 } input_info { preceding_node: 4 }
  output_info { size: 400 alias_input_port: 0 } }
"""


def graph_of(text: str):
    return costgraph.read(text.encode(), "g")


def binary(text: str = TEXT) -> bytes:
    return costgraph._parse(text.encode()).SerializeToString()


def tensors() -> dict[str, object]:
    return {tensor.name: tensor for tensor in graph_of(TEXT).tensors}


# Both encodings are recognised and give the same graph.
def test_binary_and_text_are_the_same_graph():
    assert costgraph.read(binary(), "g") == graph_of(TEXT)


def test_both_are_recognised():
    assert recognise(TEXT.encode()) == "costgraph"
    assert recognise(binary()) == "costgraph"


def test_what_follows_the_first_fields_is_not_walked_to_tell_the_format():
    assert costgraph.recognises(b"\n\x00" + b"\x12\x00" * 25_000_000, {})


def test_a_binary_that_begins_like_a_brace_is_no_json():
    node = f'node {{ name: "{"x" * 34}" id: 3 device: "{"d" * 83}" }}'
    assert binary(node).startswith(b'\n{\n"')
    assert recognise(binary(node)) == "costgraph"


# Fields of nodes, and aliases of memory.
def test_microseconds_become_seconds():
    assert [op.seconds["*"] for op in graph_of(TEXT).ops] == [0, 0, 0, 5e-05, 6e-05, 1e-05]


def test_memory_kind_module_and_phase():
    ops = {op.name: op for op in graph_of(TEXT).ops}
    assert ops["w"].persistent == 400
    assert ops["net/MatMul_3"].workspace == 9
    assert (ops["net/MatMul_3"].kind, ops["net/MatMul_3"].module) == ("tf.MatMul", "net")
    assert ops["gradients/net/MatMul_grad"].phase == "backward"
    assert all(op.device is None for op in ops.values())


def test_every_port_is_a_tensor():
    assert tensors()["net/MatMul_3:0"].consumers == ()
    assert tensors()["net/MatMul_3:1"].consumers == (4,)


def test_an_alias_without_cost_is_a_view_and_sits_with_its_variable():
    ops = graph_of(TEXT).ops
    assert "w/read:0" not in tensors()
    assert tensors()["w:0"].consumers == (1, 3, 5)
    assert [op.name for op in ops if op.group == "w"] == ["w", "w/read", "assign"]


def test_a_variable_takes_its_memory_once():
    assert tensors()["w:0"].resident
    assert tensors()["assign:0"].resident
    assert not tensors()["x:0"].resident


def test_a_final_node_has_outputs_and_control_inputs_are_control_edges():
    assert tensors()["assign:0"].output
    assert (2, 4) in graph_of(TEXT).control


def test_a_file_that_never_writes_the_alias_field_has_no_aliases():
    plain = TEXT.replace(" alias_input_port: -1", "").replace(" alias_input_port: 0", "")
    assert {op.group for op in graph_of(plain).ops} == {None}


# Files that are incomplete, broken or hostile.
def test_names_that_repeat_are_made_unique():
    graph = graph_of('node { name: "_SOURCE" } node { name: "_SOURCE" id: 1 }')
    assert [op.name for op in graph.ops] == ["_SOURCE", "_SOURCE#2"]


def test_a_graph_without_costs_and_sizes_is_warned_of():
    warnings = graph_of('node { name: "a" output_info { size: -1 } }').warnings
    assert len(warnings) == 2
    assert "no node has a compute cost" in warnings[0]
    assert "1 outputs have an unknown size" in warnings[1]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("preceding_node: 7", "preceding_node: 70", "node 'w/read': reads node 70, which does not"),
        ("preceding_port: 1", "preceding_port: 5", "reads 'net/MatMul_3:5', which no op makes"),
        ("preceding_node: 7 }", "preceding_node: 7 preceding_port: -2 }", "reads 'w:-2', which no"),
        ("control_input: 2", "control_input: 20", "waits for unknown node 20"),
        ("compute_cost: 50", "compute_cost: -50", "compute_cost: must not be negative, got -50"),
        ("size: 9", "size: -9", "temporary memory: must be between 0"),
        ("size: 100", "size: 9223372036854775807", "output 0: size: must be between 0"),
        ("id: 1", "id: 7", "nodes 'w' and 'w/read' have the same id 7"),
        ("is_final: true", "op: 'Assign'", 'no CostGraphDef: .* no field named "op"'),
        ("id: 5", "id: {", "no CostGraphDef"),
    ],
)
def test_a_bad_node_is_named(old, new, message):
    with pytest.raises(ReadError, match=message):
        graph_of(TEXT.replace(old, new, 1))


def test_an_alias_of_a_later_node_with_a_bad_input_names_that_node():
    nodes = (
        'node { name: "a" id: 1 input_info { preceding_node: 2 }'
        " output_info { size: 4 alias_input_port: 0 } output_info { alias_input_port: -1 } }"
        'node { name: "b" id: 2 input_info { preceding_node: 70 }'
        " output_info { size: 4 alias_input_port: 0 } }"
    )
    with pytest.raises(ReadError, match="node 'b': reads node 70, which does not exist"):
        graph_of(nodes)


def test_a_loop_is_a_named_cycle():
    with pytest.raises(GraphError, match="cycle"):
        graph_of(TEXT.replace('"x" id: 2', '"x" id: 2 input_info { preceding_node: 3 }'))


def test_a_long_word_does_not_make_a_long_error():
    with pytest.raises(ReadError, match=r"no CostGraphDef: .*aaa") as error:
        graph_of(f"node {{ name: {'a' * 10_000} }}")
    assert len(str(error.value)) < 1000


def test_a_truncated_binary_says_so():
    with pytest.raises(ReadError, match="no CostGraphDef"):
        costgraph.read(binary()[:-5], "g")


def test_no_nodes_is_an_error():
    with pytest.raises(ReadError, match="has no nodes"):
        costgraph.read(b"", "g")


def test_without_tensorboard_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.cost_graph_pb2", None)
    with pytest.raises(MissingExtra, match=r"pip install 'situate\[report\]'"):
        graph_of(TEXT)


def test_lines_that_say_nothing_are_not_kept():
    assert peak_bytes(lambda: costgraph.read(TEXT.encode() + b"\n" * 50_000, "")) < 300_000
