"""The runs of `situate bench`, and its answer."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from situate.bench import tables
from situate.bench.best_known import PACKAGED, BestKnown, Entry
from situate.bench.families import FAMILIES, folder
from situate.bench.instances import Instance
from situate.bench.pictures import draw_gaps, draw_profiles
from situate.bench.provenance import now, provenance
from situate.bench.rows import Row, RowFile
from situate.bench.run import Bench, LimitShare, Runs, check_contenders, warm_up
from situate.bench.tables import RowGap, group_rows, means, row_gaps
from situate.cli.answer import print_json, print_table
from situate.cli.bench_options import BenchOptions, BenchOutputs
from situate.cli.names import check_name, find_objective
from situate.cli.outputs import check_outputs, check_picture
from situate.cli.search import interruptible
from situate.cli.terminal import INTERRUPTED, note, working
from situate.data.cluster import Cluster
from situate.errors import SituateError
from situate.host.machine import usable_cpus

MAX_IMPROVEMENT_LINES = 5
"""Number of improved values that have a line of their own."""


def list_families() -> int:
    """Print the families."""
    print_table(tables.families())
    return 0


def run_bench(families: list[str], options: BenchOptions, outputs: BenchOutputs) -> int:
    """Make the runs, print their summary and the improved values; returns 130 after Ctrl-C."""
    runs = bench_runs(families, options)
    _check(outputs)
    table = _best_known(outputs.best_known)
    bench = Bench(runs, RowFile(outputs.out), table, outputs.best_known)
    # A copy, because the runs improve the table.
    before = dict(table.entries)
    rows, complete = _rows(bench)
    _note_improvements(table, before, outputs.best_known is not None)
    gaps = row_gaps(rows, table)
    print_json(_content(runs, gaps)) if outputs.as_json else print_table(tables.comparison(gaps))
    _draw(gaps, outputs)
    return 0 if complete else _interrupted(outputs.out)


def bench_runs(families: list[str], options: BenchOptions) -> Runs:
    """All runs of a bench.

    Raises:
        SituateError: a name does not exist, a time limit is not positive, or an option needs
            --graphs.
    """
    if options.graphs is None and (options.cluster, options.objective) != (None, "time"):
        option = "--cluster" if options.cluster else "--objective"
        raise SituateError(f"{option}: is for --graphs, families have their own: leave it out")
    methods = _names("--methods", options.methods)
    check_contenders(methods)
    limits = [_limit(text) for text in _names("--time-limits", options.time_limits)]
    samples = [_sample(family, options.instances) for family in _families(families, options)]
    threads = options.threads or usable_cpus()
    return Runs([*chain(*samples)], methods, limits, range(options.seeds), threads)


def _families(names: list[str], options: BenchOptions) -> Iterator[list[Instance]]:
    for name in dict.fromkeys(names):
        check_name(name, FAMILIES, "family")
        yield FAMILIES[name].instances(Path(options.data) if options.data else None)
    if options.graphs is not None:
        cluster = None if options.cluster is None else Cluster.find(options.cluster)
        yield folder.instances(Path(options.graphs), cluster, find_objective(options.objective))


def _sample(instances: list[Instance], count: int | None) -> list[Instance]:
    """At most `count` instances, the same in every run."""
    if count is None or count >= len(instances):
        return instances
    indices = random.Random(0).sample(range(len(instances)), count)
    return [instances[i] for i in sorted(indices)]


def _check(outputs: BenchOutputs) -> None:
    """
    Raises:
        SituateError: a file cannot be written.
    """
    check_outputs([], [outputs.best_known, outputs.out, outputs.picture, outputs.gaps])
    check_picture(outputs.picture)
    check_picture(outputs.gaps, "gaps")


def _draw(rows: list[RowGap], outputs: BenchOutputs) -> None:
    """Draw the pictures, if there are rows to draw."""
    for path, draw in ((outputs.picture, draw_profiles), (outputs.gaps, draw_gaps)):
        if path is not None and rows:
            draw(rows, path)
            note(f"wrote {path}")


def _best_known(path: str | None) -> BestKnown:
    """The table that comes with situate, with better values of the user's own. The user's file is
    created if it is missing."""
    table = BestKnown.read(PACKAGED)
    if path is not None and os.path.exists(path):
        table.learn_all(BestKnown.read(path).entries.values())
    elif path is not None:
        table.write(path)
    return table


def _rows(bench: Bench) -> tuple[list[Row], bool]:
    """The rows, and False if Ctrl-C left some out."""
    total, rows = len(bench.runs), list[Row]()
    with interruptible() as interrupt, working("bench") as show:
        try:
            warm_up(bench.runs.methods)
            for row in bench.run(lambda: interrupt.came):
                rows.append(row)
                show(f"{len(rows):,} of {total:,}: {row.family}, {row.instance}: {row.method}")
        except KeyboardInterrupt:
            pass
    return rows, len(rows) == total


def _interrupted(out: str | None) -> int:
    if out is not None:
        note(f"the same command goes on from {out!r}")
    return INTERRUPTED


def _note_improvements(table: BestKnown, before: dict[str, Entry], in_file: bool) -> None:
    """One line for each of the first improved values, and one for all others."""
    lines = [
        f"{after.family}: {after.instance}: {after.best.value:.6g} by {after.best.by} is better "
        f"than the best known, {earlier.best.value:.6g} by {earlier.best.by}"
        for name, earlier in before.items()
        if (after := table.entries[name]).best and earlier.best and after.best != earlier.best
    ]
    for line in lines[:MAX_IMPROVEMENT_LINES]:
        note(line)
    if len(lines) > MAX_IMPROVEMENT_LINES:
        note(f"and {len(lines) - MAX_IMPROVEMENT_LINES} more of them")
    if lines and not in_file:
        note("--best-known FILE would keep what is better")


def _content(runs: Runs, rows: list[RowGap]) -> dict[str, Any]:
    """The runs and the program that made them; for each family and time limit the means of every
    method."""
    groups = group_rows(rows, lambda row: (row.family, row.time_limit))
    return {
        "made_by": provenance(),
        "date": now(),
        "seeds": list(runs.seeds),
        "threads": runs.threads,
        "instances": [f"{instance.family}: {instance.name}" for instance in runs.instances],
        "comparison": [
            {"family": family, "time_limit": limit, "methods": [asdict(m) for m in means(of)]}
            for (family, limit), of in groups.items()
        ],
    }


def _names(option: str, text: str) -> list[str]:
    """Names between commas, without repetitions."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise SituateError(f"{option} {text!r}: an empty name: separate names by single commas")
    return list(dict.fromkeys(names))


def _limit(text: str) -> float | LimitShare:
    """Seconds, or with an `x` a multiple of the limits that publishers give."""
    try:
        number = float(text.removesuffix("x"))
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number > 0):
        raise SituateError(
            f"--time-limits: must be seconds above zero, got {text!r}; 0.5x is half of an "
            "instance's published limit"
        )
    return LimitShare(number) if text.endswith("x") else number
