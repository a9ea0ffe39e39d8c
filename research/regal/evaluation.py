"""REGAL's comparison on a set of graphs: Table 1, Fig. 2 and Fig. 3.

Every method plans every graph with as many evaluations, on one thread. Three mean improvements are
over BRKGA, which decodes serially as in the paper; over BRKGA with the method's own decoder; and
over the best constant of its settings, graph by graph. Each has half the width of its 95 %
confidence interval over graphs. The gap is to the best known value, which longer searches decide
too. The last share is of graphs on which a method is no worse than BRKGA with its decoder. CP-SAT
takes small graphs alone, and its means are over these. Then BRKGA and the methods that draw from
proposals plan again with other numbers of evaluations, some of the graphs.

The record is named after the set. On the page the paper's figures stand beside ours where it is
one of its sets: `synthetic_time`, `real_time`, `real_memory`, and XLA's in `larger_time` and
`larger_memory`. Another name is for weights that are tried on another set than trained them, such
as `real_time_by_synthetic` and `published_time`; with `_paper` behind the name of a set, weights in
the paper's settings.

    python -m research.regal.synthetic SET
    python -m research.regal.evaluation SET/test --name synthetic_time \\
        --weights tuned=trained/weights.safetensors
    python -m research.regal.real SET
    python -m research.regal.evaluation SET/memory/test --name real_memory --objective memory \\
        --weights tuned=trained/weights.safetensors
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib.record import Row, show, write
from benchmarks.lib.workers import add_workers, jobs
from research import RESULTS
from research.regal.compared import (
    REFERENCE,
    Compared,
    Planned,
    Task,
    constants,
    guided,
    methods,
    plain,
)
from research.regal.data import graph_files, graphs_hash, trained
from research.regal.published import set_of, table_1
from research.regal.tasks import outcome
from situate.data.problem import Objective
from situate.evaluators.workers.jobs import Jobs
from situate.host.machine import usable_cpus

Values = NDArray[np.float64]

NORMAL = 1.96
"""Standard deviations to either side that hold 95 % of a normal distribution."""

NO_WORSE = 1 + 1e-9

Plans = list[dict[str, Planned]]
"""By graph: plans by label."""

Solve = Callable[[Sequence[Compared], Sequence[Path]], Plans]


def main(arguments: list[str] | None = None) -> None:
    """Plan, print and record."""
    options = _options(arguments)
    files = dict(options.weights)
    paths = graph_files(options.folder, options.graphs)
    compared = list(methods(options.evaluations, files, options.objective, options.exact))
    with jobs(options, outcome) as pool:
        solved = _solver(pool, options)
        result = solved(compared, paths)
        limits = list(_limits(solved, paths[: options.limit_graphs], files, options))
    values = {method.label: _values(result, method.label) for method in compared}
    tables = {
        "methods": list(_methods(compared, values, result)),
        "bound": [_bound(result, values[REFERENCE])],
        "evaluations": limits,
        "graphs": list(_graphs(options.folder, paths, values)),
        "weights": [trained(name, path) for name, path in files.items()],
        "data": [{"graphs": len(paths), "sha256": graphs_hash(paths)}],
    }
    for title in ("methods", "bound", "evaluations"):
        show(f"regal_{options.name}: {title}", tables[title])
    options.weights = {name: path.name for name, path in files.items()}
    write(RESULTS / f"regal_{options.name}.json", tables, options=options)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="of graph files, in folders of it too")
    parser.add_argument("--name", required=True, help="of the set: the record is regal_NAME.json")
    parser.add_argument("--objective", choices=get_args(Objective), default="time")
    parser.add_argument("--weights", nargs="+", type=_named, default=[], metavar="NAME=FILE")
    parser.add_argument("--evaluations", type=int, default=5000)
    parser.add_argument(
        "--exact",
        type=float,
        metavar="SECONDS",
        help="of CP-SAT for a graph it takes; default: none",
    )
    parser.add_argument("--graphs", type=int, help="of the folder; default: all")
    parser.add_argument(
        "--limits", nargs="*", type=int, default=[1000, 2000, 5000, 10_000, 20_000, 50_000]
    )
    parser.add_argument("--limit-graphs", type=int, default=100, help="for other budgets")
    parser.add_argument("--seed", type=int, default=0)
    add_workers(parser, usable_cpus(), "graphs")
    options = parser.parse_args(arguments)
    if table_1(options.name) and not set_of(options.name).endswith(options.objective):
        parser.error(f"--name {options.name}: is not a set for --objective {options.objective}")
    return options


def _named(text: str) -> tuple[str, Path]:
    name, _, path = text.partition("=")
    if not (name and path):
        raise argparse.ArgumentTypeError(f"{text!r}: give NAME=FILE")
    return name, Path(path)


def _solver(pool: Jobs, options: argparse.Namespace) -> Solve:
    """Plans graphs by workers."""

    def solved(compared: Sequence[Compared], paths: Sequence[Path]) -> Plans:
        tasks = [Task(path, options.objective, options.seed, compared) for path in paths]
        return list(pool.map((task,) for task in tasks))

    return solved


def _values(plans: Plans, label: str) -> Values:
    """(graphs,)"""
    return np.array([plan[label].value for plan in plans])


def _methods(
    compared: Sequence[Compared], values: Mapping[str, Values], plans: Plans
) -> Iterator[Row]:
    """A row a method, over the graphs that it takes."""
    best = np.nanmin(list(values.values()), axis=0)
    for method in compared:
        solved_graphs = np.flatnonzero(~np.isnan(values[method.label]))
        if not len(solved_graphs):
            continue
        of, same = values[method.label][solved_graphs], values[method.plain][solved_graphs]
        improved = 100 * (1 - of / values[REFERENCE][solved_graphs])
        over_same = 100 * (1 - of / same)
        over_constant = 100 * (1 - of / values[method.best_constant][solved_graphs])
        yield {
            "method": method.label,
            "graphs": len(solved_graphs),
            "improvement_%": float(improved.mean()),
            "interval_%": interval(improved),
            "same_decoder": method.plain,
            "over_same_decoder_%": float(over_same.mean()),
            "its_interval_%": interval(over_same),
            "best_constant": method.best_constant,
            "over_constant_%": float(over_constant.mean()),
            "over_constant_interval_%": interval(over_constant),
            "no_worse_%": float(100 * (of <= same * NO_WORSE).mean()),
            "least_%": float(over_same.min()),
            "most_%": float(over_same.max()),
            "gap_to_best_known_%": float(100 * (of / best[solved_graphs] - 1).mean()),
            "seconds": float(
                np.mean([plans[graph][method.label].seconds for graph in solved_graphs])
            ),
        }


def _bound(plans: Plans, reference: Values) -> Row:
    """The mean improvement that no method could exceed."""
    bounds = np.array([max(plan.bound for plan in of_graph.values()) for of_graph in plans])
    improved = 100 * (1 - bounds / reference)
    return {"improvement_%": float(improved.mean()), "interval_%": interval(improved)}


def interval(figures: Values) -> float:
    """Half the width of the 95 % confidence interval of a mean."""
    return float(NORMAL * figures.std(ddof=1) / np.sqrt(len(figures))) if len(figures) > 1 else 0.0


def _limits(
    solved: Solve, paths: Sequence[Path], files: Mapping[str, Path], options: argparse.Namespace
) -> Iterator[Row]:
    """Improvements over BRKGA with the common budget, a row a budget (Fig. 3)."""
    if not options.limits:
        return
    common = [Compared(REFERENCE, "brkga", options.evaluations)]
    reference = _values(solved(common, paths), REFERENCE)
    for limit in options.limits:
        with_weights = [method for method in guided(limit, files) if method.method != "idrs"]
        compared = [*plain(limit), *with_weights, *constants(limit, options.objective)]
        result = solved(compared, paths)
        row: dict[str, float] = {"evaluations": limit, "graphs": len(paths)}
        for method in compared:
            improved = 100 * (1 - _values(result, method.label) / reference)
            row[f"{method.label}, %"] = float(improved.mean())
            row[f"{method.label}, ±"] = interval(improved)
        yield row


def _graphs(folder: Path, paths: Sequence[Path], values: Mapping[str, Values]) -> Iterator[Row]:
    for i, path in enumerate(paths):
        of_methods = {label: float(of[i]) for label, of in values.items()}
        yield {"graph": path.relative_to(folder).as_posix()} | of_methods


if __name__ == "__main__":
    main()
