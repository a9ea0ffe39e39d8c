"""The worker process of one device while placements are measured: it runs its share of one
placement after the other, until one fails."""

from __future__ import annotations

import contextlib
import gc
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

from situate.runtime.processes.worker import serve, set_up
from situate.torch_capture.function import current_directory

OOM_SCORE = "1000"
"""The score that a worker gives itself, so that Linux ends it first when memory is short."""


def main(connection: int, *modules: str) -> None:
    """Serve the process at the other end until it hangs up.

    Args:
        connection: descriptor of a socket.
        modules: what to import: they may define operators.
    """
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
    set_up()
    with current_directory():
        for module in modules:
            with contextlib.suppress(ImportError):
                import_module(module)
    gc.freeze()
    with Connection(connection) as parent, contextlib.suppress(EOFError, OSError, RuntimeError):
        while True:
            serve(parent)
            # Steps are functions that know one another: only the collector frees their memory.
            gc.collect()
