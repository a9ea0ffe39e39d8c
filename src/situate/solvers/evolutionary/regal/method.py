"""The method `regal`: BRKGA whose mutants are drawn from what a trained network proposes."""

from __future__ import annotations

from math import inf
from pathlib import Path

from situate.errors import SituateError
from situate.policies.installed import check_torch
from situate.solvers.evolutionary.brkga import breed, check_objective
from situate.solvers.evolutionary.regal.encoding import Encoding, encoding, expected
from situate.solvers.evolutionary.regal.populations import for_features, proposed
from situate.solvers.evolutionary.regal.settings import RegalSettings
from situate.solvers.search import Search

WEIGHTS = Path(__file__).parent / "weights"
"""The folder of the package's own."""


def regal(search: Search) -> None:
    """Evaluate plain chromosomes for the features that the network reads, then search where it
    proposes."""
    check_torch()
    check_objective(search)
    from situate.solvers.evolutionary.regal.inference import Proposer

    proposer = Proposer(_weights(search), search.problem)
    encoded = _encoded(search, proposer.settings)
    if not search.finished():
        actions = proposer.actions(encoded, search.seed)
        population = proposed(search.simulator, proposer.settings, actions, search.seed)
        breed(search, population, proposer.settings.decoder)


def _weights(search: Search) -> Path:
    """The file that was given, or the package's own for such problems."""
    given, problem = search.learning.weights, search.problem
    if given is not None:
        return Path(given)
    path = WEIGHTS / f"{problem.objective}-{problem.d}-{search.learning.settings}.safetensors"
    if not path.is_file():
        raise SituateError(
            f"regal: no weights for {problem.objective} on {problem.d} devices come with situate: "
            f"train some with situate train regal, and give them with --weights"
        )
    return path


def _encoded(search: Search, settings: RegalSettings) -> Encoding:
    """The problem as the network reads it, after plain BRKGA on half of the budget at most."""
    most = inf if search.evaluation_limit is None else max(1, search.evaluation_limit // 2)
    population = for_features(search.simulator, settings, search.seed)
    breed(search, population, settings.decoder, min(settings.feature_evaluations, most))
    return encoding(search.problem, expected(population), settings.places)
