"""Devices of ops, and copies between devices, as ggml's scheduler makes them (`ggml-backend.cpp`).

An op with a weight runs where the weight lies. Other ops follow their neighbours, those on a GPU
first. The ops of one device in a row are a split, which begins with copies of the tensors that it
reads from elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from situate.language.activations.tensors import Graph, Tensor

COPIES = 4
"""Ubatches under way with pipeline parallelism (`GGML_SCHED_MAX_COPIES`)."""

OFFLOAD_BATCH = 32
"""Shortest batch for which a GPU computes with the host's weights (`GGML_OP_OFFLOAD_MIN_BATCH`)."""


class Scheduler:
    """The devices of a graph's tensors; the host has the last number.

    Attributes:
        host: number of the host.
        op_offload: a GPU computes with weights of the host in long batches.
        copies: of each tensor that a split reads from elsewhere, and of each input.
    """

    def __init__(self, host: int, op_offload: bool, pipeline: bool) -> None:
        self.host = host
        self.op_offload = op_offload and host > 0
        self.copies = COPIES if pipeline else 1

    def run(self, graph: Graph) -> tuple[list[Tensor], list[Tensor]]:
        """Leaves and nodes in the order of their allocation, with copies and dependencies."""
        self._assign(graph)
        return self._split(graph)

    def _assign(self, graph: Graph) -> None:
        for leaf in graph.leaves:
            if leaf.entry:
                leaf.device = self.host
        for node in graph.nodes:
            if node.device < 0:
                node.device = self._own_device(node)
        ops = [node for node in graph.nodes if not node.view]
        # As ggml does: GPUs spread to their neighbours in both directions, and only then the host.
        for backwards in (False, True):
            self._spread(reversed(ops) if backwards else ops, accelerators=True)
        for backwards in (False, True):
            self._spread(reversed(ops) if backwards else ops, accelerators=False)
        for node in graph.nodes:
            if node.root is not None and node.device < 0:
                node.device = node.root.device
            for source in node.sources:
                if source.device < 0:
                    source.device = node.device if source.root is None else source.root.device

    def _own_device(self, node: Tensor) -> int:
        """The device of the memory that an op writes to, or of its weights; -1 without any."""
        if node.root is not None and node.root.stored:
            return node.root.device
        if node.free_choice:
            return -1
        for source in node.sources:
            if source.weight:
                if (
                    self.op_offload
                    and source.device == self.host
                    and node.offload_batch() >= OFFLOAD_BATCH
                ):
                    # The first GPU computes with the host's weights.
                    return 0
                return source.device
        return -1

    def _spread(self, nodes: Iterable[Tensor], accelerators: bool) -> None:
        """Give ops without a device the one of the op before; `accelerators` if only GPUs count."""
        device = -1
        for node in nodes:
            if node.device >= 0:
                device = -1 if accelerators and node.device == self.host else node.device
            elif device >= 0:
                node.device = device

    def _split(self, graph: Graph) -> tuple[list[Tensor], list[Tensor]]:
        copies: dict[tuple[int, int], list[Tensor]] = {}
        leaves, nodes = self._entry_copies(graph, copies), []
        inputs: list[Tensor] = []
        members: list[Tensor] = []
        device = -1
        for node in graph.nodes:
            if not node.view:
                # A new split can use the memory of weights again that an earlier one copied.
                crossing = any(s.weight and s.device != node.device for s in node.sources)
                if node.device != device or (crossing and inputs):
                    nodes += self._opened(inputs, copies, device, members, leaves)
                    inputs, members, device = [], [], node.device
                for i, source in enumerate(node.sources):
                    if source.device != device:
                        key = (id(source), device)
                        if key not in copies:
                            copies[key] = self._copies(source, device)
                            inputs.append(source)
                        node.sources[i] = copies[key][0]
            members.append(node)
        nodes += self._opened(inputs, copies, device, members, leaves)
        return [*leaves, *graph.leaves], nodes

    def _entry_copies(
        self, graph: Graph, copies: dict[tuple[int, int], list[Tensor]]
    ) -> list[Tensor]:
        """With pipeline parallelism, each input several times on the host."""
        if self.copies == 1:
            return []
        result: list[Tensor] = []
        for leaf in graph.leaves:
            if leaf.entry:
                leaf.permanent = True
                others = self._copies(leaf, self.host)[1:]
                copies[id(leaf), self.host] = [leaf, *others]
                result += [leaf, *others]
        return result

    def _opened(
        self,
        inputs: Sequence[Tensor],
        copies: dict[tuple[int, int], list[Tensor]],
        device: int,
        members: Sequence[Tensor],
        leaves: list[Tensor],
    ) -> list[Tensor]:
        """The nodes of a split, behind the copies that it reads."""
        nodes: list[Tensor] = []
        for source in inputs:
            on_device = copies[id(source), device]
            if self.copies > 1:
                leaves += on_device
            nodes += [_dependency(source), on_device[0]]
        return [*nodes, *members]

    def _copies(self, source: Tensor, device: int) -> list[Tensor]:
        result = []
        for _ in range(self.copies):
            copy = Tensor(source.shape, element=source.element, size=source.size)
            copy.strided, copy.device = source.strided, device
            copy.permanent = self.copies > 1
            result.append(copy)
        return result


def _dependency(source: Tensor) -> Tensor:
    """A reader of a tensor that is copied, until the copy exists."""
    tensor = Tensor(source.shape, (source,), size=0)
    tensor.root, tensor.dependency, tensor.device = source.root or source, True, source.device
    return tensor
