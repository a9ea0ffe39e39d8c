"""`python -m benchmarks`: every benchmark with its defaults, each in a process of its own."""

from __future__ import annotations

import argparse
import subprocess

from benchmarks import child

BENCHMARKS = ("simulator_speed", "startup", "known_optima", "zoo_presets", "peers", "scale")


def main() -> None:
    """Run them; `--stg` and `--doppler` go to known_optima."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stg", metavar="FOLDER", help="the Standard Task Graph set")
    parser.add_argument("--doppler", metavar="FOLDER", help="DOPPLER's graphs")
    options = parser.parse_args()
    folders = [f"--{name}={folder}" for name, folder in vars(options).items() if folder]
    for name in BENCHMARKS:
        arguments = folders if name == "known_optima" else []
        subprocess.run(child.module(f"benchmarks.{name}", *arguments), check=True)


if __name__ == "__main__":
    main()
