"""Placements by hand that the seeds' papers and slides compare with, or say that they found."""

from __future__ import annotations

import re

import numpy as np

from research.papers.cases import Case, slower
from situate import find_model
from situate.data.arrays import Placement
from situate.data.cluster import Cluster
from situate.data.problem import Problem
from situate.data.slices import Slices
from situate.data.topology import accelerators
from situate.solvers.heuristics.baselines import wish_placement

ENCODER = re.compile(r"encoder|source_embedding")
"""Modules of NMT's encoder."""


def encoder_apart(problem: Problem) -> Placement:
    """NMT's encoder on the first GPU, all else on the second (Post, Fig. 3d)."""
    first, second, *_ = accelerators(problem)
    of_encoder = [bool(ENCODER.match(op.module)) for op in problem.graph.ops]
    return wish_placement(problem, np.where(of_encoder, first, second))


def tower(problem: Problem) -> Placement:
    """A synchronous tower: each slice of the batch on a GPU of its own, what is there once on the
    CPU."""
    kinds = [device.kind for device in problem.cluster.devices]
    gpus, cpu = accelerators(problem), kinds.index("cpu")
    slices = [op.slice for op in problem.graph.ops]
    return wish_placement(problem, np.array([cpu if s is None else gpus[s] for s in slices]))


def in_slices(case: Case) -> Problem:
    """The step of a case with a slice of its batch for every GPU."""
    graph = find_model(case.network, slices=Slices((1,) * case.gpus))
    return Problem(graph, slower(Cluster.preset(f"{case.machine}-{case.gpus}"), case.factor))
