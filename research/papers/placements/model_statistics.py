"""Ops and groups of the seeds' networks, as they print them and here."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.lib.record import Row, show, write
from research import RESULTS
from research.papers.cases import graph
from research.papers.published import STATISTICS, Statistics
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.grouping import group

CLUSTER = "h100-8"
"""Devices that are alike and can hold any group, so that no group is split."""


def main(arguments: list[str] | None = None) -> None:
    """Count, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    out = RESULTS / "model_statistics.json"
    parser.add_argument("--out", type=Path, default=out, metavar="FILE")
    options = parser.parse_args(arguments)
    rows = [_row(printed) for printed in STATISTICS]
    show("statistics", rows)
    write(options.out, {"statistics": rows}, options=options)


def _row(printed: Statistics) -> Row:
    problem = Problem(graph(printed.network), Cluster.preset(CLUSTER))
    return {
        "source": printed.source,
        "network": printed.network,
        "printed_ops": printed.ops,
        "ops": problem.n,
        "rule": printed.rule,
        "printed_groups": printed.groups,
        "groups": len(group(problem, printed.rule)) if printed.rule else None,
    }


if __name__ == "__main__":
    main()
