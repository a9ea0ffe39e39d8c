"""The command `situate`, which `python -m situate` is too."""

from __future__ import annotations

import sys


def run() -> int:
    """The exit status of the command line, also where it is interrupted while it loads or ends."""
    try:
        from situate.cli import main

        return main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    raise SystemExit(run())
