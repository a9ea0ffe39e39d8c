"""`python -m benchmarks`: every benchmark with its defaults, each in a process of its own."""

from __future__ import annotations

import argparse
import subprocess

from benchmarks.lib import child

BENCHMARKS = (
    "benchmarks.search.simulator_speed",
    "benchmarks.search.startup",
    "benchmarks.search.known_optima",
    "benchmarks.search.zoo_presets",
    "benchmarks.search.peers",
    "benchmarks.search.scale",
)

PAPERS = (
    "research.papers.memory_limits",
    "research.papers.post_table",
    "research.papers.hierarchical_table",
    "research.papers.heuristics",
    "research.papers.planner.planner_ablation",
    "research.papers.spotlight_cifar",
    "research.papers.clocks.wall_times",
    "research.papers.clocks.spotlight_hours",
    "research.papers.clocks.search_hours",
    "research.papers.colocrl.colocrl_table",
    "research.papers.placements.learned_placements",
    "research.papers.placements.sliced_steps",
    "research.papers.placements.model_statistics",
    "research.papers.post_curves",
    "research.papers.post_timeline",
    "research.papers.page",
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
        arguments = folders if name == "benchmarks.search.known_optima" else []
        subprocess.run(child.module(name, *arguments), check=True)


if __name__ == "__main__":
    main()
