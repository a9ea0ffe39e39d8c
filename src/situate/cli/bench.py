"""The runs that `situate bench` was asked for, and what it prints of them."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from situate.bench import tables
from situate.bench.best_known import PACKAGED, BestKnown, Entry
from situate.bench.contenders import check_contenders
from situate.bench.families import FAMILIES, folder
from situate.bench.instances import Instance
from situate.bench.pictures import draw_gaps, draw_profiles
from situate.bench.provenance import now, provenance
from situate.bench.rows import Row, RowFile
from situate.bench.run import Bench, Runs, warm_up
from situate.bench.summary import RowGap, group_rows, means, row_gaps
from situate.cli.answer import print_json, print_table
from situate.cli.inputs import check_name, find_objective
from situate.cli.outputs import check_outputs, check_picture
from situate.cli.search import interruptible
from situate.cli.terminal import INTERRUPTED, note, working
from situate.data.cluster import Cluster
from situate.errors import SituateError
from situate.host.machine import usable_cpus

FEW = 5
"""Best-known values that are beaten, of which each has a line."""


@dataclass(frozen=True)
class Wanted:
    """The options of the command that say what to run, as typed; None where nothing was."""

    families: list[str]
    graphs: str | None
    cluster: str | None
    objective: str
    data: str | None
    methods: str
    time_limits: str
    seeds: int
    instances: int | None
    threads: int | None

    def runs(self) -> Runs:
        """All the runs; raises for names that do not exist and limits that are none."""
        self._check_graphs()
        methods = _names("--methods", self.methods)
        check_contenders(methods)
        limits = [_limit(text) for text in _names("--time-limits", self.time_limits)]
        chosen = [self._some(found) for found in self._families()]
        threads = self.threads or usable_cpus()
        return Runs([*chain(*chosen)], methods, limits, range(self.seeds), threads)

    def _check_graphs(self) -> None:
        """Raise for options that are for a folder of graphs where there is none."""
        if self.graphs is None and (self.cluster, self.objective) != (None, "time"):
            option = "--cluster" if self.cluster else "--objective"
            raise SituateError(f"{option}: is for --graphs, families have their own: leave it out")

    def _families(self) -> Iterator[list[Instance]]:
        for name in dict.fromkeys(self.families):
            check_name(name, FAMILIES, "family")
            yield FAMILIES[name].instances(Path(self.data) if self.data else None)
        if self.graphs is not None:
            cluster = None if self.cluster is None else Cluster.find(self.cluster)
            yield folder.instances(Path(self.graphs), cluster, find_objective(self.objective))

    def _some(self, found: list[Instance]) -> list[Instance]:
        if self.instances is None or self.instances >= len(found):
            return found
        chosen = random.Random(0).sample(range(len(found)), self.instances)
        return [found[i] for i in sorted(chosen)]


@dataclass(frozen=True)
class Outputs:
    """The options that say what to write; None for nothing."""

    best_known: str | None
    out: str | None
    picture: str | None
    gaps: str | None
    as_json: bool

    def check(self) -> None:
        """Raise unless all can be written."""
        check_outputs([], [self.best_known, self.out, self.picture, self.gaps])
        check_picture(self.picture)
        check_picture(self.gaps, "gaps")

    def draw(self, rows: list[RowGap]) -> None:
        """Draw what was asked for, of rows if there are any."""
        for path, draw in ((self.picture, draw_profiles), (self.gaps, draw_gaps)):
            if path is not None and rows:
                draw(rows, path)
                note(f"wrote {path}")


def list_families() -> int:
    """Print the families."""
    print_table(tables.families())
    return 0


def run_bench(wanted: Wanted, outputs: Outputs) -> int:
    """Run, print, and say what was improved; 130 where Ctrl-C came before all rows were there."""
    runs = wanted.runs()
    outputs.check()
    known = _best_known(outputs.best_known)
    bench = Bench(runs, RowFile(outputs.out), known, outputs.best_known)
    before = dict(known.entries)
    rows, complete = _rows(bench)
    _say_improved(known, before, outputs.best_known is not None)
    gaps = row_gaps(rows, known)
    print_json(_content(runs, gaps)) if outputs.as_json else print_table(tables.comparison(gaps))
    outputs.draw(gaps)
    return 0 if complete else _interrupted(outputs.out)


def _best_known(path: str | None) -> BestKnown:
    """The table that comes with situate, with what the user's own knows better; made where it is
    not there."""
    known = BestKnown.read(PACKAGED)
    if path is not None and os.path.exists(path):
        known.learn_all(BestKnown.read(path).entries.values())
    elif path is not None:
        known.write(path)
    return known


def _rows(bench: Bench) -> tuple[list[Row], bool]:
    """The rows, and whether they are all there."""
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


def _say_improved(known: BestKnown, before: dict[str, Entry], kept: bool) -> None:
    """A line for each of a few best-known values that are beaten, and one for all others."""
    lines = [
        f"{after.family}: {after.instance}: {after.best.value:.6g} by {after.best.by} is better "
        f"than the best known, {was.best.value:.6g} by {was.best.by}"
        for name, was in before.items()
        if (after := known.entries[name]).best and was.best and after.best != was.best
    ]
    for line in lines[:FEW]:
        note(line)
    if len(lines) > FEW:
        note(f"and {len(lines) - FEW} more of them")
    if lines and not kept:
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
    """Names between commas, each once."""
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise SituateError(f"{option} {text!r}: an empty name: separate names by single commas")
    return list(dict.fromkeys(names))


def _limit(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds > 0):
        raise SituateError(f"--time-limits: must be seconds above zero, got {text!r}")
    return seconds
