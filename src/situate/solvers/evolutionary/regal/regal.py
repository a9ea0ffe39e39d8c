"""`regal`, `gas` and `idrs`: BRKGA whose random keys a proposer guides.

A. Paliwal et al., *Reinforced Genetic Algorithm Learning for Optimizing Computation Graphs*, ICLR
2020. A plain run of BRKGA gives `features` of each op; the network reads them and draws an action,
the distributions of the op's keys (`proposals`); a second run of BRKGA draws from these. Without
weights, `regal` proposes a `Constant` instead, which needs neither features nor PyTorch.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

from situate.errors import SituateError, plural
from situate.policies.installed import check_installed, check_torch
from situate.solvers.evolutionary.brkga import breed, check_problem
from situate.solvers.evolutionary.regal.linkage import check_for, holds_linkage
from situate.solvers.evolutionary.regal.linkage import read as read_linkage
from situate.solvers.evolutionary.regal.proposals import derived, guided
from situate.solvers.evolutionary.regal.proposers import (
    ConstantProposer,
    LinkageProposer,
    NetworkProposer,
    Proposer,
)
from situate.solvers.evolutionary.regal.settings import CONSTANTS
from situate.solvers.search import Search

WEIGHTS = Path(__file__).parent / "weights"
"""The folder of the package's own weights."""

SETS = ("synthetic", "real")
"""Names of their training sets, the default of `idrs` first; see docs/methods/regal.md."""

CONSTANT, LINKED = "constant", "linked"
"""Names, among those of weights, of the proposals that need none, and of the package's linkage."""


def regal(search: Search) -> None:
    """Run BRKGA with the constant of the settings, or with the proposals of a network."""
    breed_with(search, _proposer(search, "regal"))


def gas(search: Search) -> None:
    """As `regal`, with a recurrent network over the ops in topological order."""
    breed_with(search, _proposer(search, "gas"))


def idrs(search: Search) -> None:
    """Draw at random from the proposals without breeding: all chromosomes belong to a first
    generation."""
    proposer = _proposer(search, "idrs")
    guide = proposer.propose(search)
    for part in count():
        if guide is None or _ended(search):
            return
        # With one seed for all parts, each would draw the same chromosomes.
        seed, breeding = derived(search.seed, part), proposer.breeding
        population = guided(search.simulator, breeding, guide, seed)
        # The limit ends each population with its first generation.
        breed(search, population, breeding.decoder, breeding.population)


def breed_with(search: Search, proposer: Proposer) -> None:
    """Run BRKGA with proposals until the budget ends."""
    guide = proposer.propose(search)
    if guide is not None and not _ended(search):
        population = guided(search.simulator, proposer.breeding, guide, search.seed)
        breed(search, population, proposer.breeding.decoder)


def _ended(search: Search) -> bool:
    """True if the budget is spent and there is a plan."""
    return search.best is not None and search.finished()


def _proposer(search: Search, method: str) -> Proposer:
    """The constant of the settings, or the trained network of a method."""
    check_problem(search.problem)
    source = search.options.weights or (CONSTANT if method == "regal" else None)
    if source == CONSTANT and method != "gas":
        return ConstantProposer(CONSTANTS[search.options.settings, search.problem.objective])
    if source == LINKED or (source not in (None, *SETS) and _is_linkage(source)):
        return _linkage(search, method, source)
    check_torch("safetensors")
    # PyTorch is slow to load, and a constant needs none.
    from situate.solvers.evolutionary.regal.weights import TrainedPolicy

    path = _weights(search, method)
    policy = TrainedPolicy(path, search.problem)
    kind = "sequence" if method == "gas" else "graph"
    if policy.settings.shape.kind != kind:
        raise SituateError(
            f"{path}: the weights are of a {policy.settings.shape.kind} network, and {method} "
            f"takes those of a {kind} network: see situate train regal --settings"
        )
    return NetworkProposer(policy)


def _is_linkage(path: str | Path) -> bool:
    check_installed("safetensors")
    return holds_linkage(path)


def _linkage(search: Search, method: str, source: str | Path) -> Proposer:
    """The linkage of a file, or the package's own for such problems."""
    check_installed("safetensors")
    if method != "regal":
        raise SituateError(f"{method}: takes no linkage; regal does")
    problem, path = search.problem, Path(source)
    if source == LINKED:
        path = WEIGHTS / f"{problem.objective}-linkage.safetensors"
    model = read_linkage(path)
    check_for(path, model, problem)
    return LinkageProposer(model, CONSTANTS[search.options.settings, problem.objective])


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
    names = {path.stem.rpartition("-")[0] for path in WEIGHTS.glob("*-*-*-*.safetensors")}
    return [_purpose(*name.split("-")) for name in sorted(names)]


def _purpose(objective: str, devices: int | str, settings: str) -> str:
    return f"{objective} on {plural(int(devices), 'device')} in {settings} settings"
