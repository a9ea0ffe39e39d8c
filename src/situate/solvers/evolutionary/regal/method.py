"""The methods `regal`, `gas` and `idrs`: they draw from what a trained network proposes."""

from __future__ import annotations

from itertools import count
from math import inf
from pathlib import Path

from situate.data.arrays import Ints
from situate.errors import SituateError
from situate.policies.installed import check_torch
from situate.solvers.evolutionary.brkga import breed, check_objective
from situate.solvers.evolutionary.regal.encoding import Encoding, encoding, expected
from situate.solvers.evolutionary.regal.populations import derived, for_features, proposed
from situate.solvers.evolutionary.regal.settings import RegalSettings
from situate.solvers.evolutionary.settings import BRKGA
from situate.solvers.search import Search

WEIGHTS = Path(__file__).parent / "weights"
"""The folder of the package's own."""

FIRST_GENERATION = BRKGA["paper"].population
"""Its chromosomes."""


def regal(search: Search) -> None:
    """Evaluate plain chromosomes for the features that the network reads, then search where it
    proposes."""
    _breed_where_proposed(search, "regal")


def gas(search: Search) -> None:
    """The same with a recurrent network over the ops in topological order."""
    _breed_where_proposed(search, "gas")


def idrs(search: Search) -> None:
    """Draw at random from what the network proposes, without breeding: all chromosomes are of a
    first generation."""
    settings, actions = _proposals(search, "idrs")
    for part in count():
        if search.finished():
            return
        population = proposed(search.simulator, settings, actions, derived(search.seed, part))
        breed(search, population, settings.decoder, FIRST_GENERATION)


def _breed_where_proposed(search: Search, method: str) -> None:
    settings, actions = _proposals(search, method)
    if not search.finished():
        population = proposed(search.simulator, settings, actions, search.seed)
        breed(search, population, settings.decoder)


def _proposals(search: Search, method: str) -> tuple[RegalSettings, Ints]:
    """The settings of the weights, and what their network proposes, after its features have been
    paid for."""
    check_torch("safetensors")
    check_objective(search)
    from situate.solvers.evolutionary.regal.inference import Proposer

    path = _weights(search, method)
    proposer = Proposer(path, search.problem)
    kind = "sequence" if method == "gas" else "graph"
    if proposer.settings.shape.kind != kind:
        raise SituateError(
            f"{path}: the weights are of a {proposer.settings.shape.kind} network, and {method} "
            f"takes those of a {kind} network: see situate train regal --settings"
        )
    return proposer.settings, proposer.actions(_encoded(search, proposer.settings), search.seed)


def _weights(search: Search, method: str) -> Path:
    """The file that was given, or the package's own for such problems."""
    given, problem = search.learning.weights, search.problem
    if given is not None:
        return Path(given)
    settings = "gas" if method == "gas" else search.learning.settings
    path = WEIGHTS / f"{problem.objective}-{problem.d}-{settings}.safetensors"
    if not path.is_file():
        raise SituateError(
            f"{method}: no weights for {problem.objective} on {problem.d} devices come with "
            f"situate: train some with situate train regal, and give them with --weights"
        )
    return path


def _encoded(search: Search, settings: RegalSettings) -> Encoding:
    """The problem as the network reads it, after plain BRKGA on half of the budget at most."""
    most = inf if search.evaluation_limit is None else max(1, search.evaluation_limit // 2)
    population = for_features(search.simulator, settings, search.seed)
    breed(search, population, settings.decoder, min(settings.feature_evaluations, most))
    return encoding(search.problem, expected(population), settings.places)
