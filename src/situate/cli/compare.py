"""`situate compare`: methods side by side on one problem, a single device always among them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from situate.cli.options import (
    Cluster,
    Dim,
    Evaluations,
    Json,
    Model,
    Objective,
    Optimizer,
    Out,
    Picture,
    Rules,
    ScheduleFile,
    Seed,
    Threads,
    TimeLimit,
)
from situate.errors import SituateError

if TYPE_CHECKING:
    from situate.cli.search import Budget
    from situate.problem import Problem
    from situate.result import Result


def compare(
    model: Model,
    cluster: Cluster = None,
    methods: Annotated[
        str | None, typer.Option(metavar="A,B,C", help="Methods to compare. Default: all.")
    ] = None,
    objective: Objective = "time",
    rules: Rules = None,
    time_limit: TimeLimit = None,
    evaluations: Evaluations = None,
    seed: Seed = 0,
    threads: Threads = None,
    optimizer: Optimizer = None,
    dim: Dim = None,
    out: Out = None,
    picture: Picture = None,
    schedule: ScheduleFile = None,
    as_json: Json = False,
) -> int:
    """Plan with several methods and show them side by side, a single device always among them.

    --time-limit and --evaluations hold for each method; --out, --picture and --schedule take the
    best plan.
    """
    from situate.cli.answer import fit_status, show_comparison
    from situate.cli.inputs import read_problem
    from situate.cli.outputs import check_outputs, check_picture, write_outputs
    from situate.cli.search import Budget

    chosen = _chosen(methods)
    check_outputs([model, cluster or ""], [out, picture, schedule])
    check_picture(picture)
    problem = read_problem(
        model, cluster, objective=objective, rules=rules, optimizer=optimizer, dim=dim
    )
    budget = Budget(time_limit, evaluations, seed, threads)
    results = _results(problem, chosen, budget, skip=methods is None)
    best = best_of(results)
    write_outputs(best, out, picture, schedule)
    show_comparison(results, best, as_json)
    return fit_status(problem, best.schedule)


def _chosen(methods: str | None) -> list[str]:
    """The methods named, or all; `single` comes first."""
    from situate.cli.inputs import check_method
    from situate.solvers import METHODS

    names = list(METHODS) if methods is None else [name.strip() for name in methods.split(",")]
    for name in names:
        check_method(name)
    return list(dict.fromkeys(["single", *names]))


def _results(problem: Problem, methods: list[str], budget: Budget, skip: bool) -> list[Result]:
    """One result a method; with `skip`, a method that does not apply is left out with a note.

    Ctrl-C ends the method that runs and leaves out those after it.
    """
    from situate.cli.search import interruptible, search
    from situate.cli.terminal import note

    results = []
    with interruptible() as interrupt:
        for method in methods:
            try:
                results.append(search(problem, method, budget))
            except SituateError as error:
                if not skip and method != "single":
                    raise
                note(f"{method}: left out: {error}")
            if interrupt.came:
                note("interrupted: the methods that follow are left out")
                break
    return results


def best_of(results: list[Result]) -> Result:
    """The best value among plans that fit, else among all; of equals the one on fewest devices."""
    if not results:
        raise SituateError("no method applies to this problem")
    return min(results, key=lambda r: (not r.feasible, r.value, len(r.devices_used)))
