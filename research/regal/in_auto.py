"""`auto` with a linkage inside, in three ways, and without one.

- `parts`: annealing also moves parts of the graph, which are drawn from the linkage beforehand.
  They are as frequent as all other blocks together, and these are as frequent as without them.
- `unsure`: annealing also moves single units as blocks, the more often, the less certain the
  linkage is about their edges.
- `start`: after all constructed plans, BRKGA breeds parts of the linkage in a tenth of the budget.
  It stops early if its plans are far from the best one. For step time alone.

Each way has the linkage of the network that comes with situate, and one probability for all edges,
which needs no network. A network is worth something as far as it is better than `auto` without a
linkage and better than the constant.

A plan takes `--seconds` of CPU time on one thread, because other work on a machine changes wall
seconds. The lower bound, the features, inference and a cold start of the weights count. `longer` is
`auto` without a linkage in `--longer` times the seconds, with the first seed: the scale of what a
better use of a second can bring.

    python -m research.regal.in_auto REAL
    python -m research.regal.in_auto REAL --name start --ways start --linkages constant \
        --families zoo overlapped blocking time --graphs 20 --seeds 1 --longer 0

REAL is the folder of `research.regal.real`. Problems on which `auto` without a linkage meets the
lower bound have no room, and are left out. The record is written after each problem, and the same
command at the same commit resumes it.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.lib.record import Row, rows_at_commit, show, write
from research import RESULTS
from research.regal.data import file_hash, graph_files
from research.regal.evaluation import Values, interval
from research.regal.ways import CpuBudget, Way, plan
from situate import RULES, Cluster, Problem, find_model
from situate.data.cluster import Link
from situate.data.problem import Objective
from situate.data.rules import Rules
from situate.readers import read
from situate.solvers.evolutionary.regal.linkage import ConstantLinkage, Linker
from situate.solvers.evolutionary.regal.linkage import read as read_linkage
from situate.solvers.evolutionary.regal.regal import WEIGHTS
from situate.solvers.search import Search

WITHOUT, LONGER = "without", "longer"
WAYS: tuple[Way, ...] = ("parts", "unsure", "start")
LEARNT, CONSTANT = LINKAGES = ("learnt", "constant")
FAMILIES = ("zoo", "overlapped", "blocking", "time", "memory")
"""Networks of the zoo on presets; captured networks whose transfers take time, on four devices that
compute meanwhile and on two that stop; and under the rules of REGAL, for time and for memory."""

TOGETHER = 0.5
"""The constant's probability: the best of those of `research.regal.linkages` for step time."""

LEAST_GAIN = 1e-6
"""Per cent above which a difference is more than rounding."""

ZOO = (
    ("inception_v3", "k80-4"),
    ("rnnlm", "k40-4"),
    ("gpt2", "a100-pcie-4"),
    ("bert", "unequal-24-12"),
    ("resnet50", "h100-2x8"),
    ("vit", "k80-2"),
    ("cifar_cnn", "k80-4"),
    ("resnet101", "unequal-24-12"),
    ("bert", "k40-4"),
    ("gpt2", "k80-4"),
)
"""Networks and clusters."""

BANDWIDTH = 5e11
"""Bytes a second of the links of captured networks. A transfer takes about half of an op's time."""


@dataclass(frozen=True)
class Case:
    """A problem of a family.

    Attributes:
        load: reads it.
    """

    family: str
    problem: str
    load: Callable[[], Problem]


@dataclass(frozen=True)
class Weights:
    """The packaged linkage of an objective.

    Attributes:
        seconds: CPU seconds of a first read, imports included.
    """

    linker: Linker
    seconds: float


def main(arguments: list[str] | None = None) -> None:
    """Plan, print and record."""
    options = _options(arguments)
    weights = {"time": _cold("time")}
    weights["memory"] = Weights(read_linkage(_file("memory")), weights["time"].seconds)
    path = RESULTS / f"regal_in_auto_{options.name}.json"
    rows = rows_at_commit(path, "runs")
    recorded = {(row["family"], row["problem"], row["seed"]) for row in rows}
    for seed in range(options.seeds):
        for case in cases(options):
            if (case.family, case.problem, seed) not in recorded:
                rows.append(_row(case, seed, weights, options))
                _write(path, rows, options)
                print(rows[-1], flush=True)
    show(f"regal_in_auto_{options.name}: ways", list(summary(rows)))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("real", type=Path, help="folder of research.regal.real")
    parser.add_argument("--name", default="ways", help="the record is regal_in_auto_NAME.json")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--linkages", nargs="+", choices=LINKAGES, default=list(LINKAGES))
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds of a plan")
    parser.add_argument("--evaluations", type=int, help="of a plan; a limit beside the seconds")
    parser.add_argument("--longer", type=float, default=3.0, help="times the seconds; 0 for none")
    parser.add_argument("--graphs", type=int, default=10, help="problems of each family at most")
    parser.add_argument("--least", type=int, default=200, help="ops of a captured network")
    parser.add_argument("--part", default="test", help="folder of the captured networks")
    parser.add_argument("--seeds", type=int, default=2)
    return parser.parse_args(arguments)


def _file(objective: Objective) -> Path:
    return WEIGHTS / f"{objective}-linkage.safetensors"


def _cold(objective: Objective) -> Weights:
    begin = time.process_time()
    return Weights(read_linkage(_file(objective)), time.process_time() - begin)


def cases(options: argparse.Namespace) -> list[Case]:
    """The problems, families in turn, so that an interrupted record has some of each."""
    times, memories = (
        _sample(options.real / part / options.part, options) for part in ("time", "memory")
    )
    families = (
        [
            Case(FAMILIES[0], f"{network}, {cluster}", partial(_of_zoo, network, cluster))
            for network, cluster in ZOO[: options.graphs]
        ],
        [Case(FAMILIES[1], path.name, partial(_over_links, path, 4, None)) for path in times],
        [
            Case(FAMILIES[2], path.name, partial(_over_links, path, 2, RULES["regal"]))
            for path in times
        ],
        [Case(FAMILIES[3], path.name, partial(_of_regal, path, "time")) for path in times],
        [Case(FAMILIES[4], path.name, partial(_of_regal, path, "memory")) for path in memories],
    )
    chosen = [family for family in families if family[0].family in options.families]
    longest = max(map(len, chosen))
    return [family[i] for i in range(longest) for family in chosen if i < len(family)]


def _sample(folder: Path, options: argparse.Namespace) -> list[Path]:
    files = [path for path in graph_files(folder) if len(read(path).ops) >= options.least]
    return random.Random(0).sample(files, min(options.graphs, len(files)))


def _of_zoo(network: str, cluster: str) -> Problem:
    return Problem(find_model(network), Cluster.find(cluster), "time")


def _over_links(path: Path, devices: int, rules: Rules | None) -> Problem:
    cluster = replace(Cluster.identical(devices), links=(Link("*", "*", BANDWIDTH),))
    return Problem(read(path), cluster, "time", rules)


def _of_regal(path: Path, objective: Objective) -> Problem:
    return Problem(read(path), Cluster.identical(2), objective, RULES["regal"])


def _row(case: Case, seed: int, weights: Mapping[str, Weights], options: argparse.Namespace) -> Row:
    """The values of all plans; None for ways that do not apply, and for all if `auto` without them
    meets the lower bound."""
    problem = case.load()
    learnt = weights[problem.objective]

    def planned(way: Way | None, linker: Linker | None, times: float = 1.0) -> Search:
        spent = learnt.seconds if linker is learnt.linker else 0.0
        limit = options.evaluations and int(times * options.evaluations)
        return plan(problem, CpuBudget(times * options.seconds, limit, spent), seed, way, linker)

    alone = planned(None, None)
    row: Row = {"family": case.family, "problem": case.problem, "ops": problem.n, "seed": seed}
    row |= {
        "proved": alone.proved(),
        "evaluations": alone.budget.evaluations,
        WITHOUT: value(alone),
    }
    linkers = {LEARNT: learnt.linker, CONSTANT: ConstantLinkage(TOGETHER)}
    for way in options.ways:
        for name in options.linkages:
            applies = (way != "start" or problem.objective == "time") and not alone.proved()
            row[f"{way}, {name}"] = value(planned(way, linkers[name])) if applies else None
    with_more = options.longer and seed == 0 and not alone.proved()
    row[LONGER] = value(planned(None, None, options.longer)) if with_more else None
    return row


def value(search: Search) -> float:
    """The value of the best plan; twice that if it does not fit."""
    best = search.incumbent
    return float(best.value * (1 if best.feasible else 2))


def _write(path: Path, rows: Sequence[Row], options: argparse.Namespace) -> None:
    tables = {
        "ways": list(summary(rows)),
        "runs": list(rows),
        "weights": [
            {"weights": file.name, "sha256": file_hash(file)}
            for file in (_file("time"), _file("memory"))
        ],
    }
    write(path, tables, options=options)


def summary(rows: Sequence[Row]) -> Iterator[Row]:
    """Improvements over `auto` without a linkage, by family and then of all problems: means over
    problems of means over seeds."""
    unproved = [row for row in rows if not row["proved"]]
    families = {family: [row for row in unproved if row["family"] == family] for family in FAMILIES}
    for family, chosen in (families | {"all": unproved}).items():
        for label in (f"{way}, {linkage}" for way in WAYS for linkage in LINKAGES):
            over = gains(chosen, WITHOUT, label)
            over_constant = gains(chosen, f"{label.partition(',')[0]}, {CONSTANT}", label)
            if len(over):
                yield _gained(family, label, over, over_constant if len(over_constant) else None)
        if len(over := gains(chosen, WITHOUT, LONGER)):
            yield _gained(family, LONGER, over, None)


def gains(rows: Sequence[Row], reference: str, label: str) -> Values:
    """(problems,) per cent by which values are smaller, the mean over seeds; both must be known."""
    by_problem: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row.get(label) is None or row.get(reference) is None:
            continue
        gain = 100 * (1 - row[label] / row[reference])
        by_problem.setdefault((row["family"], row["problem"]), []).append(gain)
    return np.array([np.mean(gain) for gain in by_problem.values()])


def _gained(family: str, way: str, over: Values, over_constant: Values | None) -> Row:
    row = {
        "family": family,
        "way": way,
        "problems": len(over),
        "over_auto_%": float(over.mean()),
        "interval_%": interval(over),
        "better_%": float(100 * (over > LEAST_GAIN).mean()),
        "worse_%": float(100 * (over < -LEAST_GAIN).mean()),
    }
    if over_constant is None:
        return row | {"over_constant_%": None, "over_constant_interval_%": None}
    of_constant = float(over_constant.mean()), interval(over_constant)
    return row | {"over_constant_%": of_constant[0], "over_constant_interval_%": of_constant[1]}


if __name__ == "__main__":
    main()
