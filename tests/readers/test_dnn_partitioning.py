"""The format of Tarnawski et al., against the loads that their programs report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situate.data.graph import Graph, MachineDevice
from situate.errors import GraphError, ReadError
from situate.readers import dnn_partitioning, read
from situate.readers.recognise import recognise

DATA = Path(__file__).parent.parent / "instances" / "dnn-partitioning"
REFERENCES = sorted((DATA / "reference").glob("throughput_dp_*.json"))


def node(number: int, **changes: object) -> dict[str, object]:
    return {
        "id": number,
        "name": f"n{number}",
        "supportedOnFpga": 1,
        "cpuLatency": 10.0,
        "fpgaLatency": 1.0,
        "isBackwardNode": 0,
        "colorClass": number,
        "size": 100.0,
    } | changes


def edge(
    source: int, target: int, cost: float = 2.0, size: float = 4294967.296
) -> dict[str, float]:
    return {"sourceId": source, "destId": target, "cost": cost, "size": size}


def graph_of(nodes, edges=(), **changes: object) -> Graph:
    file = {"maxSizePerFPGA": 1000.0, "maxFPGAs": 2, "maxCPUs": 1} | changes
    data = json.dumps(file | {"nodes": nodes, "edges": list(edges)}).encode()
    assert recognise(data) == "dnn-partitioning"
    return dnn_partitioning.read(data, "g")


# Fields of nodes and edges.
def test_milliseconds_become_seconds_and_sizes_whole_bytes():
    graph = graph_of([node(1), node(2, size=0.5)], [edge(1, 2)])
    assert graph.ops[0].seconds == {"cpu": 0.01, "accelerator": 0.001}
    assert (graph.ops[0].persistent, graph.ops[1].persistent) == (100, 1)
    assert (graph.tensors[0].seconds, graph.tensors[0].size) == (0.002, 4294968)
    assert (graph.rules, graph.unit) == ("dnn-partitioning", "s")


def test_a_node_that_accelerators_do_not_support_has_no_time_there():
    assert graph_of([node(1, supportedOnFpga=False)]).ops[0].seconds == {"cpu": 0.01}


def test_colours_are_groups_and_backward_nodes_a_phase():
    graph = graph_of([node(1), node(2, colorClass=1, isBackwardNode=1), node(3, colorClass=None)])
    assert [op.group for op in graph.ops] == ["color1", "color1", None]
    assert [op.phase for op in graph.ops] == ["forward", "backward", "forward"]


def test_the_machine_is_accelerators_first():
    assert graph_of([node(1)]).machine == (
        MachineDevice("fpga0", "fpga", 1000),
        MachineDevice("fpga1", "fpga", 1000),
        MachineDevice("cpu0", "cpu", None),
    )


def test_edges_of_one_node_and_cost_are_one_tensor_of_the_largest_size():
    edges = [edge(1, 2, size=10.0), edge(1, 3, size=20.0), edge(1, 4, cost=3.0)]
    graph = graph_of([node(i) for i in (1, 2, 3, 4)], edges)
    assert [(t.name, t.size, t.consumers) for t in graph.tensors] == [
        ("n1", 20, (1, 2)),
        ("n1#2", 4294968, (3,)),
    ]


def test_a_name_that_is_missing_comes_from_the_id():
    assert graph_of([node(7, name="")]).ops[0].name == "node7"


# The published instances, in the units that their authors meant.
@pytest.mark.parametrize("path", REFERENCES, ids=lambda path: path.stem[14:])
def test_the_published_loads_follow_from_the_graph(path):
    kind, name = path.name.removeprefix("throughput_dp_").split("_", 1)
    graph = read(DATA / "throughput-inputs" / kind / name)
    solution = json.loads(path.read_text())
    placement, loads = _published(solution, DATA / "throughput-inputs" / kind / name)
    computed = [_load(graph, placement, device) for device in range(len(loads))]
    assert computed == pytest.approx([load / 1000 for load in loads], rel=1e-12)
    assert max(computed) == pytest.approx(solution["maxLoad"] / 1000, rel=1e-12)


def _published(solution, path: Path) -> tuple[list[int], list[float]]:
    """Device of every op, load of every device; accelerators come first, as in `machine`."""
    devices = solution["fpgas"] + solution["cpus"]
    device_of = {number: d for d, device in enumerate(devices) for number in device["nodes"]}
    nodes = json.loads(path.read_text())["nodes"]
    return [device_of[node["id"]] for node in nodes], [device["load"] for device in devices]


def _load(graph: Graph, placement: list[int], device: int) -> float:
    """Ops of the device, and for an accelerator every tensor that enters or leaves it, once."""
    key = "cpu" if graph.machine[device].kind == "cpu" else "accelerator"
    load = sum(op.seconds[key] for op, d in zip(graph.ops, placement, strict=True) if d == device)
    if key == "cpu":
        return load
    for tensor in graph.tensors:
        here = [placement[op] == device for op in tensor.consumers]
        crosses = not all(here) if placement[tensor.producer] == device else any(here)
        load += tensor.seconds * crosses
    return load


@pytest.mark.parametrize(
    ("path", "warned"),
    [
        ("LayerGraphs/bert24_inference.json", True),
        ("OperatorGraphs/bert_l-3_inference.json", False),
    ],
)
def test_costs_a_thousand_times_too_small_are_warned_of_and_kept(path, warned):
    graph = read(DATA / "throughput-inputs" / path)
    assert any("1000 times" in warning for warning in graph.warnings) == warned


def test_the_experts_splits_are_no_graphs():
    with pytest.raises(ReadError, match="in no format that situate reads"):
        read(DATA / "human-experts" / "bert24_training_expert.json")


# Errors name the node or edge.
@pytest.mark.parametrize(
    ("nodes", "edges", "changes", "message"),
    [
        ([node(1), node(1)], [], {}, r"nodes\[1\].id: two nodes have the id 1"),
        ([node(1)], [edge(1, 2)], {}, r"edges\[0\]: there is no node 2"),
        ([node(1, size=-1.0)], [], {}, "node 'n1': size: must be between 0 and 2"),
        ([node(1, size=1e300)], [], {}, "node 'n1': size: must be between 0 and 2"),
        ([node(1), node(2)], [edge(1, 2, size=-1.0)], {}, r"edges\[0\].size: must be between"),
        ([node(1)], [], {"maxFPGAs": 0, "maxCPUs": 0}, "between 1 and 256 devices"),
        ([node(1)], [], {"maxFPGAs": -1}, "between 1 and 256 devices"),
        ([node(1)], [], {"maxFPGAs": 10**9}, "between 1 and 256 devices"),
        ([node(1)], [], {"maxSizePerFPGA": 0}, "maxSizePerFPGA: must be positive"),
        ([{"id": 1}], [], {}, r"nodes\[0\]: object missing required field supportedOnFpga"),
        ([node(1, cpuLatency="fast")], [], {}, r"nodes\[0\].cpuLatency: expected float, got str"),
        ([node(1, cpuLatency=float("nan"))], [], {}, "not valid JSON"),
    ],
)
def test_bad_input_is_named(nodes, edges, changes, message):
    with pytest.raises(ReadError, match=message):
        graph_of(nodes, edges, **changes)


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ([node(1, cpuLatency=-1.0)], [], "op 'n1': seconds\\['cpu'\\]: must be finite"),
        ([node(1), node(2)], [edge(1, 2, cost=-1.0)], "tensor 'n1': seconds: must be finite"),
        ([node(1)], [edge(1, 1)], "op 'n1' consumes its own output"),
        ([node(1), node(2)], [edge(1, 2), edge(2, 1)], "cycle"),
        ([], [], "no ops"),
    ],
)
def test_an_impossible_graph_is_named(nodes, edges, message):
    with pytest.raises(GraphError, match=message):
        graph_of(nodes, edges)
