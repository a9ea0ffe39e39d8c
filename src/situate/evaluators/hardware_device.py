"""The process of one device while placements are measured: it runs the share of one placement after
the other, until one fails."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
from importlib import import_module
from multiprocessing import reduction
from multiprocessing.connection import Connection
from pathlib import Path

from situate.runtime.processes.allocator import keep_freed_memory
from situate.runtime.processes.worker import Failed, Hello, Work
from situate.torch_capture.function import current_directory

FIRST_TO_GO = "1000"
"""Of all processes, Linux ends this one first when memory is short; it writes so into the file."""

END = None
"""Said in place of a step: the placement is measured."""


def main(connection: int, *modules: str) -> None:
    """Serve the process at the other end until it hangs up.

    Args:
        connection: descriptor of a socket.
        modules: what to import: they may define operators.
    """
    keep_freed_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_TO_GO)
    import torch  # noqa: F401 - so that it is there when work comes

    with current_directory():
        for module in modules:
            with contextlib.suppress(ImportError):
                import_module(module)
    gc.freeze()
    with Connection(connection) as parent, contextlib.suppress(EOFError, OSError):
        while True:
            _serve(parent)
            # Steps are functions that know one another: only the collector frees their memory.
            gc.collect()


def _serve(parent: Connection) -> None:
    """One placement."""
    work = _work(parent)
    if isinstance(work, Failed):
        parent.send(work)
        return
    parent.send("ready")
    while (order := parent.recv()) is not END:
        parent.send(work.run(order))


def _work(parent: Connection) -> Work | Failed:
    """What there is to run, in the memory whose descriptor comes first."""
    import torch

    from situate.runtime.memory import mapped

    block = reduction.recv_handle(parent)
    try:
        hello: Hello = parent.recv()
        hello.set_process()
        return Work(hello, mapped(block))
    except (MemoryError, torch.OutOfMemoryError) as error:
        return Failed("out_of_memory", str(error))
    except Exception as error:
        return Failed("error", f"{type(error).__name__}: {error}")
    finally:
        os.close(block)
