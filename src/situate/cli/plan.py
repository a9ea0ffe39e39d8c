"""`situate plan`: the best plan for a model on a cluster."""

from __future__ import annotations

from situate.cli.options import (
    Cluster,
    Dim,
    Evaluations,
    Json,
    Method,
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


def plan(
    model: Model,
    cluster: Cluster = None,
    objective: Objective = "time",
    method: Method = "auto",
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
    """Decide which device runs each op, and in which order.

    Ctrl-C ends the search and keeps the best plan so far.
    """
    from situate.cli.answer import fit_status, show_result
    from situate.cli.inputs import check_method, read_problem
    from situate.cli.outputs import check_outputs, check_picture, write_outputs
    from situate.cli.search import Budget, interruptible, search
    from situate.cli.terminal import note

    check_method(method)
    check_outputs([model, cluster or ""], [out, picture, schedule])
    check_picture(picture)
    problem = read_problem(
        model, cluster, objective=objective, rules=rules, optimizer=optimizer, dim=dim
    )
    with interruptible() as interrupt:
        result = search(problem, method, Budget(time_limit, evaluations, seed, threads))
    if interrupt.came:
        note("interrupted: this is the best plan so far")
    write_outputs(result, out, picture, schedule)
    show_result(result, as_json)
    return fit_status(problem, result.schedule)
