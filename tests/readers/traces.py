"""Execution traces and Kineto traces of a few nodes, written by hand."""

from __future__ import annotations

import json
from typing import Any

FLOAT = "Tensor(float)"


def tensor(storage: int, elements: int = 4, device: str = "cpu") -> list[Any]:
    """A tensor of 4-byte elements that has the memory of that number."""
    return [100 + storage, storage, 0, elements, 4, device]


def node(
    id: int,
    name: str,
    inputs: list[Any] = (),
    outputs: list[Any] = (),
    *,
    schema: str | None = None,
    parent: int = 2,
    shapes: list[Any] | None = None,
    types: list[str] | None = None,
    thread: int = 1,
) -> dict[str, Any]:
    """A node with fields of its own; an operator unless `schema` is empty."""
    arguments = ", ".join(f"Tensor x{i}" for i in range(len(inputs)))
    return {
        "id": id,
        "name": name,
        "parent": parent,
        "rf_id": 1000 + id,
        "tid": thread,
        "op_schema": f"{name}({arguments}) -> Tensor" if schema is None else schema,
        "inputs": list(inputs),
        "input_shapes": [[4]] * len(inputs) if shapes is None else shapes,
        "input_types": [FLOAT] * len(inputs) if types is None else types,
        "outputs": list(outputs),
        "output_shapes": [[4]] * len(outputs),
        "output_types": [FLOAT] * len(outputs),
    }


def attributed(node: dict[str, Any]) -> dict[str, Any]:
    """The same node as schema 1.1 has it."""
    return {
        "id": node["id"],
        "name": node["name"],
        "ctrl_deps": node["parent"],
        **{
            side: {
                "values": node[side],
                "shapes": node[f"{side[:-1]}_shapes"],
                "types": node[f"{side[:-1]}_types"],
            }
            for side in ("inputs", "outputs")
        },
        "attrs": [
            {"name": key, "type": "", "value": node[key]} for key in ("rf_id", "tid", "op_schema")
        ],
    }


def execution_trace(*nodes: dict[str, Any], schema: str = "1.0.1") -> bytes:
    """A file of these nodes inside a process and its thread."""
    root = node(1, "[pytorch|profiler|execution_graph|process]", schema="", parent=1)
    thread = node(2, "[pytorch|profiler|execution_graph|thread]", schema="", parent=1)
    content = {"schema": schema, "pid": 7, "time": "", "nodes": [root, thread, *nodes]}
    return json.dumps(content, indent=1).encode()


def event(
    name: str, start: float, duration: float, category: str = "cpu_op", **more: Any
) -> dict[str, Any]:
    """A complete event of track 7/7; times are microseconds."""
    event = {"ph": "X", "cat": category, "name": name, "pid": 7, "tid": 7}
    return {**event, "ts": start, "dur": duration, **more}


def chrome_trace(*events: dict[str, Any]) -> bytes:
    """A file of these events."""
    return json.dumps({"schemaVersion": 1, "traceEvents": events}, indent=1).encode()


RELU = [
    node(3, "aten::linear", [tensor(1), tensor(2)], [tensor(3)]),
    node(4, "aten::relu", [tensor(3)], [tensor(4)]),
]
"""A product of memory 1 and 2, which were there before, and what is made of it."""

GPU_RELU = [
    node(3, "aten::linear", [tensor(1, device="cuda:0"), tensor(2)], [tensor(3, device="cuda:0")]),
    node(4, "aten::relu", [tensor(3, device="cuda:0")], [tensor(4, device="cuda:0")]),
]
"""The same on a GPU."""

KERNELS = [
    event("aten::linear", 10, 20, args={"External id": 1}),
    event("cudaLaunchKernel", 12, 3, "cuda_runtime", args={"correlation": 50}),
    event("sgemm", 15, 40, "kernel", pid=0, args={"correlation": 50}),
    event("aten::relu", 40, 9, args={"External id": 2}),
    event("cudaLaunchKernel", 41, 3, "cuda_runtime", args={"correlation": 51}),
    event("clamp", 55, 5, "kernel", pid=0, args={"correlation": 51}),
]
"""The same as Kineto writes it: 40 us and 5 us on the GPU."""
