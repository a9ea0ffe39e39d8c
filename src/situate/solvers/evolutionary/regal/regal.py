"""`regal`, `gas` and `idrs`: BRKGA whose random keys a trained network proposes.

A. Paliwal et al., *Reinforced Genetic Algorithm Learning for Optimizing Computation Graphs*, ICLR
2020. A plain run of BRKGA gives `features` of each op; the network reads them and draws an action,
the distributions of the op's keys (`proposals`); a second run of BRKGA draws from these.
"""

from __future__ import annotations

from itertools import count
from math import inf
from pathlib import Path

from situate import _core
from situate.data.arrays import Ints
from situate.errors import SituateError, plural
from situate.simulation.simulator import Decoder
from situate.simulation.transfer_order import instant
from situate.solvers.evolutionary.brkga import breed, check_problem
from situate.solvers.evolutionary.regal.features import encoding, expected
from situate.solvers.evolutionary.regal.proposals import derived, for_features, proposed
from situate.solvers.evolutionary.regal.settings import RegalSettings
from situate.solvers.evolutionary.regal.weights import Proposer
from situate.solvers.heuristics.baselines import single_plans
from situate.solvers.search import Search

WEIGHTS = Path(__file__).parent / "weights"
"""The folder of the package's own weights."""

SETS = ("synthetic", "real")
"""Names of their training sets, the default first; see docs/methods/regal.md."""

FEATURES_SHARE = 0.5
"""Largest share of the budget for the plain run that makes the network's features."""

OFFERS_TO_ASK = 25
"""Encoding a large problem and inference take less time than so many offers."""


def regal(search: Search) -> None:
    """Run plain BRKGA for the network's features, then BRKGA with the network's proposals."""
    _breed_where_proposed(search, "regal")


def gas(search: Search) -> None:
    """As `regal`, with a recurrent network over the ops in topological order."""
    _breed_where_proposed(search, "gas")


def idrs(search: Search) -> None:
    """Draw at random from the network's proposals without breeding: all chromosomes belong to a
    first generation."""
    proposer = _proposer(search, "idrs")
    actions = _actions(search, proposer)
    for part in count():
        if actions is None or search.finished():
            return
        # With one seed for all parts, each would draw the same chromosomes.
        settings, seed = proposer.settings, derived(search.seed, part)
        population = proposed(search.simulator, settings, actions, seed)
        breed(search, population, settings.breeding.decoder, settings.breeding.population)


def _breed_where_proposed(search: Search, method: str) -> None:
    proposer = _proposer(search, method)
    actions = _actions(search, proposer)
    if actions is not None and not search.finished():
        settings = proposer.settings
        population = proposed(search.simulator, settings, actions, search.seed)
        breed(search, population, settings.breeding.decoder)


def _proposer(search: Search, method: str) -> Proposer:
    """The trained network of a method."""
    check_problem(search.problem)
    path = _weights(search, method)
    proposer = Proposer(path, search.problem)
    kind = "sequence" if method == "gas" else "graph"
    if proposer.settings.shape.kind != kind:
        raise SituateError(
            f"{path}: the weights are of a {proposer.settings.shape.kind} network, and {method} "
            f"takes those of a {kind} network: see situate train regal --settings"
        )
    return proposer


def _actions(search: Search, proposer: Proposer) -> Ints | None:
    """(n, c) the network's proposals, after the plain run for its features; None if no time is left
    for inference."""
    settings = proposer.settings
    population = _population_for_features(search, settings)
    _offer_one_device(search, settings.breeding.decoder)
    if search.finished() or not search.budget.affords(OFFERS_TO_ASK):
        return None
    encoded = encoding(search.problem, expected(population), settings.places)
    return proposer.actions(encoded, search.seed)


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


def _weights(search: Search, method: str) -> Path:
    """The weights that `Learning.weights` names, or the package's own for such problems."""
    source, problem = search.options.weights, search.problem
    if source is not None and source not in SETS:
        return Path(source)
    settings = "gas" if method == "gas" else search.options.settings
    for trained in SETS if source is None else (source,):
        name = f"{problem.objective}-{problem.d}-{settings}-{trained}.safetensors"
        if (path := WEIGHTS / name).is_file():
            return path
    which = "" if source is None else f" of the {source} set"
    raise SituateError(
        f"{method}: no weights{which} for {_purpose(problem.objective, problem.d, settings)} come "
        f"with situate, only for {', '.join(_purposes())}: train some with situate train regal, "
        f"and give them with --weights"
    )


def _purposes() -> list[str]:
    """The purposes of the package's own weights."""
    names = {path.stem.rpartition("-")[0] for path in WEIGHTS.glob("*.safetensors")}
    return [_purpose(*name.split("-")) for name in sorted(names)]


def _purpose(objective: str, devices: int | str, settings: str) -> str:
    return f"{objective} on {plural(int(devices), 'device')} in {settings} settings"


def _population_for_features(search: Search, settings: RegalSettings) -> _core.search.Brkga:
    """The population that plain BRKGA breeds in its share of the budget."""
    limit = search.budget.evaluation_limit
    most = inf if limit is None else max(1, int(FEATURES_SHARE * limit))
    evaluations = min(settings.feature_evaluations, most)
    population = for_features(search.simulator, settings, search.seed)
    with search.budget.reserving(1 - FEATURES_SHARE):
        breed(search, population, settings.breeding.decoder, evaluations)
    return population
