"""The papers' *expert* placement, made by hand (Post, section 5; Hierarchical Planner)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from situate.data.graph import Graph
from situate.errors import SituateError
from situate.validation import check
from situate.zoo.networks import NETWORKS, names

Stage = int | None

_LSTM_LAYER = re.compile(r"(?:^|\.)layers\.(\d+)")
_LSTM_FIRST = re.compile(r"embedding|backward_layer")
_LSTM_LAST = re.compile(r"(?:^|\.)(attention|keys|combine|softmax)(\.|$)")
_BLOCK = re.compile(r"(?:^|\.)(?:layers?|h)\.(\d+)")
_EMBEDDING = re.compile(r"(?:^|[._])(wte|wpe|embed\w*|cls_token)(\.|$)")


def expert(graph: Graph, devices: int) -> list[int]:
    """The stage, from 0 to `devices` - 1, of every op of a network of the zoo.

    A convolutional network stays on one device. In a recurrent network layer k of encoder and
    decoder runs on device k modulo `devices`; the embedding joins the first layer, attention and
    softmax join the last. A transformer is cut into equal runs of blocks. Other ops follow the
    latest of their inputs, and the ops of a colocation group stay together.

    Raises:
        SituateError: no expert placement is known for the graph, or `devices` is below 1.
    """
    check(graph, Graph, "graph")
    check(devices, int, "devices")
    if devices < 1:
        raise SituateError(f"devices: must be at least 1, got {devices}")
    network = NETWORKS.get(graph.name.partition(":")[0])
    if network is None or graph.source != "pytorch":
        networks = ", ".join(names())
        raise SituateError(
            f"no expert placement is known for graph {graph.name!r}; known: {networks}"
        )
    if network.expert == "one":
        return [0] * len(graph.ops)
    rule = (_layer if network.expert == "layers" else _block)(graph, devices)
    # Many ops share a module.
    stages = {module: rule(module) for module in _modules(graph)}
    return _spread(graph, [stages[op.module] for op in graph.ops])


def _layer(graph: Graph, devices: int) -> Callable[[str], Stage]:
    count = _count(_LSTM_LAYER, graph)

    def stage(module: str) -> Stage:
        if layer := _LSTM_LAYER.search(module):
            return int(layer[1]) % devices
        if _LSTM_FIRST.search(module):
            return 0
        return (count - 1) % devices if _LSTM_LAST.search(module) else None

    return stage


def _block(graph: Graph, devices: int) -> Callable[[str], Stage]:
    count = _count(_BLOCK, graph)

    def stage(module: str) -> Stage:
        if block := _BLOCK.search(module):
            return int(block[1]) * devices // count
        return 0 if _EMBEDDING.search(module) else None

    return stage


def _count(layer: re.Pattern[str], graph: Graph) -> int:
    """Number of layers, at least 1."""
    matches = map(layer.search, _modules(graph))
    return max((int(match[1]) + 1 for match in matches if match), default=1)


def _modules(graph: Graph) -> set[str]:
    return {op.module for op in graph.ops}


def _spread(graph: Graph, stages: Sequence[Stage]) -> list[int]:
    """Ops without a stage follow the latest of their inputs, or else their first reader."""
    result = list(stages)
    rank = {op: position for position, op in enumerate(graph.order)}
    # Of ops without a stage; most ops have one.
    producers: dict[int, list[int]] = {op: [] for op, stage in enumerate(stages) if stage is None}
    consumers: dict[int, list[int]] = {op: [] for op in producers}
    for producer, consumer in graph.edges():
        if consumer in producers:
            producers[consumer].append(producer)
        if producer in consumers:
            consumers[producer].append(consumer)
    # Forward: an op such as a reshape follows the last of its inputs to run.
    for op in filter(producers.__contains__, graph.order):
        sources = [p for p in producers[op] if result[p] is not None]
        if sources:
            result[op] = result[max(sources, key=rank.__getitem__)]
    # Backward: an op that no layer feeds, such as an input, goes to its first reader.
    for op in filter(consumers.__contains__, reversed(graph.order)):
        if result[op] is None:
            readers = sorted(consumers[op], key=rank.__getitem__)
            result[op] = next((result[r] for r in readers), 0)
    return _together(graph, [stage or 0 for stage in result])


def _together(graph: Graph, stages: list[int]) -> list[int]:
    """Move every colocation group to its first op, which is the parameter."""
    home: dict[str, int] = {}
    for op in graph.order:
        group = graph.ops[op].group
        if group is not None:
            stages[op] = home.setdefault(group, stages[op])
    return stages
