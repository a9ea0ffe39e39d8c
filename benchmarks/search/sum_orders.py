"""Plans of steps whose gradients are added up in a chain and in a tree: by hand, and by `auto` with
as many evaluations."""

from __future__ import annotations

import argparse

import situate
from benchmarks.lib.record import Row, record
from benchmarks.search.slices import CASES, Case
from situate.data.slices import Sums, parse
from situate.torch_capture import Captures

STEPS = {
    "inception_v3": CASES["inception_v3"],
    "llama": CASES["llama"],
    "llama, 16 slices": CASES["llama"]._replace(cluster="h100-2x8", slices="16"),
    "inception_v3, 8 slices": CASES["inception_v3"]._replace(slices="8"),
}
METHODS = ("data_parallel", "one_f_one_b", "auto")


def main(arguments: list[str] | None = None) -> None:
    """Plan in both orders, print and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", nargs="+", default=list(STEPS), choices=list(STEPS))
    parser.add_argument("--evaluations", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    rows = [_row(name, STEPS[name], options) for name in options.cases]
    record("sum_orders", {"a tree over a chain": rows}, options=options)


def _row(name: str, case: Case, options: argparse.Namespace) -> Row:
    captures = Captures()
    row: Row = {"step": name, "cluster": case.cluster, "slices": case.slices}
    chain = _problem(name, case, "chain", captures)
    tree = _problem(name, case, "tree", captures)
    for method in METHODS:
        limits = {"evaluations": options.evaluations, "seed": options.seed}
        of_chain = situate.solve(chain, method, **limits).makespan
        of_tree = situate.solve(tree, method, **limits).makespan
        row |= {f"{method}, chain": of_chain, f"{method}, tree over it": of_tree / of_chain}
    return row


def _problem(name: str, case: Case, order: Sums, captures: Captures) -> situate.Problem:
    cut = parse(case.slices, sums=order)
    graph = captures.capture(case.build, optimizer=case.optimizer, name=name, slices=cut)
    return situate.Problem(graph, situate.Cluster.preset(case.cluster))


if __name__ == "__main__":
    main()
