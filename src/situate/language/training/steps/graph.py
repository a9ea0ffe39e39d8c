"""The graph of a training step in a layout, with the decision that its program makes.

Every device of a stage has ops of its own, for each micro-batch and each block of layers. Ops of a
block on a device are one group, as they share its weights.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from situate.data.graph import Graph, Op, Tensor
from situate.language.training.layout import Run
from situate.language.training.steps.division import Division, blocks_of
from situate.language.training.steps.op_sizes import OpSizes
from situate.language.training.steps.program import (
    COMPUTE,
    EMBEDDING,
    EVERY,
    DeviceProgram,
    Slot,
)
from situate.language.training.steps.site import Site
from situate.language.training.transformer import Transformer

PHASES = {"forward": "forward", "backward": "backward", "weight": "backward"}
"""Phases of ops by their direction; other ops are of the update."""


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
        site: the cluster.
        division: layers of chunks, and micro-batches of replicas.

    Raises:
        SituateError: the step has too many ops.
    """
    builder = _Builder(model, replace(run, layout=division.layout), site, division)
    builder.add_all()
    graph = Graph(
        f"{model.name} {division.layout}",
        tuple(builder.ops),
        tuple(builder.tensors),
        tuple(dict.fromkeys(builder.control)),
        source="layout",
    )
    placement = np.array(builder.devices, np.int32)
    return StepGraph(graph, placement, _program_order(graph, placement))


class _Builder:
    """Ops, tensors and control edges as they are added."""

    def __init__(self, model: Transformer, run: Run, site: Site, division: Division) -> None:
        self.site, self.division, self.layout = site, division, division.layout
        self.dtype = run.recipe.product_type
        self.blocks = blocks_of(division)
        self.sizes = OpSizes(model, run, site, self.blocks)
        self._programs: dict[tuple[int, int], DeviceProgram] = {}
        self._places: dict[tuple[int, int], tuple[int, dict[tuple[str, int, int], int]]] = {}
        # By block; the ends of the model are on the first and the last stage.
        self._stages = {i: block.chunk % self.layout.pp for i, block in enumerate(self.blocks)}
        self._stages |= {EMBEDDING: 0, len(self.blocks): self.layout.pp - 1}
        self.ops: list[Op] = []
        self.devices: list[int] = []
        self.tensors: list[Tensor] = []
        self.control: list[tuple[int, int]] = []

    def add_all(self) -> None:
        """Add the ops of all devices, then the edges between them."""
        devices = [(s, m) for s in range(self.layout.pp) for m in range(self.division.members)]
        for stage, member in devices:
            self._add_ops(stage, member)
        for stage, member in devices:
            _Edges(self, stage, member).add_all()

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
        libraries = round(self.sizes.bytes.constant)
        for slot in program.slots:
            holds = slot.action == "update"
            persistent = self.sizes.persistent(slot.block) + libraries if holds else 0
            libraries = 0 if holds else libraries
            self.ops.append(self._op(slot, f"s{stage}.{member}", persistent))
        self.devices += [self.site.devices[gpu]] * len(program.slots)

    def _op(self, slot: Slot, where: str, persistent: int) -> Op:
        part = self._part(slot.block)
        micro = "" if slot.micro == EVERY else f".mb{slot.micro}"
        return Op(
            f"{where}/{part}.{slot.action}{micro}",
            slot.action,
            dtype=self.dtype,
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


class _Edges:
    """The edges that leave the ops of one device."""

    def __init__(self, builder: _Builder, stage: int, member: int) -> None:
        self._builder, self._member = builder, member
        self._program = builder.program(stage, member)
        self._micros = range(builder.division.count(member))
        self._last = len(builder.blocks)

    def add_all(self) -> None:
        """Add the edges of passes, of states and of gathered weights."""
        for part in self._program.parts:
            self._add_states(part)
            for micro in self._micros:
                self._add_passes(part, micro)
        for gather, before in self._program.waits.items():
            self._builder.control.append((self._op(*before), self._op(*gather)))

    def _op(self, action: str, block: int, micro: int = EVERY, member: int | None = None) -> int:
        return self._builder.op(self._member if member is None else member, action, block, micro)

    def _readers(self, block: int, micro: int) -> list[int]:
        """Ops that read the input of a block: both passes of its attention, or the head."""
        if block == self._last:
            return [self._op("head.forward", block, micro)]
        actions = ["attention.forward", "attention.backward"]
        if self._builder.layout.zero_bubble:
            actions.append("attention.weight")
        return [self._op(action, block, micro) for action in actions]

    def _add_passes(self, block: int, micro: int) -> None:
        """Edges of one micro-batch in a block or an end."""
        if block == EMBEDDING:
            self._send_stream("embedding.forward", block, micro)
            self._add_gathered(block, micro, "embedding.backward", ["embedding.forward"])
        elif block == self._last:
            self._send_gradient("head.forward", block, micro)
            self._add_gathered(block, micro, "head.forward", ["head.forward"])
        else:
            self._send_stream("network.forward", block, micro)
            self._send_gradient("attention.backward", block, micro)
            self._add_within(block, micro)
            back = COMPUTE["backward"]
            self._add_gathered(block, micro, back[-1], COMPUTE["forward"], back)

    def _add_gathered(
        self,
        block: int,
        micro: int,
        last: str,
        forward: Sequence[str],
        backward: Sequence[str] = (),
    ) -> None:
        """Edges of weights that each pass gathers, and of gradients that each micro-batch reduces.

        Args:
            last: the op that ends the gradients.
            forward, backward: ops that read the weights in each direction.
        """
        if self._builder.sizes.often:
            for direction, readers in (("forward", forward), ("backward", backward)):
                if readers:
                    self._gather(f"gather.{direction}", readers, block, micro)
        if ("scatter", block, micro) in self._program.place:
            scatter = self._op("scatter", block, micro)
            self._builder.control.append((self._op(last, block, micro), scatter))
            self._collective("scatter", scatter, block)

    def _send_stream(self, action: str, block: int, micro: int) -> None:
        """The activations from one block to the next."""
        readers = self._readers(block + 1, micro)
        size = self._builder.sizes.bytes.stream
        self._builder.send("stream", self._op(action, block, micro), readers, size, None)

    def _send_gradient(self, action: str, block: int, micro: int) -> None:
        """The gradients from one block to the one before."""
        before = block - 1
        actions = ["network.backward"] if before != EMBEDDING else ["embedding.backward"]
        if self._builder.layout.zero_bubble and before != EMBEDDING:
            actions.append("network.weight")
        readers = [self._op(each, before, micro) for each in actions]
        size = self._builder.sizes.bytes.stream
        self._builder.send("gradient", self._op(action, block, micro), readers, size, None)

    def _add_within(self, block: int, micro: int) -> None:
        """Edges between the ops of a block: what it keeps, exchanges and turns."""
        builder, sizes = self._builder, self._builder.sizes
        forward = self._op("attention.forward", block, micro)
        network = self._op("network.forward", block, micro)
        back = self._op("network.backward", block, micro)
        last = self._op("attention.backward", block, micro)
        builder.control += [(forward, network), (back, last)]
        ends = [last]
        if builder.layout.zero_bubble:
            late = [self._op(f"{part}.weight", block, micro) for part in ("network", "attention")]
            builder.control += [(back, late[0]), (last, late[1])]
            ends += late
        builder.send("kept", forward, ends, sizes.kept(block), None)
        self._exchange(forward, "network.forward", block, micro)
        self._exchange(back, "attention.backward", block, micro)

    def _exchange(self, producer: int, action: str, block: int, micro: int) -> None:
        """Exchanges between the parts of a block, with the next device of each team."""
        for name, each in zip(
            ("tensor", "experts"), self._builder.sizes.exchanges(action, block), strict=True
        ):
            if each.next is not None:
                reader = self._op(action, block, micro, int(each.next[self._member]))
                self._builder.send(name, producer, [reader], each.size, None)

    def _gather(self, action: str, names: Sequence[str], block: int, micro: int) -> None:
        """The weights of a block for one pass of a micro-batch."""
        gather = self._op(action, block, micro)
        self._builder.control.append((gather, self._op(names[0], block, micro)))
        each = self._builder.sizes.gather_exchange(block)
        if each.next is not None:
            other = int(each.next[self._member])
            readers = [self._op(name, block, micro, other) for name in names]
            self._builder.send("weights", gather, readers, each.size, None)

    def _add_states(self, block: int) -> None:
        """Edges of weights and gradients: replicas exchange them, and the update reads them."""
        builder = self._builder
        weights, gradients = self._op("weights", block), self._op("gradients", block)
        update = self._op("update", block)
        builder.control += [(weights, op) for op in self._firsts(block, self._member)]
        builder.control += [(op, gradients) for op in self._lasts(block)]
        builder.control.append((gradients, update))
        self._collective("weights", weights, block)
        self._collective("gradients", gradients, block)

    def _firsts(self, block: int, member: int) -> list[int]:
        """The first op of every micro-batch in a block on a device."""
        action = {EMBEDDING: "embedding.forward", self._last: "head.forward"}
        micros = range(self._builder.division.count(member))
        name = action.get(block, "attention.forward")
        return [self._op(name, block, micro, member) for micro in micros]

    def _lasts(self, block: int) -> Iterator[int]:
        """The last ops of every micro-batch in a block."""
        actions = {EMBEDDING: ["embedding.backward"], self._last: ["head.forward"]}
        names = actions.get(block, ["attention.backward"])
        if self._builder.layout.zero_bubble and 0 <= block < self._last:
            names = ["network.weight", "attention.weight"]
        for micro in self._micros:
            yield from (self._op(name, block, micro) for name in names)

    def _collective(self, action: str, producer: int, block: int) -> None:
        """The transfer of a collective to the next replica, which has room for it already."""
        seconds = self._builder.sizes.hidden_seconds(action, block)
        if seconds <= 0:
            return
        other = int(self._builder.sizes.rings.states[self._member])
        if action == "weights":
            readers = self._firsts(block, other)
        else:
            readers = [self._op("update", block, EVERY, other)]
        self._builder.send("collective", producer, readers, 0, seconds)


def _program_order(graph: Graph, placement: NDArray[np.int32]) -> NDArray[np.int32]:
    """An order in which every op follows its producers, and the op before it on its device.

    Args:
        graph: whose ops of each device stand in the order of its program.
        placement: (n,) the device of each op.
    """
    count = len(graph.ops)
    followers: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for before, after in (*graph.edges(), *_turns(placement)):
        followers[before].append(after)
        missing[after] += 1
    queue = deque(i for i in range(count) if not missing[i])
    order = []
    while queue:
        op = queue.popleft()
        order.append(op)
        for after in followers[op]:
            missing[after] -= 1
            if not missing[after]:
                queue.append(after)
    assert len(order) == count, "the programs of the devices wait for one another"
    return np.array(order, np.int32)


def _turns(placement: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """(op, next op) of every device."""
    last: dict[int, int] = {}
    for op, device in enumerate(placement.tolist()):
        if device in last:
            yield last[device], op
        last[device] = op
