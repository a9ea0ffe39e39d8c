"""The placement by hand that the papers call *expert*: Post, section 5; Hierarchical Planner."""

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

    A convolutional network stays on one device. Of a recurrent one each layer has its own device,
    in turn where there are fewer, encoder and decoder alike; the embedding is with the first,
    attention and softmax with the last layer. A transformer is cut into equal runs of blocks. An op
    of no layer is where the last of its inputs comes from; ops of one group are together.

    Raises:
        SituateError: no expert placement is known for the graph; devices that are no number, or
            none.
    """
    check(graph, Graph, "graph")
    check(devices, int, "devices")
    if devices < 1:
        raise SituateError(f"devices: must be at least 1, got {devices}")
    network = NETWORKS.get(graph.name.partition(":")[0])
    if network is None or graph.source != "pytorch":
        known = ", ".join(names())
        raise SituateError(f"no expert placement is known for graph {graph.name!r}; known: {known}")
    if network.expert == "one":
        return [0] * len(graph.ops)
    rule = (_layer if network.expert == "layers" else _block)(graph, devices)
    return _spread(graph, [rule(op.module) for op in graph.ops])


def _layer(graph: Graph, devices: int) -> Callable[[str], Stage]:
    count = _count(_LSTM_LAYER, graph)

    def stage(module: str) -> Stage:
        if found := _LSTM_LAYER.search(module):
            return int(found[1]) % devices
        if _LSTM_FIRST.search(module):
            return 0
        return (count - 1) % devices if _LSTM_LAST.search(module) else None

    return stage


def _block(graph: Graph, devices: int) -> Callable[[str], Stage]:
    count = _count(_BLOCK, graph)

    def stage(module: str) -> Stage:
        if found := _BLOCK.search(module):
            return int(found[1]) * devices // count
        return 0 if _EMBEDDING.search(module) else None

    return stage


def _count(layer: re.Pattern[str], graph: Graph) -> int:
    """Number of layers, at least 1."""
    found = (layer.search(op.module) for op in graph.ops)
    return max((int(match[1]) + 1 for match in found if match), default=1)


def _spread(graph: Graph, stages: Sequence[Stage]) -> list[int]:
    """Ops without a stage follow the latest of their inputs, or else their first reader."""
    result = list(stages)
    rank = {op: position for position, op in enumerate(graph.order)}
    producers: dict[int, list[int]] = {}
    consumers: dict[int, list[int]] = {}
    for producer, consumer in graph.edges():
        producers.setdefault(consumer, []).append(producer)
        consumers.setdefault(producer, []).append(consumer)
    for op in graph.order:
        known = [p for p in producers.get(op, ()) if result[p] is not None]
        if result[op] is None and known:
            result[op] = result[max(known, key=rank.__getitem__)]
    for op in reversed(graph.order):
        if result[op] is None:
            readers = sorted(consumers.get(op, ()), key=rank.__getitem__)
            result[op] = next((result[r] for r in readers), 0)
    return _together(graph, [stage or 0 for stage in result])


def _together(graph: Graph, stages: list[int]) -> list[int]:
    """Every group where the first of its ops is: the parameter."""
    home: dict[str, int] = {}
    for op in graph.order:
        group = graph.ops[op].group
        if group is not None:
            stages[op] = home.setdefault(group, stages[op])
    return stages
