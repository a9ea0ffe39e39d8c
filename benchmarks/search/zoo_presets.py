"""Every method on networks of the zoo and preset clusters: `auto` is never worse than another.

`--all --sample 12 --time-limit 10 --methods-limit 60` gives the others six times its time on twelve
pairs. That takes an hour: five methods search for as long as they may, the others make one plan.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Iterator
from itertools import groupby, product

import situate
from benchmarks.lib.record import Row, Target, record
from situate.solvers import LEARNERS

NETWORKS = (
    "inception_v3",
    "resnet50",
    "cifar_cnn",
    "rnnlm",
    "nmt2",
    "gpt2",
    "bert",
    "vit",
    "llama_7b",
    "moe",
)
CLUSTERS = ("k40-4", "k80-2", "unequal-24-12", "rtx4090-2", "a100-pcie-4", "h100-2x8")
SAMPLE_SECONDS = 1.0
"""Time limit of `random`; the other rules make one plan."""

RULES = tuple(m for m in situate.METHODS if m != "auto" and m not in LEARNERS)

Results = dict[str, situate.Result]


def main(arguments: list[str] | None = None) -> None:
    """Plan, print and record."""
    options = _parser().parse_args(arguments)
    rows = [
        row
        for network, pairs in groupby(_pairs(options), key=lambda pair: pair[0])
        for row in _rows(network, [cluster for _, cluster in pairs], options)
    ]
    name = "zoo_presets" if options.objective == "time" else f"zoo_presets_{options.objective}"
    name += "_sample" if options.sample is not None else ""
    tables = {f"{options.objective}; methods as a ratio to auto": rows, "methods": _wins(rows)}
    record(name, tables, [_target(rows, options)], options=options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="+", help="default: ten of the zoo")
    parser.add_argument("--clusters", nargs="+", help="default: six presets")
    parser.add_argument("--all", action="store_true", help="the whole zoo on all presets")
    parser.add_argument("--sample", type=int, help="so many pairs of them, drawn by the seed")
    parser.add_argument("--objective", default="time", choices=situate.OBJECTIVES)
    parser.add_argument("--methods", nargs="+", default=list(RULES), help="beside `auto`")
    parser.add_argument("--time-limit", type=float, default=2.0, help="seconds of `auto`")
    parser.add_argument("--methods-limit", type=float, help="of the others; default: the same")
    parser.add_argument("--seed", type=int, default=0)
    return parser


def _networks(options: argparse.Namespace) -> list[str]:
    names = situate.zoo.names()
    return list(names) if options.all else [name for name in NETWORKS if name in names]


def _clusters(options: argparse.Namespace) -> list[str]:
    return options.clusters or (situate.Cluster.presets() if options.all else list(CLUSTERS))


def _pairs(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Networks and clusters, in their order."""
    pairs = list(product(options.networks or _networks(options), _clusters(options)))
    if options.sample is None:
        return pairs
    drawn = random.Random(options.seed).sample(range(len(pairs)), min(options.sample, len(pairs)))
    return [pairs[i] for i in sorted(drawn)]


def _rows(network: str, clusters: list[str], options: argparse.Namespace) -> Iterator[Row]:
    graph = situate.zoo.load(network)
    for cluster in clusters:
        try:
            problem = situate.Problem(graph, situate.Cluster.preset(cluster), options.objective)
        except situate.SituateError as error:
            print(f"{network} on {cluster}: left out: {error}")
            continue
        results = _results(problem, options)
        print(f"{network} on {cluster}: {_worse_than(results) or 'auto is not worse'}", flush=True)
        yield _row(results)


def _results(problem: situate.Problem, options: argparse.Namespace) -> Results:
    """By method; a method that does not apply is left out."""
    results = {}
    for method in (*options.methods, "auto"):
        seconds = _seconds(method, options)
        try:
            results[method] = situate.solve(problem, method, time_limit=seconds, seed=options.seed)
        except situate.SituateError as error:
            print(f"{problem.graph.name} on {problem.cluster.name}: {method}: {error}")
    return results


def _seconds(method: str, options: argparse.Namespace) -> float:
    """The time limit of a method."""
    if method != "auto" and options.methods_limit is not None:
        return float(options.methods_limit)
    return SAMPLE_SECONDS if method == "random" else float(options.time_limit)


def _score(result: situate.Result) -> tuple[int, float]:
    """The order of results, the best smallest: bytes above capacity, then the value."""
    return int(result.schedule.overflow(result.problem).sum()), result.value


def _worse_than(results: Results) -> str:
    """The methods that `auto` is worse than."""
    auto = _score(results["auto"])
    return ", ".join(method for method, result in results.items() if _score(result) < auto)


def _row(results: Results) -> Row:
    auto = results["auto"]
    rules = [method for method in results if method != "auto"]
    best = min(rules, key=lambda method: _score(results[method]))
    return {
        "network": auto.problem.graph.name,
        "cluster": auto.problem.cluster.name,
        "ops": auto.problem.n,
        "auto": auto.value,
        "fits": auto.feasible,
        "gap": auto.gap if auto.feasible else None,
        "devices": len(auto.devices_used),
        "evaluations": auto.evaluations,
        "seconds": auto.seconds,
        "best_rule": best,
        **{method: _ratio(results.get(method), auto) for method in RULES},
        "worse_than": _worse_than(results),
    }


def _ratio(result: situate.Result | None, auto: situate.Result) -> float | None:
    """The method's value over `auto`'s, infinite where only `auto`'s plan fits.

    None where the method does not apply, and where `auto`'s plan does not fit: then values say
    nothing.
    """
    if result is None or not auto.feasible:
        return None
    return result.value / auto.value if result.feasible else math.inf


def _wins(rows: list[Row]) -> list[Row]:
    """For each method: how often it fits and is the best rule, and its ratios to `auto`."""
    return [_win(method, rows) for method in RULES]


def _win(method: str, rows: list[Row]) -> Row:
    ratios = sorted(row[method] for row in rows if row[method] is not None)
    return {
        "method": method,
        "compared": len(ratios),
        "does_not_fit_where_auto_does": sum(ratio == math.inf for ratio in ratios),
        "best_of_the_rules": sum(row["best_rule"] == method for row in rows),
        "median_over_auto": ratios[len(ratios) // 2] if ratios else None,
        "least_over_auto": ratios[0] if ratios else None,
    }


def _target(rows: list[Row], options: argparse.Namespace) -> Target:
    worse = [f"{row['network']} on {row['cluster']}" for row in rows if row["worse_than"]]
    measured = "; ".join(worse) or f"0 of {len(rows)}"
    what = f"{len(rows)} networks and presets"
    limit = options.methods_limit or options.time_limit
    wanted = f"auto in {options.time_limit:g} s never worse than another method in {limit:g} s"
    return Target(what, wanted, measured, not worse)


if __name__ == "__main__":
    main()
