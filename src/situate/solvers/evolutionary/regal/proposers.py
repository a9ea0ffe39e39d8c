"""Proposers, which choose where BRKGA looks: a constant, and a trained network.

A proposer may spend a part of the search's budget before it proposes, and offer plans meanwhile.
"""

from __future__ import annotations

from math import inf
from typing import Protocol

from situate import _core
from situate.data.arrays import Ints
from situate.simulation.simulator import Decoder
from situate.simulation.transfer_order import instant
from situate.solvers.evolutionary.brkga import BrkgaSettings, breed
from situate.solvers.evolutionary.regal.features import Encoding, encoding, expected
from situate.solvers.evolutionary.regal.linkage import Linker, with_scores
from situate.solvers.evolutionary.regal.proposals import Proposals, for_features, proposals
from situate.solvers.evolutionary.regal.settings import Constant, RegalSettings
from situate.solvers.heuristics.baselines import single_plans
from situate.solvers.search import Search

FEATURES_SHARE = 0.5
"""Largest share of the budget for the plain run that makes the network's features."""

OFFERS_TO_INFER = 25
"""Encoding a large problem and inference take less time than so many offers."""


class Proposer(Protocol):
    """Proposes distributions of the random keys for the problem of a search."""

    @property
    def breeding(self) -> BrkgaSettings:
        """Settings of the BRKGA that draws from the proposals."""
        ...

    def propose(self, search: Search) -> Proposals | None:
        """The distributions; None if the budget ends before there are any.

        If it returns None, it has offered a plan.
        """
        ...


class ConstantProposer:
    """Proposes the same at every op, and leaves the budget to BRKGA."""

    def __init__(self, constant: Constant) -> None:
        self._constant = constant

    @property
    def breeding(self) -> BrkgaSettings:
        """See `Proposer`."""
        return self._constant.breeding

    def propose(self, search: Search) -> Proposals:
        """See `Proposer`."""
        _offer_one_device(search, self.breeding.decoder)
        actions = self._constant.actions(search.problem.n)
        return _proposals_of(search, actions, self._constant)


class LinkageProposer:
    """Proposes a constant, parts to breed together, and ops for the anchor's device.

    Args:
        linker: of edges and ops.
        constant: of the other keys.
    """

    def __init__(self, linker: Linker, constant: Constant) -> None:
        self._linker, self._constant = linker, ConstantProposer(constant)

    @property
    def breeding(self) -> BrkgaSettings:
        """See `Proposer`."""
        return self._constant.breeding

    def propose(self, search: Search) -> Proposals | None:
        """See `Proposer`."""
        guide = self._constant.propose(search)
        # Without any plan, inference goes on: BRKGA's first chromosome will be the plan.
        if search.best is not None and not search.budget.affords(OFFERS_TO_INFER):
            return None
        return with_scores(search.problem, guide, self._linker.scores(search.problem))


class Network(Protocol):
    """A policy that draws actions from features."""

    settings: RegalSettings

    def actions(self, encoded: Encoding, seed: int) -> Ints:
        """(n, c) the category of each choice at each op."""
        ...


class NetworkProposer:
    """Runs plain BRKGA for features, and proposes the distributions that a network draws."""

    def __init__(self, network: Network) -> None:
        self._network = network

    @property
    def breeding(self) -> BrkgaSettings:
        """See `Proposer`."""
        return self._network.settings.breeding

    def propose(self, search: Search) -> Proposals | None:
        """See `Proposer`."""
        settings = self._network.settings
        population = population_for_features(search, settings)
        _offer_one_device(search, settings.breeding.decoder)
        # Without time for the network, the best plan of the plain run stands.
        if search.finished() or not search.budget.affords(OFFERS_TO_INFER):
            return None
        encoded = encoding(search.problem, expected(population), settings.places)
        return _proposals_of(search, self._network.actions(encoded, search.seed), settings)


def _proposals_of(search: Search, actions: Ints, settings: Constant | RegalSettings) -> Proposals:
    """The distributions of actions (n, c)."""
    keys = _core.search.key_count(search.simulator.core)
    return proposals(search.problem, actions, settings.proposed, keys, settings.breeding.bias)


def _offer_one_device(search: Search, decoder: Decoder) -> None:
    """Offer plans on one device if transfers take time.

    Random plans send many tensors, which may take longer than all ops on one device.
    """
    problem = search.problem
    if (instant(problem) | problem.signal).all():
        return
    for placement, order in single_plans(problem):
        if search.finished():
            return
        search.offer(placement, order, [decoder])


def population_for_features(search: Search, settings: RegalSettings) -> _core.search.Brkga:
    """The population that plain BRKGA breeds in its share of the budget."""
    limit = search.budget.evaluation_limit
    most = inf if limit is None else max(1, int(FEATURES_SHARE * limit))
    evaluations = min(settings.feature_evaluations, most)
    population = for_features(search.simulator, settings, search.seed)
    with search.budget.reserving(1 - FEATURES_SHARE):
        breed(search, population, settings.breeding.decoder, evaluations)
    return population
