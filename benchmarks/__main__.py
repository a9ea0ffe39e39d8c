"""`python -m benchmarks`: every benchmark with its defaults, each in a process of its own."""

from __future__ import annotations

import argparse
import subprocess

from benchmarks.lib import child

BENCHMARKS = (
    "search.simulator_speed",
    "search.startup",
    "search.known_optima",
    "search.zoo_presets",
    "search.peers",
    "search.scale",
)

PAPERS = (
    "papers.memory_limits",
    "papers.post_table",
    "papers.hierarchical_table",
    "papers.heuristics",
    "papers.spotlight_cifar",
    "learning.wall_times",
    "papers.post_curves",
    "papers.post_timeline",
    "papers.page",
)
"""They take hours, so they run where they are asked for; the last write pictures and the page."""


def main() -> None:
    """Run them; `--stg` and `--doppler` go to known_optima, `--papers` runs `PAPERS` instead."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stg", metavar="FOLDER", help="the Standard Task Graph set")
    parser.add_argument("--doppler", metavar="FOLDER", help="DOPPLER's graphs")
    parser.add_argument("--papers", action="store_true", help="the papers' experiments alone")
    options = vars(parser.parse_args())
    names = PAPERS if options.pop("papers") else BENCHMARKS
    folders = [f"--{name}={folder}" for name, folder in options.items() if folder]
    for name in names:
        arguments = folders if name == "search.known_optima" else []
        subprocess.run(child.module(f"benchmarks.{name}", *arguments), check=True)


if __name__ == "__main__":
    main()
