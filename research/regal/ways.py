"""Three ways to use a linkage inside `auto`, and the CPU clock of their comparison.

Two of them add blocks to those of annealing while a plan is made; the third offers a plan after
the constructed ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib import import_module
from typing import Literal
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from research.regal.bred_parts import offer_bred_parts
from situate.bounds.lower_bound import bound_in_time
from situate.data.arrays import Ints
from situate.data.problem import Problem
from situate.data.topology import edge_producers
from situate.grouping.units import members
from situate.solvers.auto import run as run_auto
from situate.solvers.auto.construct import construct
from situate.solvers.auto.improve import annealing
from situate.solvers.auto.improve.blocks import Blocks, blocks
from situate.solvers.budget import Budget, OutOfTime
from situate.solvers.evolutionary.regal.linkage import Linker
from situate.solvers.search import Search

Way = Literal["parts", "unsure", "start"]

AUTO = import_module("situate.solvers.auto")
"""The module that calls the phases of `auto`."""

POWERS = (0.5, 1.0, 2.0, 4.0)
"""Exponents of the probabilities, which draws take in turn: from large parts to small ones."""

DRAWS = 16
"""Draws of the linkage for `parts`."""

TURNS_PER_UNIT = 20
"""Turns of `unsure` per unit, on average."""

Pairs = tuple[Ints, Ints, NDArray[np.float32]]
"""The units at both ends of edges (e,), and the probabilities of the edges."""


class CpuBudget(Budget):
    """A budget in CPU seconds of this process.

    Args:
        seconds: limit; None for none.
        evaluations: limit; None for none.
        spent: CPU seconds that count as spent from the beginning.
    """

    def __init__(
        self, seconds: float | None, evaluations: int | None = None, spent: float = 0.0
    ) -> None:
        begin = time.process_time() - spent
        super().__init__(seconds, evaluations, begin=begin, enforced=True)

    @property
    def seconds(self) -> float:
        """CPU seconds since the search began."""
        return time.process_time() - self._begin

    def part(self, share: float) -> Budget:
        """See `Budget`."""
        part = super().part(share)
        return CpuBudget(part.time_limit, part.evaluation_limit, self.seconds)


def plan(
    problem: Problem,
    budget: Budget,
    seed: int,
    way: Way | None = None,
    linker: Linker | None = None,
) -> Search:
    """The search of `auto` on one thread, after its end.

    Args:
        way: to use the linkage; None for `auto` as it comes.
        linker: of the way.
    """
    search = Search(problem, budget=budget, seed=seed, threads=1)
    bound = bound_in_time(problem, time.perf_counter(), budget.time_limit)
    search.raise_bound(bound.value, bound.name)
    with _using(problem, seed, way, linker), suppress(OutOfTime):
        run_auto(search)
    return search


@contextmanager
def _using(problem: Problem, seed: int, way: Way | None, linker: Linker | None) -> Iterator[None]:
    """`auto` that uses the linkage in one way."""
    if way is None or linker is None:
        yield
    elif way == "start":
        with mock.patch.object(AUTO, "construct", partial(_constructed, linker=linker)):
            yield
    else:
        make = parts if way == "parts" else unsure
        with _more_blocks(make(problem, pairs(problem, linker), seed)):
            yield


def _constructed(
    search: Search,
    plan_coarse: Callable[[Search], None],
    on_start: Callable[[], None] | None,
    linker: Linker,
) -> bool | None:
    """See `construct`; if memory is not short, plans of bred parts are offered after its own."""
    full = construct(search, plan_coarse, on_start)
    if full is False and not search.finished() and search.incumbent.feasible:
        offer_bred_parts(search, linker)
    return full


@contextmanager
def _more_blocks(more: Blocks) -> Iterator[None]:
    """Annealing that draws these blocks as often as its own, which keep their frequency."""
    with (
        mock.patch.object(annealing, "blocks", lambda problem: joined(blocks(problem), more)),
        mock.patch.object(annealing, "BLOCKS_AT_LEAST", annealing.BLOCKS_AT_LEAST // 2),
    ):
        yield


def joined(usual: Blocks, more: Blocks) -> Blocks:
    """All blocks; those of either kind are drawn equally often."""
    if not (len(usual.turns) and len(more.turns)):
        return usual if len(usual.turns) else more
    first = len(usual.start) - 1
    turns = [usual.turns, more.turns + np.int32(first)]
    longest = max(map(len, turns))
    return Blocks(
        np.concatenate((usual.start, usual.start[-1] + more.start[1:])).astype(np.int32),
        np.concatenate((usual.units, more.units)),
        np.concatenate([np.repeat(t, max(1, round(longest / len(t)))) for t in turns]),
    )


def pairs(problem: Problem, linker: Linker) -> Pairs:
    """The edges between different units."""
    together = linker.scores(problem).together
    source, target = (problem.unit[ops] for ops in (edge_producers(problem), problem.consumers))
    apart = source != target
    return source[apart].astype(np.int64), target[apart].astype(np.int64), together[apart]


def parts(problem: Problem, edges: Pairs, seed: int) -> Blocks:
    """Parts of several units, drawn with each of `POWERS`; a part that is drawn twice counts
    twice."""
    random = np.random.default_rng(seed)
    source, target, together = edges
    drawn: list[Ints] = []
    for i in range(DRAWS):
        joins = random.random(len(source)) < together ** POWERS[i % len(POWERS)]
        label = components(problem.units, source[joins], target[joins])
        drawn += [part for part in members(label) if 1 < len(part) < problem.units]
    return _rows(drawn, np.arange(len(drawn)))


def components(count: int, source: Ints, target: Ints) -> Ints:
    """(count,) the least node that edges connect each node with."""
    label = np.arange(count)
    while True:
        ends = np.stack((label[source], label[target]))
        low, high = ends.min(axis=0), ends.max(axis=0)
        if (low == high).all():
            return label
        # Each root joins a smaller one, then every node looks up its new root.
        np.minimum.at(label, high, low)
        while (label[label] != label).any():
            label = label[label]


def unsure(problem: Problem, edges: Pairs, seed: int) -> Blocks:
    """Single units with a choice of device; turns grow with the variance p (1 - p) of their
    edges."""
    source, target, together = edges
    ends = np.concatenate((source, target))
    variance = np.tile(together * (1 - together), 2)
    weight = np.bincount(ends, variance, problem.units)
    weight[problem.allowed.sum(axis=1) < 2] = 0
    if not weight.any():
        return _rows([], np.empty(0, np.int64))
    turns = np.rint(weight / weight.sum() * TURNS_PER_UNIT * problem.units).astype(int)
    units = np.arange(problem.units)
    return _rows(list(units[:, None]), np.repeat(units, turns))


def _rows(blocks: Sequence[Ints], turns: Ints) -> Blocks:
    start = np.cumsum([0, *map(len, blocks)])
    units = np.concatenate(blocks) if blocks else np.empty(0)
    return Blocks(*(np.asarray(values).astype(np.int32) for values in (start, units, turns)))
