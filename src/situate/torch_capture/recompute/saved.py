"""The values that a step's forward pass saves for its backward pass, and the modules that contain
them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from situate.torch_capture import cost, names
from situate.torch_capture.flow import Storage, flow, storages
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    from torch import fx


class Saved:
    """The values that the ops of a forward pass compute, and their readers.

    Attributes:
        trace: of the step.
        flow: of its data.
        storage: by node, the storage that it is in.
        number: by node, its place in the order of execution.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.flow = flow(trace)
        self.storage = storages(trace)
        self.number = {node: i for i, node in enumerate(trace.graph.nodes)}

    @cached_property
    def forward(self) -> tuple[fx.Node, ...]:
        """The ops of the forward pass, in order."""
        return tuple(node for node in self.flow.ops if not is_backward(node))

    @cached_property
    def module(self) -> dict[fx.Node, str]:
        """By op of the forward pass, the path of its module; empty outside of all modules."""
        modules: dict[fx.Node, str] = {}
        for node in self.forward:
            path = names.module(node) or ""
            modules[node] = "" if names.is_outside(path) else path
        return modules

    @cached_property
    def within(self) -> dict[Storage, str]:
        """By value of the forward pass that is read, the innermost module that contains its op and
        all its readers in the forward pass. The path is empty if there is none, or if the step
        returns the value."""
        gradients = (value for values in self.flow.gradients.values() for value in values)
        external = {*self.flow.results, *self.flow.mutations.values(), *gradients}
        return {
            value: "" if value in external else self._common(value)
            for value in self.flow.readers
            if value[0] in self.module
        }

    @cached_property
    def nodes_of(self) -> dict[Storage, list[fx.Node]]:
        """By value, the nodes that stand for it or for a view of it."""
        nodes: dict[Storage, list[fx.Node]] = {}
        for node, value in self.storage.items():
            nodes.setdefault(value, []).append(node)
        return nodes

    def is_kept(self, value: Storage) -> bool:
        """True if the backward pass reads a value."""
        return any(map(is_backward, self.flow.readers.get(value, ())))

    @cached_property
    def saved_bytes(self) -> dict[str, int]:
        """By path of a module, the bytes of its inner values that the backward pass reads."""
        total: dict[str, int] = {}
        for (node, k), inner in self.within.items():
            if self.is_kept((node, k)):
                size = cost.nbytes(cost.outputs(node.meta["val"])[k])
                for path in enclosing(inner):
                    total[path] = total.get(path, 0) + size
        return total

    def _common(self, value: Storage) -> str:
        """The innermost module that contains an op and its readers in the forward pass."""
        readers = [node for node in self.flow.readers[value] if not is_backward(node)]
        # A buffer passes from slice to slice; it cannot be recomputed in one of them.
        if any(slice_of(reader) != slice_of(value[0]) for reader in readers):
            return ""
        paths = [self.module[node].split(".") for node in (value[0], *readers)]
        common = []
        for first, *others in zip(*paths, strict=False):
            if any(other != first for other in others):
                break
            common.append(first)
        return ".".join(common)


def is_backward(node: fx.Node) -> bool:
    """True for a node of the backward pass."""
    return bool(node.meta.get("partitioner_tag") == "is_backward")


def enclosing(path: str) -> Iterator[str]:
    """The paths of the modules around a module and of the module itself, the outermost first."""
    parts = path.split(".")
    return (".".join(parts[: i + 1]) for i in range(len(parts)) if path)


def slice_of(node: fx.Node) -> int | None:
    """The number of the slice that a node works on."""
    number: int | None = node.meta.get(names.SLICE)
    return number
