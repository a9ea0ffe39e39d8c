"""The ops of a step: every device has its own, for each micro-batch and each block of layers."""

from __future__ import annotations

from collections.abc import Iterable

from situate.data.graph import Op, Tensor
from situate.language.training.layout import Run
from situate.language.training.steps.division import Division, blocks_of
from situate.language.training.steps.exchanges import Rings
from situate.language.training.steps.op_sizes import OpSizes
from situate.language.training.steps.program import EMBEDDING, EVERY, DeviceProgram, Slot
from situate.language.training.steps.site import Site
from situate.language.training.transformer import Transformer

PHASES = {"forward": "forward", "backward": "backward", "weight": "backward"}
"""Phases of ops by their direction; other ops are of the update."""


class StepOps:
    """Ops of all devices, and the edges between them as they are added.

    Args:
        model: the transformer.
        run: sequence and recipe, with the layout that the division stands for.
        site: the cluster.
        division: layers of chunks, and micro-batches of replicas.

    Attributes:
        ops: the ops of one device after the other, in the order of its program.
        devices: the cluster's device of each op.
        tensors, control: the edges.
        members: (stage, number in the stage) of each device.
        sizes: seconds and bytes of ops and transfers.
        blocks: the blocks of layers.
    """

    def __init__(self, model: Transformer, run: Run, site: Site, division: Division) -> None:
        self._site, self.division, self.layout = site, division, division.layout
        self._dtype = run.recipe.product_type
        self.blocks = blocks_of(division)
        rings = Rings.of(self.layout)
        self.sizes = OpSizes(model, run, site, rings, self.blocks)
        self._programs: dict[tuple[int, int], DeviceProgram] = {}
        self._places: dict[tuple[int, int], tuple[int, dict[tuple[str, int, int], int]]] = {}
        # By block; the ends of the model are on the first and the last stage.
        self._stages = {i: self.layout.stage(block.chunk) for i, block in enumerate(self.blocks)}
        self._stages |= {EMBEDDING: 0, len(self.blocks): self.layout.last_stage}
        self.ops: list[Op] = []
        self.devices: list[int] = []
        self.tensors: list[Tensor] = []
        self.control: list[tuple[int, int]] = []

        self.members = [(s, m) for s in range(self.layout.pp) for m in range(division.members)]
        for stage, member in self.members:
            self._add_ops(stage, member)

    def program(self, stage: int, member: int) -> DeviceProgram:
        """The program of a device; devices of a stage with as many micro-batches share one."""
        key = stage, self.division.count(member)
        if key not in self._programs:
            self._programs[key] = DeviceProgram(self.layout, self.blocks, *key, self.sizes.often)
        return self._programs[key]

    def op(self, member: int, action: str, block: int, micro: int = EVERY) -> int:
        """The number of an op."""
        offset, place = self._places[self._stages[block], member]
        return offset + place[action, block, micro]

    def send(
        self, name: str, producer: int, readers: Iterable[int], size: float, seconds: float | None
    ) -> None:
        """Add a tensor."""
        text = f"{self.ops[producer].name}.{name}"
        self.tensors.append(Tensor(text, producer, round(size), tuple(readers), seconds=seconds))

    def _add_ops(self, stage: int, member: int) -> None:
        program = self.program(stage, member)
        self._places[stage, member] = len(self.ops), program.place
        gpu = stage * self.division.members + member
        # Bytes of libraries, which one update of a device holds.
        libraries = round(self.sizes.bytes.constant)
        for slot in program.slots:
            holds = slot.action == "update"
            persistent = self.sizes.persistent(slot.block) + libraries if holds else 0
            libraries = 0 if holds else libraries
            self.ops.append(self._op(slot, f"s{stage}.{member}", persistent))
        self.devices += [self._site.devices[gpu]] * len(program.slots)

    def _op(self, slot: Slot, where: str, persistent: int) -> Op:
        part = self._part(slot.block)
        micro = "" if slot.micro == EVERY else f".mb{slot.micro}"
        return Op(
            f"{where}/{part}.{slot.action}{micro}",
            slot.action,
            dtype=self._dtype,
            seconds=self.sizes.seconds(slot.action, slot.block),
            persistent=persistent,
            workspace=self.sizes.workspace(slot.action, slot.block),
            group=f"{where}/{part}",
            module=f"{part}.{slot.action.partition('.')[0]}",
            phase=PHASES.get(slot.action.rpartition(".")[2], "update"),
        )

    def _part(self, block: int) -> str:
        if block == EMBEDDING:
            return "embedding"
        return self.blocks[block].name if block < len(self.blocks) else "head"
