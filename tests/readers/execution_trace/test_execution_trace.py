"""Execution traces as graphs."""

from __future__ import annotations

import pytest

from situate.data.graph import Graph
from situate.errors import GraphError, ReadError
from situate.files.contents import contents
from situate.readers import execution_trace
from tests.readers import traces
from tests.readers.samples import DATA
from tests.readers.traces import KERNELS, RELU, chrome_trace, node, tensor

LISTS = "GenericList[Tensor(float),Tensor(float)]"


def graph_of(*nodes: dict, profile_data: bytes | None = None) -> Graph:
    return execution_trace.read(traces.execution_trace(*nodes), "g", profile_data)


def ops(graph: Graph) -> list[str]:
    return [op.name for op in graph.ops]


def edges(graph: Graph) -> set[tuple[str, str]]:
    return {(graph.ops[a].name, graph.ops[b].name) for a, b in graph.edges()}


def test_tensors_are_edges_and_what_nobody_made_was_there():
    graph = graph_of(*RELU)
    assert edges(graph) == {
        ("storage:1", "aten::linear@3"),
        ("storage:2", "aten::linear@3"),
        ("aten::linear@3", "aten::relu@4"),
    }
    assert [tensor.size for tensor in graph.tensors] == [16, 16, 16, 16]
    assert graph.ops[2].kind == "aten.linear"
    assert graph.ops[2].traffic == 48
    assert graph.source == "execution-trace"


def test_without_times_the_remedy_is_told():
    graph = graph_of(*RELU)
    assert all(op.seconds is None for op in graph.ops)
    assert "give the Kineto trace of the same run too" in graph.warnings[0]


def test_with_a_kineto_trace_ops_have_seconds():
    graph = graph_of(*traces.GPU_RELU, profile_data=chrome_trace(*KERNELS))
    seconds = {op.name: op.seconds for op in graph.ops}
    assert seconds["aten::linear@3"] == {"accelerator": pytest.approx(40e-6)}
    assert seconds["aten::relu@4"] == {"accelerator": pytest.approx(5e-6)}
    assert graph.warnings == ()


def test_views_and_allocations_are_no_ops():
    empty = node(3, "aten::empty", [], [tensor(1)])
    fill = node(4, "aten::zero_", [tensor(1)], [tensor(1)], schema="aten::zero_(Tensor(a!) x) -> x")
    view = node(5, "aten::t", [tensor(1)], [tensor(1)])
    use = node(6, "aten::relu", [tensor(1)], [tensor(2)])
    graph = graph_of(empty, fill, view, use)
    assert edges(graph) == {("aten::zero_@4", "aten::relu@6")}
    assert len(graph.ops) == 2


def test_what_a_view_is_of_is_as_large_as_it_is():
    view = node(3, "aten::slice", [tensor(1, 100)], [tensor(1, 5)])
    graph = graph_of(view, node(4, "aten::relu", [tensor(1, 5)], [tensor(2, 5)]))
    assert (graph.ops[0].name, graph.ops[0].persistent) == ("storage:1", 400)


def test_an_op_on_lists_is_an_op_per_tensor():
    """So that the parameters of a network need not be on one device."""
    update = node(
        3,
        "aten::_foreach_add_",
        [[tensor(1, 4), tensor(2, 12)], [tensor(3, 4), tensor(4, 12)]],
        schema="aten::_foreach_add_.List(Tensor(a!)[] self, Tensor[] other) -> ()",
        types=[LISTS, LISTS],
    )
    took = traces.event("aten::_foreach_add_", 0, 80)
    graph = graph_of(update, profile_data=chrome_trace(took))
    first, second = (op for op in graph.ops if op.kind == "aten._foreach_add_")
    assert (first.name, second.name) == ("aten::_foreach_add_@3[0]", "aten::_foreach_add_@3[1]")
    assert (first.group, second.group) == ("storage:1", "storage:2")
    assert first.seconds == {"*": pytest.approx(20e-6)}
    assert second.seconds == {"*": pytest.approx(60e-6)}


def test_an_op_on_lists_makes_a_tensor_for_each():
    root = node(3, "aten::_foreach_sqrt", [[tensor(1), tensor(2)]], types=[LISTS])
    root["outputs"], root["output_types"] = [[tensor(3), tensor(4)]], [LISTS]
    use = node(4, "aten::relu", [tensor(4)], [tensor(5)])
    assert ("aten::_foreach_sqrt@3[1]", "aten::relu@4") in edges(graph_of(root, use))
    assert ("aten::_foreach_sqrt@3[0]", "aten::relu@4") not in edges(graph_of(root, use))


def test_a_recorded_pair_is_planned_with_its_measured_times():
    """A training step of 21 linear layers of 1024 x 1024 and a batch of 512, on an RTX 2080 Ti."""
    trace, profile = (
        contents(DATA / "param-et" / f"linear_{part}.json.gz") for part in ("et", "kineto_3_steps")
    )
    graph = execution_trace.read(trace, "linear", profile)
    product = 2 * 512 * 1024 * 1024
    by_kind = {
        kind: [o for o in graph.ops if o.kind == kind] for kind in ("aten.mm", "aten.linear")
    }
    assert [op.flops for op in by_kind["aten.linear"]] == [product] * 21
    assert [op.flops for op in by_kind["aten.mm"]] == [product] * 41
    assert sum((op.seconds or {}).get("accelerator", 0) for op in graph.ops) == pytest.approx(
        9.2e-3, rel=0.02
    )
    updates = [op for op in graph.ops if op.kind == "aten._foreach_add_"]
    assert len({op.group for op in updates}) == len(updates) == 42
    assert {op.phase for op in graph.ops} == {"", "forward", "backward", "update"}
    assert graph.warnings == ()


def test_several_steps_are_told():
    steps = [node(id, f"ProfilerStep#{id}", schema="") for id in (3, 5)]
    graph = graph_of(*steps, node(4, "aten::f"), node(6, "aten::f"))
    assert graph.warnings[0].startswith("holds 2 steps, ProfilerStep#3 to ProfilerStep#5")


def test_ops_that_the_kineto_trace_lacks_are_told():
    events = [traces.event("aten::linear", 0, 5, args={"Record function id": 1003})]
    graph = graph_of(*RELU, profile_data=chrome_trace(*events))
    assert graph.ops[-1].seconds is None
    assert graph.warnings == (
        "1 operators are not in the Kineto trace: they take the roofline's time",
    )


def test_oddities_of_the_kineto_trace_are_told():
    graph = graph_of(*RELU, profile_data=chrome_trace(*KERNELS, traces.event("late", 99, -1)))
    first = f"first traceEvents[{len(KERNELS)}]"
    assert graph.warnings == (f"events of negative duration take no time: 1, {first}",)


def test_a_gpu_s_ops_need_a_gpu_s_times():
    calls = [event for event in KERNELS if event["cat"] == "cpu_op"]
    with pytest.raises(ReadError, match=r"has no kernels: record it with ProfilerActivity.CUDA"):
        graph_of(*traces.GPU_RELU, profile_data=chrome_trace(*calls))


def test_a_trace_without_operators_says_so():
    with pytest.raises(ReadError, match="has no operators"):
        graph_of(node(3, "## forward ##", schema=""))


def test_a_size_beyond_all_memory_names_its_op():
    huge = node(3, "aten::f", [], [tensor(1, 2**62)])
    with pytest.raises(GraphError, match="op 'aten::f@3': traffic"):
        graph_of(huge)


def test_many_nodes_are_read_in_time():
    """No step of the reader looks at all nodes for each of them."""
    chain = [node(i, "aten::relu", [tensor(i - 1)], [tensor(i)]) for i in range(3, 3_003)]
    assert len(graph_of(*chain).ops) == 3_001


def test_long_lists_are_read_in_time():
    """No step of the reader looks at a whole list for each of its tensors."""
    inputs, kind = (
        [tensor(i) for i in range(3_000)],
        f"GenericList[{','.join(3_000 * [traces.FLOAT])}]",
    )
    graph = graph_of(node(3, "aten::_foreach_sqrt", [inputs], types=[kind]))
    assert len(graph.ops) == 6_000
