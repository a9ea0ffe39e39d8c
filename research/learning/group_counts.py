"""The number of groups that each rule makes of the packaged networks: the table of
docs/grouping.md.

python -m research.learning.group_counts
"""

from __future__ import annotations

import time

from benchmarks.lib.package_graphs import PACKAGED
from situate import zoo
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.grouping import group

CLUSTER = "h100-8"
"""Devices that are alike and can hold any group, so that no group is split."""

RULES = ("none", "prefix", "colocation")


def main() -> None:
    """Print a row for each network, and the CPU seconds of each rule."""
    print(f"| network | ops | {' | '.join(RULES)} |")
    print("|---" * (len(RULES) + 2) + "|")
    for network in PACKAGED:
        problem = Problem(zoo.load(network), Cluster.preset(CLUSTER))
        counts = " | ".join(f"{len(group(problem, rule)):,}" for rule in RULES)
        print(f"| `{network}` | {problem.n:,} | {counts} |")
    for rule in (*RULES, "heavy-edge", "metis"):
        print(f"{rule}: {_seconds(rule):.2f} s for nmt8")


def _seconds(rule: str) -> float:
    problem = Problem(zoo.load("nmt8"), Cluster.preset(CLUSTER))
    group(problem, "none")
    start = time.thread_time()
    group(problem, rule)
    return time.thread_time() - start


if __name__ == "__main__":
    main()
