"""Graphs as files of TensorFlow's CostGraphDef, gzipped."""

from __future__ import annotations

import gzip

from tensorboard.compat.proto.cost_graph_pb2 import CostGraphDef

from situate.data.graph import Graph


def costgraph(graph: Graph) -> bytes:
    """The file of a graph whose ops take whole microseconds, the same under every device."""
    message = CostGraphDef()
    nodes = [
        message.node.add(name=op.name, id=i, compute_cost=round((op.seconds or {})["*"]))
        for i, op in enumerate(graph.ops)
    ]
    for tensor in graph.tensors:
        port = len(nodes[tensor.producer].output_info)
        nodes[tensor.producer].output_info.add(size=tensor.size)
        for consumer in tensor.consumers:
            nodes[consumer].input_info.add(preceding_node=tensor.producer, preceding_port=port)
    for before, after in graph.control:
        nodes[after].control_input.append(before)
    return gzip.compress(message.SerializeToString(deterministic=True), mtime=0)
