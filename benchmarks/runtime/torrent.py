"""A model that TensorTorrent has compiled, in a process of its own.

python -m benchmarks.runtime.torrent NETWORK THREADS [as-they-are]
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.runtime import runtime_models
from benchmarks.runtime.served import serve


def main(network: str, threads: int, *kernels: str) -> None:
    """Serve its steps; the first line has the seconds of compiling, the regions and the devices.
    `as-they-are` leaves PyTorch's kernels alone, which it else compiles into its own."""
    torch.set_num_threads(threads)
    serve(lambda: _compiled(network, not kernels))


def _compiled(network: str, kernels: bool) -> tuple[Any, Callable[[], object]]:
    import tensortorrent  # type: ignore[import-not-found]

    torch.manual_seed(0)
    model, inputs, _ = getattr(runtime_models, network)()
    inputs = inputs[:-1]
    begin = time.perf_counter()
    config = tensortorrent.CompileConfig(use_torch_compile=kernels)
    compiled = tensortorrent.compile(model.eval(), example_inputs=inputs, config=config)
    seconds = time.perf_counter() - begin
    text = str(compiled.explain())
    with torch.inference_mode():
        torch.testing.assert_close(compiled(*inputs), model(*inputs), check_device=False)
    facts = {
        "version": tensortorrent.__version__,
        "compile_seconds": seconds,
        "regions": len(re.findall(r"^ *region_\d+ ->", text, re.MULTILINE)),
        "devices": sorted(set(re.findall(r"^ *region_\d+ -> (\S+)", text, re.MULTILINE))),
    }

    def step() -> None:
        with torch.inference_mode():
            compiled(*inputs)

    return facts, step


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
