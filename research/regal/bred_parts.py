"""A start for `auto` by BRKGA that breeds the parts of a linkage."""

from __future__ import annotations

from contextlib import suppress

from situate import _core
from situate.data.problem import Problem
from situate.simulation.transfer_order import by_sequence
from situate.solvers.budget import OutOfTime
from situate.solvers.evolutionary.brkga import breed
from situate.solvers.evolutionary.regal.linkage import Linker, with_scores
from situate.solvers.evolutionary.regal.proposals import guided, proposals
from situate.solvers.evolutionary.regal.settings import CONSTANTS
from situate.solvers.search import Search

SHARE = 0.1
"""Largest share of the remaining budget."""

MOST_OPS = 20_000
"""Number of ops of the largest problem. A population of larger ones takes much memory."""

FIRST_EVALUATIONS, MAX_FIRST_RATIO = 25, 1.25
"""Breeding ends after so many chromosomes if the best plan is longer than the incumbent by this
factor."""

TRIAL_SHARE, MAX_TRIAL_RATIO = 0.5, 1.05
"""The same after this share of its budget."""

OFFERS_FOR_FIRST = 60
"""Setup and the first chromosomes take less time than so many offers."""


def offer_bred_parts(search: Search, linker: Linker) -> None:
    """Offer the best plan of BRKGA in a share of the budget; stop early if its plans are far from
    the incumbent.

    Only for step time on several devices, with time for some chromosomes.

    Args:
        search: with a plan that fits.
        linker: of edges and ops.
    """
    if not _applies(search.problem) or not _affords(search):
        return
    breeding, incumbent = search.for_time(SHARE), search.incumbent
    with suppress(OutOfTime):  # of its share
        _breed(breeding, linker, incumbent.value)
    search.budget.evaluations += breeding.budget.evaluations
    best = breeding.best
    if best is not None and best.score < incumbent.score and not search.finished():
        # Annealing needs a topological order; priorities need not be one.
        order, transfers = by_sequence(search.problem, best.schedule, best.placement)
        search.offer(best.placement, order, [best.decoder], transfers=transfers)


def _applies(problem: Problem) -> bool:
    return (
        problem.objective == "time"
        and problem.transfers != "atomic"
        and problem.d > 1
        and problem.n <= MOST_OPS
    )


def _affords(search: Search) -> bool:
    """True if the share holds the first chromosomes."""
    budget, limit = search.budget, search.budget.evaluation_limit
    enough = limit is None or SHARE * (limit - budget.evaluations) > FIRST_EVALUATIONS
    return enough and budget.affords(OFFERS_FOR_FIRST / SHARE)


def _breed(search: Search, linker: Linker, seconds: float) -> None:
    """Breed until the budget ends, or until plans are far from a step of so many seconds."""
    problem, constant = search.problem, CONSTANTS["tuned", "time"]
    keys = _core.search.key_count(search.simulator.core)
    guide = proposals(
        problem, constant.actions(problem.n), constant.proposed, keys, constant.breeding.bias
    )
    guide = with_scores(problem, guide, linker.scores(problem))
    population = guided(search.simulator, constant.breeding, guide, search.seed)
    decoder = constant.breeding.decoder
    breed(search, population, decoder, FIRST_EVALUATIONS)
    if search.incumbent.value > MAX_FIRST_RATIO * seconds:
        return
    with search.budget.reserving(1 - TRIAL_SHARE):
        breed(search, population, decoder)
    if search.incumbent.value <= MAX_TRIAL_RATIO * seconds:
        breed(search, population, decoder)
