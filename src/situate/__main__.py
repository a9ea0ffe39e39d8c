"""The command `situate`, which `python -m situate` is too."""

from __future__ import annotations

from situate.streams import open_closed, say


def run() -> int:
    """The exit status of the command line, also where it is interrupted while it loads or ends."""
    open_closed()
    try:
        from situate.cli import main

        return main()
    except KeyboardInterrupt:
        say("interrupted")
        return 130


if __name__ == "__main__":
    raise SystemExit(run())
