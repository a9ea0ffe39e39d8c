"""The picture of how methods learnt."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from situate.cli.run_method import Run
from situate.cli.terminal import note
from situate.errors import SituateError
from situate.results.result import Result
from situate.solvers import LEARNERS, solve

DRAWN = (*LEARNERS, "random")
"""Methods with a curve, in the order of their colours; the others are levels."""


def draw_curves(runs: Sequence[Run], path: str | None) -> None:
    """Draw the curves of `runs`, where it was asked for, among the levels of the other methods, of
    `single` and `expert`, and the lower bound."""
    if path is None:
        return
    from situate.report.pictures.curves import draw

    problem = runs[0].result.problem
    drawn = [run for run in runs if run.result.method in DRAWN]
    draw(
        [run.curve for run in sorted(drawn, key=lambda run: DRAWN.index(run.result.method))],
        levels([run.result for run in runs]),
        path,
        f"{problem.graph.name} on {problem.cluster.name}",
        problem.graph.unit,
    )
    note(f"wrote {path}")


def levels(results: Sequence[Result]) -> dict[str, float]:
    """Step times by method, of plans that fit; those that every picture has come first."""
    others = {result.method: result for result in results if result.method not in DRAWN}
    known: dict[str, Result] = {}
    for method in ("single", "expert"):
        with suppress(SituateError):
            known[method] = others.get(method) or solve(results[0].problem, method)
    times = {name: result.value for name, result in known.items() if result.feasible}
    bounds = [result.lower_bound for result in results if result.lower_bound is not None]
    times |= {"lower bound": max(bounds)} if bounds else {}
    return times | {name: result.value for name, result in others.items() if result.feasible}
