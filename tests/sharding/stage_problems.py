"""Small random problems of stages, as files of Piper, and their optimum by trying everything."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache
from itertools import chain, combinations, product
from pathlib import Path
from typing import Any

import numpy as np

from situate.sharding import StageProblem, read_stage_problem

Content = dict[str, Any]


def random_content(seed: int, layers: int = 4, devices: int = 4, tight: float = 0.6) -> Content:
    """A file of Piper's with up to three options for each layer and degree. Its memory is a share
    of the bytes that all layers take on one device."""
    rng = np.random.default_rng(seed)
    ids = [int(number) for number in rng.permutation(90)[:layers]]
    edges = [(ids[a], ids[b]) for a, b in combinations(range(layers), 2) if rng.random() < 0.5]
    nodes = [_node(rng, layer, edges) for layer in ids]
    fastest = [node["TMPCs"]["1"][0] for node in nodes]
    return {
        "maxDevices": devices,
        "maxMemoryPerDevice": tight * sum(o["memoryUsageA"] + o["memoryUsageB"] for o in fastest),
        "bandwidth": 100.0,
        "mbsInBatch": int(rng.choice([4, 6])),
        "nodes": nodes,
        "edges": [
            {"sourceId": a, "destId": b, "communicationCost": float(rng.integers(0, 100))}
            for a, b in edges
        ],
    }


def _node(rng: np.random.Generator, layer: int, edges: list[tuple[int, int]]) -> Content:
    degrees = [1, 2] if rng.random() < 0.7 else [1]
    ends = {
        "syncTimeFw": [a for a, b in edges if b == layer],
        "syncTimeBw": [b for a, b in edges if a == layer],
    }
    options = {
        str(t): [
            {
                "id": f"option {k}",
                "timePerSample": float(rng.integers(1, 20)) / t,
                "parameterSize": float(rng.integers(0, 500)),
                "memoryUsageA": float(rng.integers(1, 10)),
                "memoryUsageB": float(rng.integers(0, 10)),
            }
            | {key: {str(x): float(rng.integers(0, 50)) for x in ends[key]} for key in ends}
            for k in range(rng.integers(1, 4))
        ]
        for t in degrees
    }
    return {"id": layer, "name": f"layer {layer}", "TMPCs": options}


def random_problem(tmp_path: Path, seed: int, **options: Any) -> StageProblem:
    """The problem of `random_content`."""
    return read_stage_problem(write(tmp_path / "problem.json", random_content(seed, **options)))


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def least_value(content: Content) -> float:
    """The least time of the slowest stage, over all stages, degrees and options that fit."""
    nodes = {node["id"]: node for node in content["nodes"]}
    batches, replicas = content["mbsInBatch"], min(content["mbsInBatch"], content["maxDevices"])

    @cache
    def fastest(stage: frozenset[int], data: int, tensor: int, in_flight: int) -> float:
        rows = [nodes[layer]["TMPCs"].get(str(tensor), []) for layer in stage]
        figures = (
            stage_figures(content, dict(zip(stage, options, strict=True)), data, in_flight)
            for options in product(*rows)
        )
        room = content["maxMemoryPerDevice"]
        return min((seconds for seconds, size in figures if size <= room), default=math.inf)

    # From the last stage to the first: the stages after one decide its micro-batches in flight.
    @cache
    def best(left: frozenset[int], devices: int, followers: int) -> float:
        if not left:
            return 0.0
        return min(
            (
                max(
                    fastest(stage, data, tensor, -(-(followers + data) // data)),
                    best(left - stage, devices - data * tensor, followers + data),
                )
                for stage in _last_stages(content, left)
                for data in range(1, replicas - followers + 1)
                for tensor in range(1, devices // data + 1)
                if batches % data == 0
            ),
            default=math.inf,
        )

    return best(frozenset(nodes), content["maxDevices"], 0)


def _last_stages(content: Content, left: frozenset[int]) -> Iterator[frozenset[int]]:
    """Sets of layers that no other remaining layer reads."""
    subsets = chain(*(combinations(left, size) for size in range(1, len(left) + 1)))
    for stage in map(frozenset, subsets):
        pairs = [(edge["sourceId"], edge["destId"]) for edge in content["edges"]]
        if not any(a in stage and b in left and b not in stage for a, b in pairs):
            yield stage


def stage_figures(
    content: Content, options: dict[int, Content], data: int, in_flight: int
) -> tuple[float, float]:
    """Seconds and bytes of a stage by the formulas of Piper's program, from the file itself."""
    compute = sum(option["timePerSample"] for option in options.values())
    memory = sum(o["memoryUsageA"] * in_flight + o["memoryUsageB"] for o in options.values())
    sync = sum(
        4 * (data - 1) * option["parameterSize"] / data / content["mbsInBatch"]
        for option in options.values()
    )
    exchange = 0.0
    for edge in content["edges"]:
        a, b, size = edge["sourceId"], edge["destId"], edge["communicationCost"]
        if a in options and b not in options:
            exchange += 2 * (size + options[a]["syncTimeBw"][str(b)])
        if b in options and a not in options:
            exchange += 2 * (size + options[b]["syncTimeFw"][str(a)])
    return (exchange / data + sync) / content["bandwidth"] + compute / data, memory
