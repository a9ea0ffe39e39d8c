"""Capture the graphs that come with situate, and measure the time and memory of each capture.

    python benchmarks/lib/package_graphs.py [NAME ...]

writes src/situate/zoo/graphs/NAME.json.xz for all packaged networks, or those named, and prints a
JSON line for each: ops, tensors, seconds, peak resident MB, bytes of parameters, of persistent
data and of all tensors, and bytes of the file. The same code and the same torch give
the same files.
"""

from __future__ import annotations

import json
import lzma
import resource
import subprocess
import sys
import time

from situate.data import graph_json
from situate.data.capture_options import CaptureOptions
from situate.data.graph import Graph
from situate.zoo.loading import captured, packaged

PACKAGED = (
    "inception_v3", "inception_v3:inference", "resnet50", "resnet50:inference", "resnet101",
    "resnet200", "rnnlm", "nmt2", "nmt4", "nmt8", "cifar_cnn", "gpt2", "bert", "vit", "llama_7b",
)  # fmt: skip


def main(names: list[str]) -> None:
    """One process a graph, so that peak memory is that graph's."""
    for name in names or PACKAGED:
        subprocess.run([sys.executable, __file__, "--one", name], check=True)


def package(name: str) -> None:
    """Capture one graph, write it and print its figures."""
    start = time.perf_counter()
    graph = captured(name, CaptureOptions())
    seconds = time.perf_counter() - start
    packed = lzma.compress(graph_json.encode(graph), preset=9 | lzma.PRESET_EXTREME)
    packaged(name).write_bytes(packed)
    print(json.dumps({**figures(graph), "seconds": round(seconds, 1), "peak_mb": peak_mb(),
                      "file_bytes": packaged(name).stat().st_size}), flush=True)  # fmt: skip


def figures(graph: Graph) -> dict[str, object]:
    """Counts and bytes of a graph."""
    parameters = [t.size for t in graph.tensors if graph.ops[t.producer].kind == "parameter"]
    return {
        "name": graph.name,
        "ops": len(graph.ops),
        "tensors": len(graph.tensors),
        "flops": sum(op.flops for op in graph.ops),
        "parameter_bytes": sum(parameters),
        "persistent_bytes": sum(op.persistent for op in graph.ops),
        "tensor_bytes": sum(t.size for t in graph.tensors if not t.resident),
    }


def peak_mb() -> int:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        package(sys.argv[2])
    else:
        main(sys.argv[1:])
