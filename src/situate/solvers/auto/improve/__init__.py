"""The phase that improves the incumbent: climbing, then annealing, or balancing of loads."""

from __future__ import annotations

from situate.solvers.auto.improve.annealing import anneal
from situate.solvers.auto.improve.balance import balance
from situate.solvers.auto.improve.blocks import move_slices
from situate.solvers.auto.improve.climb import climb
from situate.solvers.auto.improve.windows import sweep_windows
from situate.solvers.auto.orders import order_decides_time
from situate.solvers.search import Search


def improve(search: Search, first: bool, full: bool) -> None:
    """Improve the incumbent until the budget ends.

    Args:
        first: True in the first round of an island, and without islands.
        full: see `shorten`.
    """
    if search.problem.objective == "throughput":
        balance(search)
    elif first:
        shorten(search, full)
    else:
        anneal(search, full)


def shorten(search: Search, full: bool = False) -> None:
    """Climb and sweep for time, then anneal for any objective.

    Args:
        full: True if the fastest accelerator is full; annealing then includes critical moves.
    """
    if order_decides_time(search.problem) and search.problem.transfers != "blocking":
        move_slices(search)
        climb(search)
        sweep_windows(search)
    anneal(search, full)
