"""Seconds of a training step by its parts, for tables of layouts.

A step has `count + (pp - 1) / vp` times the seconds of a micro-batch in one stage (Narayanan et
al., arXiv:2104.04473, section 2.2), then collectives of gradients, which the last backward passes
hide in part, and the update. Zero-bubble pipelines (Qi et al., arXiv:2401.10241, table 2 and
section 6) wait for less than `F + B + W`: forward pass, gradients of inputs, and gradients of
weights, which only matrix products have.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from situate.language.training.activations import repeated_norms
from situate.language.training.collectives import (
    copies_seconds,
    exchange_seconds,
    gather_seconds,
    reduce_seconds,
    send_seconds,
)
from situate.language.training.kernels import attention_seconds, pass_seconds, product_seconds
from situate.language.training.layout import Floats, LayoutTable, Run
from situate.language.training.machine import Machine
from situate.language.training.memory import first_rank, stage_weights
from situate.language.training.software import PARTS, Software
from situate.language.training.transformer import Transformer

BACKWARD = 2.0
"""Work of a backward pass by that of a forward pass: gradients of inputs and of weights."""

SELECTIVE, FULL, MODULES = 1, 2, 3

BUSY = ("matrices", "grouped", "attention", "memory", "tensor", "context", "experts")
"""Parts in which the GPU runs kernels that the host launches."""

SCORE_MATRICES = 4
"""Matrices of scores that a block of Megatron-LM's kernel of softmax computes (`fused_softmax.py`,
`is_kernel_available`)."""

HOST_RATE = 5e9
"""Parameters that the host updates in a second (DeepSpeed's CPU Adam, arXiv:2101.06840)."""

ZERO3_EXPOSED = 0.1
"""Share of ZeRO-3's collectives that nothing hides at least."""

UPDATE_LAUNCH = 2e-3
"""Seconds of a step outside all layers: its loss, its norm of gradients, its data."""


@dataclass(frozen=True)
class Workload:
    """The arguments of all formulas.

    Attributes:
        model: the transformer.
        run: the sequence and the recipe; its layout is not read.
        machine: the cluster.
        table: layouts.
        tokens: (layouts,) tokens of a micro-batch on one device.
        software: the program.
    """

    model: Transformer
    run: Run
    machine: Machine
    table: LayoutTable
    tokens: Floats
    software: Software

    @classmethod
    def of(cls, model: Transformer, run: Run, machine: Machine, table: LayoutTable) -> Workload:
        """The arguments with the tokens of each layout."""
        tokens = table.micro * run.sequence / table.cp
        return cls(model, run, machine, table, tokens, run.recipe.software)

    @property
    def kind(self) -> str:
        """Type of matrix products."""
        return self.run.recipe.product_type

    @property
    def width(self) -> int:
        """Bytes of an activation."""
        return 4 if self.run.recipe.precision in ("fp32", "tf32") else 2


@dataclass(frozen=True)
class Pass:
    """(layouts,) seconds of one layer for one micro-batch, forwards and backwards."""

    forward: Floats
    backward: Floats

    def __add__(self, other: Pass) -> Pass:
        return Pass(self.forward + other.forward, self.backward + other.backward)

    def repeating(self, again: Floats) -> Pass:
        """The pass whose backward part repeats a share of the forward one."""
        return Pass(self.forward, self.backward + again * self.forward)

    @property
    def total(self) -> Floats:
        """Seconds of both directions."""
        return self.forward + self.backward


@dataclass(frozen=True)
class LayerPasses:
    """The passes of a layer for one micro-batch, with what they repeat.

    Attributes:
        projections: products of attention's matrices.
        network: products of the dense feed-forward network, and of shared experts.
        grouped: products of experts.
        attention: the core of attention.
        memory: normalisations, residuals, activations.
        tensor, experts, context: exchanges of tensor, expert and context parallelism.
        joins: results of the steps of context parallelism's ring, joined in float32.
    """

    projections: Pass
    network: Pass
    grouped: Pass
    attention: Pass
    memory: Pass
    tensor: Pass
    experts: Pass
    context: Pass
    joins: Pass

    @property
    def products(self) -> Pass:
        """Seconds of all products, which hide the collectives of states."""
        return self.projections + self.network + self.grouped + self.attention

    @property
    def by_part(self) -> dict[str, Floats]:
        """Seconds of both directions by part of the step."""
        return {
            "matrices": (self.projections + self.network).total,
            "grouped": self.grouped.total,
            "attention": self.attention.total,
            "memory": self.memory.total,
            "tensor": self.tensor.total,
            "experts": self.experts.total,
            "context": self.context.total + self.joins.total,
        }


def step_seconds(
    model: Transformer, run: Run, machine: Machine, table: LayoutTable
) -> dict[str, Floats]:
    """(layouts,) seconds by part, with the factors of the recipe's software.

    Args:
        model: the transformer.
        run: the sequence and the recipe; its layout is not read.
        machine: the cluster, whose slowest GPU all others wait for.
        table: layouts.
    """
    parts = raw_seconds(model, run, machine, table)
    return with_factors(parts, run.recipe.software.pace.factors)


def with_factors(parts: dict[str, Floats], factors: dict[str, float]) -> dict[str, Floats]:
    """Seconds by part times their factors.

    The host launches kernels while the GPU computes: of its seconds the part counts that the GPU
    waits.
    """
    scaled = {part: parts[part] * factors.get(part, 1.0) for part in PARTS}
    busy = sum((scaled[part] for part in BUSY), np.zeros_like(scaled["launches"]))
    return scaled | {"launches": np.maximum(scaled["launches"] - busy, 0.0)}


def raw_seconds(
    model: Transformer, run: Run, machine: Machine, table: LayoutTable
) -> dict[str, Floats]:
    """(layouts,) seconds by part, by the formulas alone; launches are all of the host's seconds."""
    work = Workload.of(model, run, machine, table)
    layers = np.ceil(model.layers / table.pp)
    layer = layer_passes(work).by_part
    head = head_seconds(work)
    launches = layers * _layer_launches(work)
    rounds = table.count + _idle_rounds(work, layer)
    parts = {part: rounds * layers * seconds for part, seconds in layer.items()}
    # The others wait for the head of the last stage, but not while the pipeline fills and empties.
    parts["head"] = table.count * head
    parts["launches"] = rounds * launches + table.count * work.software.end_launch
    parts["pipeline"] = _pipeline(work)
    products = layer_passes(work).products
    parts["data"] = _data(work, layers * products.forward, layers * products.backward)
    parts["update"] = _update(work)
    parts["host"] = _host(work)
    return parts


def idle_rounds(model: Transformer, run: Run, machine: Machine, table: LayoutTable) -> Floats:
    """(layouts,) the waiting of a stage, by the seconds of a micro-batch in it; arguments are those
    of `step_seconds`."""
    work = Workload.of(model, run, machine, table)
    return _idle_rounds(work, layer_passes(work).by_part)


def _idle_rounds(work: Workload, layer: dict[str, Floats]) -> Floats:
    table = work.table
    whole = sum(layer.values(), np.zeros(len(table)))
    # The gradients of weights cost as much as the forward pass of their products.
    weights = _projections(work).forward + _dense(work).forward + _grouped(work).forward
    passes = layer_passes(work)
    forward = sum((getattr(passes, field.name).forward for field in fields(passes)), 0.0 * whole)
    inputs = whole - forward - weights
    longest = np.maximum(forward, inputs - forward)
    waits = [
        whole,
        whole - 2 * weights,
        # ZB-H2's F + B - 2 W counts from the first pass of a stage. Here all stages end together.
        np.maximum(whole - 3 * weights, longest),
        np.maximum(inputs, 2 * (inputs - weights)),
    ]
    idle: Floats = np.choose(table.schedule, waits) / whole * (table.pp - 1) / table.vp
    return idle


def _repeated(work: Workload) -> tuple[Floats, Floats]:
    """Shares of a layer's forward pass that its backward pass repeats: without full recomputation
    too, and with it alone."""
    full = (work.table.recompute == FULL).astype(float)
    return np.where(work.table.recompute == SELECTIVE, work.software.repeated, full), full


def _layer_launches(work: Workload) -> Floats:
    """Seconds in which the host launches the kernels of a layer for a micro-batch."""
    table, software = work.table, work.software
    again, full = _repeated(work)
    share = work.model.expert_layers / work.model.layers
    launch = software.layer_launch + share * software.expert_launch
    # The kernel of softmax takes several matrices of scores at once, or none.
    apart = (table.micro * work.model.heads / table.tp) % SCORE_MATRICES > 0
    softmax = software.softmax_launch * (software.attention == "scores")
    launches = launch + np.where(apart, softmax, 0.0)
    # Two all-reduces a pass, and again where it is recomputed.
    collectives = np.where(table.tp > 1, 2 * (2 + full), 0.0) * software.collective_launch
    # The backward pass has twice the kernels of the forward pass.
    seconds: Floats = launches * (3.0 + again) + collectives
    return seconds


def layer_passes(work: Workload) -> LayerPasses:
    """The passes of a layer for a micro-batch."""
    table = work.table
    again, full = _repeated(work)
    repeats_core = np.isin(table.recompute, (SELECTIVE, FULL)).astype(float)
    core_again = full if work.software.selective else repeats_core
    projections_again, memory_again = _repeated_modules(work)
    attention = _attention(work).repeating(core_again)
    return LayerPasses(
        projections=_projections(work).repeating(again + projections_again),
        network=_dense(work).repeating(again),
        grouped=_grouped(work).repeating(again),
        attention=attention,
        memory=_memory(work).repeating(again + memory_again),
        tensor=_tensor(work).repeating(full),
        experts=_experts(work).repeating(full),
        context=_context(work, attention.total),
        joins=_joins(work),
    )


def _repeated_modules(work: Workload) -> tuple[Floats, Floats]:
    """Shares of the forward pass that Megatron-LM's modules repeat: of attention's products those
    behind compressed queries, keys and values, and of passes over memory."""
    model, table = work.model, work.table
    modules = (table.recompute == MODULES).astype(float)
    down_and_out = model.hidden * (model.latent + model.heads * model.value_head)
    up = 1 - down_and_out / model.attention_weights if model.latent else 0.0
    between, inside = _passes(work)
    # A normalisation reads and writes the stream; an activation reads gate and input.
    repeated = 2 * repeated_norms(model) * model.hidden / table.sequence_split
    if model.experts is not None:
        width = model.experts.used * model.experts.width
        repeated = repeated + model.matrices * model.expert_layers / model.layers * width / table.tp
    return modules * up, modules * repeated / (between + inside)


def _projections(work: Workload) -> Pass:
    """Products of the matrices of a layer's attention."""
    model, table, rows = work.model, work.table, work.tokens
    gpu, kind = work.machine.weakest, work.kind
    inner = model.heads * model.value_head / table.tp
    # The matrices before attention's core, as one product of their elements.
    joint = model.attention_weights / model.hidden - model.heads * model.value_head
    forward = product_seconds(gpu, kind, rows, joint / table.tp, model.hidden)
    forward = forward + product_seconds(gpu, kind, rows, float(model.hidden), inner)
    return Pass(forward, BACKWARD * forward)


def _dense(work: Workload) -> Pass:
    """Products of a layer's feed-forward network outside its experts, in the mean over layers."""
    model, table, rows = work.model, work.table, work.tokens
    share = model.expert_layers / model.layers
    forward = np.zeros(len(table))
    if share < 1:
        forward = forward + (1 - share) * _network(work, rows, model.ffn / table.tp)
    if model.experts is not None and model.experts.shared_width:
        forward = forward + share * _network(work, rows, model.experts.shared_width / table.tp)
    return Pass(forward, BACKWARD * forward)


def _grouped(work: Workload) -> Pass:
    """Products of a layer's experts with the tokens that the router sends them."""
    model, table = work.model, work.table
    if model.experts is None:
        zero = np.zeros(len(table))
        return Pass(zero, zero)
    mixture = model.experts
    # All tokens of the group of experts, spread evenly over them.
    group = table.ep * np.where(table.sp == 1, table.etp / table.tp, 1.0)
    rows = work.tokens * mixture.used * group / mixture.count
    local = mixture.count / table.ep
    # One kernel multiplies all groups, so that their tiles share its waves.
    once = _network(work, local * rows, mixture.width / table.etp)
    weights = 2 * (local - 1) * model.expert_weights / table.etp
    once = once + pass_seconds(work.machine.weakest, weights)
    forward = model.expert_layers / model.layers * once
    return Pass(forward, BACKWARD * forward)


def _network(work: Workload, rows: Floats, width: Floats) -> Floats:
    """Seconds of the forward pass of a feed-forward network with matrices of this width."""
    gpu, kind, hidden = work.machine.weakest, work.kind, work.model.hidden
    first = product_seconds(gpu, kind, rows, (work.model.matrices - 1) * width, hidden)
    return first + product_seconds(gpu, kind, rows, float(hidden), width)


def _attention(work: Workload) -> Pass:
    """The core of a layer's attention."""
    model, table = work.model, work.table
    keys = model.attended(work.run.sequence)
    heads = model.heads / table.tp
    scores = work.width * work.tokens * heads * work.run.sequence
    # The mask hides the pairs beyond `keys`, but their scores are in memory.
    pairs = work.tokens * heads * keys
    width = model.head + model.value_head
    return Pass(
        *attention_seconds(work.machine.weakest, pairs, width, work.software.attention, scores)
    )


def _memory(work: Workload) -> Pass:
    """Normalisations, residuals and activations, which read and write every element."""
    between, inside = _passes(work)
    moved = work.width * work.tokens * (between + inside)
    forward = pass_seconds(work.machine.weakest, moved)
    return Pass(forward, 1.5 * forward)


def _passes(work: Workload) -> tuple[Floats, Floats]:
    """(layouts,) passes over elements of a token: of the stream, which sequence parallelism
    divides, and inside blocks."""
    model, table = work.model, work.table
    ffn, routed = float(model.ffn), 0.0
    if model.experts is not None:
        active = model.experts.used * model.experts.width + model.experts.shared_width
        share = model.expert_layers / model.layers
        ffn = share * active + (1 - share) * ffn
        routed = share * work.software.expert_passes * model.experts.used * model.hidden
    between = (12 * model.hidden + routed) / table.sequence_split
    joint = 2 * (model.heads + 2 * model.kv_heads) * model.head
    return between, (joint + (model.matrices + 1) * ffn) / table.tp


def _tensor(work: Workload) -> Pass:
    """All-reduces of tensor parallelism: two in each direction, or the same bytes divided."""
    model, table = work.model, work.table
    amount = work.width * work.tokens * model.hidden
    size = table.tp.astype(float)
    ones = np.ones(len(table))
    reduced = 2 * reduce_seconds(work.machine, size, ones, amount)
    # A reduce-scatter takes as long as an all-gather.
    divided = 4 * gather_seconds(work.machine, size, ones, amount)
    forward = (1 - work.software.hidden) * np.where(table.sp == 1, divided, reduced)
    return Pass(forward, forward)


def _experts(work: Workload) -> Pass:
    """Tokens to their experts and back, and the GPU's waits for the host before the exchanges."""
    model, table = work.model, work.table
    if model.experts is None:
        zero = np.zeros(len(table))
        return Pass(zero, zero)
    split = np.where(table.sp == 1, table.tp, 1.0)
    amount = work.width * work.tokens * model.hidden / split
    size = (table.ep * table.etp).astype(float)
    share, used = model.expert_layers / model.layers, model.experts.used
    if work.software.sends_copies:
        seconds = copies_seconds(work.machine, size, amount, used)
    else:
        seconds = (1 - work.software.hidden) * exchange_seconds(work.machine, size, amount, used)
    # There and back.
    once = 2 * share * seconds
    local = model.experts.count / table.ep
    wait = share * local * work.software.expert_wait / (1 + BACKWARD)
    return Pass(once + wait, once + BACKWARD * wait)


def _context(work: Workload, attention: Floats) -> Pass:
    """Keys and values that go around a ring, as far as attention does not hide them."""
    model, table = work.model, work.table
    both = model.kv_heads * (model.head + model.value_head) / table.tp
    amount = work.width * work.tokens * both * (table.cp - 1)
    once = send_seconds(work.machine, table.tp.astype(float), amount)
    # Once forwards; backwards again, with as many bytes of gradients.
    seconds = np.where(table.cp > 1, 3 * once, 0.0)
    whole = np.maximum(seconds - 0.8 * attention, 0.05 * seconds)
    # Gradients go around too.
    return Pass(whole / 3, whole * 2 / 3)


def _joins(work: Workload) -> Pass:
    """Each step of the ring of keys and values joins its result with those before it."""
    model, table = work.model, work.table
    elements = work.tokens * model.heads * model.value_head / table.tp
    forward = pass_seconds(work.machine.weakest, 12 * elements * (table.cp - 1))
    return Pass(forward, 2 * forward)


def head_seconds(work: Workload) -> Floats:
    """The output's product with its loss, forwards and backwards, and layers of predictors.

    A predictor has a layer, the projection of its two inputs, and a loss of its own.
    """
    model, table, gpu = work.model, work.table, work.machine.weakest
    columns = model.vocabulary / table.tp
    product = product_seconds(gpu, work.kind, work.tokens, columns, model.hidden)
    passes = pass_seconds(gpu, work.software.loss_bytes * work.tokens * columns)
    head = (1 + BACKWARD) * product + passes
    inputs = product_seconds(
        gpu, work.kind, work.tokens, model.hidden / table.tp, 2.0 * model.hidden
    )
    layer = sum(layer_passes(work).by_part.values(), np.zeros(len(table)))
    return head + table.mtp * (head + (1 + BACKWARD) * inputs + layer)


def _pipeline(work: Workload) -> Floats:
    """Activations between stages, which overlap with nothing in the steady state of 1F1B."""
    table = work.table
    stride = (table.tp * table.cp * table.dp).astype(float)
    amount = work.width * work.tokens * work.model.hidden / table.sequence_split
    once = send_seconds(work.machine, stride, amount)
    # Forwards and backwards, once a chunk, with the passes that fill the pipeline.
    return np.where(table.pp > 1, 2 * once * table.vp * (table.count + table.pp - 1), 0.0)


@dataclass(frozen=True)
class StateSeconds:
    """(layouts,) seconds of collectives of a stage's states among replicas, were nothing hidden.

    Attributes:
        reduction: gradients are added up.
        gathering: weights are gathered.
        latency: of one gathering without bytes.
    """

    reduction: Floats
    gathering: Floats
    latency: Floats


def state_seconds(work: Workload) -> StateSeconds:
    """Seconds of the first stage's collectives of gradients and weights."""
    table, recipe, machine = work.table, work.run.recipe, work.machine
    weights, experts = stage_weights(work.model, table, first_rank(table))
    size, stride = table.spread, table.tp.astype(float)
    gradient, gathered = recipe.gradient, recipe.gathered
    reduced = gather_seconds(machine, size, stride, gradient * weights)
    collected = gather_seconds(machine, size, stride, gathered * weights)
    spread = np.maximum(table.expert_spread, 1)
    apart = (table.ep * table.etp).astype(float)
    expert_reduced = gather_seconds(machine, spread, apart, gradient * experts)
    reduced = reduced + expert_reduced
    collected = collected + gather_seconds(machine, spread, apart, gathered * experts)
    # Copies of the states add up their parts of the gradients.
    parts = gradient * (weights + experts) / np.maximum(size, 1)
    reduced = reduced + reduce_seconds(machine, table.copies, size * stride, parts)
    return StateSeconds(reduced, collected, gather_seconds(machine, size, stride, 0.0))


def _data(work: Workload, forward: Floats, backward: Floats) -> Floats:
    """Collectives of gradients and weights among replicas, as far as nothing hides them.

    Args:
        work: the arguments of all formulas.
        forward, backward: seconds of a micro-batch's products in a stage.
    """
    table, overlap = work.table, work.software.overlap
    states = state_seconds(work)
    # The last backward pass hides gradients, and the first forward pass of the next step weights.
    # While the last chunk of a stage passes, the collectives of all others have a group of passes.
    spans = (1 + (table.vp - 1) * table.group) / table.vp
    exposed = _exposed(states.reduction, overlap, spans * backward)
    exposed = exposed + _exposed(states.gathering, overlap, spans * forward)
    # ZeRO-2 reduces the gradients of each micro-batch.
    again = np.where(table.zero == 2, table.count - 1, 0.0)
    exposed = exposed + again * _exposed(states.reduction, overlap, backward)
    # ZeRO-3 gathers weights in both passes of each micro-batch, and reduces their gradients, all
    # layer by layer.
    layers = np.ceil(work.model.layers / table.pp)
    per_batch = 2 * states.gathering + states.reduction + 3 * layers * states.latency
    least = ZERO3_EXPOSED * per_batch
    zero3 = np.maximum(per_batch - overlap * (forward + backward), least) * table.count
    seconds: Floats = np.where(table.zero == 3, zero3, exposed)
    return seconds


def _exposed(seconds: Floats, overlap: float, compute: Floats) -> Floats:
    """(layouts,) seconds of a collective that products of so many seconds do not hide."""
    # An unhidden share stays, however long the products are.
    return np.maximum(seconds - overlap * compute, (1 - overlap) * seconds)


def _update(work: Workload) -> Floats:
    """The optimiser's pass over all states, and the launches around it."""
    table, recipe = work.table, work.run.recipe
    weights, experts = stage_weights(work.model, table, first_rank(table))
    divided = table.zero > 0
    own = weights / np.where(divided, table.spread, 1)
    own = own + experts / np.where(divided, np.maximum(table.expert_spread, 1), 1)
    states = recipe.master + recipe.optimizer.bytes
    # States and gradients are read and written, weights written.
    moved = own * (2 * states + recipe.weight + 2 * recipe.gradient)
    on_device = np.where(table.offload == 1, 0.0, 1.0)
    return on_device * pass_seconds(work.machine.weakest, moved) + UPDATE_LAUNCH


def _host(work: Workload) -> Floats:
    """The update in host memory, with gradients and weights on their way."""
    table, recipe = work.table, work.run.recipe
    weights, experts = stage_weights(work.model, table, first_rank(table))
    own = weights / table.spread + experts / np.maximum(table.expert_spread, 1)
    sent = own * (recipe.gradient + recipe.weight) / work.machine.weakest.host
    update = own * np.minimum(work.machine.count, work.machine.node) / HOST_RATE
    return np.where(table.offload == 1, sent + update, 0.0)
