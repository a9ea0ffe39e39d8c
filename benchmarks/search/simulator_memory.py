"""Bytes that a problem, its simulator and one evaluation take beside the graph.

`python -m benchmarks.search.simulator_memory OPS SEED` prints [held after, most
held], in bytes. Linux.
"""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path

import numpy as np

from benchmarks.lib.graphs import TWO_DEVICES
from situate.bench.families.unequal import layered
from situate.data.graph import Graph
from situate.data.problem import Problem
from situate.simulation.simulator import Simulator


def main(ops: int, seed: int) -> None:
    """Measure and print."""
    _simulate(layered(100, seed))
    graph = layered(ops, seed)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = _status("VmRSS")
    schedule = _simulate(graph)
    gc.collect()
    print([_status("VmRSS") - before, _status("VmHWM") - before])
    del schedule


def _simulate(graph: Graph) -> Simulator:
    simulator = Simulator(Problem(graph, TWO_DEVICES))
    n = len(graph.ops)
    placement = (np.arange(n, dtype=np.int32) % 2)[None]
    for decoder in ("eager", "serial"):
        simulator.evaluate(placement, np.zeros((1, n), np.float32), decoder=decoder, threads=1)
    return simulator


def _status(field: str) -> int:
    """Bytes, from the kernel."""
    status = Path("/proc/self/status").read_text()
    (kilobytes,) = re.findall(rf"{field}:\s+(\d+) kB", status)
    return int(kilobytes) * 1024


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
