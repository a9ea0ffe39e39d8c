"""A network on one device of situate's, in a process of its own.

python -m benchmarks.runtime.alone NETWORK training|inference THREADS
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import torch

import situate
from benchmarks.runtime.runtime_cases import Case, one_cpu
from benchmarks.runtime.served import serve


def main(network: str, step: str, threads: int) -> None:
    """Serve its steps."""
    torch.set_num_threads(threads)
    serve(lambda: (None, _step(Case(network, training=step == "training"), threads)))


def _step(case: Case, threads: int) -> Callable[[], object]:
    cluster = one_cpu(threads)
    step = case.placed(situate.solve(case.problem(cluster), "single").schedule, cluster)
    return lambda: step(*case.inputs)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
