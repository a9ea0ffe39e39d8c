"""The edges of a step: activations, gradients, exchanges of teams, and states of replicas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from situate.language.training.steps.ops import StepOps
from situate.language.training.steps.program import EMBEDDING, EVERY, block_ops


class DeviceEdges:
    """The edges that leave the ops of one device.

    Args:
        step: the ops, which take the edges.
        stage, member: of the device.
    """

    def __init__(self, step: StepOps, stage: int, member: int) -> None:
        self._step, self._member = step, member
        self._program = step.program(stage, member)
        self._micros = range(step.division.count(member))
        self._last = len(step.blocks)
        ops = block_ops(step.layout)
        self._forward, self._backward = ops["forward"], ops["backward"]
        self._late = ops["weight"] if step.layout.late else ()

    def add_all(self) -> None:
        """Add the edges of passes, of states and of gathered weights."""
        for part in self._program.parts:
            self._add_states(part)
            for micro in self._micros:
                self._add_passes(part, micro)
        for gather, before in self._program.waits.items():
            self._step.control.append((self._op(*before), self._op(*gather)))

    def _op(self, action: str, block: int, micro: int = EVERY, member: int | None = None) -> int:
        return self._step.op(self._member if member is None else member, action, block, micro)

    def _readers(self, block: int, micro: int) -> list[int]:
        """Ops that read the input of a block: both passes of its first part, or the head."""
        if block == self._last:
            return [self._op("head.forward", block, micro)]
        actions = [self._forward[0], self._backward[-1], *self._late[-1:]]
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
            self._send_stream(self._forward[-1], block, micro)
            self._send_gradient(self._backward[-1], block, micro)
            self._add_within(block, micro)
            last = self._backward[-1]
            self._add_gathered(block, micro, last, self._forward, self._backward)

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
        if self._step.sizes.often:
            for direction, readers in (("forward", forward), ("backward", backward)):
                if readers:
                    self._gather(f"gather.{direction}", readers, block, micro)
        if ("scatter", block, micro) in self._program.place:
            scatter = self._op("scatter", block, micro)
            self._step.control.append((self._op(last, block, micro), scatter))
            self._collective("scatter", scatter, block)

    def _send_stream(self, action: str, block: int, micro: int) -> None:
        """The activations from one block to the next."""
        readers = self._readers(block + 1, micro)
        size = self._step.sizes.bytes.stream
        self._step.send("stream", self._op(action, block, micro), readers, size, None)

    def _send_gradient(self, action: str, block: int, micro: int) -> None:
        """The gradients from one block to the one before."""
        before = block - 1
        actions = [self._backward[0], *self._late[:1]]
        if before == EMBEDDING:
            actions = ["embedding.backward"]
        readers = [self._op(action, before, micro) for action in actions]
        size = self._step.sizes.bytes.stream
        self._step.send("gradient", self._op(action, block, micro), readers, size, None)

    def _add_within(self, block: int, micro: int) -> None:
        """Edges between the ops of a block: activations, exchanges, and the order of its ops."""
        step = self._step
        forward, back, late = (
            [self._op(action, block, micro) for action in actions]
            for actions in (self._forward, self._backward, self._late)
        )
        step.control += [*pairwise(forward), *pairwise(back), *zip(back, late, strict=False)]
        activations = step.sizes.activations(block)
        step.send("activations", forward[0], [back[-1], *late], activations, None)
        for actions in (self._forward, self._backward):
            for before, action in pairwise(actions):
                self._exchange(before, action, block, micro)

    def _exchange(self, before: str, action: str, block: int, micro: int) -> None:
        """Exchanges between the parts of a block, with the next device of each team."""
        producer = self._op(before, block, micro)
        for name, exchange in self._step.sizes.exchanges(action, block).items():
            if exchange.next is not None:
                reader = self._op(action, block, micro, int(exchange.next[self._member]))
                self._step.send(name, producer, [reader], exchange.size, None)

    def _gather(self, action: str, names: Sequence[str], block: int, micro: int) -> None:
        """The weights of a block for one pass of a micro-batch."""
        gather = self._op(action, block, micro)
        self._step.control.append((gather, self._op(names[0], block, micro)))
        sizes = self._step.sizes
        if (seconds := sizes.hidden_seconds(action, block)) > 0:
            other = int(sizes.rings.states[self._member])
            readers = [self._op(name, block, micro, other) for name in names]
            self._step.send("weights", gather, readers, sizes.gathered(block), seconds)

    def _add_states(self, block: int) -> None:
        """Edges of weights and gradients: replicas exchange them, and the update reads them."""
        step = self._step
        weights, gradients = self._op("weights", block), self._op("gradients", block)
        update = self._op("update", block)
        step.control += [(weights, op) for op in self._firsts(block, self._member)]
        step.control += [(op, gradients) for op in self._lasts(block)]
        step.control.append((gradients, update))
        self._collective("weights", weights, block)
        self._collective("gradients", gradients, block)

    def _firsts(self, block: int, member: int) -> list[int]:
        """The first op of every micro-batch in a block on a device."""
        action = {EMBEDDING: "embedding.forward", self._last: "head.forward"}
        micros = range(self._step.division.count(member))
        name = action.get(block, self._forward[0])
        return [self._op(name, block, micro, member) for micro in micros]

    def _lasts(self, block: int) -> Iterator[int]:
        """The last ops of every micro-batch in a block."""
        actions = {EMBEDDING: ["embedding.backward"], self._last: ["head.forward"]}
        names = actions.get(block, list(self._late or self._backward[-1:]))
        for micro in self._micros:
            yield from (self._op(name, block, micro) for name in names)

    def _collective(self, action: str, producer: int, block: int) -> None:
        """The transfer of a collective to the next replica, where it takes no memory of its own."""
        seconds = self._step.sizes.hidden_seconds(action, block)
        if seconds <= 0:
            return
        other = int(self._step.sizes.rings.states[self._member])
        if action == "weights":
            readers = self._firsts(block, other)
        else:
            readers = [self._op("update", block, EVERY, other)]
        self._step.send("collective", producer, readers, 0, seconds)
