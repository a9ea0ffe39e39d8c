"""Linkage by a trained network: the probability that both ends of an edge are bred together, and
the probability that an op is on the device of the anchor.

REGAL proposes the keys of every op by itself, given the graph (A. Paliwal et al., ICLR 2020,
Eq. 2). Plans differ in the ops that they put together: two branches of a network may swap their
devices, and each op then has another device, but its neighbours are still beside it. So this
network scores edges, and ops in relation to one op, the `anchor`. Neither changes with the devices'
names. The network reads nothing of the devices, and one set of weights serves any number of them.
Devices that differ have no anchor, and the scores of edges serve alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, Protocol

import msgspec
import numpy as np

from situate.data.arrays import Ints
from situate.data.problem import Objective, Problem
from situate.data.topology import edge_producers
from situate.errors import ReadError, SituateError
from situate.files.contents import one_line
from situate.files.strict_json import decode
from situate.policies.edge_network import (
    EdgeShape,
    NumpyOperations,
    edge_graph,
    logits,
)
from situate.solvers.evolutionary.brkga import Linkage
from situate.solvers.evolutionary.regal.features import Features, encoding
from situate.solvers.evolutionary.regal.proposals import Proposals, anchor, leaning

VERSION = 1

MOST_BYTES = 2**24
MOST_WIDTH, MOST_ROUNDS, MOST_FEATURES, MOST_CONCENTRATION = 1024, 64, 256, 1000

MOST_ALONE = 0.9
"""Least `Origin.most` where edges guide without ops: the best one in the trainings for time and for
memory. There the scores of edges are all that guides the search."""

Arrays = Mapping[str, Features]


class Origin(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The purpose and origin of weights, stored in their file.

    Attributes:
        objective: of the problems that the weights are for.
        shape: of the network.
        most, power: an edge of probability p joins its ends with probability most x p^power.
        concentration: alpha + beta of the distribution of an op's affinity, see `leaning`; 0 for
            uniform ones.
        data: SHA-256 of the graphs that trained the network, in hexadecimal.
        command: that trained it.
        situate: version of situate that trained it.
        teachers: plans of each graph that it learned from.
        teacher_evaluations: of `auto`, for each of these plans.
        devices: number of devices of these plans.
        curve: (epochs, mean loss in training, mean loss on held-out graphs).
    """

    objective: Objective
    shape: EdgeShape
    most: float
    power: float
    data: str
    command: str
    situate: str
    teachers: int
    teacher_evaluations: int
    devices: int
    concentration: float = 0.0
    curve: list[tuple[int, float, float]] = []
    format: Literal["situate-linkage"] = "situate-linkage"
    version: int = VERSION


@dataclass(frozen=True, eq=False)
class Scores:
    """A linker's scores of a problem of n ops and e edges, see `raw_features`.

    Attributes:
        together: (e,) probability that the ends of an edge are bred together.
        beside: (n,) probability that an op is on the anchor's device, for two devices; None if
            unknown.
        concentration: of affinities, see `Origin`.
    """

    together: Features
    beside: Features | None = None
    concentration: float = 0.0


class Linker(Protocol):
    """Scores edges and ops by how well they belong together."""

    def scores(self, problem: Problem) -> Scores:
        """The scores of the edges and ops of a problem."""
        ...


@dataclass(frozen=True)
class ConstantLinkage:
    """The same probability at every edge, without a network.

    One distribution for all affinities would change nothing: the decoder compares them.
    """

    together: float

    def scores(self, problem: Problem) -> Scores:
        """See `Linker`."""
        return Scores(np.full(len(problem.consumers), self.together, np.float32))


class LinkageModel:
    """A trained network, as read from a file.

    Args:
        arrays: its parameters, and `mean` and `scale` (f,) of the features of ops.
        origin: see `Origin`.
    """

    def __init__(self, arrays: Arrays, origin: Origin) -> None:
        self._arrays, self.origin = arrays, origin

    def scores(self, problem: Problem) -> Scores:
        """See `Linker`."""
        most = self.origin.most
        if self.origin.concentration and anchor(problem) is None:
            most = max(most, MOST_ALONE)
        return self.of_features(*raw_features(problem), most)

    def of_features(
        self,
        nodes: Features,
        edges: Features,
        source: Ints,
        target: Ints,
        most: float | None = None,
    ) -> Scores:
        """For these features, see `raw_features`, and for `Origin.most` or another."""
        origin = self.origin
        together, beside = self.estimates(nodes, edges, source, target)
        # With `most` below one, breeding can still separate ends that the network is sure of.
        share = (origin.most if most is None else most) * together**origin.power
        return Scores(np.asarray(share, np.float32), beside, origin.concentration)

    def estimates(
        self, nodes: Features, edges: Features, source: Ints, target: Ints
    ) -> tuple[Features, Features | None]:
        """The network's estimate of shares of good plans.

        They are (e,) the share with both ends of an edge on one device, and (n,) the share with an
        op on the anchor's device if the network scores ops.
        """
        # The statistics of the training set, without which the weights mean nothing.
        nodes = (nodes - self._arrays["mean"]) / self._arrays["scale"]
        graph = edge_graph(nodes, edges, source, target)
        of_edges, of_ops = logits(self._arrays, graph, NumpyOperations())
        return _sigmoid(of_edges), None if of_ops is None else _sigmoid(of_ops)


def _sigmoid(x: Features) -> Features:
    return np.asarray(1 / (1 + np.exp(-x)), np.float32)


def linkage_of(problem: Problem, together: Features) -> Linkage:
    """The linkage of the problem's edges with probabilities (e,)."""
    source, target = edge_producers(problem), problem.consumers
    return Linkage(source.astype(np.int32), target.astype(np.int32), together)


def with_scores(problem: Problem, guide: Proposals, scores: Scores) -> Proposals:
    """Proposals whose ops are bred and placed by a linker's scores."""
    if scores.beside is not None and scores.concentration:
        guide = leaning(problem, guide, scores.beside, scores.concentration)
    return replace(guide, linkage=linkage_of(problem, scores.together))


def raw_features(
    problem: Problem,
) -> tuple[Features, Features, Ints, Ints]:
    """(n, f) features of ops, (e, g) of edges, and (e,) the source and target of each edge.

    They are those of the policy without devices, and the logarithms of the numbers of edges.
    """
    # Expectations of a plain run have a column per device; without them, the network fits any
    # cluster.
    graph = encoding(problem, np.zeros((problem.n, 0), np.float32), with_places=True)
    counts = [np.bincount(end, minlength=problem.n) for end in (graph.source, graph.target)]
    # Logarithms, because an op has between none and thousands of readers.
    nodes = np.column_stack([graph.nodes, *np.log1p(counts)]).astype(np.float32)
    return nodes, graph.edges, graph.source, graph.target


def write(path: str | Path, arrays: Arrays, origin: Origin) -> None:
    """Write the weights whole or not at all.

    Raises:
        SituateError: the file cannot be written.
    """
    from situate.files import safetensors

    safetensors.write(path, arrays, {"situate": msgspec.json.encode(origin).decode()})


def read(path: str | Path) -> LinkageModel:
    """The network of a file.

    Raises:
        ReadError: the file cannot be read or is no safetensors file; its weights are of another
            kind or version, or of other shapes than it says.
    """
    from situate.files import safetensors

    arrays, texts = safetensors.read(path, MOST_BYTES)
    try:
        origin = decode(texts.get("situate", "").encode(), Origin)
    except ReadError as error:
        raise ReadError(one_line(f"{path}: holds no linkage: {error}")) from None
    _check(path, arrays, origin)
    return LinkageModel(arrays, origin)


def _check(path: str | Path, arrays: Arrays, origin: Origin) -> None:
    shape, (node, edge) = origin.shape, origin.shape.features
    # Checked first, because a damaged file may ask for any size.
    sizes = {
        "width": (shape.width, 1, MOST_WIDTH),
        "rounds": (shape.rounds, 0, MOST_ROUNDS),
        "features of an op": (node, 1, MOST_FEATURES),
        "features of an edge": (edge, 1, MOST_FEATURES),
        "most": (origin.most, 0, 1),
        "power": (origin.power, 0, 100),
        "concentration": (origin.concentration, 0, MOST_CONCENTRATION),
        "version": (origin.version, VERSION, VERSION),
    }
    for name, (size, least, most) in sizes.items():
        if not least <= size <= most:
            raise ReadError(f"{path}: {name}: must be between {least} and {most}, got {size}")
    expected = shape.parameters() | {"mean": (node,), "scale": (node,)}
    for name in sorted(arrays.keys() ^ expected.keys()):
        which = "lacks" if name in expected else "has an unknown"
        raise ReadError(f"{path}: {which} tensor {one_line(name)!r}")
    for name, dimensions in expected.items():
        if arrays[name].shape != dimensions:
            raise ReadError(
                f"{path}: tensor {name!r} is {arrays[name].shape}, and the file says {dimensions}"
            )


def holds_linkage(path: str | Path) -> bool:
    """True if the file says that it holds a linkage; False for any other file.

    Raises:
        ReadError: the file cannot be read as safetensors.
    """
    from situate.files import safetensors

    return '"situate-linkage"' in safetensors.read(path, MOST_BYTES)[1].get("situate", "")


def check_for(path: str | Path, model: LinkageModel, problem: Problem) -> None:
    """
    Raises:
        SituateError: the weights are for another objective.
    """
    if model.origin.objective != problem.objective:
        raise SituateError(
            f"{path}: the weights were trained for {model.origin.objective}, not for "
            f"{problem.objective}: give others, or plan for {model.origin.objective}"
        )
