"""A stage that does as its argument says, after it noted a figure."""

from __future__ import annotations

import os
import signal
import time

from benchmarks.gpu.process import Context

FOREVER = 600.0


def measure(context: Context) -> None:
    """Fail, hang or crash."""
    (manner,) = context.arguments
    context.note(first=1)
    match manner:
        case "fails":
            raise ValueError("no such kernel")
        case "fails in part":
            context.attempt("a part", lambda: 1 / 0)
            context.note(second=context.attempt("another", lambda: 2))
        case "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        case "exits":
            os._exit(3)
        case "hangs before":
            time.sleep(FOREVER)
        case "hangs":
            context.take_device()
            time.sleep(FOREVER)
        case "hangs deaf":
            signal.signal(signal.SIGABRT, signal.SIG_IGN)
            context.take_device()
            time.sleep(FOREVER)
        case "measures":
            context.take_device()
            context.note(began=time.monotonic())
            time.sleep(0.2)
            context.note(ended=time.monotonic())
