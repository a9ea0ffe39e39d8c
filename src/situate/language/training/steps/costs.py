"""Seconds and bytes of a step's ops in a layout, by the formulas that price the layout.

The ops of a step add up to the parts of `step_seconds`. A block of layers has two ops in each
direction, attention (projections and core) and network (the rest), and each has half of the layer's
passes that only move memory. With context parallelism, the products before attention's core are an
op of their own (keys).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from situate.language.training.activations import layer_memory, stream_bytes
from situate.language.training.layout import SCHEDULES, LayoutTable, Run
from situate.language.training.machine import Machine
from situate.language.training.memory import (
    NCCL_GROUP,
    logit_bytes,
    stage_weights,
    state_bytes,
)
from situate.language.training.seconds import (
    ZERO3_EXPOSED,
    LayerPasses,
    Pass,
    Workload,
    head_seconds,
    idle_rounds,
    layer_passes,
    state_seconds,
    step_seconds,
)
from situate.language.training.transformer import Transformer

Elements = tuple[float, float]
"""(elements outside experts, elements of experts) on a device."""


@dataclass(frozen=True)
class PartSeconds:
    """Seconds of a part of a layer for one micro-batch.

    Attributes:
        forward: the forward pass.
        backward: the backward pass, with recomputation.
        weight: the share of `backward` that computes gradients of weights.
    """

    forward: float
    backward: float
    weight: float


@dataclass(frozen=True)
class StepSeconds:
    """Seconds of the ops of a step on one model of GPU.

    Attributes:
        keys, attention, network: the parts of a layer; keys take no time without context
            parallelism.
        head: the output layer and the loss, in both directions.
        tensor, experts, context: (forward, backward) exchanges of a layer for a micro-batch.
        reduction, gathering: collectives of gradients and of weights, an element.
        exposure: the share of these collectives that computation does not hide.
        update: the optimizer's update, an element.
    """

    keys: PartSeconds
    attention: PartSeconds
    network: PartSeconds
    head: float
    tensor: tuple[float, float]
    experts: tuple[float, float]
    context: tuple[float, float]
    reduction: float
    gathering: float
    exposure: float
    update: float


@dataclass(frozen=True)
class StateBytes:
    """Bytes of the states of a part of the model on one device.

    Attributes:
        elements: the number of its weights.
        weights, gradients, optimizer: bytes; masters and moments are the optimizer's.
    """

    elements: float
    weights: float
    gradients: float
    optimizer: float


@dataclass(frozen=True)
class StepBytes:
    """Bytes of a step on one device.

    Attributes:
        stream: activations of a micro-batch between two layers.
        activations: activations of a micro-batch that a layer keeps, with its input.
        recomputation: activations that a backward pass computes again.
        logits: logits and their gradients at the peak of the loss.
        layer, embedding, head: states of each.
        constant: memory of libraries.
    """

    stream: float
    activations: float
    recomputation: float
    logits: float
    layer: StateBytes
    embedding: StateBytes
    head: StateBytes
    constant: float


def gathers_often(run: Run) -> bool:
    """True if every micro-batch gathers the weights that ZeRO-3 divides."""
    layout = run.layout
    stays = run.recipe.software.stays_gathered and layout.pp > 1
    return layout.zero == 3 and layout.dp * layout.cp > 1 and not stays


def step_costs(model: Transformer, run: Run, machine: Machine) -> StepSeconds:
    """Seconds of the ops of a step on the weakest GPU of a machine."""
    table = LayoutTable.of([run.layout])
    work = Workload.of(model, run, machine, table)
    factors = run.recipe.software.pace.factors
    passes = layer_passes(work)
    keys, attention, network = _parts(
        passes, factors, _waiting(model, run, machine), _key_share(model, run)
    )
    states = state_seconds(work)
    elements = sum(_stage_elements(model, table, 0))
    parts = step_seconds(model, run, machine, table)
    # ZeRO-3 starts a collective in every layer; other modes count one start, as `states` does.
    latency = float(states.latency[0]) * _layers(model, run) if gathers_often(run) else 0.0
    # Per element, because the graph multiplies by the elements of a block.
    scale = factors.get("data", 1.0) / elements
    overlap = run.recipe.software.overlap
    return StepSeconds(
        keys=keys,
        attention=attention,
        network=network,
        head=float(head_seconds(work)[0]) * factors.get("head", 1.0),
        tensor=_directions(passes.tensor, factors.get("tensor", 1.0)),
        experts=_directions(passes.experts, factors.get("experts", 1.0)),
        context=_directions(passes.context, factors.get("context", 1.0)),
        reduction=(float(states.reduction[0]) + latency) * scale,
        gathering=(float(states.gathering[0]) + latency) * scale,
        exposure=ZERO3_EXPOSED if gathers_often(run) else 1 - overlap,
        update=float(parts["update"][0] + parts["host"][0]) / elements,
    )


def _parts(
    passes: LayerPasses, factors: dict[str, float], waiting: float, key_share: float
) -> tuple[PartSeconds, PartSeconds, PartSeconds]:
    """Keys, attention and network of a layer.

    Attention and network have half of the passes that only move memory each, and half of the
    seconds that the GPU waits for launches.
    """

    def scaled(part: str, seconds: Pass, share: float = 1.0) -> Pass:
        factor = share * factors.get(part, 1.0)
        return Pass(factor * seconds.forward, factor * seconds.backward)

    # Backward passes launch twice the kernels.
    shared = scaled("memory", passes.memory)
    shared = Pass(shared.forward / 2 + waiting / 6, shared.backward / 2 + waiting / 3)
    keys = scaled("matrices", passes.projections, key_share)
    projections = scaled("matrices", passes.projections, 1 - key_share)
    dense = scaled("matrices", passes.network) + scaled("grouped", passes.grouped)
    core = scaled("attention", passes.attention) + scaled("context", passes.joins)
    return (
        _part(keys, keys.forward),
        _part(projections + core + shared, projections.forward),
        _part(dense + shared, dense.forward),
    )


def _key_share(model: Transformer, run: Run) -> float:
    """Share of the products of attention's matrices before an exchange of keys and values."""
    if run.layout.cp == 1:
        return 0.0
    output = model.heads * model.value_head * model.hidden
    return 1 - output / model.attention_weights


def _part(both: Pass, weight: Any) -> PartSeconds:
    forward, backward = _directions(both, 1.0)
    return PartSeconds(forward, backward, float(weight[0]))


def _directions(both: Pass, factor: float) -> tuple[float, float]:
    return float(both.forward[0]) * factor, float(both.backward[0]) * factor


def _layers(model: Transformer, run: Run) -> int:
    """Layers of the fullest stage."""
    return -(-model.layers // run.layout.pp)


def _waiting(model: Transformer, run: Run, machine: Machine) -> float:
    """Seconds a layer and a micro-batch that the GPU waits for launches."""
    table = LayoutTable.of([run.layout])
    rounds = run.layout.count + float(idle_rounds(model, run, machine, table)[0])
    # Launches of the whole step, with the idle rounds of its pipeline.
    launches = float(step_seconds(model, run, machine, table)["launches"][0])
    return launches / (rounds * _layers(model, run))


def step_bytes(model: Transformer, run: Run) -> StepBytes:
    """Bytes of the ops of a step."""
    table = LayoutTable.of([run.layout])
    layer, embedding, head = _elements(model, run)
    activations, repeated = layer_memory(model, run, table)
    tokens = table.micro * run.sequence / table.cp
    logits = logit_bytes(model, run.recipe.software, table, table.last_stage, tokens)
    # The op of the head runs the layers of further predictions too.
    logits = logits + table.mtp * (activations + 4 * stream_bytes(model, run, table))
    layout = run.layout
    degrees = (layout.tp, layout.cp, layout.dp, layout.pp, layout.ep)
    groups = sum(degree > 1 for degree in degrees)
    return StepBytes(
        stream=float(stream_bytes(model, run, table)[0]),
        activations=float(activations[0]),
        recomputation=float(repeated[0]),
        logits=float(logits[0]),
        layer=_states(model, run, layer, 0.0),
        embedding=_states(model, run, embedding, 1.0),
        head=_states(model, run, head, 1.0),
        constant=run.recipe.software.workspace + NCCL_GROUP * groups,
    )


def _states(model: Transformer, run: Run, elements: Elements, end: float) -> StateBytes:
    """States of these elements, with the copies of lower precision that stay in memory.

    Args:
        model, run: of the step.
        elements: outside experts, and of experts.
        end: share of them that is of the embedding or the output.
    """
    table, recipe = LayoutTable.of([run.layout]), run.recipe
    weights, experts = (np.array([count]) for count in elements)
    roles = state_bytes(model, recipe, table, weights, experts, end * weights)
    whole, stays = sum(elements), recipe.software.stays_gathered
    copies = 0.0
    if run.layout.zero == 3 and run.layout.dp * run.layout.cp > 1:
        copies = (recipe.gathered + recipe.gradient) * whole if stays and run.layout.pp > 1 else 0.0
    elif recipe.name == "amp":
        copies = recipe.gathered * whole
    return StateBytes(
        elements=whole,
        weights=float(roles["weights"][0]) + copies,
        gradients=float(roles["gradients"][0]),
        optimizer=float(roles["masters"][0] + roles["moments"][0]),
    )


def _stage_elements(model: Transformer, table: LayoutTable, stage: int) -> Elements:
    """Elements of a stage on a device; stage -1 has neither embedding nor head."""
    rank: NDArray[np.int64] = np.array([stage])
    weights, experts = stage_weights(model, table, rank)
    return float(weights[0]), float(experts[0])


def _elements(model: Transformer, run: Run) -> tuple[Elements, Elements, Elements]:
    """Elements of a layer, of the embedding and of the head on a device."""
    layout = run.layout
    table = LayoutTable.of([layout])
    middle = _stage_elements(model, table, -1)
    count = _layers(model, run)
    # With two stages or more, embedding and head are on different ones.
    apart = LayoutTable.of([replace(layout, pp=max(layout.pp, 2), schedule=SCHEDULES[0])])
    between = _stage_elements(model, apart, -1)[0]
    embedding = _stage_elements(model, apart, 0)[0] - between
    head = _stage_elements(model, apart, max(layout.pp, 2) - 1)[0] - between
    if not layout.last_stage:
        # A tied output is the embedding.
        head = _stage_elements(model, table, 0)[0] - middle[0] - embedding
    return (middle[0] / count, middle[1] / count), (embedding, 0.0), (head, 0.0)
