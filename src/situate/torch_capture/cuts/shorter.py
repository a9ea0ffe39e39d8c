"""A model with fewer of its repeated blocks, on which cuts are compared in less time."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from situate.torch_capture import names
from situate.torch_capture.build import Build
from situate.torch_capture.tracing import Trace

if TYPE_CHECKING:
    import torch


def chains(trace: Trace) -> set[str]:
    """Paths of the modules whose numbered children read one another, such as the layers of a
    transformer; experts of one layer do not."""
    paths: set[str] = set()
    module_of = {node: names.module(node) or "" for node in trace.graph.nodes}
    for node, module in module_of.items():
        for source in node.all_input_nodes:
            paths.update(_steps(module_of[source], module))
    return paths


def _steps(source: str, reader: str) -> Iterator[str]:
    """The module of which one path's child is the one before the other's."""
    for depth, (one, other) in enumerate(zip(source.split("."), reader.split("."), strict=False)):
        if one != other:
            if one.isdecimal() and other.isdecimal() and int(other) == int(one) + 1:
                yield ".".join(reader.split(".")[:depth])
            return


def shortened(build: Build, paths: Collection[str], blocks: int) -> Build:
    """A function that builds the same model with fewer blocks.

    Args:
        build: as `situate.capture` takes it.
        paths: of modules with numbered children, see `chains`.
        blocks: the number of children that stay, of those that are built alike.
    """

    def build_short() -> Any:
        model, *others = build()
        shortened_paths: list[str] = []
        for path in sorted(paths, key=len):
            is_within = any(f"{path}.".startswith(f"{outer}.") for outer in shortened_paths)
            if not is_within and _shorten(model.get_submodule(path), blocks):
                shortened_paths.append(path)
        return (model, *others)

    return build_short


def _shorten(module: torch.nn.Module, blocks: int) -> bool:
    """Remove the children after the first ones, if all are built alike; True if any is removed."""
    children = [*module.named_children()]
    if len({_structure(child) for _, child in children}) > 1:
        return False
    for name, _ in children[blocks:]:
        delattr(module, name)
    return len(children) > blocks


def _structure(module: torch.nn.Module) -> tuple[Any, ...]:
    parameters = ((name, tuple(value.shape)) for name, value in module.named_parameters())
    return type(module), *parameters
