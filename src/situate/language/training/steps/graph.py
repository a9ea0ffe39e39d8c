"""The graph of a training step in a layout, with the decision that its program makes.

Every device of a stage has ops of its own, for each micro-batch and each block of layers. Ops of a
block on a device are one group, as they share its weights.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from situate.data.graph import Graph
from situate.language.training.layout import Run
from situate.language.training.steps.division import Division
from situate.language.training.steps.edges import DeviceEdges
from situate.language.training.steps.ops import StepOps
from situate.language.training.steps.order import program_order
from situate.language.training.steps.site import Site
from situate.language.training.transformer import Transformer


@dataclass(frozen=True)
class StepGraph:
    """A step as an ordinary graph, with the decision of the layout's program.

    Attributes:
        graph: ops and tensors.
        placement: (n,) the device of each op.
        order: (n,) ops in the order of the programs, producers first.
    """

    graph: Graph
    placement: NDArray[np.int32]
    order: NDArray[np.int32]


def step_graph(model: Transformer, run: Run, site: Site, division: Division) -> StepGraph:
    """The graph of a step.

    Args:
        model: the transformer.
        run: sequence and recipe; the layout is the division's.
        site: the cluster, or a part of it whose devices stand for all.
        division: layers of chunks, and micro-batches of replicas.

    Raises:
        SituateError: the step has too many ops.
    """
    step = StepOps(model, replace(run, layout=division.priced), site, division)
    for stage, member in step.members:
        DeviceEdges(step, stage, member).add_all()
    graph = Graph(
        f"{model.name} {division.priced}",
        tuple(step.ops),
        tuple(step.tensors),
        tuple(dict.fromkeys(step.control)),
        source="layout",
    )
    placement = np.array(step.devices, np.int32)
    return StepGraph(graph, placement, program_order(graph, placement))
