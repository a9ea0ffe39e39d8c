"""Seconds and bytes of each op of a step, and of the transfers of its exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from situate.language.training.layout import Run
from situate.language.training.steps.costs import (
    PartSeconds,
    StateBytes,
    StepSeconds,
    gathers_often,
    step_bytes,
    step_costs,
)
from situate.language.training.steps.division import Block
from situate.language.training.steps.exchanges import Exchange, Rings, exchange, ring_seconds
from situate.language.training.steps.program import EMBEDDING
from situate.language.training.steps.site import Site
from situate.language.training.transformer import Transformer

EXCHANGES = {
    "attention.forward": ("context",),
    "network.forward": ("tensor", "experts"),
    "attention.backward": ("tensor", "experts"),
    "keys.backward": ("context",),
}
"""Exchanges between the parts of a block, by the op that waits for them."""


class OpSizes:
    """The sizes of a step's ops.

    Args:
        model: the transformer.
        run: layout, sequence, recipe.
        site: the cluster, or a part of it whose devices stand for all.
        rings: of a stage's devices at the site.
        blocks: the blocks of all chunks.

    Attributes:
        bytes: the bytes of a step on one device.
        rings: of a stage's devices.
        often: True if every micro-batch gathers weights and reduces gradients.
    """

    def __init__(
        self, model: Transformer, run: Run, site: Site, rings: Rings, blocks: Sequence[Block]
    ) -> None:
        self._run, self._site, self._blocks = run, site, blocks
        self.bytes = step_bytes(model, run)
        self.rings = rings
        self.often = gathers_often(run)
        self._slowest = step_costs(model, run, site.machine)
        self._costs = _costs_by_key(model, run, site)
        # The answers are the same for every micro-batch.
        self.seconds = cache(self._seconds)
        self.exchanges = cache(self._exchanges)
        self.hidden_seconds = cache(self._hidden_seconds)

    def _layers(self, block: int) -> int:
        """Layers of a block; 0 for the ends of the model."""
        return self._blocks[block].layers if 0 <= block < len(self._blocks) else 0

    def states(self, block: int) -> StateBytes:
        """States of a block, or of an end, on a device."""
        if block == EMBEDDING:
            return self.bytes.embedding
        return self.bytes.layer if self._layers(block) else self.bytes.head

    def elements(self, block: int) -> float:
        """Elements of a block's weights on a device."""
        return max(self._layers(block), 1) * self.states(block).elements

    def persistent(self, block: int) -> int:
        """Bytes of a block's states on a device."""
        states = self.states(block)
        nbytes = states.weights + states.gradients + states.optimizer
        return round(max(self._layers(block), 1) * nbytes)

    def activations(self, block: int) -> int:
        """Bytes that a block keeps of a micro-batch beside its input."""
        return round(max(self._layers(block) * self.bytes.activations - self.bytes.stream, 0.0))

    def gathered(self, block: int) -> int:
        """Bytes of a block's whole weights while a pass reads them."""
        return round(self._run.recipe.gathered * self.elements(block))

    def workspace(self, action: str, block: int) -> int:
        """Bytes that an op needs while it runs: logits, recomputed activations, and whole gradients
        before they are divided among replicas."""
        is_head = action == "head.forward"
        if not is_head and not action.endswith(".backward"):
            return 0
        need = self.bytes.logits if is_head else self.bytes.recomputation
        if self.often:
            need += self._run.recipe.gradient * self.states(block).elements
        return round(need)

    def _seconds(self, action: str, block: int) -> dict[str, float]:
        """Seconds of an op by the key of the device."""
        rest = sum(exchange.rest for exchange in self.exchanges(action, block).values())
        return {
            key: self._on_device(costs, action, block) + rest for key, costs in self._costs.items()
        }

    def _on_device(self, costs: StepSeconds, action: str, block: int) -> float:
        part, _, direction = action.partition(".")
        if part == "head":
            return costs.head
        parts = {"keys": costs.keys, "attention": costs.attention, "network": costs.network}
        if part in parts:
            return self._layers(block) * self._of_direction(parts[part], direction)
        if action == "update":
            return costs.update * self.elements(block)
        # A collective takes the part of its seconds that no pass hides.
        return costs.exposure * self._collective(costs, action) * self.elements(block)

    def _of_direction(self, part: PartSeconds, direction: str) -> float:
        late = part.weight if self._run.layout.late else 0.0
        return {"forward": part.forward, "backward": part.backward - late, "weight": late}[
            direction
        ]

    def _collective(self, costs: StepSeconds, action: str) -> float:
        """Seconds of an element in the collective of an op."""
        layout = self._run.layout
        if action == "weights":
            return 0.0 if self.often or layout.zero == 0 else costs.gathering
        if action == "gradients":
            once = 0.0 if self.often or layout.zero == 2 else costs.reduction
            # Without ZeRO, each replica needs the whole sum: a reduction and a gathering.
            return once + (costs.gathering if layout.zero == 0 else 0.0)
        if action.startswith("gather"):
            return costs.gathering
        return costs.reduction if action == "scatter" else 0.0

    def _hidden_seconds(self, action: str, block: int) -> float:
        """Seconds of the transfer of a collective, which can overlap with passes."""
        costs = self._slowest
        seconds = (1 - costs.exposure) * self._collective(costs, action) * self.elements(block)
        return ring_seconds(self._site, self.rings.states, seconds)

    def _exchanges(self, action: str, block: int) -> dict[str, Exchange]:
        """The exchanges between a block's parts that an op waits for, by their name."""
        layers, direction = self._layers(block), int(action.endswith("backward"))
        return {
            name: exchange(
                self._site,
                getattr(self.rings, name),
                layers * getattr(self._slowest, name)[direction],
            )
            for name in EXCHANGES.get(action, ())
        }


def _costs_by_key(model: Transformer, run: Run, site: Site) -> dict[str, StepSeconds]:
    """Seconds on each model of GPU; exchanges are those of the whole machine."""
    machine = site.machine
    result = {}
    for i, gpu in enumerate(machine.gpus[: len(site.devices)]):
        if (key := site.key(i)) not in result:
            alike = replace(machine, gpus=(gpu,) * machine.count)
            result[key] = step_costs(model, run, alike)
    return result
