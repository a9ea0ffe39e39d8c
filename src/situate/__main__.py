"""The command `situate`, which `python -m situate` is too."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType

from situate.host.streams import open_closed, say

SOON = 0.01
"""Seconds in which Python is done with what cannot be raised."""


def run() -> int:
    """The exit status of the command line, also where it is interrupted while it loads or ends,
    however often."""
    open_closed()
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:  # whoever starts it in the background may have it ignored
        signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _unraisable
    try:
        return _command()
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    finally:
        if ours:  # Python puts the system's own handler back as it ends, which would kill it
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


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    """An interrupt where nothing can be raised, such as the end of an object, comes soon after."""
    if isinstance(found.exc_value, KeyboardInterrupt):
        # A signal also ends what waits in the system, such as a sleep.
        main = threading.main_thread().ident or 0
        again = threading.Timer(SOON, signal.pthread_kill, (main, signal.SIGINT))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(found)


if __name__ == "__main__":
    raise SystemExit(run())
