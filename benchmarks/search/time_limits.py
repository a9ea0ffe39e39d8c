"""The time limit of `situate plan` on large graphs: eight graphs (`large_graphs`) on sixteen
devices, with limits of 1 and 30 s."""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.lib import child
from benchmarks.lib.large_graphs import CLUSTER, SHAPES, write
from benchmarks.lib.record import Row, Target, record

LIMIT_WANTED = 1.05
"""Seconds of planning, as a fraction of the time limit."""

FIRST_PLAN = "the first plan took longer than --time-limit"
"""The note on stderr of a search that ended with its first plan."""


def main(arguments: list[str] | None = None) -> None:
    """Write the graphs one by one, plan each at all limits, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, nargs="+", default=[500_000, 1_000_000])
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    parser.add_argument("--limits", type=float, nargs="+", default=[1.0, 30.0])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        rows = list(_rows(Path(folder), options))
    in_time = sum(row["in_time"] for row in rows)
    measured = f"{in_time} of {len(rows)}"
    what = "runs that end within 5 % of the limit, or with the first plan and say so"
    record(
        "time_limits",
        {"commands, fresh processes": rows},
        [Target(what, f"{len(rows)} of {len(rows)}", measured, in_time == len(rows))],
        options=options,
    )


def _rows(folder: Path, options: argparse.Namespace) -> Iterator[Row]:
    cluster, graph = folder / "cluster.toml", folder / "graph.json"
    cluster.write_text(CLUSTER)
    for ops in options.ops:
        for shape in options.shapes:
            write(graph, shape, ops, options.seed)
            for limit in options.limits:
                row = {"shape": shape, "ops": ops, **_planned(graph, cluster, limit)}
                print(row, flush=True)
                yield row


def _planned(graph: Path, cluster: Path, limit: float) -> Row:
    """The row of a command, whose own clock says how long planning took."""
    arguments = ["--cluster", str(cluster), "--time-limit", str(limit), "--json"]
    process = child.run(child.situate("plan", str(graph), *arguments))
    if process.status not in (0, 3):
        raise RuntimeError(process.errors)
    answer = json.loads(process.output)
    first = FIRST_PLAN in process.errors
    return {
        "limit": limit,
        "seconds": answer["seconds"],
        "first_plan": first,
        "in_time": answer["feasible"] and (first or answer["seconds"] <= LIMIT_WANTED * limit),
        "feasible": answer["feasible"],
        "evaluations": answer["evaluations"],
        "gap": answer["gap"],
        "command_seconds": process.seconds,
    }


if __name__ == "__main__":
    main()
