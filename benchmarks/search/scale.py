"""A graph of 80,000 ops by command line, one of 500,000 within a time limit, and the training step
of Llama-70B on two nodes."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

import situate
from benchmarks.lib import child
from benchmarks.lib.record import Row, Target, record
from situate.bench.families.unequal import layered
from situate.bounds.lower_bound import lower_bound
from situate.data import graph_json
from situate.readers.situate_json import read as read_json
from situate.solvers import METHODS
from situate.solvers.budget import Budget
from situate.solvers.search import Search

Answer = TypeVar("Answer")

RULES = ("single", "heft", "etf", "topological")
LARGE_WANTED = 30.0
LIMIT_WANTED = 1.05
"""Seconds of planning, as a fraction of the time limit."""
LLAMA_WANTED = 180.0
LLAMA_BYTES_WANTED = 2e9


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    options = _parser().parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        large, phases, targets = _large(Path(folder), options)
        tables = {"phases, one process": phases, "commands, fresh processes": [large]}
        if not options.without_huge:
            huge = _huge(Path(folder), options)
            tables["commands, fresh processes"].append(huge)
            targets.append(_limit_target(huge, options))
        if not options.without_llama:
            llama = _command("llama_70b", "h100-2x8", options.time_limit, Path(folder))
            tables["commands, fresh processes"].append(llama)
            targets += _llama_targets(llama)
    record("scale", tables, targets, options=options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ops", type=int, default=80_000)
    parser.add_argument("--cluster", default="k80-4", help="of the generated graph")
    parser.add_argument("--time-limit", type=float, default=10.0, help="seconds of improvement")
    parser.add_argument("--huge-ops", type=int, default=500_000)
    parser.add_argument("--huge-cluster", default="h100-2x8", help="16 devices")
    parser.add_argument("--huge-time-limit", type=float, default=30.0, help="seconds of planning")
    parser.add_argument("--without-huge", action="store_true")
    parser.add_argument("--without-llama", action="store_true", help="needs torch otherwise")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def _large(folder: Path, options: argparse.Namespace) -> tuple[Row, list[Row], list[Target]]:
    """The list rules are timed first, so that the command has all its seconds for improvement."""
    path = folder / "large.json"
    graph_json.write(layered(options.ops, options.seed), path)
    phases = list(_phases(path, options.cluster))
    rules = sum(row["seconds"] for row in phases if row["phase"] in RULES)
    row = _command(str(path), options.cluster, options.time_limit + rules, folder)
    what = f"{options.ops:,} ops read, planned and written"
    wanted = f"under {LARGE_WANTED:g} s, {options.time_limit:g} s of improvement among them"
    met = row["seconds"] < LARGE_WANTED
    return row, phases, [Target(what, wanted, f"{row['seconds']:.1f} s", met)]


def _huge(folder: Path, options: argparse.Namespace) -> Row:
    path = folder / "huge.json"
    graph_json.write(layered(options.huge_ops, options.seed), path)
    return _command(str(path), options.huge_cluster, options.huge_time_limit, folder)


def _limit_target(row: Row, options: argparse.Namespace) -> Target:
    """The command's own clock: reading the file and writing the plan are not planning."""
    what = f"{options.huge_ops:,} ops planned within {options.huge_time_limit:g} s"
    wanted = LIMIT_WANTED * options.huge_time_limit
    took = row["search_seconds"]
    return Target(what, f"under {wanted:.1f} s", f"{took:.1f} s", took < wanted)


def _phases(path: Path, cluster: str) -> Iterator[Row]:
    """Where the time goes before the search improves anything."""
    data = path.read_bytes()
    graph, row = _timed("read", lambda: read_json(data, "large"))
    yield row
    problem = situate.Problem(graph, situate.Cluster.preset(cluster))
    bound, row = _timed("arrays and lower bound", lambda: lower_bound(problem))
    yield row
    search, row = _timed(
        "core", lambda: Search(problem, bound, budget=Budget(evaluation_limit=10**9))
    )
    yield row
    for rule in RULES:
        yield _timed(rule, partial(METHODS[rule].run, search))[1]
    result = situate.solve(problem, "heft", time_limit=1)
    plan = path.with_name("phase.json")
    yield _timed("write", lambda: result.plan.write(plan))[1]


def _timed(phase: str, run: Callable[[], Answer]) -> tuple[Answer, Row]:
    wall, cpu = time.perf_counter(), time.process_time()
    answer = run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return answer, {"phase": phase, "seconds": wall, "cpu_seconds": cpu}


def _command(model: str, cluster: str, time_limit: float, folder: Path) -> Row:
    """`situate plan`, with nothing captured before."""
    plan = folder / "plan.json"
    options = ["--cluster", cluster, "--time-limit", str(time_limit), "--out", str(plan), "--json"]
    command = child.situate("plan", model, *options)
    process = child.run(command, {"XDG_CACHE_HOME": str(folder / "cache")})
    if process.status:
        raise RuntimeError(process.errors)
    return _figures(json.loads(process.output), process)


def _figures(answer: dict[str, float], process: child.Child) -> Row:
    """The figures in the command's answer, and the time and memory it took."""
    return {
        "graph": answer["graph"],
        "cluster": answer["cluster"],
        "seconds": process.seconds,
        "search_seconds": answer["seconds"],
        "other_seconds": process.seconds - answer["seconds"],
        "cpu_seconds": process.cpu_seconds,
        "peak_mb": process.peak_bytes / 1e6,
        "evaluations": answer["evaluations"],
        "value": answer["value"],
        "gap": answer["gap"],
        "feasible": answer["feasible"],
    }


def _llama_targets(row: Row) -> Iterator[Target]:
    what = "Llama-70B's training step captured and planned on 2 nodes of 8 H100"
    seconds, peak = row["seconds"], row["peak_mb"] * 1e6
    yield Target(what, f"under {LLAMA_WANTED:g} s", f"{seconds:.0f} s", seconds < LLAMA_WANTED)
    wanted = f"under {LLAMA_BYTES_WANTED / 1e9:g} GB"
    yield Target(what, wanted, f"{peak / 1e9:.2f} GB", peak < LLAMA_BYTES_WANTED)


if __name__ == "__main__":
    main()
