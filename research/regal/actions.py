"""Choices of a trained policy: their entropy on each graph (REGAL, Fig. 4a), and how often it
chooses what for ops of which weight (Fig. 11).

A choice is one of all categories of an op's affinities together, 16 with two levels and two
devices, or of the mean and variance of its priority, or of its transfers'; the entropy is of the
frequencies over the ops of a graph. The most frequent choice is given by its levels, from 1, of
every mean and variance. An op prefers the device whose affinity has the greater mean.
Its weight is the bytes of its inputs and outputs, as a share of the graph's largest.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import inf
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.lib.record import Row, show, write
from research import RESULTS
from research.regal.compared import DEVICES
from research.regal.data import graphs_hash, trained
from situate import RULES, Cluster, Problem
from situate.data.arrays import Ints
from situate.data.problem import Objective
from situate.readers import read
from situate.simulation.simulator import Simulator
from situate.solvers.evolutionary.regal.features import encoding, expected, op_bytes
from situate.solvers.evolutionary.regal.proposals import for_features
from situate.solvers.evolutionary.regal.settings import Proposed
from situate.solvers.evolutionary.regal.weights import TrainedPolicy
from situate.solvers.evolutionary.regal.weights import read as read_weights

PREFERENCES = ("device 1", "device 2", "neither")
PRIORITIES = ("low", "high")


def main(arguments: list[str] | None = None) -> None:
    """Ask, print and record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="of graph files")
    parser.add_argument("--name", required=True, help="the record is regal_actions_NAME.json")
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--graphs", type=int, help="of the folder; default: all")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    _, about = read_weights(options.weights)
    paths = sorted(path for path in options.folder.iterdir() if path.is_file())[: options.graphs]
    of_graphs = list[dict[str, Ints]]()
    chosen, weights = list[Ints](), list[NDArray[np.float64]]()
    for path in paths:
        problem = Problem(read(path), Cluster.identical(DEVICES), about.objective, RULES["regal"])
        actions = chosen_actions(options.weights, problem, options.seed)
        of_graphs.append(kinds(actions, about.settings.proposed))
        chosen.append(classes(actions, about.settings.proposed))
        of_ops = op_bytes(problem)[:, :2].sum(axis=1)
        weights.append(of_ops / max(1.0, float(of_ops.max())))
    entropies = [{kind: entropy(of) for kind, of in choices.items()} for choices in of_graphs]
    tables: dict[str, list[Row]] = {
        "entropy, nats": [
            _entropies(kind, np.array([choices[kind] for choices in entropies]), about.objective)
            | usual(np.concatenate([choices[kind] for choices in of_graphs]), *shape)
            for kind, shape in shapes(about.settings.proposed).items()
        ],
        "choices": list(_choices(np.concatenate(chosen), np.concatenate(weights))),
        "graphs": [{"graph": path.name} | of for path, of in zip(paths, entropies, strict=True)],
    }
    tables["weights"] = [trained(options.weights.stem, options.weights)]
    tables["data"] = [{"graphs": len(paths), "sha256": graphs_hash(paths)}]
    for title in ("entropy, nats", "choices"):
        show(f"regal_actions_{options.name}: {title}", tables[title])
    write(RESULTS / f"regal_actions_{options.name}.json", tables, options=options)


def chosen_actions(path: Path, problem: Problem, seed: int) -> Ints:
    """(n, c) the choices of the policy in a file."""
    policy = TrainedPolicy(path, problem)
    population = for_features(Simulator(problem), policy.settings, seed)
    population.run(policy.settings.feature_evaluations, inf, 1)
    read_of = encoding(problem, expected(population), policy.settings.places)
    return policy.actions(read_of, seed)


def shapes(proposed: Proposed) -> dict[str, tuple[int, int]]:
    """By kind of choice, the levels of each mean and variance, and the number of these."""
    all_kinds = {
        "placement": (proposed.placement, 2 * DEVICES),
        "scheduling": (proposed.scheduling, 2),
        "transfers": (proposed.transfers, 2),
    }
    return {kind: shape for kind, shape in all_kinds.items() if shape[0]}


def kinds(actions: Ints, proposed: Proposed) -> dict[str, Ints]:
    """(n,) the numbers of the choices of ops, by kind of choice."""
    result, begin = {}, 0
    for kind, (levels, width) in shapes(proposed).items():
        columns = actions[:, begin : begin + width]
        result[kind] = np.asarray(columns @ levels ** np.arange(width), np.int64)
        begin += width
    return result


def usual(choices: Ints, levels: int, width: int) -> Row:
    """The most frequent of the numbers of choices, as levels from 1, and its share of the ops."""
    numbers, counts = np.unique(choices, return_counts=True)
    most = counts.argmax()
    chosen = numbers[most] // levels ** np.arange(width) % levels + 1
    return {
        "usual": " ".join(map(str, chosen)),
        "levels": levels,
        "usual_%": float(100 * counts[most] / len(choices)),
    }


def entropy(choices: Ints) -> float:
    """The entropy of the frequencies of choices, in nats."""
    shares = np.unique(choices, return_counts=True)[1] / len(choices)
    return abs(float((shares * np.log(shares)).sum()))


def classes(actions: Ints, proposed: Proposed) -> Ints:
    """(n, 2) the place of each op's choice in `PREFERENCES` and in `PRIORITIES`."""
    prefers = np.full(len(actions), len(PREFERENCES) - 1)
    begin = 0
    if proposed.placement:
        first, second, begin = actions[:, 0], actions[:, 2], 2 * DEVICES
        prefers = np.where(first == second, prefers, second > first)
    high = 2 * actions[:, begin] >= proposed.scheduling if proposed.scheduling else prefers < 0
    return np.column_stack([prefers, high])


def _entropies(kind: str, of_graphs: NDArray[np.float64], objective: Objective) -> Row:
    return {
        "choices": kind,
        "objective": objective,
        "graphs": len(of_graphs),
        "mean": float(of_graphs.mean()),
        "least": float(of_graphs.min()),
        "most": float(of_graphs.max()),
    }


def _choices(chosen: Ints, weights: NDArray[np.float64]) -> Iterator[Row]:
    for i, preference in enumerate(PREFERENCES):
        for j, priority in enumerate(PRIORITIES):
            these = (chosen == (i, j)).all(axis=1)
            yield {
                "prefers": preference,
                "priority": priority,
                "ops_%": float(100 * these.mean()),
                "mean_weight": float(weights[these].mean()) if these.any() else None,
            }


if __name__ == "__main__":
    main()
