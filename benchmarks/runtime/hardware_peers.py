"""Steps of situate and of other tools on this machine, as two CPU devices of one thread and as one
of all threads.

All contenders of a network hold their step ready and are called in turn, so that a ratio is of one
round. A tool that does not apply is listed with the reason. TensorTorrent sees one CPU with all its
threads, so its rival is situate's step on that device, measured once more and alone, since the
previous contender leaves its threads and caches behind. It compiles kernels of its own and is
measured without that, too. It is imported from the folder that --tensortorrent names:

    pip install --no-deps --target FOLDER tensortorrent==0.3.4
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.lib import child
from benchmarks.lib.record import Row, Target, record
from benchmarks.runtime.contenders import (
    OURS,
    PIPELINE,
    SAME_KERNELS,
    TORRENT,
    WHOLE,
    Contender,
    apart,
    contenders,
    torrent,
)
from benchmarks.runtime.runtime_cases import Case, in_turn

TRAINED = ("chain", "inception_v3", "two_branches")
INFERRED = "diamonds"
PROCESSES = 5
"""In which TensorTorrent's step is compared: where memory lies changes a step by some percent."""


PLANNING_SECONDS = 10.0
QUICK = 1.0
"""Seconds that the plan from a cold start is searched for."""


def main(arguments: list[str] | None = None) -> None:
    """Measure, print and record."""
    about = (__doc__ or "").split("\n\n")[0]
    parser = argparse.ArgumentParser(description=about)
    networks = [*TRAINED, INFERRED]
    parser.add_argument("--networks", nargs="+", choices=networks, default=networks)
    parser.add_argument("--seconds", type=float, default=60.0, help="of each network, about")
    parser.add_argument("--time-limit", type=float, default=10.0, help="of each plan, seconds")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tensortorrent", type=Path, metavar="FOLDER", help="where it is")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    pairs: list[Row] = []
    planning: list[Row] = []
    for name in options.networks:
        case = Case(name, training=name != INFERRED)
        with ExitStack() as stack:
            result = []
            if name == INFERRED:
                planning.append(_our_planning(case))
                result.append(_torrent(case, options.tensortorrent, planning, stack))
            result += contenders(case, options.time_limit, options.seed, stack)
            rows += _rows(case, result, options.seconds)
        if name == INFERRED and options.tensortorrent:
            pairs += _beside_torrent(case, options.tensortorrent, options.seconds)
    tables = {
        "steps": rows,
        "alone with TensorTorrent": pairs,
        "planning from a cold start": planning,
    }
    record("hardware_peers", tables, list(_targets(rows, pairs, planning)), options=options)


def _rows(case: Case, contenders: Sequence[Contender], seconds: float) -> Iterator[Row]:
    running = [contender for contender in contenders if contender.step]
    times = in_turn([contender.step for contender in running if contender.step], seconds)
    print(f"{case.name}, rounds: {times.rounds}", flush=True)
    columns = {contender.name: column for column, contender in enumerate(running)}
    for contender in contenders:
        column = columns.get(contender.name)
        yield {
            "network": case.name,
            "step": "training" if case.training else "inference",
            "tool": contender.name,
            "rounds": times.rounds,
            "seconds": None if column is None else times.seconds(column),
            "over_ours": None if column is None else times.ratio(column, columns[OURS]),
            "over_whole": None if column is None else times.ratio(column, columns[WHOLE]),
            "note": contender.note,
        }


def _beside_torrent(case: Case, folder: Path, seconds: float) -> Iterator[Row]:
    """Its step and situate's, each in fresh processes every time."""
    for tool, kernels in ((TORRENT, ()), (SAME_KERNELS, ("as-they-are",))):
        ratios = []
        for _ in range(PROCESSES):
            with ExitStack() as stack:
                theirs, threads = torrent(case, folder, stack, *kernels)
                ours = apart(case, threads, stack)
                ratios.append(in_turn([theirs, ours], seconds / PROCESSES).ratio(0, 1))
        yield {
            "network": case.name,
            "tool": tool,
            "over": statistics.median(ratios),
            "least": min(ratios),
            "most": max(ratios),
        }


def _our_planning(case: Case) -> Row:
    """The commands, in processes of their own with an empty cache: profile, then plan."""
    with tempfile.TemporaryDirectory() as folder:
        costs, cluster, plan = (f"{folder}/{name}" for name in ("costs.json", "here.toml", "plan"))
        profile = ["--cpus", "2", "--out", costs, "--cluster-out", cluster]
        planned = ["--cluster", cluster, "--costs", costs, "--time-limit", f"{QUICK:g}"]
        seconds = [
            _seconds(child.situate(command, case.model_name, *arguments), folder)
            for command, arguments in (("profile", profile), ("plan", [*planned, "--out", plan]))
        ]
    ops = sum(bool(op.flops or op.traffic) for op in case.program.graph.ops)
    return {
        "tool": "situate",
        "seconds": sum(seconds),
        "note": f"{ops} ops; profile {seconds[0]:.1f} s, plan {seconds[1]:.1f} s",
    }


def _seconds(command: Sequence[str], cache: str) -> float:
    process = child.run(command, {"XDG_CACHE_HOME": cache})
    if process.status:
        raise RuntimeError(process.errors)
    return process.seconds


def _torrent(case: Case, folder: Path | None, planning: list[Row], stack: ExitStack) -> Contender:
    if folder is None:
        return Contender(TORRENT, None, "not given: --tensortorrent FOLDER")
    begin = time.perf_counter()
    served, threads = torrent(case, folder, stack)
    seconds, (answer,) = time.perf_counter() - begin, served.answers
    where = f"uses {', '.join(answer['devices'])}, {threads} threads"
    compiled = f"version {answer['version']}, compiled in {answer['compile_seconds']:.1f} s"
    regions = f"regions that it runs in the end: {answer['regions']}"
    planning.append({"tool": TORRENT, "seconds": seconds, "note": f"{compiled}; {regions}"})
    return Contender(TORRENT, served, where)


def _targets(rows: list[Row], pairs: list[Row], planning: list[Row]) -> Iterator[Target]:
    pipelined = [row for row in rows if row["tool"] == PIPELINE and row["seconds"] is not None]
    ratios = [(row, OURS, row["over_ours"], "") for row in pipelined]
    ratios += [
        (row, WHOLE, row["over"], f" ({row['least']:.3f} to {row['most']:.3f})") for row in pairs
    ]
    for row, ours, over, spread in ratios:
        yield Target(
            f"{row['network']}: a step of {row['tool']} over one of {ours}",
            "at least 1",
            f"{over:.3f}{spread}",
            over >= 1,
        )
    seconds = {row["tool"]: float(row["seconds"]) for row in planning}
    if not seconds:
        return
    theirs = f"{TORRENT}'s {seconds[TORRENT]:.1f} s" if TORRENT in seconds else f"no {TORRENT} here"
    yield Target(
        f"{INFERRED}: profile and plan from a cold start",
        f"under {PLANNING_SECONDS:g} s",
        f"{seconds['situate']:.1f} s; {theirs}",
        seconds["situate"] < PLANNING_SECONDS,
    )


if __name__ == "__main__":
    main()
