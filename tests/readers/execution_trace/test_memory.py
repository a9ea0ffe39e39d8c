"""Who waits for whom, by the memory they share."""

from __future__ import annotations

import pytest

from situate.data.graph import Graph, Op
from situate.readers.execution_trace.memory import Memory, overwritten_storages
from situate.readers.execution_trace.nodes import Value


def value(storage: int, elements: int = 4, argument: int = 0) -> Value:
    return Value(storage, elements, 4 * elements, "float32", "cpu", argument, None)


def graph(memory: Memory) -> Graph:
    ops, tensors, control = memory.flow.finish()
    return Graph("g", ops, tensors, control)


def edges(graph: Graph) -> set[tuple[str, str]]:
    return {(graph.ops[a].name, graph.ops[b].name) for a, b in graph.edges()}


def test_a_reader_follows_the_last_writer():
    memory = Memory()
    memory.run(Op("a"), [], [value(1)], [])
    memory.run(Op("b"), [value(1)], [value(2)], [])
    memory.run(Op("c"), [value(2), value(1)], [], [])
    assert edges(graph(memory)) == {("a", "b"), ("a", "c"), ("b", "c")}


def test_memory_that_is_given_away_again_is_new():
    """The allocator hands out the memory of tensors that nobody needs any more."""
    memory = Memory()
    memory.run(Op("a"), [], [value(1)], [])
    memory.run(Op("b"), [], [value(1)], [])
    memory.run(Op("c"), [value(1)], [], [])
    assert edges(graph(memory)) == {("b", "c")}


def test_what_overwrites_a_value_follows_those_that_read_it():
    memory = Memory()
    memory.run(Op("a"), [], [value(1)], [])
    memory.run(Op("reader"), [value(1)], [], [])
    memory.run(Op("writer"), [value(1)], [value(1)], [1])
    memory.run(Op("after"), [value(1)], [], [])
    result = graph(memory)
    assert edges(result) == {
        ("a", "reader"),
        ("a", "writer"),
        ("reader", "writer"),
        ("writer", "after"),
    }
    assert result.control == ((1, 2),)


def test_a_writer_follows_the_readers_of_the_value_it_overwrites_alone():
    memory = Memory()
    memory.run(Op("a"), [], [value(1)], [])
    for round in range(2):
        memory.run(Op(f"reader{round}"), [value(1)], [], [])
        memory.run(Op(f"writer{round}"), [value(1)], [value(1)], [1])
    assert graph(memory).control == ((1, 2), (3, 4))


def test_what_was_there_before_is_held_by_an_op_of_its_own():
    memory = Memory()
    memory.run(Op("a"), [value(1, elements=8)], [], [])
    result = graph(memory)
    assert [(op.name, op.kind, op.persistent) for op in result.ops] == [
        ("storage:1", "buffer", 32),
        ("a", "op", 0),
    ]
    (tensor,) = result.tensors
    assert (tensor.size, tensor.resident, tensor.consumers) == (32, True, (1,))


def test_what_overwrites_held_memory_runs_where_it_is():
    memory = Memory()
    memory.run(Op("a"), [value(1)], [], [])
    memory.run(Op("update"), [value(1)], [], [1])
    memory.run(Op("again"), [value(1)], [], [1])
    result = graph(memory)
    assert [op.group for op in result.ops] == ["storage:1", None, "storage:1", "storage:1"]
    assert all(tensor.resident for tensor in result.tensors)


def test_what_nobody_wrote_is_not_waited_for():
    memory = Memory()
    memory.allocate([value(1)])
    memory.run(Op("fill"), [value(1)], [value(1)], [1])
    memory.run(Op("a"), [value(1)], [], [])
    result = graph(memory)
    assert edges(result) == {("fill", "a")}
    assert [(t.size, t.resident) for t in result.tensors] == [(16, False)]


def test_a_view_tells_how_large_its_base_is():
    memory = Memory()
    memory.touch([value(1, elements=100)])
    memory.run(Op("a"), [value(1, elements=5)], [], [])
    assert graph(memory).ops[0].persistent == 400


def test_several_results_are_several_tensors():
    memory = Memory()
    memory.run(Op("a"), [value(1)], [value(2), value(3, 8), value(3, 2)], [1])
    assert [(t.name, t.size) for t in graph(memory).tensors] == [
        ("storage:1", 16),
        ("a:0", 16),
        ("a:1", 16),
        ("a:2", 32),
    ]


@pytest.mark.parametrize(
    ("schema", "name", "overwritten"),
    [
        ("aten::relu(Tensor self) -> Tensor", "aten::relu", []),
        ("aten::t(Tensor(a) self) -> Tensor(a)", "aten::t", []),
        ("aten::add_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", "aten::add_", [10]),
        (
            "aten::f(Tensor x, int[2] p=[0, 1], *, Tensor(a!) out) -> Tensor(a!)",
            "aten::f",
            [12],
        ),
        ("c10d::allreduce_(Tensor[] tensors, int timeout) -> Tensor[]", "c10d::allreduce_", [10]),
        ("aten::__and__(Tensor self, Tensor other) -> Tensor", "aten::__and__", []),
        ("", "aten::f", []),
    ],
)
def test_a_schema_says_what_is_overwritten(schema, name, overwritten):
    assert (
        overwritten_storages(schema, name, [value(10 + i, argument=i) for i in range(3)])
        == overwritten
    )
