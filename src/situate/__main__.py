"""The command `situate`, also as `python -m situate`."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

from situate.host.streams import open_closed, say

RETRY_SECONDS = 0.01
"""Seconds until an interrupt is sent again; code that cannot raise it has then ended."""


def run() -> int:
    """The exit status of the command line, even if it is interrupted repeatedly, or while it loads
    or ends."""
    open_closed()
    # A shell that starts the command in the background makes it ignore SIGINT.
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable
    try:
        return _command()
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    finally:
        # Python restores the system's handler as it ends, and that would kill the process.
        if is_default:
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _command() -> int:
    from situate.cli import main

    return main()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Interrupt the command while it runs; once it ends, nothing is left to interrupt."""
    while frame is not None:
        if frame.f_code is _command.__code__:
            raise KeyboardInterrupt
        frame = frame.f_back


def _unraisable(error: sys.UnraisableHookArgs) -> None:
    """Repeat an interrupt that came where Python cannot raise it, such as in a destructor."""
    if isinstance(error.exc_value, KeyboardInterrupt):
        # A signal also ends a system call that waits, such as a sleep.
        main = threading.main_thread().ident or 0
        again = threading.Timer(RETRY_SECONDS, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(error)


if __name__ == "__main__":
    raise SystemExit(run())
