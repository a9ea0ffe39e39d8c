"""Memory that kernels need while they run, which a graph captured without values does not know."""

from __future__ import annotations

from situate.data.graph import Graph
from situate.runtime.device import Ran


def workspace(graph: Graph, ran: Ran) -> dict[str, int]:
    """Bytes by signature that ops had allocated beyond what they hand on; those with any."""
    written = [0] * len(graph.ops)
    for tensor in graph.tensors:
        written[tensor.producer] += tensor.size
    found: dict[str, int] = {}
    for op, most in ran.allocated.items():
        if op < len(graph.ops) and (signature := graph.ops[op].signature):
            found[signature] = max(found.get(signature, 0), most - written[op])
    return {signature: nbytes for signature, nbytes in found.items() if nbytes > 0}
