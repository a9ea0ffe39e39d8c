"""A plan of a sharding problem for the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from situate.report.text import plural, printable
from situate.report.units import gap_text, share_text, size_text, time_text
from situate.sharding.problem import ShardingProblem
from situate.sharding.solve import ShardingPlan


def sharding_table(problem: ShardingProblem, plan: ShardingPlan) -> RenderableType:
    """Cost, bound and memory of the strategies."""
    grid = Table.grid(padding=(0, 2))
    for label, value in _facts(problem, plan):
        grid.add_row(Text(label, "dim"), Text(value))
    return Group(Text(printable(problem.name, 60), "bold"), grid)


def _facts(problem: ShardingProblem, plan: ShardingPlan) -> list[tuple[str, str]]:
    strategies = sum(len(cost) for cost in problem.costs)
    edges = plural(len(problem.edges), "edge")
    share = share_text(plan.peak / plan.limit) if plan.limit else "more"
    rounds = f"{plural(plan.rounds, 'round')} in {time_text(plan.seconds)}"
    return [
        ("problem", f"{len(problem.costs):,} ops, {strategies:,} strategies, {edges}"),
        ("cost", f"{plan.cost:,}" if plan.feasible else "none: these strategies do not fit"),
        ("lower bound", f"{plan.bound:,}"),
        ("gap", gap_text(plan.gap)),
        ("peak memory", f"{size_text(plan.peak)}, {share} of {size_text(plan.limit)}"),
        ("search", rounds),
    ]


def sharding_figures(problem: ShardingProblem, plan: ShardingPlan) -> dict[str, Any]:
    """The plan for scripts."""
    return {
        "problem": problem.name,
        "feasible": plan.feasible,
        "cost": plan.cost,
        "bound": plan.bound,
        "gap": plan.gap,
        "peak": plan.peak,
        "limit": plan.limit,
        "rounds": plan.rounds,
        "seconds": plan.seconds,
        "strategies": plan.strategies,
    }
